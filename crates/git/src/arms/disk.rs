//! The arms' way to the disk: everything relative to an open directory, no link ever followed.
//!
//! A measurement may leave anything behind (links that lead out, directories nobody may enter,
//! towers of directories deeper than a path can be long), and no such thing may make the next
//! synchronisation write or delete outside of the arm.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, Result};
use sha2::{Digest as _, Sha256};

pub(crate) use crate::place::names;

/// The SHA-256 of a file's content.
pub(crate) type Digest = [u8; 32];

/// The permissions every directory of an arm has.
pub(crate) const DIRECTORY_MODE: u32 = 0o755;
/// The bits of a mode that are permissions.
const PERMISSION_BITS: u32 = 0o7777;
/// Directories are removed by recursion down to this depth, deeper ones after moving them up.
const REMOVAL_DEPTH: usize = 64;

/// Opens a directory itself, never through a link; makes it passable if it is not.
pub(crate) fn open_directory(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    match open_input(&parent, name) {
        Err(Errno::ACCESS) if is_directory(&parent, name) => {
            rustix::fs::chmodat(&parent, name, Mode::from_raw_mode(0o700), AtFlags::empty())?;
            open_input(&parent, name)
        }
        other => other,
    }
}

/// Opens a directory that is not ours: nothing about it is changed.
pub(crate) fn open_input(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Opens a directory by its full path, which must not end in a link.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd> {
    use std::os::unix::ffi::OsStrExt as _;
    open_directory(rustix::fs::CWD, path.as_os_str().as_bytes())
}

fn is_directory(parent: impl AsFd, name: &[u8]) -> bool {
    stat(parent, name).is_ok_and(|stat| stat.is_some_and(|stat| kind(&stat) == FileType::Directory))
}

/// Gives an open directory the mode all directories of an arm have.
pub(crate) fn normalise_directory(directory: impl AsFd) -> Result<()> {
    let stat = rustix::fs::fstat(&directory)?;
    if stat.st_mode & PERMISSION_BITS != DIRECTORY_MODE {
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(DIRECTORY_MODE))?;
    }
    Ok(())
}

/// What a file is.
pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The state of a name in a directory; `None` if there is no such name.
pub(crate) fn stat(parent: impl AsFd, name: &[u8]) -> Result<Option<Stat>> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes whatever has this name, with everything below it; fine if nothing has.
pub(crate) fn remove(parent: impl AsFd, name: &[u8]) -> Result<()> {
    match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => remove_directory(parent.as_fd(), name),
        Err(Errno::ACCESS) => {
            // The directory itself was made read-only.
            rustix::fs::fchmod(&parent, Mode::from_raw_mode(DIRECTORY_MODE))?;
            match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
                Err(Errno::ISDIR | Errno::PERM) => remove_directory(parent.as_fd(), name),
                other => other,
            }
        }
        Err(error) => Err(error),
    }
}

fn remove_directory(parent: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
    let mut moved_up = VecDeque::new();
    clear(parent, name, parent, &mut moved_up, 0)?;
    while let Some(name) = moved_up.pop_front() {
        clear(parent, &name, parent, &mut moved_up, 0)?;
    }
    Ok(())
}

fn clear(
    parent: BorrowedFd<'_>,
    name: &[u8],
    top: BorrowedFd<'_>,
    moved_up: &mut VecDeque<Vec<u8>>,
    depth: usize,
) -> Result<()> {
    let directory = open_directory(parent, name)?;
    let permissions = rustix::fs::fstat(&directory)?.st_mode & 0o700;
    if permissions != 0o700 {
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(0o700))?;
    }
    for (child, kind) in names(directory.as_fd())? {
        if kind != FileType::Directory {
            rustix::fs::unlinkat(&directory, &*child, AtFlags::empty())?;
        } else if depth < REMOVAL_DEPTH {
            clear(directory.as_fd(), &child, top, moved_up, depth + 1)?;
        } else {
            moved_up.push_back(move_up(directory.as_fd(), &child, top)?);
        }
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Moves a directory from deep below to the top of the removal, under a name nobody has.
fn move_up(parent: BorrowedFd<'_>, name: &[u8], top: BorrowedFd<'_>) -> Result<Vec<u8>> {
    // Moving a directory rewrites its "..": that takes the right to write in it.
    rustix::fs::chmodat(parent, name, Mode::from_raw_mode(0o700), AtFlags::empty())?;
    for number in 0_u64.. {
        let free = format!(".loopwright-removed-{number}").into_bytes();
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(parent, name, top, &free, flags) {
            Ok(()) => return Ok(free),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

/// Makes a directory with the arms' mode, whatever the umask.
pub(crate) fn make_directory(parent: impl AsFd, name: &[u8]) -> Result<()> {
    let mode = Mode::from_raw_mode(DIRECTORY_MODE);
    rustix::fs::mkdirat(&parent, name, mode)?;
    normalise_directory(open_directory(&parent, name)?)
}

/// Makes a new file; an old one of the name must be gone. Returns its state.
pub(crate) fn make_file(
    parent: impl AsFd,
    name: &[u8],
    content: &[u8],
    permissions: u32,
) -> Result<Stat> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(permissions);
    let file = rustix::fs::openat(&parent, name, flags, mode)?;
    let mut file = std::fs::File::from(file);
    file.write_all(content).map_err(errno)?;
    let stat = rustix::fs::fstat(&file)?;
    if stat.st_mode & PERMISSION_BITS == permissions {
        return Ok(stat);
    }
    rustix::fs::fchmod(&file, mode)?;
    rustix::fs::fstat(&file)
}

/// Makes a new symbolic link. Returns its state.
pub(crate) fn make_link(parent: impl AsFd, name: &[u8], target: &[u8]) -> Result<Stat> {
    rustix::fs::symlinkat(target, &parent, name)?;
    rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Where a symbolic link points.
pub(crate) fn link_target(parent: impl AsFd, name: &[u8]) -> Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(parent, name, Vec::new())?.into_bytes())
}

/// Opens a file to read it, never through a link and never waiting for a pipe's other end.
pub(crate) fn open_file(parent: impl AsFd, name: &[u8]) -> Result<std::fs::File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?.into())
}

/// The digest of what is in a plain file, or of a link's target.
pub(crate) fn digest_of(parent: impl AsFd, name: &[u8], kind: FileType) -> Result<Digest> {
    if kind == FileType::Symlink {
        return Ok(digest(&link_target(parent, name)?));
    }
    let mut file = open_file(parent, name)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer).map_err(errno)? {
            0 => return Ok(hash.finalize().into()),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// The digest of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// The last name of a path and the path of the directory that holds it.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

/// Opens directories below a root by their paths; remembers the last one, because work comes
/// sorted by path.
pub(crate) struct Opener<'root> {
    root: BorrowedFd<'root>,
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl<'root> Opener<'root> {
    pub(crate) fn new(root: BorrowedFd<'root>) -> Self {
        Self { root, last: None }
    }

    /// The directory at `path` below the root.
    pub(crate) fn directory(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>> {
        if path.is_empty() {
            return Ok(self.root);
        }
        if self.last.as_ref().is_none_or(|(known, _)| known != path) {
            let mut at: Option<OwnedFd> = None;
            for name in path.split(|byte| *byte == b'/') {
                let parent = at.as_ref().map_or(self.root, AsFd::as_fd);
                at = Some(open_directory(parent, name)?);
            }
            self.last = at.map(|fd| (path.to_vec(), fd));
        }
        Ok(self.last.as_ref().map_or(self.root, |(_, fd)| fd.as_fd()))
    }

    /// Forgets what was opened: something was removed or replaced.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }
}

/// The number of a standard error, or "input/output error" for one without.
pub(crate) fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
