//! The listing: one small row for each event of a kind that listings are made of (decisions), so
//! that listing thousands reads neither their events nor those they follow from.
//!
//! A row is opaque here: a [`ListingSource`] makes it from the events of a part of the run, up to
//! and including the one it is for. It is written in the transaction that records that event, and
//! it is a cache. Which events are listed is always read from the journal's index; a row that is
//! missing, of another version or damaged is made anew from the events as it is read, so that a
//! listing says the same with and without the rows.

use std::ops::ControlFlow;

use loopwright_core::batch::Batch;
use loopwright_core::event::Event;
use loopwright_core::ids::RunId;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::{Damage, ReadError, StorageError};
use crate::index::{Select, ordered};
use crate::read::{Entry, entry, run_row};
use crate::schema::{in_run, listing_is_there, meta, place, places, set_meta};
use crate::store::{OpenMode, Store};
use crate::transaction::{View, Write};

/// Which version of the source the rows were made by; missing where they have to be made anew.
const LISTING_VERSION: &str = "listing_version";

/// Says what the row of an event is. Plain data and a plain function: the same events always give
/// the same row, so that it can be made anew at any time.
#[derive(Clone, Copy, Debug)]
pub struct ListingSource {
    /// Raised when `row_of` says something else than before; the rows are made anew then.
    pub version: u32,
    /// The kind of the events that are listed; one without an effect.
    pub kind: &'static str,
    /// The row of the last of these events, which are those of its trial or iteration up to it; or
    /// what is wrong with them. Never empty.
    pub row_of: fn(&[Event]) -> Result<Vec<u8>, String>,
}

/// A row of the listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The number of the event it is for.
    pub seq: u64,
    /// What the source made of it.
    pub bytes: &'a [u8],
}

/// Which events are listed is read from the index of kinds alone, each with its row beside it.
const LISTED: &str = "SELECT event.place, listing.checksum, listing.bytes
    FROM event LEFT JOIN listing ON listing.place = event.place
    WHERE event.run = ?1 AND event.kind = ?2 AND event.effect IS NULL
        AND event.place BETWEEN ?3 AND ?4
    ORDER BY event.place {order} LIMIT ?5";
const BARE: &str = "SELECT place, NULL, NULL FROM event
    WHERE run = ?1 AND kind = ?2 AND effect IS NULL AND place BETWEEN ?3 AND ?4
    ORDER BY place {order} LIMIT ?5";
const PART: &str = "SELECT place, batch, id, kind, part, effect, attempt, bytes FROM event
    WHERE run = ?1 AND part = ?2 AND place <= ?3 ORDER BY place";
const ONE: &str = "SELECT place, batch, id, kind, part, effect, attempt, bytes FROM event
    WHERE place = ?1";

impl ListingSource {
    /// Makes the rows that are missing, and all where another version made them.
    pub(crate) fn bring_up(&self, connection: &Connection) -> Result<(), StorageError> {
        if !listing_is_there(connection)? {
            return Ok(());
        }
        if self.is_current(connection)? && self.missing(connection)?.is_empty() {
            return Ok(());
        }
        let write = Write::begin(connection)?;
        if !self.is_current(connection)? {
            connection.execute("DELETE FROM listing", [])?;
            set_meta(connection, LISTING_VERSION, Some(&self.version.to_string()))?;
        }
        for (run, number, seq) in self.missing(connection)? {
            self.insert(connection, &run, number, seq)?;
        }
        write.commit()
    }

    /// The events after each run's last row that have none: a writer without the source, or of an
    /// older release, recorded them.
    fn missing(&self, connection: &Connection) -> Result<Vec<(RunId, i64, u64)>, StorageError> {
        let mut statement = connection.prepare_cached("SELECT number, id FROM run")?;
        let mut rows = statement.query([])?;
        let mut missing = Vec::new();
        while let Some(row) = rows.next()? {
            let (number, id): (i64, String) = (row.get(0)?, row.get(1)?);
            // A run whose name is damaged is named by whoever reads it.
            let Ok(run) = RunId::new(&id) else { continue };
            let seqs = self.missing_of(connection, number)?.into_iter();
            missing.extend(seqs.map(|seq| (run.clone(), number, seq)));
        }
        Ok(missing)
    }

    fn missing_of(&self, connection: &Connection, number: i64) -> Result<Vec<u64>, StorageError> {
        let (first, last) = places(number);
        let newest: Option<i64> = connection
            .prepare_cached(
                "SELECT place FROM listing WHERE place BETWEEN ?1 AND ?2
                 ORDER BY place DESC LIMIT 1",
            )?
            .query_row([first, last], |row| row.get(0))
            .optional()?;
        let from = newest.map_or(first, |newest| newest + 1);
        let mut statement = connection.prepare_cached(&ordered(BARE, Select::all()))?;
        let found = statement.query_map(params![number, self.kind, from, last, -1], |row| {
            Ok(in_run(row.get(0)?))
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Writes the row of one event, within a transaction.
    fn insert(
        &self,
        connection: &Connection,
        run: &RunId,
        number: i64,
        seq: u64,
    ) -> Result<(), StorageError> {
        // What can't be read is named by whoever reads it: an empty row says that there is none.
        let row = self.make(connection, run, number, seq).unwrap_or_default();
        let place = place(number, seq);
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO listing (place, checksum, bytes) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![place, check_of(place, &row), row])?;
        Ok(())
    }

    /// The row of one event, from the journal.
    fn make(
        &self,
        connection: &Connection,
        run: &RunId,
        number: i64,
        seq: u64,
    ) -> Result<Vec<u8>, ReadError> {
        let events = events_up_to(connection, run, number, seq)?;
        (self.row_of)(&events).map_err(|what| Damage::of_event(run, None, seq, what).into())
    }

    fn is_current(&self, connection: &Connection) -> Result<bool, StorageError> {
        let found = meta(connection, LISTING_VERSION)?;
        Ok(found.is_some_and(|found| found == self.version.to_string()))
    }
}

/// Enters the rows of a batch's events, within the transaction that records them.
pub(crate) fn enter_rows(
    connection: &Connection,
    source: Option<&ListingSource>,
    number: i64,
    batch: &Batch,
) -> Result<(), StorageError> {
    let Some(source) = source else { return Ok(()) };
    let mut kinds = batch.events.iter().map(|sealed| &sealed.event.kind);
    // Where another release keeps the rows in another version, they are left to it.
    if !kinds.any(|kind| kind == source.kind) || !source.is_current(connection)? {
        return Ok(());
    }
    for seq in source.missing_of(connection, number)? {
        source.insert(connection, &batch.header.run, number, seq)?;
    }
    Ok(())
}

/// Whether the row of the last of `events` is there and isn't what they give.
pub(crate) fn row_differs(
    connection: &Connection,
    source: &ListingSource,
    place: i64,
    events: &[Event],
) -> Result<bool, ReadError> {
    if !listing_is_there(connection)? || !source.is_current(connection)? {
        return Ok(false);
    }
    let given = (source.row_of)(events).unwrap_or_default();
    let same = |row: &Row<'_>| {
        let (check, bytes) = (row.get_ref(0)?, row.get_ref(1)?);
        let wanted = ValueRef::Integer(check_of(place, &given));
        Ok(check == wanted && bytes == ValueRef::Blob(&given))
    };
    let found = connection
        .prepare_cached("SELECT checksum, bytes FROM listing WHERE place = ?1")?
        .query_row([place], same)
        .optional()?;
    Ok(found == Some(false))
}

/// The events of the trial or iteration that event `seq` belongs to, up to it.
fn events_up_to(
    connection: &Connection,
    run: &RunId,
    number: i64,
    seq: u64,
) -> Result<Vec<Event>, ReadError> {
    let place = place(number, seq);
    let mut part = connection.prepare_cached("SELECT part FROM event WHERE place = ?1")?;
    let part: Option<i64> = part
        .query_row([place], |row| row.get(0))
        .optional()?
        .flatten();
    let mut statement;
    let mut rows = if let Some(part) = part {
        statement = connection.prepare_cached(PART)?;
        statement.query(params![number, part, place])?
    } else {
        statement = connection.prepare_cached(ONE)?;
        statement.query([place])?
    };
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let Entry { sealed, .. } = entry(run, row)?;
        events.push(sealed.event);
    }
    if events.last().map(|event| event.seq) != Some(seq) {
        let what = "it isn't among the events of its trial";
        return Err(Damage::of_event(run, None, seq, what).into());
    }
    Ok(events)
}

/// What accidental damage to a row is seen by. Each step is a bijection of the state, so that a change
/// within eight bytes never goes unseen, and others hardly ever; nobody is kept from forging a row.
fn check_of(place: i64, row: &[u8]) -> i64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |state: u64, word: u64| (state ^ word).wrapping_mul(ODD).rotate_left(29);
    let mut words = row.chunks_exact(8);
    let mut state = step(place.cast_unsigned(), row.len() as u64);
    for word in &mut words {
        let word = word.try_into().map(u64::from_le_bytes).unwrap_or_default();
        state = step(state, word);
    }
    let mut rest = [0; 8];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    step(state, u64::from_le_bytes(rest)).cast_signed()
}

/// A row as it is stored, where it is whole.
fn stored<'a>(row: &'a Row<'_>) -> rusqlite::Result<Option<&'a [u8]>> {
    let place: i64 = row.get(0)?;
    let (ValueRef::Integer(check), ValueRef::Blob(bytes)) = (row.get_ref(1)?, row.get_ref(2)?)
    else {
        return Ok(None);
    };
    let is_whole = !bytes.is_empty() && check == check_of(place, bytes);
    Ok(is_whole.then_some(bytes))
}

impl Store {
    /// Keeps the rows of every event recorded from now on, and makes those that are missing or of
    /// another version of `source`.
    pub fn keep_listing(&mut self, source: ListingSource) -> Result<(), ReadError> {
        if self.mode() != OpenMode::Read {
            source.bring_up(self.connection())?;
        }
        self.set_listing(source);
        Ok(())
    }

    /// Shows the listing one by one, in the order of `select`.
    pub fn visit_listing(
        &self,
        source: &ListingSource,
        run: &RunId,
        select: Select,
        mut visit: impl FnMut(Listed<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let connection = self.connection();
        // One state for all, however much is recorded meanwhile.
        let _view = View::begin(connection)?;
        let Some(row) = run_row(connection, run)? else {
            return Ok(());
        };
        let with_rows = listing_is_there(connection)? && source.is_current(connection)?;
        let mut left = select;
        let mut shown = |listed: Listed<'_>| {
            left = left_after(left, listed.seq);
            visit(listed)
        };
        let listing = Listing {
            connection,
            source,
            run,
            number: row.number,
        };
        if with_rows {
            match listing.visit(LISTED, select, &mut shown) {
                // The rows are on a page that is damaged: the events may not be.
                Err(ReadError::Storage(StorageError::Damaged(_))) => {}
                done => return done,
            }
        }
        listing.visit(BARE, left, visit)
    }
}

/// What is left of a selection when event `seq` was shown.
fn left_after(select: Select, seq: u64) -> Select {
    let limit = select.limit.map(|limit| limit.saturating_sub(1));
    let (after_seq, before_seq) = if select.newest_first {
        (select.after_seq, Some(seq))
    } else {
        (Some(seq), select.before_seq)
    };
    Select {
        after_seq,
        before_seq,
        limit,
        ..select
    }
}

/// A listing as it is read.
struct Listing<'a> {
    connection: &'a Connection,
    source: &'a ListingSource,
    run: &'a RunId,
    number: i64,
}

impl Listing<'_> {
    fn visit(
        &self,
        sql: &str,
        select: Select,
        mut visit: impl FnMut(Listed<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let (first, last, limit) = select.bounds(self.number);
        let mut statement = self.connection.prepare_cached(&ordered(sql, select))?;
        let mut rows =
            statement.query(params![self.number, self.source.kind, first, last, limit])?;
        while let Some(row) = rows.next()? {
            let seq = in_run(row.get(0)?);
            let made;
            let bytes = if let Some(bytes) = stored(row)? {
                bytes
            } else {
                made = self
                    .source
                    .make(self.connection, self.run, self.number, seq)?;
                &made
            };
            if visit(Listed { seq, bytes }).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_or_place_changes_the_checksum() {
        let row: Vec<u8> = (0..83).collect();
        let check = check_of(7, &row);
        assert_ne!(check, check_of(8, &row));
        assert_ne!(check, check_of(7, &row[..82]));
        for at in 0..row.len() {
            for bit in 0..8 {
                let mut changed = row.clone();
                changed[at] ^= 1 << bit;
                assert_ne!(check, check_of(7, &changed), "byte {at}, bit {bit}");
            }
        }
    }
}
