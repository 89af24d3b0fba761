//! Files that must be there after a power loss: syncing and replacing them.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use crate::error::GitError;

/// Syncs one file.
pub(crate) fn sync_file(path: &Path) -> Result<(), GitError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(GitError::io("sync", path))
}

/// Syncs a directory, that is the names in it.
pub(crate) fn sync_directory(path: &Path) -> Result<(), GitError> {
    sync_file(path)
}

/// Replaces a file whole: temporary, sync, rename, sync of the directory.
pub(crate) fn replace_durably(path: &Path, content: &[u8]) -> Result<(), GitError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = directory.join(name);
    File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(GitError::io("write", path))?;
    sync_directory(directory)
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
