//! Handles of files and directories: opened without following a link, and opened up where they were
//! made inaccessible.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode as Bits, OFlags, RawDir, RawMode, SeekFrom, Stat, chmod, openat, statat,
};
use rustix::io::Errno;

/// How much of a directory is read at once.
const NAMES_BYTES: usize = 8192;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a directory without following a link; opens it up if it was made inaccessible.
pub(crate) fn open_directory(at: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    match openat(at, name, DIRECTORY, Bits::empty()) {
        Err(Errno::ACCESS) => {
            let handle = path_handle(at, name)?;
            set_mode(handle.as_fd(), 0o700)?;
            openat(at, name, DIRECTORY, Bits::empty())
        }
        other => other,
    }
}

/// A handle that needs no permission on the directory itself.
pub(super) fn path_handle(at: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Bits::empty())
}

pub(super) fn set_mode(handle: BorrowedFd<'_>, mode: RawMode) -> Result<(), Errno> {
    // A path handle takes no fchmod; its name under /proc does.
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    chmod(path, Bits::from_raw_mode(mode & 0o7777))
}

/// Opens a plain file for reading, never waiting for a pipe's other end.
pub(crate) fn open_file(at: BorrowedFd<'_>, name: &[u8]) -> Result<Option<File>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match openat(at, name, flags, Bits::empty()) {
        Err(Errno::ACCESS) => {
            let path_only = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let handle = openat(at, name, path_only, Bits::empty())?;
            set_mode(handle.as_fd(), 0o600)?;
            openat(at, name, flags, Bits::empty())
        }
        other => other,
    };
    match opened {
        Ok(file) => Ok(is_regular(&rustix::fs::fstat(&file)?).then(|| File::from(file))),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// A name in a directory and what it stands for.
pub(crate) type Name = (Box<[u8]>, FileType);

/// The names in a directory with their types, in no order.
pub(crate) fn names(at: BorrowedFd<'_>) -> Result<Vec<Name>, Errno> {
    let mut found = Vec::new();
    // The handle itself is read, from its beginning, and not a copy: these are many small directories.
    rustix::fs::seek(at, SeekFrom::Start(0))?;
    let mut room = [MaybeUninit::uninit(); NAMES_BYTES];
    let mut entries = RawDir::new(at, &mut room);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT | Errno::NOTDIR) => continue,
                Err(error) => return Err(error),
            },
            kind => kind,
        };
        found.push((name.into(), kind));
    }
    Ok(found)
}
