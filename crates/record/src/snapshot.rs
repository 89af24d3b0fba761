//! Snapshots of a run's state: a cache that resuming starts from, and that may always be dropped.

use loopwright_core::batch::Batch;
use loopwright_core::digest::Digest;
use loopwright_core::ids::RunId;
use loopwright_core::kernel::Kernel;
use loopwright_core::machine::Machine;
use loopwright_core::turn::Run;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use crate::error::{ReadError, StorageError};
use crate::read::{batch_row, digest, natural, run_row};
use crate::schema::{place, places};

/// How many snapshots of a run are kept: the newest, and one in case that is damaged.
pub(crate) const SNAPSHOTS_KEPT: u32 = 2;
const COMPRESSION_LEVEL: i32 = 1;
/// A state is at most 64 KiB; what claims to be much larger isn't read.
const STATE_BYTES_MAX: usize = 64 << 20;

/// The state of a run after one of its batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The batch.
    pub n: u64,
    /// The batch's digest.
    pub batch: Digest,
    /// The machine's kind.
    pub machine: String,
    /// The machine's version.
    pub version: u32,
    /// The decision policies in force.
    pub policies: Vec<String>,
    /// The state, compressed.
    pub bytes: Vec<u8>,
}

#[derive(Serialize)]
struct StateOut<'a, S> {
    kernel: &'a Kernel,
    state: &'a S,
}

#[derive(Deserialize)]
struct StateIn<S> {
    kernel: Kernel,
    state: S,
}

impl Snapshot {
    /// The snapshot of `run`; none before its first batch, or where the state can't be encoded so
    /// that the same comes back (it is a cache: the run can always be folded from its start).
    pub fn of<M: Machine>(run: &Run<M>) -> Option<Self> {
        let (n, batch) = run.batch?;
        let state = run.state.as_ref()?;
        let out = StateOut {
            kernel: &run.kernel,
            state,
        };
        let json = serde_json::to_vec(&out).ok()?;
        let snapshot = Self {
            n,
            batch,
            machine: M::KIND.to_owned(),
            version: M::VERSION,
            policies: M::policies(state),
            bytes: zstd::bulk::compress(&json, COMPRESSION_LEVEL).ok()?,
        };
        debug_assert!(
            snapshot.restore::<M>().is_some_and(|back| back.kernel == run.kernel
                && back.state.as_ref() == Some(state)),
            "BUG: the state doesn't survive being written as JSON"
        );
        Some(snapshot)
    }

    /// The run as it was; none where the snapshot is of another machine, version or policies, or
    /// can't be read.
    pub fn restore<M: Machine>(&self) -> Option<Run<M>> {
        if self.machine != M::KIND || self.version != M::VERSION {
            return None;
        }
        let json = zstd::bulk::decompress(&self.bytes, STATE_BYTES_MAX).ok()?;
        let StateIn { kernel, state } = serde_json::from_slice::<StateIn<M::State>>(&json).ok()?;
        (M::policies(&state) == self.policies).then(|| Run {
            kernel,
            state: Some(state),
            batch: Some((self.n, self.batch)),
        })
    }

    /// What damage is seen by.
    fn digest(&self) -> Digest {
        Digest::of("loopwright/snapshot/1", &self.bytes)
    }
}

/// Writes a snapshot within the transaction that writes its batch, and drops the old ones.
pub fn insert(
    connection: &Connection,
    number: i64,
    batch: &Batch,
    snapshot: &Snapshot,
) -> Result<(), StorageError> {
    if snapshot.n != batch.header.n || snapshot.batch != batch.digest {
        // Not the state after this batch: nothing that could be started from.
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO snapshot
                 (place, batch, machine, version, policies, digest, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            place(number, snapshot.n),
            snapshot.batch.as_bytes().as_slice(),
            snapshot.machine,
            snapshot.version,
            snapshot.policies.join("\n"),
            snapshot.digest().as_bytes().as_slice(),
            snapshot.bytes,
        ])?;
    let (first, last) = places(number);
    connection
        .prepare_cached(
            "DELETE FROM snapshot WHERE place BETWEEN ?1 AND ?2 AND place NOT IN
                 (SELECT place FROM snapshot WHERE place BETWEEN ?1 AND ?2
                  ORDER BY place DESC LIMIT ?3)",
        )?
        .execute(params![first, last, SNAPSHOTS_KEPT])?;
    Ok(())
}

/// The run's snapshots, newest first, without those that are damaged or off the chain.
pub fn list(connection: &Connection, run: &RunId) -> Result<Vec<Snapshot>, ReadError> {
    let Some(row) = run_row(connection, run)? else {
        return Ok(Vec::new());
    };
    let (first, last) = places(row.number);
    let mut statement = connection.prepare_cached(
        "SELECT n, batch, machine, version, policies, digest, bytes FROM snapshot
         WHERE place BETWEEN ?1 AND ?2 ORDER BY place DESC",
    )?;
    let found = statement.query_map([first, last], |row| {
        let policies: String = row.get(4)?;
        let snapshot = Snapshot {
            n: natural(row, 0)?,
            batch: digest(row, 1)?,
            machine: row.get(2)?,
            version: row.get(3)?,
            policies: policies.lines().map(str::to_owned).collect(),
            bytes: row.get(6)?,
        };
        Ok((snapshot, digest(row, 5)?))
    })?;
    let mut usable = Vec::new();
    for snapshot in found {
        let Ok((snapshot, recorded)) = snapshot else {
            continue;
        };
        if snapshot.digest() != recorded || snapshot.n > row.head.n {
            continue;
        }
        let batch = batch_row(connection, run, row.number, snapshot.n)?;
        if batch.is_some_and(|batch| batch.digest == snapshot.batch) {
            usable.push(snapshot);
        }
    }
    Ok(usable)
}
