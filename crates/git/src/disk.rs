//! Files that must be there after a power loss: syncing and replacing them.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};

use crate::error::GitError;
use crate::plain;

/// Numbers the temporary files of this process.
static TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// Syncs one file.
pub(crate) fn sync_file(path: &Path) -> Result<(), GitError> {
    plain::open_to_read(path)
        .and_then(|file| file.sync_all())
        .map_err(plain::failed("sync", path))
}

/// Syncs a directory, that is the names in it.
pub(crate) fn sync_directory(path: &Path) -> Result<(), GitError> {
    plain::directory(path)
        .and_then(|directory| directory.sync_all())
        .map_err(GitError::io("sync", path))
}

/// Replaces a file whole: temporary, sync, rename, sync of the directory.
pub(crate) fn replace_durably(path: &Path, content: &[u8]) -> Result<(), GitError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let temporary = temporary_beside(path);
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The reason is handed on; what is left of the file serves nobody.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(GitError::io("write", path))?;
    sync_directory(directory)
}

/// Writes a line of a file's own length over the file, and syncs it; false if there is no such file.
/// A line is within one sector, which a disk writes whole: old or new, never half of each.
pub(crate) fn write_over_durably(path: &Path, line: &[u8]) -> Result<bool, GitError> {
    let mut file = match plain::open(path, OpenOptions::new().write(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(plain::failed("write", path)(error)),
    };
    let length = file
        .metadata()
        .map_err(GitError::io("look at", path))?
        .len();
    if length != line.len() as u64 {
        return Ok(false);
    }
    file.write_all(line)
        .and_then(|()| file.sync_data())
        .map_err(GitError::io("write", path))?;
    Ok(true)
}

/// A name beside `path` that no other writer uses.
pub(crate) fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", unique()));
    path.with_file_name(name)
}

/// A word that no other writer uses, in this process or another, whatever namespace of process
/// numbers that one lives in.
pub(crate) fn unique() -> String {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    let process = PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()));
    let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
    format!("{process:016x}-{number}")
}

/// Waits for the lock on a file, made where there is none. It ends with the handle, or the process.
pub(crate) fn lock(path: &Path) -> Result<File, GitError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = plain::open(path, &mut options).map_err(plain::failed("open", path))?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(GitError::io("lock", path)(error.into())),
        }
    }
}

/// Makes a directory and its parents below `top`, syncing each parent that got a new name.
pub(crate) fn make_directories_durably(top: &Path, directory: &Path) -> Result<(), GitError> {
    if directory.is_dir() || directory == top {
        return Ok(());
    }
    let parent = directory.parent().unwrap_or(top);
    make_directories_durably(top, parent)?;
    match fs::create_dir(directory) {
        Ok(()) => sync_directory(parent),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(GitError::io("make directory", directory)(error)),
    }
}
