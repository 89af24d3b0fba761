//! Verifying what stands beside a run's chain: the copies that listings read, and everything that
//! the events name elsewhere.

use loopwright_core::event::Event;
use loopwright_core::kernel::RunStarted;
use rusqlite::params;

use crate::append::Progress;
use crate::error::{BlobError, ReadError, StorageError};
use crate::index::is_entered;
use crate::lease::newest_lease;
use crate::listing::row_differs;
use crate::read::{digest, natural, part_of, run_row};
use crate::report::{FindingKind, GitCheck};
use crate::runs::RunSummary;
use crate::schema::{place, places};
use crate::verify::{Last, Verifier, VerifyError};

/// So many git objects are asked for at once.
const OIDS_AT_ONCE: usize = 1000;

impl Verifier<'_> {
    /// Rows that the recorded head doesn't cover.
    pub(crate) fn surplus(&mut self) -> Result<(), VerifyError> {
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
    pub(crate) fn run_row(&mut self) -> Result<(), VerifyError> {
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

    /// Whether the index of keys has no others than those found event by event.
    pub(crate) fn keys(&mut self) -> Result<(), VerifyError> {
        if self.store.keys().is_none() {
            return Ok(());
        }
        let sql = "SELECT count(*) FROM key WHERE run = ?1";
        let entered = self
            .store
            .connection()
            .query_row(sql, [self.row.number], |row| natural(row, 0))
            .map_err(ReadError::from);
        let entered = self.absorb(FindingKind::Index, entered)?;
        if entered.is_some_and(|entered| entered > self.keys_found) {
            let what = "the index of its keys names events that don't have them";
            self.find(FindingKind::Index, None, None, what);
        }
        Ok(())
    }

    /// Whether an event is found by its keys.
    pub(crate) fn event_keys(&mut self, n: u64, event: &Event) -> Result<(), VerifyError> {
        let Some(keys) = self.store.keys() else {
            return Ok(());
        };
        for key in (keys.keys_of)(event) {
            let entered = is_entered(self.store.connection(), self.row.number, &key, event.seq);
            if self.absorb(FindingKind::Index, entered)? == Some(false) {
                let what = format!("it can't be found by its key {}", key.name);
                self.find(FindingKind::Index, Some(n), Some(event.seq), &what);
            }
            self.keys_found += 1;
        }
        Ok(())
    }

    /// Whether the row an event is listed by is what its trial's events give. One that is missing is
    /// made anew as it is read.
    pub(crate) fn event_row(&mut self, n: u64, event: &Event) -> Result<(), VerifyError> {
        let Some(source) = self.store.listing() else {
            return Ok(());
        };
        let part = part_of(event);
        let mut events = part
            .and_then(|part| self.parts.remove(&part))
            .unwrap_or_default();
        events.push(event.clone());
        if event.kind != source.kind {
            self.parts.extend(part.map(|part| (part, events)));
            return Ok(());
        }
        let place = place(self.row.number, event.seq);
        let differs = row_differs(self.store.connection(), &source, place, &events);
        if self.absorb(FindingKind::Index, differs)? == Some(true) {
            let what = "its row in the listing isn't what its events give";
            self.find(FindingKind::Index, Some(n), Some(event.seq), what);
        }
        Ok(())
    }

    pub(crate) fn refs(&mut self) -> Result<(), VerifyError> {
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
    pub(crate) fn basis(&mut self) -> Result<(), VerifyError> {
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

    pub(crate) fn blobs(&mut self) -> Result<(), VerifyError> {
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
                Err(BlobError::Storage(StorageError::Damaged(what))) => {
                    self.find(FindingKind::Blob, Some(by.batch), Some(by.seq), &what);
                }
                Err(BlobError::Storage(error)) => return Err(error.into()),
                Err(error @ BlobError::Input { .. }) => {
                    return Err(StorageError::Io(error.to_string()).into());
                }
            }
        }
        Ok(())
    }

    pub(crate) fn git(&mut self, git: Option<&dyn GitCheck>) {
        let claims = std::mem::take(&mut self.claims.git);
        let Some(git) = git else {
            if !claims.is_empty() {
                let left_out = format!("the {} git objects it names", claims.len());
                self.not_proved
                    .push(format!("that {left_out} are there: they were left out"));
                self.skipped.push(left_out);
            }
            return;
        };
        let faults = git.faults();
        for fault in &faults {
            self.find(FindingKind::Git, None, None, fault);
        }
        if !faults.is_empty() {
            self.skipped.push(format!(
                "the {} git objects it names, which can't be looked for before that is put right",
                claims.len()
            ));
            return;
        }
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
