//! Verifying a run: everything that can be checked is, and what can't be proved is said.

use std::collections::{HashMap, HashSet};

use loopwright_core::batch::{Batch, Head};
use loopwright_core::digest::Digest;
use loopwright_core::event::Event;
use loopwright_core::ids::RunId;
use loopwright_core::kernel::{self, Basis, RunStarted};
use loopwright_core::time::Micros;

use crate::append::Progress;
use crate::claims::{Claims, NamedBy};
use crate::error::{Damage, ReadError, StorageError};
use crate::journal::Journal as _;
use crate::read::{self, RunRow, batch_row, run_row};
use crate::report::{Checks, Counts, Finding, FindingKind, FoldCheck, Report, not_proved};
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::transaction::View;

/// So many complaints of SQLite's own check are listed.
const DATABASE_FINDINGS_MAX: usize = 20;

/// A run that can't be verified at all.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// There is none of that id.
    #[error("there is no run {0} in this store")]
    NoSuchRun(RunId),
    /// It can't be read for a reason that is not damage.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<StorageError> for VerifyError {
    fn from(error: StorageError) -> Self {
        Self::Read(error.into())
    }
}

impl From<rusqlite::Error> for VerifyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Read(error.into())
    }
}

/// Verifies a run. Damage ends up in the report; an error is what hinders from looking.
pub fn verify(store: &Store, run: &RunId, checks: Checks<'_>) -> Result<Report, VerifyError> {
    let _view = View::begin(store.connection())?;
    let row =
        run_row(store.connection(), run)?.ok_or_else(|| VerifyError::NoSuchRun(run.clone()))?;
    let mut verifier = Verifier {
        store,
        run,
        row,
        counts: Counts::default(),
        findings: Vec::new(),
        skipped: Vec::new(),
        not_proved: Vec::new(),
        claims: Claims::default(),
        ids: HashSet::new(),
        basis: None,
        progress: Progress::default(),
        last: None,
        keys_found: 0,
        parts: HashMap::new(),
    };
    verifier.database();
    verifier.chain(checks.fold)?;
    verifier.surplus()?;
    verifier.run_row()?;
    verifier.keys()?;
    verifier.refs()?;
    verifier.basis()?;
    verifier.blobs()?;
    verifier.git(checks.git);
    Ok(verifier.report())
}

/// The newest event and batch seen.
pub(crate) struct Last {
    pub(crate) head: Head,
    pub(crate) epoch: u64,
    pub(crate) time: Micros,
    pub(crate) started: Option<RunStarted>,
    pub(crate) started_at: Micros,
}

pub(crate) struct Verifier<'a> {
    pub(crate) store: &'a Store,
    pub(crate) run: &'a RunId,
    pub(crate) row: RunRow,
    pub(crate) counts: Counts,
    pub(crate) findings: Vec<Finding>,
    pub(crate) skipped: Vec<String>,
    /// What the parts that were left out would have shown.
    pub(crate) not_proved: Vec<String>,
    pub(crate) claims: Claims,
    /// The ids of the events seen, which later ones may name as parents.
    pub(crate) ids: HashSet<Digest>,
    pub(crate) basis: Option<Basis>,
    pub(crate) progress: Progress,
    pub(crate) last: Option<Last>,
    /// How many keys the events have.
    pub(crate) keys_found: u64,
    /// The events of each trial or iteration whose row is still to come.
    pub(crate) parts: HashMap<i64, Vec<Event>>,
}

impl Verifier<'_> {
    pub(crate) fn find(
        &mut self,
        kind: FindingKind,
        batch: Option<u64>,
        seq: Option<u64>,
        what: &str,
    ) {
        let words = Damage {
            run: self.run.clone(),
            batch,
            seq,
            what: what.to_owned(),
        }
        .to_string();
        self.findings.push(Finding {
            kind,
            batch,
            seq,
            words,
        });
    }

    /// Takes damage into the report; anything else ends the check.
    pub(crate) fn absorb<T>(
        &mut self,
        kind: FindingKind,
        read: Result<T, ReadError>,
    ) -> Result<Option<T>, VerifyError> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(ReadError::Damaged(damage)) => {
                self.findings.push(Finding {
                    kind,
                    batch: damage.batch,
                    seq: damage.seq,
                    words: damage.to_string(),
                });
                Ok(None)
            }
            Err(ReadError::Storage(StorageError::Damaged(what))) => {
                self.find(FindingKind::Database, None, None, &what);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// SQLite's own check of the file, which covers the indexes that listings are read from.
    fn database(&mut self) {
        let check = || -> rusqlite::Result<Vec<String>> {
            let sql = format!("PRAGMA integrity_check({DATABASE_FINDINGS_MAX})");
            let mut statement = self.store.connection().prepare(&sql)?;
            let lines = statement.query_map([], |row| row.get(0))?;
            lines.collect()
        };
        match check() {
            Ok(lines) => {
                for line in lines.iter().filter(|line| *line != "ok") {
                    self.find(FindingKind::Database, None, None, line);
                }
            }
            Err(error) => self.find(FindingKind::Database, None, None, &error.to_string()),
        }
    }

    fn chain(&mut self, mut fold: Option<&mut dyn FoldCheck>) -> Result<(), VerifyError> {
        if fold.is_none() {
            self.skipped
                .push("whether the machine accepts the events".to_owned());
        }
        let snapshots = self.store.snapshots(self.run);
        let snapshots = self
            .absorb(FindingKind::Index, snapshots)?
            .unwrap_or_default();
        let (mut previous, mut next_seq) = (None, 0);
        for n in 0..=self.row.head.n {
            let connection = self.store.connection();
            let read = read::batch(connection, self.run, self.row.number, n);
            let Some(batch) = self.absorb(FindingKind::Chain, read)? else {
                // What the row says of itself lets the rest be checked.
                let row = batch_row(connection, self.run, self.row.number, n);
                if let Ok(Some(row)) = row {
                    next_seq = row.first_seq.saturating_add(row.events);
                    previous = Some(row.digest);
                }
                if fold.take().is_some() {
                    self.skipped.push(format!(
                        "whether the machine accepts the events from batch {n} on, which is damaged"
                    ));
                }
                continue;
            };
            if batch.header.previous != previous {
                let what = "it doesn't follow the batch before it";
                self.find(FindingKind::Chain, Some(n), None, what);
            }
            if batch.events[0].event.seq != next_seq {
                let what = "its events don't follow those of the batch before it";
                self.find(FindingKind::Chain, Some(n), None, what);
            }
            next_seq = batch.events[0].event.seq + batch.events.len() as u64;
            previous = Some(batch.digest);
            self.batch(&batch)?;
            if let Some(fold) = &mut fold {
                self.fold(*fold, &batch, &snapshots);
            }
        }
        Ok(())
    }

    fn fold(&mut self, fold: &mut dyn FoldCheck, batch: &Batch, snapshots: &[Snapshot]) {
        let n = batch.header.n;
        if let Err(what) = fold.batch(batch) {
            self.find(FindingKind::Fold, Some(n), None, &what);
        }
        for snapshot in snapshots.iter().filter(|snapshot| snapshot.n == n) {
            self.counts.snapshots += 1;
            if let Err(what) = fold.snapshot(snapshot) {
                let what = format!("its snapshot: {what}");
                self.find(FindingKind::Index, Some(n), None, &what);
            }
        }
    }

    /// A batch whose own digests are right.
    fn batch(&mut self, batch: &Batch) -> Result<(), VerifyError> {
        let n = batch.header.n;
        if let Some(last) = &self.last
            && batch.header.epoch < last.epoch
        {
            let what = "its epoch is older than that of the batch before it";
            self.find(FindingKind::Chain, Some(n), None, what);
        }
        for sealed in &batch.events {
            self.event(n, &sealed.event, sealed.id);
            self.event_keys(n, &sealed.event)?;
            self.event_row(n, &sealed.event)?;
            let before = self.last.take();
            let (started, started_at) = before.map_or_else(
                || (kernel::body(&sealed.event).ok(), sealed.event.time),
                |last| (last.started, last.started_at),
            );
            self.last = Some(Last {
                head: Head {
                    n,
                    digest: batch.digest,
                    seq: sealed.event.seq,
                    event: sealed.id,
                },
                epoch: batch.header.epoch,
                time: sealed.event.time,
                started,
                started_at,
            });
        }
        self.counts.batches += 1;
        Ok(())
    }

    fn event(&mut self, n: u64, event: &Event, id: Digest) {
        let (batch, seq) = (Some(n), Some(event.seq));
        if event.seq == 0 {
            self.basis = kernel::body::<RunStarted>(event)
                .ok()
                .and_then(|started| started.basis);
        }
        let basis = self.basis.as_ref().map(|basis| basis.event);
        let orphan = event
            .parents
            .iter()
            .find(|parent| !self.ids.contains(*parent) && basis != Some(**parent));
        if let Some(orphan) = orphan {
            let what = format!("its parent {orphan} isn't an earlier event");
            self.find(FindingKind::Chain, batch, seq, &what);
        }
        if event.parents.is_empty() && event.seq > 0 {
            self.find(FindingKind::Chain, batch, seq, "it has no parents");
        }
        if self
            .last
            .as_ref()
            .is_some_and(|last| event.time < last.time)
        {
            let what = "its time is earlier than that of the event before it";
            self.find(FindingKind::Chain, batch, seq, what);
        }
        self.ids.insert(id);
        let by = NamedBy {
            batch: n,
            seq: event.seq,
        };
        for what in self.claims.note(&event.body, by) {
            self.find(FindingKind::Chain, batch, seq, &what);
        }
        self.progress.note(event);
        self.counts.events += 1;
    }

    fn report(self) -> Report {
        let ended = self.progress.ended.is_some();
        Report {
            run: self.run.clone(),
            head: self.row.head.digest,
            counts: self.counts,
            findings: self.findings,
            skipped: self.skipped,
            not_proved: [not_proved(ended, &self.row.head), self.not_proved].concat(),
        }
    }
}
