//! Opening files of our own: plain files and nothing else.
//!
//! A pipe, a device or a link in the place of one was put there by somebody. To open a pipe waits for
//! its other end, for ever perhaps, so whatever is opened is opened without waiting, and looked at.
//! What is found instead is an error of kind `InvalidData`, which [`failed`] names as damage.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::GitError;

/// Opens a file as `options` say, if it is a plain one.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| strange(path).unwrap_or(error))?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(strange(path).unwrap_or_else(|| not_plain("replaced")))
}

/// Opens a plain file to read it.
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true))
}

/// The whole content of a plain file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open_to_read(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// Opens a plain file to write to it, made where there is none. Whatever else stands there is nobody's:
/// it gives way.
pub(crate) fn open_to_write(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    match open(path, &mut options) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            fs::remove_file(path)?;
            open(path, &mut options)
        }
        opened => opened,
    }
}

/// Writes a plain file whole, by the same rule.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = open_to_write(path)?;
    file.set_len(0)?;
    file.write_all(content)
}

/// A directory, to sync it.
pub(crate) fn directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// The error for one of our own files; what is not what was put there is damage.
pub(crate) fn failed(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> GitError + use<> {
    let path = path.to_path_buf();
    move |error| match error.kind() {
        io::ErrorKind::InvalidData => GitError::Damaged {
            path,
            what: error.to_string(),
        },
        _ => GitError::Io {
            action,
            path,
            source: error,
        },
    }
}

/// What it is, in words, where that is neither a plain file nor a directory.
pub(crate) fn strange_kind(kind: FileType) -> Option<&'static str> {
    if kind.is_file() || kind.is_dir() {
        None
    } else if kind.is_symlink() {
        Some("a link")
    } else if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else {
        Some("a device")
    }
}

/// What stands in the place of a file, where that is neither a plain one nor nothing.
fn strange(path: &Path) -> Option<io::Error> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    if kind.is_dir() {
        return Some(not_plain("a directory"));
    }
    strange_kind(kind).map(not_plain)
}

fn not_plain(found: &str) -> io::Error {
    let words = format!("it is {found}, where a file of our own has to be");
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_but_a_plain_file_is_opened_and_nobody_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("plain"), "7").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), 0o600.into()).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        symlink(path("plain"), path("link")).unwrap();
        fs::create_dir(path("directory")).unwrap();
        for name in ["pipe", "socket", "link", "directory"] {
            for options in [
                OpenOptions::new().read(true),
                OpenOptions::new().write(true),
                OpenOptions::new().read(true).write(true),
            ] {
                let error = open(&path(name), options).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{name}");
                assert!(error.to_string().contains(name), "{name}: {error}");
            }
        }
        assert_eq!(read(&path("plain")).unwrap(), b"7");
        assert!(directory(&path("pipe")).is_err());
        for name in ["pipe", "link", "plain", "new"] {
            write(&path(name), b"12").unwrap();
            assert_eq!(read(&path(name)).unwrap(), b"12", "{name}");
        }
    }
}
