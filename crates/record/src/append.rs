//! Appending a batch: checks, rows, one commit.

use loopwright_core::batch::{Batch, Head};
use loopwright_core::event::{Event, Sealed, id_of};
use loopwright_core::ids::{EffectId, RunId};
use loopwright_core::kernel::{self, InvocationBegun, InvocationEnded, RunEnded, RunStarted, kind};
use loopwright_core::time::Micros;
use rusqlite::{Connection, ErrorCode, params};

use crate::crash_point;
use crate::error::{AppendError, StorageError};
use crate::index::{KeySource, enter_keys};
use crate::journal::Along;
use crate::lease::newest_lease;
use crate::listing::{ListingSource, enter_rows};
use crate::read::{part_of, run_row, storage};
use crate::schema::{fits, place};
use crate::snapshot;
use crate::transaction::Write;

/// What is derived from the events and written with them.
#[derive(Clone, Copy, Debug)]
pub struct Derived<'a> {
    /// The keys they are found by.
    pub keys: Option<&'a KeySource>,
    /// The rows they are listed by.
    pub listing: Option<&'a ListingSource>,
}

/// Appends a batch and what goes along with it.
pub fn append(
    connection: &Connection,
    derived: Derived<'_>,
    batch: &Batch,
    along: Along<'_>,
) -> Result<(), AppendError> {
    check_batch(batch)?;
    crash_point!("append.begin");
    let write = Write::begin(connection)?;
    // First, so that one who was shut out is told so, not what the other has written meanwhile.
    check_epoch(connection, batch)?;
    let before = run_row(connection, &batch.header.run).map_err(storage)?;
    check_next(batch, before.map(|row| (row.head, Micros(row.head_us))))?;
    let number = match before {
        Some(row) => row.number,
        None => insert_run(connection, batch)?,
    };
    insert_batch(connection, number, batch)?;
    for sealed in &batch.events {
        insert_event(connection, number, batch, sealed)?;
    }
    enter_keys(connection, derived.keys, number, batch)?;
    enter_rows(connection, derived.listing, number, batch)?;
    update_run(connection, number, batch)?;
    if let Some(snapshot) = along.snapshot {
        snapshot::insert(connection, number, batch, snapshot)?;
    }
    crash_point!("append.inserted");
    write.commit()?;
    crash_point!("append.committed");
    Ok(())
}

/// The batch in itself: what is written under an id has that id.
pub fn check_batch(batch: &Batch) -> Result<(), AppendError> {
    let header = &batch.header;
    let refuse = |why: String| {
        Err(AppendError::Inconsistent {
            run: header.run.clone(),
            n: header.n,
            why,
        })
    };
    match header.digest() {
        Ok(digest) if digest == batch.digest => {}
        Ok(_) => return refuse("its digest is another one's".to_owned()),
        Err(error) => return refuse(error.to_string()),
    }
    if batch.events.is_empty() || batch.events.len() != header.events.len() {
        return refuse("it has no events, or others than its header says".to_owned());
    }
    for (sealed, id) in batch.events.iter().zip(&header.events) {
        let Sealed { event, bytes, .. } = sealed;
        if sealed.id != *id || id_of(bytes) != *id {
            return refuse(format!("event {} has another id", event.seq));
        }
        if event.run != header.run {
            return refuse(format!("event {} is of run {}", event.seq, event.run));
        }
    }
    Ok(())
}

/// The batch after what is recorded: the head and its time.
pub fn check_next(batch: &Batch, recorded: Option<(Head, Micros)>) -> Result<(), AppendError> {
    let head = recorded.map(|(head, _)| head);
    let header = &batch.header;
    let not_next = |why: String| {
        Err(AppendError::NotNext {
            run: header.run.clone(),
            n: header.n,
            why,
        })
    };
    let (next_n, next_seq) = head.map_or((0, 0), |head| (head.n + 1, head.seq + 1));
    if header.n < next_n {
        return Err(AppendError::Exists {
            run: header.run.clone(),
            n: header.n,
        });
    }
    if header.n > next_n {
        return not_next(format!("batch {next_n} would"));
    }
    if header.previous != head.map(|head| head.digest) {
        return not_next("it names another one".to_owned());
    }
    let mut time = recorded.map(|(_, time)| time);
    for (index, sealed) in batch.events.iter().enumerate() {
        let wanted = next_seq + index as u64;
        if time.is_some_and(|time| sealed.event.time < time) {
            return not_next(format!("event {wanted} is earlier than the one before it"));
        }
        time = Some(sealed.event.time);
        if sealed.event.seq != wanted {
            return not_next(format!(
                "event {} stands where {wanted} belongs",
                sealed.event.seq
            ));
        }
    }
    let starts = batch
        .events
        .first()
        .map(|sealed| sealed.event.kind.as_str());
    if head.is_none() && starts != Some(kind::RUN_STARTED) {
        return not_next(format!("a run begins with {}", kind::RUN_STARTED));
    }
    Ok(())
}

fn check_epoch(connection: &Connection, batch: &Batch) -> Result<(), AppendError> {
    let lease = newest_lease(connection, &batch.header.run)?;
    let newest = lease.as_ref().map_or(0, |lease| lease.epoch);
    if batch.header.epoch == newest {
        return Ok(());
    }
    Err(AppendError::Fenced {
        run: batch.header.run.clone(),
        epoch: batch.header.epoch,
        newest,
        holder: lease.and_then(|lease| lease.holder).map(Box::new),
    })
}

fn started(batch: &Batch) -> Result<RunStarted, AppendError> {
    let first = batch.events.first().map(|sealed| &sealed.event);
    first
        .ok_or_else(|| "it has no events".to_owned())
        .and_then(|event| kernel::body(event).map_err(|misfit| misfit.to_string()))
        .map_err(|why| inconsistent(batch, why))
}

fn inconsistent(batch: &Batch, why: String) -> AppendError {
    AppendError::Inconsistent {
        run: batch.header.run.clone(),
        n: batch.header.n,
        why,
    }
}

fn insert_run(connection: &Connection, batch: &Batch) -> Result<i64, AppendError> {
    let started = started(batch)?;
    let first = &batch.events[0].event;
    let (parent, basis) = (started.parent.as_ref(), started.basis.as_ref());
    connection
        .prepare_cached(
            "INSERT INTO run (id, loop, kind, started_us, parent_run, parent_effect,
                 basis_run, basis_event, basis_seq,
                 head_n, head_digest, head_seq, head_event, head_us)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, x'', 0, x'', 0)",
        )?
        .execute(params![
            batch.header.run.as_str(),
            started.loop_name.as_str(),
            started.kind,
            first.time.0,
            parent.map(|parent| parent.run.as_str()),
            parent.map(|parent| parent.effect.as_str()),
            basis.map(|basis| basis.run.as_str()),
            basis.map(|basis| basis.event.as_bytes().to_vec()),
            basis.map(|basis| basis.seq.cast_signed()),
        ])?;
    let number = connection.last_insert_rowid();
    if !fits(number, 0) {
        return Err(AppendError::Io("the store holds too many runs".to_owned()));
    }
    Ok(number)
}

fn insert_batch(connection: &Connection, number: i64, batch: &Batch) -> Result<(), AppendError> {
    let header = &batch.header;
    let first_seq = batch.events.first().map_or(0, |sealed| sealed.event.seq);
    let last_seq = first_seq + batch.events.len() as u64;
    if !fits(number, last_seq) || !fits(number, header.n) {
        return Err(AppendError::Io("the run is too long".to_owned()));
    }
    connection
        .prepare_cached(
            "INSERT INTO batch (place, previous, epoch, digest, first_seq, events)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            place(number, header.n),
            header
                .previous
                .as_ref()
                .map(|digest| digest.as_bytes().as_slice()),
            header.epoch.cast_signed(),
            batch.digest.as_bytes().as_slice(),
            first_seq.cast_signed(),
            batch.events.len() as i64,
        ])?;
    Ok(())
}

fn insert_event(
    connection: &Connection,
    number: i64,
    batch: &Batch,
    sealed: &Sealed,
) -> Result<(), AppendError> {
    let event = &sealed.event;
    let inserted = connection
        .prepare_cached(
            "INSERT INTO event (place, batch, kind, part, effect, attempt, id, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            place(number, event.seq),
            batch.header.n.cast_signed(),
            event.kind,
            part_of(event),
            event.effect.as_ref().map(EffectId::as_str),
            event.attempt,
            sealed.id.as_bytes().as_slice(),
            sealed.bytes,
        ]);
    match inserted {
        Ok(_) => Ok(()),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Err(duplicate(&batch.header.run, event).unwrap_or_else(|| error.into()))
        }
        Err(error) => Err(error.into()),
    }
}

/// The refusal of a second event about the same thing.
pub fn duplicate(run: &RunId, event: &Event) -> Option<AppendError> {
    Some(AppendError::Duplicate {
        run: run.clone(),
        effect: event.effect.clone()?,
        attempt: event.attempt.unwrap_or(0),
        kind: event.kind.clone(),
    })
}

/// What events change in their run's row besides the head.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The open invocation.
    pub invocation: Invocation,
    /// How the last invocation ended: reason and words.
    pub last: Option<(String, String)>,
    /// How the run ended: reason and words.
    pub ended: Option<(String, String)>,
}

/// What events say about the open invocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Invocation {
    /// Nothing.
    #[default]
    Unchanged,
    /// This one is open.
    Open(u64),
    /// None is open.
    Closed,
}

impl Invocation {
    /// The number for the run's row.
    pub fn number(self) -> Option<i64> {
        match self {
            Self::Open(number) => Some(number.cast_signed()),
            Self::Unchanged | Self::Closed => None,
        }
    }
}

impl Progress {
    /// Notes one event; one that doesn't have its kind's shape is left to the fold to refuse.
    pub fn note(&mut self, event: &Event) {
        match event.kind.as_str() {
            kind::INVOCATION_BEGUN => {
                if let Ok(begun) = kernel::body::<InvocationBegun>(event) {
                    self.invocation = Invocation::Open(begun.invocation);
                }
            }
            kind::INVOCATION_ENDED => {
                if let Ok(ended) = kernel::body::<InvocationEnded>(event) {
                    self.invocation = Invocation::Closed;
                    self.last = Some((ended.ending.reason, ended.ending.words));
                }
            }
            kind::RUN_ENDED => {
                if let Ok(ended) = kernel::body::<RunEnded>(event) {
                    self.ended = Some((ended.ending.reason, ended.ending.words));
                }
            }
            _ => {}
        }
    }
}

fn update_run(connection: &Connection, number: i64, batch: &Batch) -> Result<(), StorageError> {
    let mut progress = Progress::default();
    for sealed in &batch.events {
        progress.note(&sealed.event);
    }
    let Some(last) = batch.events.last() else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "UPDATE run SET head_n = ?2, head_digest = ?3, head_seq = ?4, head_event = ?5,
                 head_us = ?6 WHERE number = ?1",
        )?
        .execute(params![
            number,
            batch.header.n.cast_signed(),
            batch.digest.as_bytes().as_slice(),
            last.event.seq.cast_signed(),
            last.id.as_bytes().as_slice(),
            last.event.time.0,
        ])?;
    if progress.invocation != Invocation::Unchanged {
        connection
            .prepare_cached("UPDATE run SET invocation = ?2 WHERE number = ?1")?
            .execute(params![number, progress.invocation.number()])?;
    }
    if let Some((reason, words)) = progress.last {
        connection
            .prepare_cached("UPDATE run SET last_reason = ?2, last_words = ?3 WHERE number = ?1")?
            .execute(params![number, reason, words])?;
    }
    if let Some((reason, words)) = progress.ended {
        connection
            .prepare_cached("UPDATE run SET ended_reason = ?2, ended_words = ?3 WHERE number = ?1")?
            .execute(params![number, reason, words])?;
    }
    Ok(())
}
