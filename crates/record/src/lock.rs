//! File locks that end with their holder.
//!
//! `flock` belongs to the open file, is not inherited by started commands (the descriptor is
//! close-on-exec) and is freed by the kernel when the holder dies in whatever way.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::StorageError;
use crate::plain;

/// A reader may hold the lock for an instant to see whether it is free; see [`is_locked`].
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(4);

/// Locks the file; none where somebody else has it.
pub fn try_lock(path: &Path) -> Result<Option<File>, StorageError> {
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(BETWEEN_TRIES);
        }
        let file = open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // The file may have been replaced between opening and locking.
            Ok(()) if is_at(&file, path) => return Ok(Some(file)),
            Ok(()) | Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(StorageError::io(path, &error.into())),
        }
    }
    Ok(None)
}

/// Takes the lock from a holder that lives: the path gets another file. The old holder keeps the
/// lock of a file that nobody looks at any more.
pub fn replace(path: &Path) -> Result<File, StorageError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(StorageError::io(path, &error));
        }
        _ => {}
    }
    try_lock(path)?
        .ok_or_else(|| StorageError::Busy(format!("{} was locked again", path.display())))
}

/// Whether somebody has the lock.
pub fn is_locked(path: &Path) -> bool {
    let Ok(file) = plain::open(path, OpenOptions::new().read(true)) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

fn open(path: &Path) -> Result<File, StorageError> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    plain::open(path, &mut options).map_err(|error| StorageError::io(path, &error))
}

/// Whether the open file is still the one of this name.
pub fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(theirs)) => ours.dev() == theirs.dev() && ours.ino() == theirs.ino(),
        _ => false,
    }
}
