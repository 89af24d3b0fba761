//! The database: its tables, its two version numbers, and how a connection is set up.
//!
//! The *store version* (`user_version`) changes when an older release could no longer read what is
//! written; it refuses then. The *index version* changes when indexes, or tables that hold nothing
//! but what can be made anew, are added: they are made at the next opening for writing, and an older
//! release goes on without knowing them.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{OpenError, StorageError};
use crate::transaction::{View, Write};

/// The store version that this release writes.
pub const STORE_VERSION: i64 = 1;
/// The index version that this release makes.
pub const INDEX_VERSION: i64 = 2;

/// `LpWr`, so that `file` and we can tell our databases from others.
const APPLICATION_ID: i64 = 0x4c70_5772;

/// How long a writer waits for another one's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to leave others alone who are busy for a moment.
const BETWEEN_TRIES: Duration = Duration::from_millis(3);
const STATEMENTS_CACHED: usize = 64;

/// A run's number and a place in it make one key, so that a run's rows lie side by side and need
/// no index of their own.
const PLACE_BITS: u32 = 40;
/// The largest number of a run, and the largest `seq` or `n` in it.
const RUN_NUMBER_MAX: i64 = (1 << (63 - PLACE_BITS)) - 1;
const IN_RUN_MAX: u64 = (1 << PLACE_BITS) - 1;

/// The key of event `seq` or batch `n` of the run of that number.
pub fn place(run_number: i64, in_run: u64) -> i64 {
    let in_run = in_run.min(IN_RUN_MAX);
    (run_number << PLACE_BITS) | in_run.cast_signed()
}

/// The first and last key of a run.
pub fn places(run_number: i64) -> (i64, i64) {
    (place(run_number, 0), place(run_number, IN_RUN_MAX))
}

/// The `seq` or `n` in a key.
pub fn in_run(place: i64) -> u64 {
    place.cast_unsigned() & IN_RUN_MAX
}

/// Whether the key can hold these numbers.
pub fn fits(run_number: i64, in_run: u64) -> bool {
    (0..=RUN_NUMBER_MAX).contains(&run_number) && in_run <= IN_RUN_MAX
}

/// Store version 1. `event.bytes` and the batch's columns are the record; all other columns are
/// copies of something in them, for the indexes and for people with `sqlite3`, and are checked
/// against them on every read.
const TABLES: &str = "
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    loop TEXT NOT NULL,
    kind TEXT NOT NULL,
    started_us INTEGER NOT NULL,
    parent_run TEXT,
    parent_effect TEXT,
    basis_run TEXT,
    basis_event BLOB,
    basis_seq INTEGER,
    head_n INTEGER NOT NULL,
    head_digest BLOB NOT NULL,
    head_seq INTEGER NOT NULL,
    head_event BLOB NOT NULL,
    head_us INTEGER NOT NULL,
    invocation INTEGER,
    last_reason TEXT,
    last_words TEXT,
    ended_reason TEXT,
    ended_words TEXT
) STRICT;
CREATE INDEX run_loop ON run (loop);
CREATE INDEX run_parent ON run (parent_run) WHERE parent_run IS NOT NULL;

CREATE TABLE batch (
    place INTEGER PRIMARY KEY,
    run INTEGER NOT NULL GENERATED ALWAYS AS (place >> 40) VIRTUAL REFERENCES run (number),
    n INTEGER NOT NULL GENERATED ALWAYS AS (place & 0xffffffffff) VIRTUAL,
    previous BLOB,
    epoch INTEGER NOT NULL,
    digest BLOB NOT NULL,
    first_seq INTEGER NOT NULL,
    events INTEGER NOT NULL
) STRICT;

CREATE TABLE event (
    place INTEGER PRIMARY KEY,
    run INTEGER NOT NULL GENERATED ALWAYS AS (place >> 40) VIRTUAL REFERENCES run (number),
    seq INTEGER NOT NULL GENERATED ALWAYS AS (place & 0xffffffffff) VIRTUAL,
    batch INTEGER NOT NULL,
    kind TEXT NOT NULL,
    part INTEGER,
    effect TEXT,
    attempt INTEGER,
    id BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_effect ON event (run, effect, attempt, kind) WHERE effect IS NOT NULL;

CREATE TABLE key (
    run INTEGER NOT NULL REFERENCES run (number),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (run, name, value, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshot (
    place INTEGER PRIMARY KEY,
    run INTEGER NOT NULL GENERATED ALWAYS AS (place >> 40) VIRTUAL REFERENCES run (number),
    n INTEGER NOT NULL GENERATED ALWAYS AS (place & 0xffffffffff) VIRTUAL,
    batch BLOB NOT NULL,
    machine TEXT NOT NULL,
    version INTEGER NOT NULL,
    policies TEXT NOT NULL,
    digest BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE lease (
    run TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    holder TEXT,
    since_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ref (
    name TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    seq INTEGER NOT NULL,
    event BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE reflog (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    who TEXT NOT NULL,
    why TEXT NOT NULL,
    old_run TEXT,
    old_event BLOB,
    new_run TEXT,
    new_event BLOB
) STRICT;
CREATE INDEX reflog_name ON reflog (name);
";

/// Index version 1: what listings read. Decisions have no effect; the many announcements and
/// settlements have one, are found by it, and would only make this index big.
const INDEXES: &str = "
CREATE INDEX IF NOT EXISTS event_kind ON event (run, kind) WHERE effect IS NULL;
CREATE INDEX IF NOT EXISTS event_part ON event (run, part) WHERE part IS NOT NULL;
";

/// Index version 2: the rows of listings, each under the key of its event.
const LISTING: &str = "
CREATE TABLE IF NOT EXISTS listing (
    place INTEGER PRIMARY KEY,
    run INTEGER NOT NULL GENERATED ALWAYS AS (place >> 40) VIRTUAL REFERENCES run (number),
    seq INTEGER NOT NULL GENERATED ALWAYS AS (place & 0xffffffffff) VIRTUAL,
    checksum INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
";
const LISTING_SINCE: i64 = 2;

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Made where it doesn't exist.
    Create,
    /// Must exist.
    Write,
    /// Nothing is written but what SQLite needs to read.
    Read,
    /// Nothing is written at all; the file must not be in use.
    Immutable,
}

/// Opens the database, makes its tables where it is new, and refuses what it can't understand.
pub fn open(path: &Path, access: Access) -> Result<Connection, OpenError> {
    let storage = |error: rusqlite::Error| refused(path, error.into());
    let connection = connect(path, access).map_err(storage)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(storage)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    set_up(&connection, access).map_err(storage)?;
    // All of it at one moment: somebody may be making the tables.
    let view = View::begin(&connection).map_err(|error| refused(path, error))?;
    let is_made = check_versions(&connection, path)?;
    drop(view);
    if !is_made {
        if access != Access::Create {
            return Err(OpenError::Missing(path.to_owned()));
        }
        // Before anything is in the file, and only there: it stays in the file.
        keep_a_log(&connection).map_err(storage)?;
        create(&connection, path)?;
    }
    if matches!(access, Access::Create | Access::Write) {
        add_indexes(&connection).map_err(|error| refused(path, error))?;
    }
    Ok(connection)
}

/// Turns the log on. SQLite doesn't wait for others here: whoever looks at the new file at the same
/// moment, to make it too, hinders both.
fn keep_a_log(connection: &Connection) -> rusqlite::Result<()> {
    let give_up_at = Instant::now() + BUSY_TIMEOUT;
    loop {
        let done = connection.pragma_update(None, "journal_mode", "wal");
        let is_busy = done
            .as_ref()
            .is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy));
        if !is_busy || Instant::now() >= give_up_at {
            return done;
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
}

fn connect(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let write = flags | OpenFlags::SQLITE_OPEN_READ_WRITE;
    match access {
        Access::Create => Connection::open_with_flags(path, write | OpenFlags::SQLITE_OPEN_CREATE),
        // A reader opens for writing too, so that it can recover the log of a writer that died;
        // where the file system doesn't let it, SQLite falls back to reading.
        Access::Write | Access::Read => Connection::open_with_flags(path, write),
        Access::Immutable => Connection::open_with_flags(
            uri(path),
            flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
        ),
    }
}

/// The path as a URI of a file that nobody changes.
fn uri(path: &Path) -> String {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    let mut text = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text.push_str("?immutable=1");
    text
}

fn set_up(connection: &Connection, access: Access) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    // Else a statement that a partial index might serve is planned anew for each set of values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    if matches!(access, Access::Read | Access::Immutable) {
        connection.pragma_update(None, "query_only", true)?;
    }
    Ok(())
}

/// Whether the database has our tables; refuses other people's and later ones.
fn check_versions(connection: &Connection, path: &Path) -> Result<bool, OpenError> {
    let storage = |error: rusqlite::Error| refused(path, error.into());
    let number = |name: &str| -> Result<i64, OpenError> {
        connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(storage)
    };
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION_ID {
        return match version {
            STORE_VERSION => Ok(true),
            found if found > STORE_VERSION => Err(OpenError::Newer {
                found,
                known: STORE_VERSION,
                path: path.to_owned(),
            }),
            found => Err(OpenError::Damaged {
                path: path.to_owned(),
                why: format!("its store version is {found}"),
            }),
        };
    }
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(storage)?;
    if application == 0 && version == 0 && tables == 0 {
        return Ok(false);
    }
    Err(OpenError::Foreign(path.to_owned()))
}

fn create(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let storage = |error| refused(path, error);
    let write = Write::begin(connection).map_err(storage)?;
    // Somebody else may have made them since we looked.
    if check_versions(connection, path)? {
        return Ok(());
    }
    connection
        .execute_batch(TABLES)
        .and_then(|()| connection.pragma_update(None, "user_version", STORE_VERSION))
        .and_then(|()| connection.pragma_update(None, "application_id", APPLICATION_ID))
        .map_err(|error| storage(error.into()))?;
    write.commit().map_err(storage)
}

fn add_indexes(connection: &Connection) -> Result<(), StorageError> {
    if index_version(connection)? >= INDEX_VERSION {
        return Ok(());
    }
    let write = Write::begin(connection)?;
    if index_version(connection)? < INDEX_VERSION {
        connection.execute_batch(INDEXES)?;
        connection.execute_batch(LISTING)?;
        set_meta(
            connection,
            "index_version",
            Some(&INDEX_VERSION.to_string()),
        )?;
    }
    write.commit()
}

/// Whether the table of listings was made; whoever only reads an older store does without.
pub fn listing_is_there(connection: &Connection) -> Result<bool, StorageError> {
    Ok(index_version(connection)? >= LISTING_SINCE)
}

fn index_version(connection: &Connection) -> Result<i64, StorageError> {
    let found = meta(connection, "index_version")?;
    Ok(found.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// A value of the table of odds and ends.
pub fn meta(connection: &Connection, name: &str) -> Result<Option<String>, StorageError> {
    use rusqlite::OptionalExtension as _;
    Ok(connection
        .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?)
}

/// Sets or removes a value of the table of odds and ends; within a transaction.
pub fn set_meta(
    connection: &Connection,
    name: &str,
    value: Option<&str>,
) -> Result<(), StorageError> {
    let Some(value) = value else {
        connection
            .prepare_cached("DELETE FROM meta WHERE name = ?1")?
            .execute([name])?;
        return Ok(());
    };
    connection
        .prepare_cached(
            "INSERT INTO meta (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )?
        .execute([name, value])?;
    Ok(())
}

fn refused(path: &Path, error: StorageError) -> OpenError {
    let path = path.to_owned();
    match error {
        StorageError::Damaged(why) => OpenError::Damaged { path, why },
        StorageError::ReadOnly(why) => OpenError::Unwritable { path, why },
        source => OpenError::Storage { path, source },
    }
}
