//! Commits under a lease: every batch of a run is written by whoever holds its newest epoch, with
//! a snapshot of the state along now and then.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loopwright_core::batch::Batch;
use loopwright_core::machine::Machine;
use loopwright_core::time::Micros;
use loopwright_core::turn::Run;
use loopwright_record::{Along, AppendError, Journal, Snapshot, Store};

use crate::driver::Committer;

/// After how many batches a snapshot is written along. Folding this many takes about a
/// millisecond, and a snapshot costs no sync of its own.
const SNAPSHOT_EVERY_BATCHES: u64 = 64;

/// How long a lease holds against other hosts unless it is renewed.
pub const LEASE_TTL: Duration = Duration::from_secs(60);

/// Writes a run's batches into a store.
pub struct StoreCommitter<'a> {
    store: &'a mut Store,
}

impl<'a> StoreCommitter<'a> {
    /// A committer into `store`.
    pub fn new(store: &'a mut Store) -> Self {
        Self { store }
    }
}

impl<M: Machine> Committer<M> for StoreCommitter<'_> {
    fn commit(&mut self, batch: &Batch, run: &Run<M>) -> Result<(), AppendError> {
        let due = batch.header.n % SNAPSHOT_EVERY_BATCHES == SNAPSHOT_EVERY_BATCHES - 1;
        let snapshot = if due { Snapshot::of(run) } else { None };
        self.store.append_with(
            batch,
            Along {
                snapshot: snapshot.as_ref(),
            },
        )
    }
}

/// The system's clock.
pub fn now() -> Micros {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
