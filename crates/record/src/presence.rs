//! Whether the journal's files are still those that were opened.
//!
//! A process that removes or replaces them under an open connection isn't noticed by SQLite: it goes
//! on writing into files that have no name any more, and everything is lost at the end.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::StorageError;

/// Device and inode.
type Identity = (u64, u64);

/// The database and its write-ahead log as they were opened.
#[derive(Debug)]
pub(crate) struct Presence {
    database: PathBuf,
    log: PathBuf,
    opened: Option<Identity>,
    /// Known from the first commit on: SQLite makes the log when it needs it.
    opened_log: Cell<Option<Identity>>,
}

/// Where SQLite keeps the log of a database.
pub(crate) fn log_of(database: &Path) -> PathBuf {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

impl Presence {
    /// Notes which file an open connection has.
    pub(crate) fn of(database: &Path) -> Self {
        Self {
            database: database.to_owned(),
            log: log_of(database),
            opened: identity(database),
            opened_log: Cell::new(None),
        }
    }

    /// Notes which log a commit has just gone to.
    pub(crate) fn committed(&self) {
        if self.opened_log.get().is_none() {
            self.opened_log.set(identity(&self.log));
        }
    }

    /// Refuses where a file has been removed or replaced.
    pub(crate) fn check(&self) -> Result<(), StorageError> {
        let log = self.opened_log.get();
        let is_gone =
            is_other(&self.database, self.opened) || (log.is_some() && is_other(&self.log, log));
        if !is_gone {
            return Ok(());
        }
        Err(StorageError::Damaged(format!(
            "{} was removed or replaced while it was written to",
            self.database.display()
        )))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path)
        .ok()
        .map(|found| (found.dev(), found.ino()))
}

/// Whether a path leads to another file than this, or to none. Where nobody may look, nobody has
/// replaced it either.
fn is_other(path: &Path, opened: Option<Identity>) -> bool {
    match fs::metadata(path) {
        Ok(found) => Some((found.dev(), found.ino())) != opened,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => false,
        Err(_) => opened.is_some(),
    }
}
