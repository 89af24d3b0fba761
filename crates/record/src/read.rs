//! Reading the record back, and believing nothing of it before it is checked.

use loopwright_core::batch::{Batch, BatchHeader, Head};
use loopwright_core::digest::Digest;
use loopwright_core::event::{DecodeError, Event, Sealed, id_of};
use loopwright_core::ids::{EffectId, RunId};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::error::{Damage, ReadError, StorageError};
use crate::schema::{in_run, place};

/// A run's row, as far as the chain needs it.
#[derive(Clone, Copy, Debug)]
pub struct RunRow {
    /// The run's number in this database.
    pub number: i64,
    /// The recorded head.
    pub head: Head,
    /// The newest event's time, microseconds.
    pub head_us: i64,
}

/// One stored event whose bytes have the recorded id, not yet decoded.
struct RawEvent {
    /// Its number.
    seq: u64,
    /// Its batch.
    batch: u64,
    /// Its id.
    id: Digest,
    /// Its canonical bytes.
    bytes: Vec<u8>,
}

/// An event with the number of its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its batch.
    pub batch: u64,
    /// The event.
    pub sealed: Sealed,
}

/// The columns of an event's row that only copy what its bytes say.
struct Copies {
    kind: String,
    part: Option<i64>,
    effect: Option<String>,
    attempt: Option<i64>,
}

/// A digest's column.
pub fn digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    row.get::<_, [u8; 32]>(column).map(Digest::from_bytes)
}

/// A column of a digest that may be missing.
pub fn digest_or_none(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Digest>> {
    Ok(row
        .get::<_, Option<[u8; 32]>>(column)?
        .map(Digest::from_bytes))
}

/// A column that holds a number from 0.
pub fn natural(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// An error of a row: damage where its columns have other types than were written, else an error
/// of the storage.
pub fn row_error(error: rusqlite::Error, named: impl FnOnce(String) -> Damage) -> ReadError {
    match error {
        rusqlite::Error::SqliteFailure(..) => ReadError::Storage(error.into()),
        other => ReadError::Damaged(named(other.to_string())),
    }
}

/// The run's row.
pub fn run_row(connection: &Connection, run: &RunId) -> Result<Option<RunRow>, ReadError> {
    connection
        .prepare_cached(
            "SELECT number, head_n, head_digest, head_seq, head_event, head_us
             FROM run WHERE id = ?1",
        )?
        .query_row([run.as_str()], |row| {
            Ok(RunRow {
                number: row.get(0)?,
                head: Head {
                    n: natural(row, 1)?,
                    digest: digest(row, 2)?,
                    seq: natural(row, 3)?,
                    event: digest(row, 4)?,
                },
                head_us: row.get(5)?,
            })
        })
        .optional()
        .map_err(|error| row_error(error, |what| Damage::of_run(run, what)))
}

/// A batch's row: its header without the events, its digest, and where its events are.
pub struct BatchRow {
    /// The digest of the batch before.
    pub previous: Option<Digest>,
    /// The writer's epoch.
    pub epoch: u64,
    /// The recorded digest.
    pub digest: Digest,
    /// The first event's number.
    pub first_seq: u64,
    /// How many events.
    pub events: u64,
}

/// The row of batch `n`.
pub fn batch_row(
    connection: &Connection,
    run: &RunId,
    number: i64,
    n: u64,
) -> Result<Option<BatchRow>, ReadError> {
    connection
        .prepare_cached(
            "SELECT previous, epoch, digest, first_seq, events FROM batch WHERE place = ?1",
        )?
        .query_row([place(number, n)], |row| {
            Ok(BatchRow {
                previous: digest_or_none(row, 0)?,
                epoch: natural(row, 1)?,
                digest: digest(row, 2)?,
                first_seq: natural(row, 3)?,
                events: natural(row, 4)?,
            })
        })
        .optional()
        .map_err(|error| row_error(error, |what| Damage::of_batch(run, n, what)))
}

/// Reads the same row, checks its bytes against its id and its columns against its bytes, and
/// decodes it.
pub fn entry(run: &RunId, row: &Row<'_>) -> Result<Entry, ReadError> {
    let (raw, copies) = raw_and_copies(run, row)?;
    let event = decode(run, &raw)?;
    check_columns(run, &raw, &event, &copies)?;
    let sealed = Sealed {
        event,
        id: raw.id,
        bytes: raw.bytes,
    };
    Ok(Entry {
        batch: raw.batch,
        sealed,
    })
}

fn raw_and_copies(run: &RunId, row: &Row<'_>) -> Result<(RawEvent, Copies), ReadError> {
    let seq = in_run(row.get(0)?);
    let damaged = |what: String| Damage::of_event(run, None, seq, what);
    let columns = || -> rusqlite::Result<_> {
        let raw = RawEvent {
            seq,
            batch: natural(row, 1)?,
            id: digest(row, 2)?,
            bytes: row.get(7)?,
        };
        let copies = Copies {
            kind: row.get(3)?,
            part: row.get(4)?,
            effect: row.get(5)?,
            attempt: row.get(6)?,
        };
        Ok((raw, copies))
    };
    let (raw, copies) = columns().map_err(|error| row_error(error, damaged))?;
    let computed = id_of(&raw.bytes);
    if computed != raw.id {
        let what = format!("its bytes have the id {computed}, {} is recorded", raw.id);
        return Err(Damage::of_event(run, Some(raw.batch), seq, what).into());
    }
    Ok((raw, copies))
}

fn decode(run: &RunId, raw: &RawEvent) -> Result<Event, ReadError> {
    Event::decode(&raw.bytes).map_err(|error| match error {
        newer @ DecodeError::Newer { .. } => ReadError::Newer {
            run: run.clone(),
            seq: raw.seq,
            source: newer,
        },
        DecodeError::Shape(error) => {
            Damage::of_event(run, Some(raw.batch), raw.seq, error.to_string()).into()
        }
    })
}

fn check_columns(
    run: &RunId,
    raw: &RawEvent,
    event: &Event,
    copies: &Copies,
) -> Result<(), ReadError> {
    let differs = |column: &str| {
        let what = format!("its {column} differs from what its bytes say");
        Err(Damage::of_event(run, Some(raw.batch), raw.seq, what).into())
    };
    if event.run != *run {
        return differs("run");
    }
    if event.seq != raw.seq {
        return differs("number");
    }
    if event.kind != copies.kind {
        return differs("kind");
    }
    if part_of(event) != copies.part {
        return differs("part");
    }
    if event.effect.as_ref().map(EffectId::as_str) != copies.effect.as_deref() {
        return differs("effect");
    }
    if event.attempt.map(i64::from) != copies.attempt {
        return differs("attempt");
    }
    Ok(())
}

/// The number of the trial or iteration that an event belongs to: it never belongs to both.
pub fn part_of(event: &Event) -> Option<i64> {
    event
        .scope
        .trial
        .or(event.scope.iteration)
        .map(u64::cast_signed)
}

/// Batch `n`, checked by itself: its events, its digest, but not the batch before it.
pub fn batch(
    connection: &Connection,
    run: &RunId,
    number: i64,
    n: u64,
) -> Result<Batch, ReadError> {
    let damaged = |what: String| ReadError::from(Damage::of_batch(run, n, what));
    let row = batch_row(connection, run, number, n)?
        .ok_or_else(|| damaged("it is missing".to_owned()))?;
    let events = events_of_batch(connection, run, number, n, &row)?;
    let header = BatchHeader {
        run: run.clone(),
        n,
        previous: row.previous,
        epoch: row.epoch,
        events: events.iter().map(|sealed| sealed.id).collect(),
    };
    let computed = header
        .digest()
        .map_err(|error| damaged(error.to_string()))?;
    if computed != row.digest {
        return Err(damaged(format!(
            "its digest comes out as {computed}, {} is recorded",
            row.digest
        )));
    }
    Ok(Batch {
        header,
        digest: computed,
        events,
    })
}

fn events_of_batch(
    connection: &Connection,
    run: &RunId,
    number: i64,
    n: u64,
    batch: &BatchRow,
) -> Result<Vec<Sealed>, ReadError> {
    let damaged = |what: String| ReadError::from(Damage::of_batch(run, n, what));
    if batch.events == 0 {
        return Err(damaged("it has no events".to_owned()));
    }
    let last_seq = batch.first_seq.saturating_add(batch.events - 1);
    let mut statement = connection.prepare_cached(
        "SELECT place, batch, id, kind, part, effect, attempt, bytes FROM event
         WHERE place BETWEEN ?1 AND ?2 ORDER BY place",
    )?;
    let mut rows = statement.query([place(number, batch.first_seq), place(number, last_seq)])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let Entry { batch: of, sealed } = entry(run, row)?;
        let wanted = batch.first_seq + events.len() as u64;
        if sealed.event.seq != wanted {
            return Err(Damage::of_event(run, Some(n), wanted, "it is missing").into());
        }
        if of != n {
            let what = format!("it is said to be of batch {of}");
            return Err(Damage::of_event(run, Some(n), wanted, what).into());
        }
        events.push(sealed);
    }
    if (events.len() as u64) < batch.events {
        let wanted = batch.first_seq + events.len() as u64;
        return Err(Damage::of_event(run, Some(n), wanted, "it is missing").into());
    }
    Ok(events)
}

/// The batches of a run, one by one, each checked against the one before.
pub struct BatchReader<'a> {
    connection: &'a Connection,
    run: RunId,
    row: RunRow,
    next_n: u64,
    /// The digest and the next event's number after the batch before; none before the first read.
    before: Option<(Option<Digest>, u64)>,
    ended: bool,
}

impl<'a> BatchReader<'a> {
    /// Reads from batch `from_n` to the recorded head.
    pub fn new(connection: &'a Connection, run: RunId, row: RunRow, from_n: u64) -> Self {
        Self {
            connection,
            run,
            row,
            next_n: from_n,
            before: None,
            ended: false,
        }
    }

    fn read(&mut self) -> Result<Batch, ReadError> {
        let n = self.next_n;
        let (previous, next_seq) = match self.before {
            Some(before) => before,
            None => self.before_first()?,
        };
        let batch = batch(self.connection, &self.run, self.row.number, n)?;
        let damaged = |what: &str| ReadError::from(Damage::of_batch(&self.run, n, what));
        if batch.header.previous != previous {
            return Err(damaged("it doesn't follow the batch before it"));
        }
        if batch.events.first().map(|sealed| sealed.event.seq) != Some(next_seq) {
            return Err(damaged(
                "its events don't follow those of the batch before it",
            ));
        }
        let after = next_seq + batch.events.len() as u64;
        if n == self.row.head.n
            && (batch.digest != self.row.head.digest || after != self.row.head.seq + 1)
        {
            return Err(damaged("it is the last one, but not the recorded head"));
        }
        self.before = Some((Some(batch.digest), after));
        self.next_n += 1;
        Ok(batch)
    }

    fn before_first(&self) -> Result<(Option<Digest>, u64), ReadError> {
        let Some(n) = self.next_n.checked_sub(1) else {
            return Ok((None, 0));
        };
        let row = batch_row(self.connection, &self.run, self.row.number, n)?
            .ok_or_else(|| Damage::of_batch(&self.run, n, "it is missing"))?;
        Ok((Some(row.digest), row.first_seq.saturating_add(row.events)))
    }
}

impl Iterator for BatchReader<'_> {
    type Item = Result<Batch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended || self.next_n > self.row.head.n {
            return None;
        }
        let read = self.read();
        self.ended = read.is_err();
        Some(read)
    }
}

/// Where the run's chain ends, checked against its last batch.
pub fn head(connection: &Connection, run: &RunId) -> Result<Option<Head>, ReadError> {
    let Some(row) = run_row(connection, run)? else {
        return Ok(None);
    };
    let n = row.head.n;
    let last = batch_row(connection, run, row.number, n)?
        .ok_or_else(|| Damage::of_batch(run, n, "it is the recorded head, and missing"))?;
    if last.digest != row.head.digest || last.first_seq + last.events != row.head.seq + 1 {
        return Err(
            Damage::of_batch(run, n, "it is the last one, but not the recorded head").into(),
        );
    }
    Ok(Some(row.head))
}

/// The time of the storage's error kind, for functions that only ever meet those.
pub fn storage(error: ReadError) -> StorageError {
    match error {
        ReadError::Storage(error) => error,
        other => StorageError::Damaged(other.to_string()),
    }
}
