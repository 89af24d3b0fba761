//! One turn: what came from outside becomes one batch, with everything that follows from it.
//!
//! The host gives events ([`Given`]) to a [`Turn`]; the turn records each, lets the machine decide,
//! announces the effects that the new state wants, ends the invocation where nothing is left to do,
//! and hands back a batch to be committed and the effects to be performed *after* that commit. A
//! replay runs the same turns over the recorded givens and compares the bytes.
//!
//! `run` is what a turn works on, `given` what comes in, `late` what comes too late, `wanted` what
//! follows from the new state.

mod given;
mod late;
mod run;
mod wanted;

use serde::Serialize;
use serde_json::Value;

use crate::batch::Batch;
use crate::canonical::CanonicalError;
use crate::digest::Digest;
use crate::effect::Announced;
use crate::event::{EVENT_SCHEMA, Event, Scope, Scrub, Sealed};
use crate::ids::EffectId;
use crate::kernel::{ClockExhausted, kind};
use crate::machine::{Draft, Input, Machine, Misfit};
use crate::time::Micros;

pub use given::{Given, is_given};
pub use late::Late;
pub use run::Run;

use given::input_of;

/// The most derived events one turn may make before it is taken for a machine that never rests.
const DERIVED_EVENTS_MAX: usize = 10_000;

/// What a turn leaves to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// To be committed before anything else; none when nothing happened.
    pub batch: Option<Batch>,
    /// To be performed after the commit.
    pub announced: Vec<Announced>,
    /// In flight and not wanted any more: to be stopped and given up.
    pub unwanted: Vec<EffectId>,
}

/// Why a turn can't be finished.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// What was given came too late; nothing of it is recorded, and the turn can go on.
    #[error(transparent)]
    Late(#[from] Late),
    /// The given event doesn't fit the state.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// A body that can't be hashed.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The specification can't be started from.
    #[error("the run's specification can't be used: {0}")]
    Specification(String),
    /// The machine asks for ever more within one turn.
    #[error("the machine made more than {DERIVED_EVENTS_MAX} events in one turn")]
    Restless,
}

/// A turn over a run.
pub struct Turn<'a, M: Machine> {
    run: &'a mut Run<M>,
    now: Micros,
    epoch: u64,
    events: Vec<Sealed>,
    announced: Vec<Announced>,
}

impl<'a, M: Machine> Turn<'a, M> {
    /// Begins a turn at `now` (never before the newest event) under the writer's `epoch`.
    pub fn new(run: &'a mut Run<M>, now: Micros, epoch: u64) -> Self {
        let now = now.max(run.kernel.last_time);
        Self {
            run,
            now,
            epoch,
            events: Vec::new(),
            announced: Vec::new(),
        }
    }

    /// The run as it stands within this turn.
    pub fn run(&self) -> &Run<M> {
        self.run
    }

    /// Records what came from outside and lets the machine decide about it. What comes too late is
    /// refused, and nothing is recorded of it.
    pub fn give(&mut self, given: Given) -> Result<(), TurnError> {
        self.run.check(&given)?;
        let effect = given.effect.as_ref().map(|(effect, _)| effect.clone());
        let after = effect
            .as_ref()
            .and_then(|effect| self.run.kernel.in_flight.get(effect))
            .map(|flight| flight.event);
        let scope = match effect
            .as_ref()
            .and_then(|id| self.run.kernel.in_flight.get(id))
        {
            Some(flight) => flight.scope.clone(),
            None => given.scope,
        };
        let attempt = given.effect.map(|(_, attempt)| attempt);
        let event = self.envelope(given.kind, scope, after, given.body);
        let event = Event {
            effect,
            attempt,
            scrub: given.scrub,
            ..event
        };
        let input = input_of(&event)?;
        self.record(event)?;
        if let Some(input) = input {
            self.decide(&input)?;
        }
        self.note_out_of_time()
    }

    /// Gives several things that belong together, an answer and the limits that come with it: all
    /// of them, or none where one doesn't fit.
    pub fn say(&mut self, words: Vec<Given>) -> Result<(), TurnError> {
        let Run {
            kernel,
            state,
            batch,
        } = &*self.run;
        let before = (kernel.clone(), state.clone(), *batch);
        let events = self.events.len();
        let said = words.into_iter().try_for_each(|given| self.give(given));
        if said.is_err() {
            let (kernel, state, batch) = before;
            *self.run = Run {
                kernel,
                state,
                batch,
            };
            self.events.truncate(events);
        }
        said
    }

    /// Says that the wall clock has run out, once.
    fn note_out_of_time(&mut self) -> Result<(), TurnError> {
        let kernel = &self.run.kernel;
        let Some(over) = kernel.account.out_of_time() else {
            return Ok(());
        };
        if kernel.is_out_of_time || kernel.invocation.is_none() {
            return Ok(());
        }
        let body = plain(&ClockExhausted { over });
        let event = self.envelope(kind::CLOCK_EXHAUSTED, Scope::run(), None, body);
        self.record(event)?;
        self.decide(&Input::Exhausted { over })
    }

    /// Announces what the new state wants, ends what has come to its end, and closes the batch.
    pub fn finish(mut self) -> Result<Outcome, TurnError> {
        self.announce_wanted()?;
        while self.withdraw_unwanted()? {
            self.announce_wanted()?;
        }
        self.end_invocation()?;
        let unwanted = self.unwanted();
        if self.events.is_empty() {
            return Ok(Outcome {
                batch: None,
                announced: Vec::new(),
                unwanted,
            });
        }
        let (n, previous) = match self.run.batch {
            Some((n, digest)) => (n + 1, Some(digest)),
            None => (0, None),
        };
        let run = self.run.kernel.run.clone();
        let batch = Batch::new(run, n, previous, self.epoch, self.events)?;
        self.run.close_batch(n, batch.digest);
        Ok(Outcome {
            batch: Some(batch),
            announced: self.announced,
            unwanted,
        })
    }

    fn envelope(&self, kind: &str, scope: Scope, after: Option<Digest>, body: Value) -> Event {
        let kernel = &self.run.kernel;
        let parents = match (after, kernel.last_event) {
            (Some(cause), _) => vec![cause],
            (None, last) => last.into_iter().collect(),
        };
        Event {
            schema: EVENT_SCHEMA,
            run: kernel.run.clone(),
            seq: kernel.next_seq,
            parents,
            kind: kind.to_owned(),
            scope,
            effect: None,
            attempt: None,
            time: self.now,
            scrub: Scrub {
                rules: 0,
                values: 0,
            },
            body,
        }
    }

    fn record(&mut self, event: Event) -> Result<Digest, TurnError> {
        if self.events.len() >= DERIVED_EVENTS_MAX {
            return Err(TurnError::Restless);
        }
        let sealed = event.seal()?;
        self.run.apply(&sealed.event, sealed.id)?;
        let id = sealed.id;
        self.events.push(sealed);
        Ok(id)
    }

    fn decide(&mut self, input: &Input) -> Result<(), TurnError> {
        let Some(state) = &self.run.state else {
            return Ok(());
        };
        let drafts = M::decide(state, input, self.now);
        for Draft {
            kind,
            scope,
            after,
            body,
        } in drafts
        {
            let event = self.envelope(kind, scope, after, body);
            self.record(event)?;
        }
        Ok(())
    }
}

/// A body as it is recorded.
fn plain<T: Serialize>(body: &T) -> Value {
    serde_json::to_value(body).expect("BUG: an event's body is plain data")
}
