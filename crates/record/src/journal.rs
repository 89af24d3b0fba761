//! The journal: what the engine writes to, and reads back from.

use loopwright_core::batch::{Batch, Head};
use loopwright_core::ids::RunId;

use crate::error::{AppendError, ReadError};
use crate::snapshot::Snapshot;

/// Batches as they are read back, each verified.
pub type Batches<'a> = Box<dyn Iterator<Item = Result<Batch, ReadError>> + 'a>;

/// A durable, append-only sequence of batches per run.
///
/// # What is promised
///
/// - **Whole batches.** A batch is recorded with all its events or not at all, whatever ends the
///   process or the machine.
/// - **On return** of a successful `append` the batch is durable as far as the operating system
///   and the device tell the truth about a sync. The SQLite journal makes exactly one, of the
///   write-ahead log; the first commit after opening also makes the log (two more: its header and
///   the folder). Every thousand pages the log is copied into the database, within the commit that
///   fills it: two more, of the log and the database, and one of the log's new header after. The
///   last connection does the same as it closes.
/// - **After a kill** of the process every batch whose `append` returned is there; the one being
///   appended is there or not.
/// - **After a power loss** the same holds.
/// - **An error of the storage** leaves the batch unrecorded, but for [`AppendError::Io`], where a
///   failed sync may still have reached the disk. Whoever gets one stops driving the run and reads
///   its [`head`](Journal::head) after opening the store anew.
/// - **One writer.** A batch under another epoch than the newest lease's is refused within the
///   transaction that would have recorded it. A run that nobody ever leased has epoch 0.
/// - **What is read was written.** Events are checked against their ids, batches against their
///   digests and the batch before, and the columns against the events; what differs is named.
pub trait Journal {
    /// Records batch `n` of its run, and `along` in the same transaction. Fails where batch `n`
    /// exists, or doesn't follow the newest one. Batch 0 makes the run.
    fn append_with(&mut self, batch: &Batch, along: Along<'_>) -> Result<(), AppendError>;

    /// Where the run's chain ends; none where there is no such run.
    fn head(&self, run: &RunId) -> Result<Option<Head>, ReadError>;

    /// The run's batches from `from_n` to the head as it is now; none where there is no such run.
    fn batches(&self, run: &RunId, from_n: u64) -> Result<Batches<'_>, ReadError>;

    /// The run's snapshots, newest first. A cache: those that are damaged, or that don't belong to
    /// the chain, are left out.
    fn snapshots(&self, run: &RunId) -> Result<Vec<Snapshot>, ReadError>;

    /// Records batch `n` of its run and nothing else.
    fn append(&mut self, batch: &Batch) -> Result<(), AppendError> {
        self.append_with(batch, Along::default())
    }
}

/// What is recorded in one transaction with a batch, at the cost of no further sync.
#[derive(Clone, Copy, Debug, Default)]
pub struct Along<'a> {
    /// The state after the batch.
    pub snapshot: Option<&'a Snapshot>,
}

impl<'a> Along<'a> {
    /// A snapshot of the state after the batch.
    pub fn snapshot(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot: Some(snapshot),
        }
    }
}
