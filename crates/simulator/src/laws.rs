//! The laws that hold of one run: at every commit, and of a record at rest.

use std::collections::BTreeMap;

use loopwright_core::batch::Batch;
use loopwright_core::event::{Event, id_of};
use loopwright_core::ids::{EffectId, RunId};
use loopwright_core::kernel::{
    self, AbandonedWhy, EffectAbandoned, EndedBy, InvocationEnded, RunEnded, kind,
};
use loopwright_core::machine::{Ending, Machine};
use loopwright_core::replay::Replay;
use loopwright_core::turn::Run;
use loopwright_core::usage::Dimension;
use loopwright_record::{Checks, Folding, load, load_from_scratch, verify};

use crate::books::Books;
use crate::medium::SimJournal;
use crate::violation::{Law, Violation, ensure};
use crate::world::World;

/// The most a state may take when it is written down.
const STATE_BYTES_MAX: usize = 64 * 1024;

/// The most effects that are remembered though they are not in flight.
const KEPT_MAX: usize = 40;

/// The laws of a state, at every commit.
pub fn hold_now<M: Machine>(run: &Run<M>) -> Result<(), Violation> {
    let kernel = &run.kernel;
    let account = &kernel.account;
    let is_over = kernel.ended.is_some() && !kernel.in_flight.is_empty();
    ensure(!is_over, Law::Questions, || {
        format!(
            "the run has ended, and {:?} is open",
            kernel.in_flight.keys()
        )
    })?;
    let kept = kernel.given_up.len() + kernel.unknown.len() + kernel.closed.len();
    ensure(kept <= KEPT_MAX, Law::Memory, || {
        format!("{kept} effects are remembered")
    })?;
    // What is being done may outlast the wall clock.
    let booked = Dimension::ALL
        .into_iter()
        .filter(|dimension| *dimension != Dimension::Wall);
    for dimension in booked {
        let Some(limit) = account.limits.of(dimension) else {
            continue;
        };
        // Time is only reserved where the machine declares it, and these scripts keep to it.
        let used = account.spent.plus(account.reserved).of(dimension);
        ensure(used <= limit, Law::Budget, || {
            format!("{used} of {limit} {} are used", dimension.name())
        })?;
    }
    Ok(())
}

/// The law of small states.
pub fn is_small<M: Machine>(run: &Run<M>) -> Result<(), Violation> {
    let state = serde_json::to_vec(&run.state).map_or(0, |bytes| bytes.len());
    let kernel = serde_json::to_vec(&run.kernel).map_or(0, |bytes| bytes.len());
    ensure(state + kernel <= STATE_BYTES_MAX, Law::SmallState, || {
        format!("the state takes {} bytes", state + kernel)
    })
}

/// A run loaded from a snapshot is the same as one folded from its first event.
pub fn load_alike<M: Machine>(journal: &SimJournal, id: &RunId) -> Result<(), Violation> {
    let unreadable = |error| Violation::new(Law::Snapshot, format!("loading {id}: {error}"));
    let run: Run<M> = load(journal, id).map_err(unreadable)?;
    let scratch: Run<M> = load_from_scratch(journal, id).map_err(unreadable)?;
    ensure(same(&run, &scratch), Law::Snapshot, || {
        format!("the snapshot of batch {:?} gives another state", run.batch)
    })
}

/// A store's own verification finds nothing.
pub fn store_is_sound<M: Machine>(journal: &SimJournal, id: &RunId) -> Result<(), Violation> {
    let Some(store) = journal.store() else {
        return Ok(());
    };
    let mut folding = Folding::<M>::new(id);
    let checks = Checks {
        git: None,
        fold: Some(&mut folding),
    };
    let report = verify(store, id, checks)
        .map_err(|error| Violation::new(Law::Chain, format!("verifying {id}: {error}")))?;
    ensure(report.is_sound(), Law::Chain, || {
        format!("verify finds {:?}", report.findings)
    })
}

/// Checks a run's record life after life: each life only what is new since the last one.
pub struct Inspector<M: Machine> {
    id: RunId,
    replay: Replay<M>,
    batches: Vec<Batch>,
    /// Attempts announced, and whether they were given up.
    attempts: BTreeMap<(EffectId, u32), bool>,
    books: Books,
    calls_seen: usize,
    begun: u64,
    ended: u64,
}

impl<M: Machine> Inspector<M> {
    /// An inspector of a run of which nothing is recorded yet.
    pub fn new(id: &RunId) -> Self {
        Self {
            id: id.clone(),
            replay: Replay::new(id.clone()),
            batches: Vec::new(),
            attempts: BTreeMap::new(),
            books: Books::default(),
            calls_seen: 0,
            begun: 0,
            ended: 0,
        }
    }

    /// The record as far as it was seen.
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// Checks what is new and loads the run. None where it has no record yet.
    pub fn inspect(
        &mut self,
        journal: &SimJournal,
        world: &World,
    ) -> Result<Option<Run<M>>, Violation> {
        let from = self.batches.len();
        let fresh = journal.from(&self.id, from as u64)?;
        self.durable(journal, world, from + fresh.len())?;
        for batch in fresh {
            chain(self.batches.last(), &batch)?;
            self.replay
                .batch(&batch)
                .map_err(|error| Violation::new(Law::Replay, error.to_string()))?;
            why_abandoned(&batch)?;
            for sealed in &batch.events {
                self.attempt(&sealed.event)?;
                self.ending(&sealed.event)?;
                self.books.note(&sealed.event);
            }
            world.learn(&batch);
            self.batches.push(batch);
        }
        self.paid(world)?;
        if self.batches.is_empty() {
            return Ok(None);
        }
        let unreadable =
            |error| Violation::new(Law::Snapshot, format!("loading {}: {error}", self.id));
        let run: Run<M> = load(journal, &self.id).map_err(unreadable)?;
        ensure(same(self.replay.run(), &run), Law::Snapshot, || {
            "the loaded state is another than the replayed one".to_owned()
        })?;
        let open = u64::from(run.kernel.invocation.is_some());
        ensure(self.begun == self.ended + open, Law::Reasons, || {
            format!("{} invocations began, {} ended", self.begun, self.ended)
        })?;
        hold_now(&run)?;
        is_small(&run)?;
        self.books.agree(&run.kernel)?;
        Ok(Some(run))
    }

    /// Whatever was appended, or seen before, is still there.
    fn durable(&self, journal: &SimJournal, world: &World, found: usize) -> Result<(), Violation> {
        let unreadable = |error| Violation::new(Law::Chain, format!("the head: {error}"));
        let head = loopwright_record::Journal::head(journal, &self.id).map_err(unreadable)?;
        let heads = head.map_or(0, |head| head.n + 1);
        ensure(heads == found as u64, Law::Durable, || {
            format!("the head is batch {heads}, and {found} batches were seen or read")
        })?;
        let Some((n, digest)) = world.returned(&self.id) else {
            return Ok(());
        };
        ensure(found as u64 > n, Law::Durable, || {
            format!("batch {n} was appended, and the record holds {found} batches")
        })?;
        // One append at most was under way.
        ensure(found as u64 <= n + 2, Law::Durable, || {
            format!("batches after {} come from nowhere", n + 1)
        })?;
        let is_head = head.is_some_and(|head| head.n == n);
        let same = !is_head || head.is_some_and(|head| head.digest == digest);
        ensure(same, Law::Durable, || {
            format!("batch {n} is another one than was appended")
        })
    }

    /// Every attempt but the first follows one that was given up.
    fn attempt(&mut self, event: &Event) -> Result<(), Violation> {
        let (Some(effect), Some(attempt)) = (&event.effect, event.attempt) else {
            return Ok(());
        };
        match event.kind.as_str() {
            kind::EFFECT_ANNOUNCED => {
                let before = self
                    .attempts
                    .get(&(effect.clone(), attempt.wrapping_sub(1)));
                ensure(
                    attempt == 1 || before == Some(&true),
                    Law::AttemptsInOrder,
                    || format!("attempt {attempt} of {effect} follows none that was given up"),
                )?;
                self.attempts.insert((effect.clone(), attempt), false);
            }
            kind::EFFECT_ABANDONED | kind::EFFECT_UNKNOWN => {
                self.attempts.insert((effect.clone(), attempt), true);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whatever was performed was announced.
    fn paid(&mut self, world: &World) -> Result<(), Violation> {
        let fresh = world.ledger(self.calls_seen);
        for call in fresh.iter().filter(|call| call.run == self.id) {
            let known = self
                .attempts
                .contains_key(&(call.effect.clone(), call.attempt));
            ensure(known, Law::CommitThenAct, || {
                format!(
                    "attempt {} of {} was performed, and the record doesn't know of it",
                    call.attempt, call.effect
                )
            })?;
        }
        self.calls_seen += fresh.len();
        Ok(())
    }

    /// Whatever ends has a reason.
    fn ending(&mut self, event: &Event) -> Result<(), Violation> {
        let ending: Option<Ending> = match event.kind.as_str() {
            kind::INVOCATION_BEGUN => {
                self.begun += 1;
                None
            }
            kind::INVOCATION_ENDED => {
                self.ended += 1;
                body::<InvocationEnded>(event).map(|ended| ended.ending)
            }
            kind::RUN_ENDED => body::<RunEnded>(event).map(|ended| ended.ending),
            _ => None,
        };
        let said =
            ending.is_none_or(|ending| !ending.reason.is_empty() && !ending.words.is_empty());
        ensure(said, Law::Reasons, || {
            format!("event {} ends something without a reason", event.seq)
        })
    }

    /// How many attempts were given up: no more may have been repeated.
    pub fn given_up(&self) -> usize {
        self.attempts.values().filter(|given_up| **given_up).count()
    }
}

fn chain(before: Option<&Batch>, batch: &Batch) -> Result<(), Violation> {
    let header = &batch.header;
    let n = before.map_or(0, |before| before.header.n + 1);
    let good = header.n == n
        && header.previous == before.map(|before| before.digest)
        && header.digest().ok() == Some(batch.digest)
        && before.is_none_or(|before| header.epoch >= before.header.epoch)
        && header.events.len() == batch.events.len();
    ensure(good, Law::Chain, || format!("batch {n} doesn't follow"))?;
    let last = before.and_then(|before| before.events.last());
    let first_seq = last.map_or(0, |last| last.event.seq + 1);
    let mut time = last.map(|last| last.event.time);
    for (seq, (sealed, id)) in (first_seq..).zip(batch.events.iter().zip(&header.events)) {
        let good = sealed.id == *id && id_of(&sealed.bytes) == *id && sealed.event.seq == seq;
        ensure(good, Law::Chain, || format!("event {seq} is another one"))?;
        ensure(Some(sealed.event.time) >= time, Law::Time, || {
            format!("event {seq} lies before the one before it")
        })?;
        time = Some(sealed.event.time);
    }
    Ok(())
}

fn same<M: Machine>(left: &Run<M>, right: &Run<M>) -> bool {
    left.kernel == right.kernel && left.state == right.state && left.batch == right.batch
}

/// All events of a record.
pub fn events(batches: &[Batch]) -> impl Iterator<Item = &Event> {
    batches
        .iter()
        .flat_map(|batch| batch.events.iter().map(|sealed| &sealed.event))
}

/// An attempt that was stopped because the host ends the invocation is told apart from one that
/// the machine had no use for any more.
fn why_abandoned(batch: &Batch) -> Result<(), Violation> {
    let is_host = |event: &Event| {
        event.kind == kind::INVOCATION_ENDED
            && body::<InvocationEnded>(event).is_some_and(|ended| ended.by == EndedBy::Host)
    };
    let by_host = batch.events.iter().any(|sealed| is_host(&sealed.event));
    for sealed in &batch.events {
        let event = &sealed.event;
        let abandoned = (event.kind == kind::EFFECT_ABANDONED)
            .then(|| body::<EffectAbandoned>(event))
            .flatten();
        let fits = match abandoned.map(|abandoned| abandoned.why) {
            Some(AbandonedWhy::Interrupted) => by_host,
            Some(AbandonedWhy::Unwanted) => !by_host,
            Some(AbandonedWhy::HostDied | AbandonedWhy::Withdrawn) | None => true,
        };
        ensure(fits, Law::Reasons, || {
            format!(
                "event {} gives an attempt up for another reason than there was",
                event.seq
            )
        })?;
    }
    Ok(())
}

/// The typed body of an event; none where it has another shape.
pub fn body<T: serde::de::DeserializeOwned>(event: &Event) -> Option<T> {
    kernel::body(event).ok()
}
