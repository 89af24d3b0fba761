//! Replay: a run's record is driven through the same turns again, and nothing is called.
//!
//! What came from outside is taken from the record; what follows from it is made anew and must be
//! byte-identical. A difference names the first event that differs.

use serde::Serialize;

use crate::batch::Batch;
use crate::event::Sealed;
use crate::ids::RunId;
use crate::machine::Machine;
use crate::turn::{Given, Run, Turn, TurnError, is_given};

/// The first place where a replay and its record part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The batch.
    pub batch: u64,
    /// The event's number in the run.
    pub seq: u64,
    /// What the record says there; none where it ends earlier.
    pub recorded: Option<String>,
    /// What the replay says there; none where it ends earlier.
    pub replayed: Option<String>,
}

/// Why a replay stopped.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A decision came out otherwise.
    #[error(
        "event {} (batch {}) differs: recorded {}, replayed {}",
        .0.seq, .0.batch, .0.recorded.as_deref().unwrap_or("nothing"), .0.replayed.as_deref().unwrap_or("nothing")
    )]
    Differs(Box<Difference>),
    /// The record doesn't fit the machine.
    #[error(transparent)]
    Turn(#[from] TurnError),
}

/// A replay in progress; fed batch by batch, so that a long run needs no memory.
pub struct Replay<M: Machine> {
    run: Run<M>,
    events: u64,
}

impl<M: Machine> Replay<M> {
    /// A replay of `run` from its first batch.
    pub fn new(run: RunId) -> Self {
        Self {
            run: Run::new(run),
            events: 0,
        }
    }

    /// How many events came out equal so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The state as replayed so far.
    pub fn run(&self) -> &Run<M> {
        &self.run
    }

    /// Replays the next recorded batch.
    pub fn batch(&mut self, recorded: &Batch) -> Result<(), ReplayError> {
        let Some(first) = recorded.events.first() else {
            return Ok(());
        };
        let mut turn = Turn::new(&mut self.run, first.event.time, recorded.header.epoch);
        for sealed in recorded
            .events
            .iter()
            .filter(|sealed| is_given(&sealed.event))
        {
            turn.give(given_again(sealed))?;
        }
        let outcome = turn.finish()?;
        let replayed = outcome.batch.map(|batch| batch.events).unwrap_or_default();
        compare(recorded, &replayed)?;
        self.events += recorded.events.len() as u64;
        Ok(())
    }
}

/// The given event as it was given.
fn given_again(sealed: &Sealed) -> Given {
    let event = &sealed.event;
    Given {
        kind: known_kind(&event.kind),
        scope: event.scope.clone(),
        effect: event.effect.clone().zip(event.attempt),
        scrub: event.scrub,
        body: event.body.clone(),
    }
}

fn known_kind(kind: &str) -> &'static str {
    use crate::kernel::kind as known;
    [
        known::RUN_STARTED,
        known::INVOCATION_BEGUN,
        known::INVOCATION_ENDED,
        known::EFFECT_SETTLED,
        known::EFFECT_ABANDONED,
        known::EFFECT_UNKNOWN,
        known::EFFECT_LOST,
        known::CLOCK_REACHED,
        known::LIMITS_SET,
        known::OPERATOR_ACT,
        known::OPERATOR_NOTED,
    ]
    .into_iter()
    .find(|known| *known == kind)
    .expect("BUG: is_given and known_kind list the same kinds")
}

fn compare(recorded: &Batch, replayed: &[Sealed]) -> Result<(), ReplayError> {
    let length = recorded.events.len().max(replayed.len());
    let first_seq = recorded.events.first().map_or(0, |sealed| sealed.event.seq);
    for index in 0..length {
        let (left, right) = (recorded.events.get(index), replayed.get(index));
        if left.map(|sealed| &sealed.bytes) != right.map(|sealed| &sealed.bytes) {
            let text = |sealed: &Sealed| String::from_utf8_lossy(&sealed.bytes).into_owned();
            return Err(ReplayError::Differs(Box::new(Difference {
                batch: recorded.header.n,
                seq: first_seq + index as u64,
                recorded: left.map(text),
                replayed: right.map(text),
            })));
        }
    }
    Ok(())
}
