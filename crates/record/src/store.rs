//! A store: one directory with the journal, the blobs, the locks and the running commands.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loopwright_core::batch::{Batch, Head};
use loopwright_core::ids::RunId;
use rusqlite::Connection;

use crate::append::{Derived, append};
use crate::blobs::Blobs;
use crate::error::{AppendError, OpenError, ReadError, StorageError};
use crate::index::KeySource;
use crate::journal::{Along, Batches, Journal};
use crate::listing::ListingSource;
use crate::plain;
use crate::presence::{Presence, log_of};
use crate::read::{self, BatchReader, run_row};
use crate::running::Running;
use crate::schema::{self, Access};
use crate::snapshot::{self, Snapshot};

/// The database's file name.
pub const JOURNAL_FILE: &str = "journal.db";
const BLOBS: &str = "blobs";
const LOCKS: &str = "locks";
const RUNNING: &str = "running";
const FOLDER_MODE: u32 = 0o700;
/// No blob takes a day to be put.
const LEFTOVER_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// To write; made where there is none.
    Create,
    /// To write; there must be one.
    Write,
    /// To read; there must be one. Needs no lock, and works beside a writer and on a store that
    /// can't be written.
    Read,
}

/// An open store. One connection, for one thread at a time; open it again for another.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    mode: OpenMode,
    connection: Connection,
    blobs: Blobs,
    running: Running,
    keys: Option<KeySource>,
    listing: Option<ListingSource>,
    presence: Presence,
}

impl Store {
    /// Opens the store in `folder`.
    pub fn open(folder: &Path, mode: OpenMode) -> Result<Self, OpenError> {
        let path = folder.join(JOURNAL_FILE);
        if mode == OpenMode::Create {
            make_folders(folder)?;
        }
        match fs::symlink_metadata(&path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if mode != OpenMode::Create {
                    return Err(OpenError::Missing(folder.to_owned()));
                }
            }
            Err(error) => return Err(unusable(folder, &error)),
        }
        plain::check_database(&path)?;
        let connection = match mode {
            OpenMode::Create | OpenMode::Write => open_to_write(folder, &path, mode)?,
            OpenMode::Read => open_to_read(&path)?,
        };
        let blobs = Blobs::new(folder.join(BLOBS));
        if mode != OpenMode::Read {
            // Tidying up hinders nobody from working.
            let _ = blobs.sweep(LEFTOVER_AGE);
        }
        if mode == OpenMode::Create && log_bytes(&path) > 0 {
            // What a writer that died left there; waits for nobody. A disk that has no room for it
            // says so at the first commit.
            let _ = checkpoint(&connection, "PASSIVE");
        }
        Ok(Self {
            blobs,
            presence: Presence::of(&path),
            running: Running::new(folder.join(RUNNING)),
            folder: folder.to_owned(),
            mode,
            connection,
            keys: None,
            listing: None,
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it was opened for.
    pub fn mode(&self) -> OpenMode {
        self.mode
    }

    /// The blobs; a handle that can be cloned and used from any thread.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// The commands that run under a supervisor now.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Enters the keys of every event appended from now on, and those of all recorded ones where
    /// the index was made by another version of `keys`.
    pub fn index_keys(&mut self, keys: KeySource) -> Result<(), ReadError> {
        if self.mode != OpenMode::Read {
            keys.bring_up(&self.connection)?;
        }
        self.keys = Some(keys);
        Ok(())
    }

    /// Closes it and says what went wrong with that; dropping it does the same in silence. The
    /// last connection to close copies the log into the database and removes it.
    pub fn close(self) -> Result<(), StorageError> {
        self.connection
            .close()
            .map_err(|(_, error)| StorageError::from(error))
    }

    /// Whether the log takes more room than is left on its disk.
    fn log_outgrows_disk(&self) -> bool {
        let left = rustix::fs::statvfs(&self.folder)
            .map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        log_bytes(&self.folder.join(JOURNAL_FILE)) > left
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Lets the database grow no further than this, so that a test can fill it.
    #[doc(hidden)]
    pub fn limit_pages_for_tests(&self, pages: u32) -> Result<(), StorageError> {
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(StorageError::from)
    }

    pub(crate) fn keys(&self) -> Option<KeySource> {
        self.keys
    }

    pub(crate) fn listing(&self) -> Option<ListingSource> {
        self.listing
    }

    pub(crate) fn set_listing(&mut self, source: ListingSource) {
        self.listing = Some(source);
    }

    pub(crate) fn locks_dir(&self) -> PathBuf {
        self.folder.join(LOCKS)
    }
}

impl Journal for Store {
    fn append_with(&mut self, batch: &Batch, along: Along<'_>) -> Result<(), AppendError> {
        self.presence.check()?;
        let derived = Derived {
            keys: self.keys.as_ref(),
            listing: self.listing.as_ref(),
        };
        let write = || append(&self.connection, derived, batch, along);
        match write() {
            // Room was made meanwhile: once the database has what is in the log, that begins anew.
            Err(AppendError::Full) if checkpoint(&self.connection, "TRUNCATE") => write()?,
            written => written?,
        }
        self.presence.committed();
        if self.log_outgrows_disk() {
            // The database needs no more room than its log has; later there might be too little.
            let _ = checkpoint(&self.connection, "TRUNCATE");
        }
        Ok(())
    }

    fn head(&self, run: &RunId) -> Result<Option<Head>, ReadError> {
        read::head(&self.connection, run)
    }

    fn batches(&self, run: &RunId, from_n: u64) -> Result<Batches<'_>, ReadError> {
        Ok(match run_row(&self.connection, run)? {
            None => Box::new(std::iter::empty()),
            Some(row) => Box::new(BatchReader::new(&self.connection, run.clone(), row, from_n)),
        })
    }

    fn snapshots(&self, run: &RunId) -> Result<Vec<Snapshot>, ReadError> {
        snapshot::list(&self.connection, run)
    }
}

/// Copies what the log holds into the database; says whether it has all of it.
fn checkpoint(connection: &Connection, mode: &str) -> bool {
    let copied = connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        let (busy, pages, done): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(busy == 0 && pages == done)
    });
    copied.unwrap_or(false)
}

/// How large the log beside a database is.
fn log_bytes(database: &Path) -> u64 {
    fs::metadata(log_of(database)).map_or(0, |found| found.len())
}

fn make_folders(folder: &Path) -> Result<(), OpenError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE);
    let fresh = !folder.is_dir();
    for path in [
        folder.to_owned(),
        folder.join(BLOBS),
        folder.join(LOCKS),
        folder.join(RUNNING),
    ] {
        builder
            .create(&path)
            .map_err(|error| unusable(folder, &error))?;
    }
    if fresh {
        // The names must outlive a power loss, as what will be put under them does.
        let parent = folder.parent().unwrap_or(folder);
        for path in [folder, parent] {
            sync_folder(path).map_err(|error| unusable(folder, &error))?;
        }
    }
    Ok(())
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    // "" is how the parent of a relative name reads.
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    plain::directory(path)?.sync_all()
}

fn unusable(folder: &Path, error: &io::Error) -> OpenError {
    let path = folder.to_owned();
    match error.kind() {
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory
        // Where no folder can be made there is none to write in.
        | io::ErrorKind::NotFound
        | io::ErrorKind::AlreadyExists => OpenError::Unwritable {
            path,
            why: error.to_string(),
        },
        _ => OpenError::Storage {
            source: StorageError::io(folder, error),
            path,
        },
    }
}

fn open_to_write(folder: &Path, path: &Path, mode: OpenMode) -> Result<Connection, OpenError> {
    let access = match mode {
        OpenMode::Create => Access::Create,
        _ => Access::Write,
    };
    // Asked of the system, which says more about it than SQLite does.
    let writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK);
    writable.map_err(|error| unusable(folder, &error.into()))?;
    let connection = schema::open(path, access)?;
    if connection.is_readonly(rusqlite::MAIN_DB).unwrap_or(false) {
        return Err(OpenError::Unwritable {
            path: folder.to_owned(),
            why: format!("{} is read-only", path.display()),
        });
    }
    Ok(connection)
}

/// SQLite wants to make files beside the database even to read it. Where it can't, a database
/// without a log can be read as a file that nobody changes.
fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    let error = match schema::open(path, Access::Read) {
        Ok(connection) => return Ok(connection),
        Err(error @ (OpenError::Unwritable { .. } | OpenError::Storage { .. })) => error,
        Err(error) => return Err(error),
    };
    if log_bytes(path) > 0 {
        return Err(OpenError::Unwritable {
            path: path.to_owned(),
            why: format!(
                "a writer that died left a log that was never finished, and reading it means \
                 writing ({error}); copy the store to where it can be written"
            ),
        });
    }
    schema::open(path, Access::Immutable)
}
