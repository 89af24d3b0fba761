//! Loading a run: folding its batches, from the newest snapshot that can be used.

use loopwright_core::batch::Batch;
use loopwright_core::foreign::{self, Undrivable};
use loopwright_core::ids::RunId;
use loopwright_core::kernel;
use loopwright_core::machine::Machine;
use loopwright_core::turn::{Run, TurnError};

use crate::error::{Damage, ReadError};
use crate::journal::Journal;
use crate::store::Store;

/// A run that can't be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is none of that id.
    #[error("there is no run {0} in this store")]
    NoSuchRun(RunId),
    /// It can be read, but not driven.
    #[error("run {run} can't be driven by this loopwright: {why}")]
    Undrivable {
        /// The run.
        run: RunId,
        /// Why.
        why: Undrivable,
    },
    /// It can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The machine doesn't accept it.
    #[error("run {run}, batch {n}: {source}")]
    Fold {
        /// The run.
        run: RunId,
        /// The batch.
        n: u64,
        /// What the machine says.
        source: TurnError,
    },
}

/// The run as it stands, from its newest usable snapshot on.
pub fn load<M: Machine>(journal: &impl Journal, run: &RunId) -> Result<Run<M>, LoadError> {
    for snapshot in journal.snapshots(run)? {
        let Some(restored) = snapshot.restore::<M>() else {
            continue;
        };
        if restored.kernel.run != *run {
            continue;
        }
        match fold(journal, restored) {
            Ok(run) => return Ok(run),
            // The batch it stands on is damaged: what stands before may still tell what it was.
            Err(LoadError::Read(ReadError::Damaged(_)) | LoadError::Fold { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    load_from_scratch(journal, run)
}

/// The run as it stands, from its first event on.
pub fn load_from_scratch<M: Machine>(
    journal: &impl Journal,
    run: &RunId,
) -> Result<Run<M>, LoadError> {
    fold(journal, Run::new(run.clone()))
}

/// The run as it stands, to be driven on: refused where this release doesn't know what it holds.
/// The kinds of events are those of the whole run and not of a snapshot's rest: a newer release may
/// have folded what this one doesn't know.
pub fn load_to_drive<M: Machine>(store: &Store, run: &RunId) -> Result<Run<M>, LoadError> {
    check_drivable::<M>(store, run)?;
    load(store, run)
}

/// Whether this release knows all that a run holds; a run that isn't there can be begun.
pub fn check_drivable<M: Machine>(store: &Store, run: &RunId) -> Result<(), LoadError> {
    let Some(first) = store.batches(run, 0)?.next() else {
        return Ok(());
    };
    let first = first?;
    let Some(sealed) = first.events.first() else {
        return Ok(());
    };
    // What doesn't even have the shape of a beginning is for the fold to say.
    let Ok(started) = kernel::body(&sealed.event) else {
        return Ok(());
    };
    let kinds = store.kinds(run)?;
    let kinds = kinds.iter().map(String::as_str);
    foreign::check::<M>(&started, kinds).map_err(|why| LoadError::Undrivable {
        run: run.clone(),
        why,
    })
}

/// Folds one batch.
pub fn fold_batch<M: Machine>(run: &mut Run<M>, batch: &Batch) -> Result<(), LoadError> {
    for sealed in &batch.events {
        run.apply(&sealed.event, sealed.id)
            .map_err(|source| LoadError::Fold {
                run: batch.header.run.clone(),
                n: batch.header.n,
                source,
            })?;
    }
    run.close_batch(batch.header.n, batch.digest);
    Ok(())
}

fn fold<M: Machine>(journal: &impl Journal, mut run: Run<M>) -> Result<Run<M>, LoadError> {
    let id = run.kernel.run.clone();
    let from_n = run.batch.map_or(0, |(n, _)| n + 1);
    for batch in journal.batches(&id, from_n)? {
        let batch = batch?;
        if batch.header.previous != run.batch.map(|(_, digest)| digest) {
            let what = "it doesn't follow the batch before it";
            return Err(ReadError::from(Damage::of_batch(&id, batch.header.n, what)).into());
        }
        fold_batch(&mut run, &batch)?;
    }
    if run.batch.is_none() {
        return Err(LoadError::NoSuchRun(id));
    }
    Ok(run)
}
