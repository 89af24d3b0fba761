//! Replaying a run from its record: nothing is called, every decision is made again, and each must
//! come out byte for byte as it was recorded.

use loopwright_core::experiment::Experiment;
use loopwright_core::ids::RunId;
use loopwright_core::replay::{Difference, Replay, ReplayError};
use loopwright_record::{Journal as _, Store, check_drivable};
use serde::Serialize;

use crate::driver::DriveError;
use crate::error::EngineError;

/// What a replay came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// The run.
    pub run: String,
    /// Batches that came out equal.
    pub batches: u64,
    /// Events that came out equal.
    pub events: u64,
    /// The digest of all decisions as replayed.
    pub decisions: String,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// Replays an experiment run.
pub fn replay(store: &Store, run: &RunId) -> Result<Replayed, EngineError> {
    // What it doesn't know it can't decide again; that is no difference.
    check_drivable::<Experiment>(store, run)?;
    let mut replay = Replay::<Experiment>::new(run.clone());
    let mut batches = 0;
    let mut difference = None;
    for batch in store.batches(run, 0)? {
        match replay.batch(&batch?) {
            Ok(()) => batches += 1,
            Err(ReplayError::Differs(found)) => {
                difference = Some(*found);
                break;
            }
            Err(ReplayError::Turn(error)) => return Err(DriveError::Turn(error).into()),
        }
    }
    Ok(Replayed {
        run: run.to_string(),
        batches,
        events: replay.events(),
        decisions: replay.run().kernel.decisions.to_string(),
        difference,
    })
}
