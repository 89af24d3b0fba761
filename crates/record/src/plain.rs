//! Opening the store's own files: plain files and nothing else.
//!
//! A pipe, a device or a link in the place of one was put there by somebody. To open a pipe waits for
//! its other end, for ever perhaps, so whatever is opened is opened without waiting, and looked at.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::error::OpenError;
use crate::presence::log_of;

/// Opens a file as `options` say, if it is a plain one.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| strange(path).unwrap_or(error))?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(strange(path).unwrap_or_else(|| not_plain("replaced")))
}

/// The whole content of a plain file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    io::Read::read_to_end(
        &mut open(path, OpenOptions::new().read(true))?,
        &mut content,
    )?;
    Ok(content)
}

/// A directory, to sync it.
pub(crate) fn directory(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// Refuses a database of which a file is there that is no plain one: SQLite would wait for it.
pub(crate) fn check_database(path: &Path) -> Result<(), OpenError> {
    let mut memory = path.as_os_str().to_owned();
    memory.push("-shm");
    let mut old = path.as_os_str().to_owned();
    old.push("-journal");
    for path in [path, &log_of(path), Path::new(&memory), Path::new(&old)] {
        if let Some(error) = strange(path) {
            return Err(OpenError::Damaged {
                path: path.to_owned(),
                why: error.to_string(),
            });
        }
    }
    Ok(())
}

/// What stands in the place of a file, where that is neither a plain one nor nothing.
fn strange(path: &Path) -> Option<io::Error> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    Some(not_plain(match () {
        () if kind.is_file() => return None,
        () if kind.is_dir() => "a directory",
        () if kind.is_symlink() => "a link",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }))
}

fn not_plain(found: &str) -> io::Error {
    let words = format!("it is {found}, where a file of the store has to be");
    io::Error::new(io::ErrorKind::InvalidData, words)
}
