//! What can go wrong with a store, typed so that callers can act on it.

use std::io;
use std::path::{Path, PathBuf};

use loopwright_core::digest::Digest;
use loopwright_core::event::DecodeError;
use loopwright_core::ids::{EffectId, RunId};
use rusqlite::{ErrorCode, ffi};

use crate::holder::Holder;

/// What is wrong with the storage itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// No space is left.
    #[error("the disk is full; nothing was lost, free some space and go on")]
    Full,
    /// It can't be written.
    #[error("the store can't be written: {0}")]
    ReadOnly(String),
    /// It isn't what was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Another process holds the write lock for too long.
    #[error("the store is locked by another process: {0}")]
    Busy(String),
    /// Anything else, as the system says it.
    #[error("the store can't be used: {0}")]
    Io(String),
}

impl StorageError {
    /// What the system says, with the path it was said about.
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::ReadOnly(format!("{}: {error}", path.display()))
            }
            // What is not what was put there: see `plain`.
            io::ErrorKind::InvalidData => Self::Damaged(format!("{}: {error}", path.display())),
            _ => Self::Io(format!("{}: {error}", path.display())),
        }
    }
}

impl From<rusqlite::Error> for StorageError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DiskFull => Self::Full,
                _ if is_of_no_room(failure.extended_code) => Self::Full,
                _ if is_of_damage(failure.extended_code) => Self::Damaged(text),
                ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Self::ReadOnly(text),
                // The unknown one is SQLite's general error: a table that isn't there any more.
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown => {
                    Self::Damaged(text)
                }
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy(text),
                _ => Self::Io(text),
            },
            // Whatever doesn't have the type or the columns it was written with was changed since.
            _ => Self::Damaged(text),
        }
    }
}

/// The index of the log has no room; SQLite has no other word for that.
fn is_of_no_room(extended_code: i32) -> bool {
    extended_code == ffi::SQLITE_IOERR_SHMSIZE
}

/// What SQLite counts as faults of reading or writing, where it is the file that changed: it ends
/// before what was written to it, is no longer the one that was opened, or is broken.
fn is_of_damage(extended_code: i32) -> bool {
    [
        ffi::SQLITE_IOERR_SHORT_READ,
        ffi::SQLITE_IOERR_CORRUPTFS,
        ffi::SQLITE_READONLY_DBMOVED,
    ]
    .contains(&extended_code)
}

/// A store that can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none.
    #[error("there is no store at {0}")]
    Missing(PathBuf),
    /// It was written by a later release.
    #[error(
        "this store was written by a newer loopwright (store version {found}; this one knows {known}); use a newer loopwright, or another --store: {path}"
    )]
    Newer {
        /// The version found.
        found: i64,
        /// The newest one known.
        known: i64,
        /// The database.
        path: PathBuf,
    },
    /// The file is a database of something else.
    #[error("{0} is a database, but not one of loopwright's; use another --store")]
    Foreign(PathBuf),
    /// It can't be written, and that was asked for.
    #[error("the store at {path} can't be written: {why}")]
    Unwritable {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// It isn't what was written.
    #[error(
        "the store at {path} is damaged: {why}; loopwright verify says what can still be read; keep a copy of it, and use another --store"
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Anything else.
    #[error("the store at {path} can't be opened: {source}")]
    Storage {
        /// The database.
        path: PathBuf,
        /// What is wrong.
        source: StorageError,
    },
}

/// Something stored that isn't what was written, as exactly as it can be named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("run {run}{}{} is damaged: {what}", named("batch", *.batch), named("event", *.seq))]
pub struct Damage {
    /// The run.
    pub run: RunId,
    /// The batch, where it is in one.
    pub batch: Option<u64>,
    /// The event's number, where it is in one.
    pub seq: Option<u64>,
    /// What is wrong.
    pub what: String,
}

fn named(what: &str, number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| format!(", {what} {number}"))
}

impl Damage {
    /// Damage to the run's own row.
    pub(crate) fn of_run(run: &RunId, what: impl Into<String>) -> Self {
        Self {
            run: run.clone(),
            batch: None,
            seq: None,
            what: what.into(),
        }
    }

    /// Damage to a batch.
    pub(crate) fn of_batch(run: &RunId, n: u64, what: impl Into<String>) -> Self {
        Self {
            batch: Some(n),
            ..Self::of_run(run, what)
        }
    }

    /// Damage to an event.
    pub(crate) fn of_event(run: &RunId, n: Option<u64>, seq: u64, what: impl Into<String>) -> Self {
        Self {
            batch: n,
            seq: Some(seq),
            ..Self::of_run(run, what)
        }
    }
}

/// Something that can't be read back.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It isn't what was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// It was written by a later release.
    #[error("event {seq} of run {run}: {source}")]
    Newer {
        /// The run.
        run: RunId,
        /// The event's number.
        seq: u64,
        /// Which schema.
        source: DecodeError,
    },
    /// The storage doesn't work.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error.into())
    }
}

fn driver(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "nobody".to_owned(), Holder::to_string)
}

/// A batch that can't be appended. Nothing of it was recorded, but see
/// [`Journal`](crate::Journal) about errors of the storage.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// There is a batch of that number already.
    #[error("run {run} has a batch {n} already: somebody else has written to it")]
    Exists {
        /// The run.
        run: RunId,
        /// The batch.
        n: u64,
    },
    /// It doesn't follow the newest batch.
    #[error("batch {n} of run {run} doesn't follow its newest batch: {why}")]
    NotNext {
        /// The run.
        run: RunId,
        /// The batch.
        n: u64,
        /// What is missing.
        why: String,
    },
    /// Somebody else drives the run now.
    #[error(
        "run {run} was taken over, and is driven by {} now (epoch {newest}, this one has {epoch})",
        driver(.holder.as_deref())
    )]
    Fenced {
        /// The run.
        run: RunId,
        /// The batch's epoch.
        epoch: u64,
        /// The newest lease's.
        newest: u64,
        /// Who has it; none where the lease was given up.
        holder: Option<Box<Holder>>,
    },
    /// The same thing about the same attempt is recorded already.
    #[error("run {run} has a {kind} of {effect}, attempt {attempt}, already")]
    Duplicate {
        /// The run.
        run: RunId,
        /// The effect.
        effect: EffectId,
        /// The attempt.
        attempt: u32,
        /// The event's kind.
        kind: String,
    },
    /// The batch contradicts itself.
    #[error("batch {n} of run {run} contradicts itself: {why}")]
    Inconsistent {
        /// The run.
        run: RunId,
        /// The batch.
        n: u64,
        /// Where.
        why: String,
    },
    /// No space is left.
    #[error("the disk is full; nothing was lost, free some space and go on")]
    Full,
    /// The store can't be written.
    #[error("the store can't be written: {0}")]
    ReadOnly(String),
    /// The store isn't what was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Another process holds the write lock for too long.
    #[error("the store is locked by another process: {0}")]
    Busy(String),
    /// Anything else, as the system says it.
    #[error("the store can't be used: {0}")]
    Io(String),
}

impl From<StorageError> for AppendError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Full => Self::Full,
            StorageError::ReadOnly(text) => Self::ReadOnly(text),
            StorageError::Damaged(text) => Self::Damaged(text),
            StorageError::Busy(text) => Self::Busy(text),
            StorageError::Io(text) => Self::Io(text),
        }
    }
}

impl From<rusqlite::Error> for AppendError {
    fn from(error: rusqlite::Error) -> Self {
        StorageError::from(error).into()
    }
}

/// A lease that can't be had.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody else has it.
    #[error("{0}")]
    Held(Box<Held>),
    /// The storage doesn't work.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Who has a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// What is held: `run …`, or `the start of loop …`.
    pub what: String,
    /// By whom, where that is known.
    pub holder: Option<Holder>,
    /// Since when, microseconds since the epoch.
    pub since: Option<loopwright_core::time::Micros>,
    /// Until when at least, unless renewed.
    pub expires: Option<loopwright_core::time::Micros>,
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.holder {
            Some(holder) => write!(f, "{} is driven by {holder}", self.what),
            None => write!(f, "{} is driven by another process", self.what),
        }
    }
}

impl From<rusqlite::Error> for LeaseError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error.into())
    }
}

/// A blob that can't be had or put.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is none.
    #[error("there is no blob {0}")]
    Missing(Digest),
    /// Its content isn't what its name says.
    #[error("blob {digest} is damaged: {why}")]
    Damaged {
        /// Its name.
        digest: Digest,
        /// What is wrong.
        why: String,
    },
    /// What was to be put can't be read.
    #[error("{path} can't be read: {source}")]
    Input {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The storage doesn't work.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A ref that can't be moved.
#[derive(Debug, thiserror::Error)]
pub enum RefError {
    /// Not a ref's name.
    #[error("the ref name {name:?} can't be used: {why}")]
    Name {
        /// The name.
        name: String,
        /// Which rule it breaks.
        why: String,
    },
    /// It isn't where it was expected.
    #[error(
        "the ref {name} has moved: expected {}, found {}", text(*.expected), text(*.found)
    )]
    Moved {
        /// The name.
        name: String,
        /// Where it was expected; none for "doesn't exist".
        expected: Option<Digest>,
        /// Where it is.
        found: Option<Digest>,
    },
    /// What it should name isn't in the store.
    #[error("run {run} has no event {event}")]
    NoSuchEvent {
        /// The run.
        run: RunId,
        /// The event.
        event: Digest,
    },
    /// The storage doesn't work.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

fn text(digest: Option<Digest>) -> String {
    digest.map_or_else(|| "nothing".to_owned(), |digest| digest.to_string())
}

impl From<rusqlite::Error> for RefError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error.into())
    }
}
