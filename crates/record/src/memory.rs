//! A journal in memory, for tests and simulations: the same refusals, nothing durable.

use std::collections::{BTreeMap, BTreeSet};

use loopwright_core::batch::{Batch, Head};
use loopwright_core::ids::{EffectId, RunId};
use loopwright_core::time::Micros;

use crate::append::{check_batch, check_next, duplicate};
use crate::error::{AppendError, ReadError};
use crate::journal::{Along, Batches, Journal};
use crate::snapshot::{SNAPSHOTS_KEPT, Snapshot};

/// A journal in memory.
#[derive(Clone, Debug, Default)]
pub struct InMemory {
    runs: BTreeMap<RunId, Recorded>,
    epochs: BTreeMap<RunId, u64>,
}

#[derive(Clone, Debug, Default)]
struct Recorded {
    batches: Vec<Batch>,
    snapshots: Vec<Snapshot>,
    attempts: BTreeSet<(EffectId, u32, String)>,
}

impl InMemory {
    /// An empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the run over, as a lease does; the new epoch.
    pub fn take_over(&mut self, run: &RunId) -> u64 {
        let epoch = self.epochs.entry(run.clone()).or_default();
        *epoch += 1;
        *epoch
    }
}

impl Recorded {
    /// The head and its time.
    fn newest(&self) -> Option<(Head, Micros)> {
        let batch = self.batches.last()?;
        let last = batch.events.last()?;
        let head = Head {
            n: batch.header.n,
            digest: batch.digest,
            seq: last.event.seq,
            event: last.id,
        };
        Some((head, last.event.time))
    }
}

impl Journal for InMemory {
    fn append_with(&mut self, batch: &Batch, along: Along<'_>) -> Result<(), AppendError> {
        check_batch(batch)?;
        let run = &batch.header.run;
        check_next(batch, self.runs.get(run).and_then(Recorded::newest))?;
        let newest = self.epochs.get(run).copied().unwrap_or(0);
        if batch.header.epoch != newest {
            return Err(AppendError::Fenced {
                run: run.clone(),
                epoch: batch.header.epoch,
                newest,
                holder: None,
            });
        }
        let mut attempts = BTreeSet::new();
        let recorded = self.runs.get(run);
        for sealed in &batch.events {
            let event = &sealed.event;
            let (Some(effect), Some(attempt)) = (&event.effect, event.attempt) else {
                continue;
            };
            let key = (effect.clone(), attempt, event.kind.clone());
            let known = recorded.is_some_and(|recorded| recorded.attempts.contains(&key));
            if (known || !attempts.insert(key))
                && let Some(refused) = duplicate(run, event)
            {
                return Err(refused);
            }
        }
        let recorded = self.runs.entry(run.clone()).or_default();
        recorded.attempts.append(&mut attempts);
        recorded.batches.push(batch.clone());
        if let Some(snapshot) = along.snapshot
            && (snapshot.n, snapshot.batch) == (batch.header.n, batch.digest)
        {
            recorded.snapshots.insert(0, snapshot.clone());
            recorded.snapshots.truncate(SNAPSHOTS_KEPT as usize);
        }
        Ok(())
    }

    fn head(&self, run: &RunId) -> Result<Option<Head>, ReadError> {
        let newest = self.runs.get(run).and_then(Recorded::newest);
        Ok(newest.map(|(head, _)| head))
    }

    fn batches(&self, run: &RunId, from_n: u64) -> Result<Batches<'_>, ReadError> {
        let batches = self.runs.get(run).map_or(&[][..], |found| &found.batches);
        let from = usize::try_from(from_n).unwrap_or(usize::MAX);
        Ok(Box::new(batches.iter().skip(from).cloned().map(Ok)))
    }

    fn snapshots(&self, run: &RunId) -> Result<Vec<Snapshot>, ReadError> {
        Ok(self
            .runs
            .get(run)
            .map_or_else(Vec::new, |found| found.snapshots.clone()))
    }
}
