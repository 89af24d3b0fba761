//! Finding events without reading whole runs.

use loopwright_core::batch::Batch;
use loopwright_core::event::Event;
use loopwright_core::ids::RunId;
use rusqlite::{Connection, Statement, params};

use crate::error::{ReadError, StorageError};
use crate::read::{Entry, entry, natural, run_row};
use crate::schema::{meta, place, places, set_meta};
use crate::store::Store;
use crate::transaction::Write;

/// Which version of the keys the index was made by; missing where it has to be made anew.
const KEYS_VERSION: &str = "keys_version";

/// A name and a value under which an event can be found again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name: `tree`.
    pub name: &'static str,
    /// The value.
    pub value: String,
}

/// Says which keys an event has. Plain data and a plain function: the same event always has the
/// same keys, so that the index can be made anew at any time.
#[derive(Clone, Copy, Debug)]
pub struct KeySource {
    /// Raised when `keys_of` says something else than before; the index is made anew then.
    pub version: u32,
    /// The keys of an event.
    pub keys_of: fn(&Event) -> Vec<Key>,
}

/// Which of the events found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// Only events after this number.
    pub after_seq: Option<u64>,
    /// Only events before this number.
    pub before_seq: Option<u64>,
    /// At most so many.
    pub limit: Option<u64>,
    /// The newest first.
    pub newest_first: bool,
}

impl Select {
    /// All, the oldest first.
    pub fn all() -> Self {
        Self {
            after_seq: None,
            before_seq: None,
            limit: None,
            newest_first: false,
        }
    }

    /// The newest `limit`, the newest first.
    pub fn newest(limit: u64) -> Self {
        Self {
            limit: Some(limit),
            newest_first: true,
            ..Self::all()
        }
    }

    /// Those after event `seq`, the oldest first.
    pub fn after(seq: u64) -> Self {
        Self {
            after_seq: Some(seq),
            ..Self::all()
        }
    }

    /// First and last key, and how many.
    pub(crate) fn bounds(self, number: i64) -> (i64, i64, i64) {
        let (first, last) = places(number);
        let first = self.after_seq.map_or(first, |seq| place(number, seq) + 1);
        let last = self.before_seq.map_or(last, |seq| place(number, seq) - 1);
        let limit = self
            .limit
            .map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        (first, last, limit)
    }
}

impl KeySource {
    /// Enters an event's keys, within the transaction that records it.
    pub(crate) fn insert(
        &self,
        connection: &Connection,
        number: i64,
        event: &Event,
    ) -> Result<(), StorageError> {
        for key in (self.keys_of)(event) {
            connection
                .prepare_cached(
                    "INSERT OR IGNORE INTO key (run, name, value, seq) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![
                    number,
                    key.name,
                    key.value,
                    event.seq.cast_signed()
                ])?;
        }
        Ok(())
    }

    /// Makes the index anew where another version wrote it.
    pub(crate) fn bring_up(&self, connection: &Connection) -> Result<(), StorageError> {
        if self.is_current(connection)? {
            return Ok(());
        }
        let write = Write::begin(connection)?;
        self.bring_up_within(connection)?;
        write.commit()
    }

    /// The same within a transaction.
    fn bring_up_within(&self, connection: &Connection) -> Result<(), StorageError> {
        if self.is_current(connection)? {
            return Ok(());
        }
        connection.execute("DELETE FROM key", [])?;
        let mut statement = connection.prepare("SELECT run, bytes FROM event")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let bytes: Vec<u8> = row.get(1)?;
            // What can't be read is named by whoever reads it, not by an index.
            if let Ok(event) = Event::decode(&bytes) {
                self.insert(connection, row.get(0)?, &event)?;
            }
        }
        set_meta(connection, KEYS_VERSION, Some(&self.version.to_string()))
    }

    fn is_current(&self, connection: &Connection) -> Result<bool, StorageError> {
        let found = meta(connection, KEYS_VERSION)?;
        Ok(found.is_some_and(|found| found == self.version.to_string()))
    }
}

/// Enters the keys of a batch's events, within the transaction that records them. A writer that
/// knows no keys marks the index as one to be made anew.
pub(crate) fn enter_keys(
    connection: &Connection,
    keys: Option<&KeySource>,
    number: i64,
    batch: &Batch,
) -> Result<(), StorageError> {
    let Some(keys) = keys else {
        if meta(connection, KEYS_VERSION)?.is_some() {
            set_meta(connection, KEYS_VERSION, None)?;
        }
        return Ok(());
    };
    keys.bring_up_within(connection)?;
    for sealed in &batch.events {
        keys.insert(connection, number, &sealed.event)?;
    }
    Ok(())
}

/// Whether an event's key is entered.
pub(crate) fn is_entered(
    connection: &Connection,
    number: i64,
    key: &Key,
    seq: u64,
) -> Result<bool, ReadError> {
    let sql = "SELECT 1 FROM key WHERE run = ?1 AND name = ?2 AND value = ?3 AND seq = ?4";
    Ok(connection.prepare_cached(sql)?.exists(params![
        number,
        key.name,
        key.value,
        seq.cast_signed()
    ])?)
}

/// The kinds index leaves out events about effects; they are few of a kind only by accident.
const BY_KIND: &str = "SELECT place, batch, id, kind, part, effect, attempt, bytes FROM event
    WHERE run = ?1 AND kind = ?2 AND effect IS NULL AND place BETWEEN ?3 AND ?4
    ORDER BY place {order} LIMIT ?5";
const BY_KIND_AND_EFFECT: &str =
    "SELECT place, batch, id, kind, part, effect, attempt, bytes FROM event
    WHERE ?1 >= 0 AND kind = ?2 AND place BETWEEN ?3 AND ?4 ORDER BY place {order} LIMIT ?5";
const BY_PART: &str = "SELECT place, batch, id, kind, part, effect, attempt, bytes FROM event
    WHERE run = ?1 AND part = ?2 AND place BETWEEN ?3 AND ?4 ORDER BY place {order} LIMIT ?5";
const BY_PLACE: &str = "SELECT place, batch, id, kind, part, effect, attempt, bytes FROM event
    WHERE place BETWEEN ?1 AND ?2 ORDER BY place {order} LIMIT ?3";

/// The query in the order of `select`.
pub(crate) fn ordered(sql: &str, select: Select) -> String {
    sql.replace("{order}", if select.newest_first { "DESC" } else { "ASC" })
}

fn entries(
    run: &RunId,
    mut statement: rusqlite::CachedStatement<'_>,
    values: impl rusqlite::Params,
) -> Result<Vec<Entry>, ReadError> {
    let mut found = Vec::new();
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        found.push(entry(run, row)?);
    }
    Ok(found)
}

impl Store {
    /// The events of one kind. Fast for kinds without an effect (decisions, invocations); those
    /// with one are found by reading through the run.
    pub fn events_of_kind(
        &self,
        run: &RunId,
        kind: &str,
        select: Select,
    ) -> Result<Vec<Entry>, ReadError> {
        let Some(row) = run_row(self.connection(), run)? else {
            return Ok(Vec::new());
        };
        let (first, last, limit) = select.bounds(row.number);
        let statement = self.by_kind(kind, select)?;
        entries(
            run,
            statement,
            params![row.number, kind, first, last, limit],
        )
    }

    fn by_kind(
        &self,
        kind: &str,
        select: Select,
    ) -> Result<rusqlite::CachedStatement<'_>, ReadError> {
        let sql = if kind.starts_with("effect.") {
            BY_KIND_AND_EFFECT
        } else {
            BY_KIND
        };
        Ok(self.connection().prepare_cached(&ordered(sql, select))?)
    }

    /// The kinds of events that a run holds, in the order of their names. Read from indexes alone.
    pub fn kinds(&self, run: &RunId) -> Result<Vec<String>, ReadError> {
        let Some(row) = run_row(self.connection(), run)? else {
            return Ok(Vec::new());
        };
        let sql = "SELECT kind FROM event WHERE run = ?1 AND effect IS NULL
            UNION SELECT kind FROM event WHERE run = ?1 AND effect IS NOT NULL ORDER BY 1";
        let mut statement = self.connection().prepare_cached(sql)?;
        let kinds = statement.query_map(params![row.number], |row| row.get(0))?;
        Ok(kinds.collect::<Result<_, _>>()?)
    }

    /// The events of one trial or iteration, the oldest first.
    pub fn events_of_part(&self, run: &RunId, part: u64) -> Result<Vec<Entry>, ReadError> {
        let Some(row) = run_row(self.connection(), run)? else {
            return Ok(Vec::new());
        };
        let (first, last, limit) = Select::all().bounds(row.number);
        let statement = self
            .connection()
            .prepare_cached(&ordered(BY_PART, Select::all()))?;
        let part = part.cast_signed();
        entries(
            run,
            statement,
            params![row.number, part, first, last, limit],
        )
    }

    /// The events of one trial, the oldest first.
    pub fn events_of_trial(&self, run: &RunId, trial: u64) -> Result<Vec<Entry>, ReadError> {
        self.events_of_part(run, trial)
    }

    /// The run's events by number.
    pub fn events(&self, run: &RunId, select: Select) -> Result<Vec<Entry>, ReadError> {
        let Some(row) = run_row(self.connection(), run)? else {
            return Ok(Vec::new());
        };
        let (first, last, limit) = select.bounds(row.number);
        let statement = self
            .connection()
            .prepare_cached(&ordered(BY_PLACE, select))?;
        entries(run, statement, params![first, last, limit])
    }

    /// One event.
    pub fn event(&self, run: &RunId, seq: u64) -> Result<Option<Entry>, ReadError> {
        let select = Select {
            after_seq: seq.checked_sub(1),
            before_seq: seq.checked_add(1),
            ..Select::all()
        };
        Ok(self.events(run, select)?.pop())
    }

    /// The numbers of all events with that key, the oldest first.
    pub fn all_with_key(
        &self,
        run: &RunId,
        name: &str,
        value: &str,
    ) -> Result<Vec<u64>, ReadError> {
        let sql = "SELECT seq FROM key WHERE run = ?1 AND name = ?2 AND value = ?3 ORDER BY seq";
        let Some(row) = run_row(self.connection(), run)? else {
            return Ok(Vec::new());
        };
        let mut statement: rusqlite::CachedStatement<'_> = self.connection().prepare_cached(sql)?;
        collect(&mut statement, params![row.number, name, value])
    }

    /// A number that changes whenever another connection has recorded something; for `--follow`.
    pub fn data_version(&self) -> Result<i64, StorageError> {
        Ok(self
            .connection()
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))?)
    }
}

fn collect(
    statement: &mut Statement<'_>,
    values: impl rusqlite::Params,
) -> Result<Vec<u64>, ReadError> {
    let rows = statement.query_map(values, |row| natural(row, 0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::OpenMode;

    /// How SQLite goes about a query.
    fn plan(store: &Store, sql: &str) -> String {
        let mut statement = store
            .connection()
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let count = statement.parameter_count();
        let values = rusqlite::params_from_iter(std::iter::repeat_n(1, count));
        let rows = statement
            .query_map(values, |row| row.get::<_, String>(3))
            .unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn listings_read_an_index_and_sort_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), OpenMode::Create).unwrap();
        for (sql, wanted) in [
            (
                BY_KIND,
                "USING INDEX event_kind (run=? AND kind=? AND rowid>? AND rowid<?)",
            ),
            (
                BY_PART,
                "USING INDEX event_part (run=? AND part=? AND rowid>? AND rowid<?)",
            ),
            (BY_PLACE, "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
            (
                BY_KIND_AND_EFFECT,
                "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
            ),
        ] {
            for select in [Select::all(), Select::newest(1)] {
                let plan = plan(&store, &ordered(sql, select));
                assert!(
                    plan.contains(wanted) && !plan.contains("TEMP"),
                    "{sql}: {plan}"
                );
            }
        }
    }
}
