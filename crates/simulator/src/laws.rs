//! The laws that hold of one run: at every commit, and of a record at rest.

use std::collections::BTreeMap;

use loopwright_core::batch::Batch;
use loopwright_core::event::{Event, id_of};
use loopwright_core::ids::{EffectId, RunId};
use loopwright_core::kernel::{self, InvocationEnded, RunEnded, kind};
use loopwright_core::machine::{Ending, Machine};
use loopwright_core::replay::Replay;
use loopwright_core::turn::Run;
use loopwright_core::usage::Dimension;
use loopwright_record::{load, load_from_scratch};

use crate::medium::SimJournal;
use crate::violation::{Law, Violation, ensure};
use crate::world::World;

/// The most a state may take when it is written down.
const STATE_BYTES_MAX: usize = 64 * 1024;

/// The laws of a state, at every commit.
pub fn hold_now<M: Machine>(run: &Run<M>) -> Result<(), Violation> {
    let account = &run.kernel.account;
    for dimension in Dimension::ALL {
        let Some(limit) = account.limits.of(dimension) else {
            continue;
        };
        // Time is only reserved where the machine declares it, and these scripts keep to it.
        let used = account.spent.plus(account.reserved).of(dimension);
        ensure(used <= limit, Law::Budget, || {
            format!("{used} of {limit} {} are used", dimension.name())
        })?;
    }
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

/// Loads a run and checks its whole record: replaying folds it from its first event, so that the
/// state from the snapshot is checked against that. None where the run has no record yet.
pub fn load_checked<M: Machine>(
    journal: &SimJournal,
    world: &World,
    id: &RunId,
) -> Result<(Option<Run<M>>, Vec<Batch>), Violation> {
    let batches = journal.all(id)?;
    durable(world, id, &batches)?;
    chain(&batches)?;
    if batches.is_empty() {
        return Ok((None, batches));
    }
    let unreadable = |error| Violation::new(Law::Snapshot, format!("loading {id}: {error}"));
    let run: Run<M> = load(journal, id).map_err(unreadable)?;
    replay::<M>(id, &batches, &run)?;
    attempts(world, id, &batches)?;
    endings(&run, &batches)?;
    hold_now(&run)?;
    for batch in &batches {
        world.learn(batch);
    }
    Ok((Some(run), batches))
}

fn durable(world: &World, id: &RunId, batches: &[Batch]) -> Result<(), Violation> {
    let Some((n, digest)) = world.durable(id).returned else {
        return Ok(());
    };
    let found = batches.get(n as usize).map(|batch| batch.digest);
    ensure(found == Some(digest), Law::Durable, || {
        format!(
            "batch {n} was appended, and the record holds {} batches",
            batches.len()
        )
    })?;
    // One append at most was under way.
    ensure(batches.len() as u64 <= n + 2, Law::Durable, || {
        format!("batches after {} come from nowhere", n + 1)
    })
}

fn chain(batches: &[Batch]) -> Result<(), Violation> {
    let mut previous = None;
    let (mut seq, mut time, mut epoch) = (0, None, 0);
    for (n, batch) in batches.iter().enumerate() {
        let header = &batch.header;
        let digest = header.digest().ok();
        let good = header.n == n as u64
            && header.previous == previous
            && digest == Some(batch.digest)
            && header.epoch >= epoch
            && header.events.len() == batch.events.len();
        ensure(good, Law::Chain, || format!("batch {n} doesn't follow"))?;
        for (sealed, id) in batch.events.iter().zip(&header.events) {
            let good =
                sealed.id == *id && id_of(&sealed.bytes) == *id && sealed.event.seq == seq;
            ensure(good, Law::Chain, || format!("event {seq} is another one"))?;
            ensure(Some(sealed.event.time) >= time, Law::Time, || {
                format!("event {seq} lies before the one before it")
            })?;
            time = Some(sealed.event.time);
            seq += 1;
        }
        previous = Some(batch.digest);
        epoch = header.epoch;
    }
    Ok(())
}

fn replay<M: Machine>(id: &RunId, batches: &[Batch], run: &Run<M>) -> Result<(), Violation> {
    let mut replay = Replay::<M>::new(id.clone());
    for batch in batches {
        replay
            .batch(batch)
            .map_err(|error| Violation::new(Law::Replay, error.to_string()))?;
    }
    ensure(same(replay.run(), run), Law::Snapshot, || {
        "the loaded state is another than the replayed one".to_owned()
    })
}

fn same<M: Machine>(left: &Run<M>, right: &Run<M>) -> bool {
    left.kernel == right.kernel && left.state == right.state && left.batch == right.batch
}

/// What was performed was announced, and every attempt but the first follows one that was given
/// up.
fn attempts(world: &World, id: &RunId, batches: &[Batch]) -> Result<(), Violation> {
    let mut announced: BTreeMap<(&EffectId, u32), bool> = BTreeMap::new();
    for event in events(batches) {
        let (Some(effect), Some(attempt)) = (&event.effect, event.attempt) else {
            continue;
        };
        match event.kind.as_str() {
            kind::EFFECT_ANNOUNCED => {
                let follows = attempt == 1 || announced.get(&(effect, attempt - 1)) == Some(&true);
                ensure(follows, Law::AttemptsInOrder, || {
                    format!("attempt {attempt} of {effect} follows no attempt that was given up")
                })?;
                announced.insert((effect, attempt), false);
            }
            kind::EFFECT_ABANDONED | kind::EFFECT_UNKNOWN => {
                announced.insert((effect, attempt), true);
            }
            _ => {}
        }
    }
    for call in world.ledger().iter().filter(|call| call.run == *id) {
        let known = announced.contains_key(&(&call.effect, call.attempt));
        ensure(known, Law::CommitThenAct, || {
            format!(
                "attempt {} of {} was performed, and the record doesn't know of it",
                call.attempt, call.effect
            )
        })?;
    }
    Ok(())
}

fn endings<M: Machine>(run: &Run<M>, batches: &[Batch]) -> Result<(), Violation> {
    let (mut begun, mut ended) = (0_u64, 0_u64);
    for event in events(batches) {
        let ending: Option<Ending> = match event.kind.as_str() {
            kind::INVOCATION_BEGUN => {
                begun += 1;
                None
            }
            kind::INVOCATION_ENDED => {
                ended += 1;
                body::<InvocationEnded>(event).map(|ended| ended.ending)
            }
            kind::RUN_ENDED => body::<RunEnded>(event).map(|ended| ended.ending),
            _ => None,
        };
        if let Some(ending) = ending {
            let said = !ending.reason.is_empty() && !ending.words.is_empty();
            ensure(said, Law::Reasons, || {
                format!("event {} ends something without a reason", event.seq)
            })?;
        }
    }
    let open = u64::from(run.kernel.invocation.is_some());
    ensure(begun == ended + open, Law::Reasons, || {
        format!("{begun} invocations began, {ended} ended, {open} is open")
    })
}

/// How many attempts were given up, by the record: no more may have been repeated.
pub fn given_up(batches: &[Batch]) -> usize {
    let counted =
        |event: &&Event| matches!(event.kind.as_str(), kind::EFFECT_UNKNOWN | kind::EFFECT_ABANDONED);
    events(batches).filter(counted).count()
}

/// All events of a record.
pub fn events(batches: &[Batch]) -> impl Iterator<Item = &Event> {
    batches
        .iter()
        .flat_map(|batch| batch.events.iter().map(|sealed| &sealed.event))
}

/// The typed body of an event; none where it has another shape.
pub fn body<T: serde::de::DeserializeOwned>(event: &Event) -> Option<T> {
    kernel::body(event).ok()
}
