//! Verifying a run: everything that can be checked is, and what can't be proved is said.

use std::collections::HashSet;

use loopwright_core::batch::{Batch, Head};
use loopwright_core::digest::Digest;
use loopwright_core::event::Event;
use loopwright_core::ids::RunId;
use loopwright_core::kernel::{self, Basis, RunStarted};
use loopwright_core::time::Micros;
use rusqlite::params;

use crate::append::Progress;
use crate::claims::{Claims, NamedBy};
use crate::error::{BlobError, Damage, ReadError, StorageError};
use crate::journal::Journal as _;
use crate::lease::newest_lease;
use crate::read::{self, RunRow, batch_row, digest, natural, run_row};
use crate::report::{
    Checks, Counts, Finding, FindingKind, FoldCheck, GitCheck, Report, not_proved,
};
use crate::runs::RunSummary;
use crate::schema::{place, places};
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::transaction::View;

/// So many git objects are asked for at once.
const OIDS_AT_ONCE: usize = 1000;
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
    let row =
        run_row(store.connection(), run)?.ok_or_else(|| VerifyError::NoSuchRun(run.clone()))?;
    let mut verifier = Verifier {
        store,
        run,
        row,
        counts: Counts::default(),
        findings: Vec::new(),
        skipped: Vec::new(),
        claims: Claims::default(),
        ids: HashSet::new(),
        basis: None,
        progress: Progress::default(),
        last: None,
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
struct Last {
    head: Head,
    epoch: u64,
    time: Micros,
    started: Option<RunStarted>,
    started_at: Micros,
}

struct Verifier<'a> {
    store: &'a Store,
    run: &'a RunId,
    row: RunRow,
    counts: Counts,
    findings: Vec<Finding>,
    skipped: Vec<String>,
    claims: Claims,
    /// The ids of the events seen, which later ones may name as parents.
    ids: HashSet<Digest>,
    basis: Option<Basis>,
    progress: Progress,
    last: Option<Last>,
}

impl Verifier<'_> {
    fn find(&mut self, kind: FindingKind, batch: Option<u64>, seq: Option<u64>, what: &str) {
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
    fn absorb<T>(
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
            self.batch(&batch);
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
    fn batch(&mut self, batch: &Batch) {
        let n = batch.header.n;
        if let Some(last) = &self.last
            && batch.header.epoch < last.epoch
        {
            let what = "its epoch is older than that of the batch before it";
            self.find(FindingKind::Chain, Some(n), None, what);
        }
        for sealed in &batch.events {
            self.event(n, &sealed.event, sealed.id);
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

    /// Rows that the recorded head doesn't cover.
    fn surplus(&mut self) -> Result<(), VerifyError> {
        let head = self.row.head;
        let (_, last) = places(self.row.number);
        for (table, from, what) in [
            (
                "batch",
                head.n,
                "after its recorded head there is another batch",
            ),
            (
                "event",
                head.seq,
                "after its recorded head there is another event",
            ),
        ] {
            let sql = format!("SELECT count(*) FROM {table} WHERE place > ?1 AND place <= ?2");
            let count = self
                .store
                .connection()
                .query_row(&sql, params![place(self.row.number, from), last], |row| {
                    natural(row, 0)
                })
                .map_err(ReadError::from);
            if self.absorb(FindingKind::Chain, count)?.unwrap_or(0) > 0 {
                self.find(FindingKind::Chain, None, None, what);
            }
        }
        Ok(())
    }

    /// The run's row against what its events say.
    fn run_row(&mut self) -> Result<(), VerifyError> {
        let summary = self.store.run(self.run);
        let Some(Some(summary)) = self.absorb(FindingKind::Index, summary)? else {
            return Ok(());
        };
        let Some(last) = self.last.take() else {
            return Ok(());
        };
        if last.head != summary.head {
            let what = "the recorded head is another one than its last batch and event";
            self.find(FindingKind::Chain, None, None, what);
        }
        let what = last
            .started
            .as_ref()
            .map_or(Some("first event"), |started| {
                differing_column(&summary, started, &last, &self.progress)
            });
        if let Some(what) = what {
            let what = format!("the {what} of its row differs from what its events say");
            self.find(FindingKind::Index, None, None, &what);
        }
        let lease = newest_lease(self.store.connection(), self.run).map_err(ReadError::from);
        if let Some(lease) = self.absorb(FindingKind::Chain, lease)?
            && lease.map_or(0, |lease| lease.epoch) < last.epoch
        {
            let what = "its last batch has an epoch that no lease ever had";
            self.find(FindingKind::Chain, None, None, what);
        }
        Ok(())
    }

    fn keys(&mut self) -> Result<(), VerifyError> {
        let Some(keys) = self.store.keys() else {
            return Ok(());
        };
        let (mut wanted, mut found) = (0_u64, 0_u64);
        for batch in self.store.batches(self.run, 0)? {
            // Damage was reported when the chain was read.
            let Ok(batch) = batch else {
                return Ok(());
            };
            for sealed in &batch.events {
                for key in (keys.keys_of)(&sealed.event) {
                    wanted += 1;
                    let all = self.store.all_with_key(self.run, key.name, &key.value);
                    let all = self.absorb(FindingKind::Index, all)?.unwrap_or_default();
                    found += u64::from(all.contains(&sealed.event.seq));
                }
            }
        }
        let sql = "SELECT count(*) FROM key WHERE run = ?1";
        let entered = self
            .store
            .connection()
            .query_row(sql, [self.row.number], |row| natural(row, 0))
            .map_err(ReadError::from);
        let entered = self.absorb(FindingKind::Index, entered)?;
        if found != wanted || entered.is_some_and(|entered| entered > wanted) {
            let what = "the index of its keys differs from what its events say";
            self.find(FindingKind::Index, None, None, what);
        }
        Ok(())
    }

    fn refs(&mut self) -> Result<(), VerifyError> {
        let refs = self.store.refs("").map_err(ReadError::from);
        for found in self.absorb(FindingKind::Ref, refs)?.unwrap_or_default() {
            if found.target.run != *self.run {
                continue;
            }
            self.counts.refs += 1;
            let (seq, name) = (found.target.seq, &found.name);
            let event = self.store.event(self.run, seq);
            let event = self.absorb(FindingKind::Ref, event)?.flatten();
            if event.map(|event| event.sealed.id) != Some(found.target.event) {
                let what = format!("the ref {name} names another event");
                self.find(FindingKind::Ref, None, Some(seq), &what);
            }
        }
        Ok(())
    }

    /// The event that a fork stands on.
    fn basis(&mut self) -> Result<(), VerifyError> {
        let Some(basis) = self.basis.clone() else {
            return Ok(());
        };
        let connection = self.store.connection();
        let row = run_row(connection, &basis.run);
        let Some(row) = self.absorb(FindingKind::Chain, row)?.flatten() else {
            self.skipped.push(format!(
                "the run {} it was forked from, which isn't in this store",
                basis.run
            ));
            return Ok(());
        };
        let id = connection.query_row(
            "SELECT id FROM event WHERE place = ?1",
            [place(row.number, basis.seq)],
            |row| digest(row, 0),
        );
        if id.ok() != Some(basis.event) {
            let what = format!(
                "run {} has no event {} as number {}, from which it was forked",
                basis.run, basis.event, basis.seq
            );
            self.find(FindingKind::Chain, Some(0), Some(0), &what);
        }
        Ok(())
    }

    fn blobs(&mut self) -> Result<(), VerifyError> {
        for (digest, by) in std::mem::take(&mut self.claims.blobs) {
            match self.store.blobs().check(&digest) {
                Ok(bytes) => {
                    self.counts.blobs += 1;
                    self.counts.blob_bytes += bytes;
                }
                Err(error @ (BlobError::Missing(_) | BlobError::Damaged { .. })) => {
                    let (batch, seq) = (Some(by.batch), Some(by.seq));
                    self.find(FindingKind::Blob, batch, seq, &error.to_string());
                }
                Err(BlobError::Storage(error)) => return Err(error.into()),
                Err(error @ BlobError::Input { .. }) => {
                    return Err(StorageError::Io(error.to_string()).into());
                }
            }
        }
        Ok(())
    }

    fn git(&mut self, git: Option<&dyn GitCheck>) {
        let claims = std::mem::take(&mut self.claims.git);
        let Some(git) = git else {
            if !claims.is_empty() {
                self.skipped
                    .push(format!("the {} git objects it names", claims.len()));
            }
            return;
        };
        let oids: Vec<String> = claims.keys().cloned().collect();
        for oids in oids.chunks(OIDS_AT_ONCE) {
            self.counts.git_objects += oids.len() as u64;
            for oid in git.missing(oids) {
                let by = claims.get(&oid).copied();
                let what = format!("the git object {oid} it names is missing or damaged");
                let (batch, seq) = (by.map(|by| by.batch), by.map(|by| by.seq));
                self.find(FindingKind::Git, batch, seq, &what);
            }
        }
    }

    fn report(self) -> Report {
        let ended = self.progress.ended.is_some();
        Report {
            run: self.run.clone(),
            head: self.row.head.digest,
            counts: self.counts,
            findings: self.findings,
            skipped: self.skipped,
            not_proved: not_proved(ended, &self.row.head),
        }
    }
}

fn differing_column(
    summary: &RunSummary,
    started: &RunStarted,
    last: &Last,
    progress: &Progress,
) -> Option<&'static str> {
    let ending = |ending: &Option<loopwright_core::machine::Ending>| {
        ending
            .as_ref()
            .map(|ending| (ending.reason.clone(), ending.words.clone()))
    };
    let invocation = summary.invocation.map(u64::cast_signed);
    [
        ("loop", summary.loop_name == started.loop_name),
        ("kind", summary.kind == started.kind),
        ("parent", summary.parent == started.parent),
        ("basis", summary.basis == started.basis),
        ("start", summary.started_at == last.started_at),
        ("newest time", summary.last_at == last.time),
        ("invocation", invocation == progress.invocation.number()),
        ("last ending", ending(&summary.last_ending) == progress.last),
        ("ending", ending(&summary.ended) == progress.ended),
    ]
    .into_iter()
    .find_map(|(column, same)| (!same).then_some(column))
}
