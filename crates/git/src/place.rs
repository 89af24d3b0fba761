//! Working below a directory somebody hostile may have arranged.
//!
//! Everything goes through directory handles opened without following links, so that nothing is
//! ever written or deleted outside, whatever was replaced by a link. Directories that were made
//! unreadable are opened up first: they are ours.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode as Bits, OFlags, RawDir, RawMode, RenameFlags, SeekFrom, Stat,
    chmod, mkdirat, openat, readlinkat, renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::error::GitError;
use crate::types::{Mode, RepoPath};

/// Below this depth a tree that is being removed is flattened instead of entered.
const DEEPEST: usize = 64;

/// How much of a directory is read at once.
const NAMES_BYTES: usize = 8192;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A directory everything happens below.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    root: OwnedFd,
    /// The directory used last; neighbours in a listing mostly share it.
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl Place {
    /// Opens a directory; `None` if there is none (or something else stands there).
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, GitError> {
        match open_directory(CWD, path.as_os_str().as_bytes()) {
            Ok(root) => Ok(Some(Self {
                path: path.to_path_buf(),
                root,
                last: None,
            })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(GitError::io("open", path)(error.into())),
        }
    }

    /// Opens a directory, making it if need be.
    pub(crate) fn open_or_make(path: &Path) -> Result<Self, GitError> {
        match mkdirat(CWD, path, Bits::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(GitError::io("make directory", path)(error.into())),
        }
        Self::open(path)?.ok_or_else(|| {
            GitError::io("open", path)(io::Error::from(io::ErrorKind::NotADirectory))
        })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The handle of the top.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// An error about something below.
    pub(crate) fn error(&self, action: &'static str, path: &[u8], error: Errno) -> GitError {
        GitError::io(action, &self.path.join(OsStr::from_bytes(path)))(error.into())
    }

    /// The handle of the directory holding `path`, and the last name of it.
    ///
    /// With `make`, missing directories are made, and what stands in their way is removed;
    /// without, a missing directory is `None`.
    pub(crate) fn parent<'a>(
        &mut self,
        path: &'a [u8],
        make: bool,
    ) -> Result<Option<(BorrowedFd<'_>, &'a [u8])>, GitError> {
        let (directory, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        if directory.is_empty() {
            return Ok(Some((self.root.as_fd(), name)));
        }
        let known = matches!(&self.last, Some((last, _)) if last == directory);
        if !known {
            match self.walk(directory, make)? {
                Some(handle) => self.last = Some((directory.to_vec(), handle)),
                None => return Ok(None),
            }
        }
        Ok(self.last.as_ref().map(|(_, handle)| (handle.as_fd(), name)))
    }

    /// Forgets the directory used last; it may have been replaced.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    fn walk(&self, directory: &[u8], make: bool) -> Result<Option<OwnedFd>, GitError> {
        let mut handle: Option<OwnedFd> = None;
        for name in directory.split(|byte| *byte == b'/') {
            let at = handle.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            let next = match open_directory(at, name) {
                Ok(next) => next,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !make => return Ok(None),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => make_directory(at, name)
                    .map_err(|error| self.error("make directory", directory, error))?,
                Err(error) => return Err(self.error("open", directory, error)),
            };
            handle = Some(next);
        }
        Ok(handle)
    }

    /// Writes a file or link new; whatever stood there (also a directory) is gone.
    pub(crate) fn put(
        &mut self,
        path: &RepoPath,
        mode: Mode,
        content: &[u8],
    ) -> Result<Stat, GitError> {
        let bytes = path.as_bytes();
        let Some((at, name)) = self.parent(bytes, true)? else {
            return Err(self.error("write", bytes, Errno::NOENT));
        };
        let put = put(at, name, || match mode {
            Mode::Link => {
                symlinkat(content, at, name)?;
                statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
            }
            Mode::Executable => write_new(at, name, 0o777, content),
            _ => write_new(at, name, 0o666, content),
        });
        put.map_err(|error| self.error("write", bytes, error))
    }

    /// The same with a file that is only to be read.
    pub(crate) fn put_read_only(&mut self, path: &[u8], content: &[u8]) -> Result<(), GitError> {
        let put = match self.parent(path, true)? {
            Some((at, name)) => put(at, name, || write_new(at, name, 0o444, content)),
            None => Err(Errno::NOENT),
        };
        put.map(drop)
            .map_err(|error| self.error("write", path, error))
    }

    /// Type and permission bits a directory made here gets.
    pub(crate) fn mode_of_new_directories(&mut self) -> Result<RawMode, GitError> {
        const PROBE: &[u8] = b".probe";
        self.put_directory(PROBE)?;
        let stat = statat(&self.root, PROBE, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| self.error("look at", PROBE, error))?;
        self.remove(PROBE)?;
        Ok(stat.st_mode)
    }

    /// Makes sure an accessible directory stands at a path.
    pub(crate) fn put_directory(&mut self, path: &[u8]) -> Result<(), GitError> {
        let made = match self.parent(path, true)? {
            Some((at, name)) => match open_directory(at, name) {
                Ok(_) => Ok(()),
                Err(_) => make_directory(at, name).map(|_| ()),
            },
            None => Err(Errno::NOENT),
        };
        made.map_err(|error| self.error("make directory", path, error))
    }

    /// Removes whatever stands at a path, whole.
    pub(crate) fn remove(&mut self, path: &[u8]) -> Result<(), GitError> {
        let Some((at, name)) = self.parent(path, false)? else {
            return Ok(());
        };
        let removed = remove(at, name);
        self.forget();
        removed.map_err(|error| self.error("remove", path, error))
    }

    /// Moves what stands at a path to a free path in another place on the same file system. False
    /// if nothing stands there. Directories on the way are made.
    pub(crate) fn move_to(
        &mut self,
        path: &[u8],
        to: &mut Self,
        new_path: &[u8],
    ) -> Result<bool, GitError> {
        let failed = self.path.join(OsStr::from_bytes(path));
        let Some((at, name)) = self.parent(path, false)? else {
            return Ok(false);
        };
        let moved = match to.parent(new_path, true)? {
            Some((there, new_name)) => move_name(at, name, there, new_name),
            None => Err(Errno::NOENT),
        };
        self.forget();
        moved.map_err(|error| GitError::io("move", &failed)(error.into()))
    }

    /// The stamp-worthy facts of what stands at a path, no link followed; `None`: nothing does.
    pub(crate) fn facts(&mut self, path: &[u8]) -> Result<Option<Stat>, GitError> {
        let Some((at, name)) = self.parent(path, false)? else {
            return Ok(None);
        };
        match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(self.error("look at", path, error)),
        }
    }

    /// Removes a directory if nothing is in it.
    pub(crate) fn remove_if_empty(&mut self, path: &[u8]) -> Result<bool, GitError> {
        let Some((at, name)) = self.parent(path, false)? else {
            return Ok(true);
        };
        let removed = unlinkat(at, name, AtFlags::REMOVEDIR);
        self.forget();
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(self.error("remove", path, error)),
        }
    }

    /// Opens a plain file for reading; `None` if there is no plain file.
    pub(crate) fn open_file(&mut self, path: &[u8]) -> Result<Option<File>, GitError> {
        let Some((at, name)) = self.parent(path, false)? else {
            return Ok(None);
        };
        match open_file(at, name) {
            Ok(file) => Ok(file),
            Err(error) => Err(self.error("read", path, error)),
        }
    }

    /// The target of a link.
    pub(crate) fn read_link(&mut self, path: &[u8]) -> Result<Vec<u8>, GitError> {
        let target = match self.parent(path, false)? {
            Some((at, name)) => readlinkat(at, name, Vec::new()),
            None => Err(Errno::NOENT),
        };
        target
            .map(std::ffi::CString::into_bytes)
            .map_err(|error| self.error("read", path, error))
    }

    /// The names in a directory with their types; none where there is no directory.
    pub(crate) fn list(&mut self, path: &[u8]) -> Result<Vec<Name>, GitError> {
        let found = match self.parent(path, false)? {
            Some((at, _)) if path.is_empty() => names(at),
            Some((at, name)) => open_directory(at, name).and_then(|handle| names(handle.as_fd())),
            None => return Ok(Vec::new()),
        };
        match found {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Vec::new()),
            found => found.map_err(|error| self.error("read", path, error)),
        }
    }

    /// Gives a file or directory these permission bits; nothing where a link stands.
    pub(crate) fn set_mode(&mut self, path: &[u8], mode: RawMode) -> Result<(), GitError> {
        let Some((at, name)) = self.parent(path, false)? else {
            return Ok(());
        };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let set = openat(at, name, flags, Bits::empty()).and_then(|handle| {
            let kind = FileType::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode);
            match kind {
                FileType::RegularFile | FileType::Directory => set_mode(handle.as_fd(), mode),
                _ => Ok(()),
            }
        });
        set.map_err(|error| self.error("change the mode of", path, error))
    }

    /// Gives a directory these permission bits.
    pub(crate) fn set_directory_mode(
        &mut self,
        path: &[u8],
        mode: RawMode,
    ) -> Result<(), GitError> {
        let handle = match self.parent(path, false)? {
            Some(_) if path.is_empty() => set_mode(self.root.as_fd(), mode),
            Some((at, name)) => path_handle(at, name).and_then(|it| set_mode(it.as_fd(), mode)),
            None => Ok(()),
        };
        match handle {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(self.error("change the mode of", path, error)),
        }
    }
}

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
fn path_handle(at: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Bits::empty())
}

fn set_mode(handle: BorrowedFd<'_>, mode: RawMode) -> Result<(), Errno> {
    // A path handle takes no fchmod; its name under /proc does.
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    chmod(path, Bits::from_raw_mode(mode & 0o7777))
}

fn make_directory(at: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    remove(at, name)?;
    mkdirat(at, name, Bits::from_raw_mode(0o777))?;
    open_directory(at, name)
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

/// Puts something new at a name, and takes away what stood there.
fn put(
    at: BorrowedFd<'_>,
    name: &[u8],
    put_new: impl Fn() -> Result<Stat, Errno>,
) -> Result<Stat, Errno> {
    match put_new() {
        Err(Errno::EXIST) => remove(at, name).and_then(|()| put_new()),
        Err(Errno::ACCESS) => set_mode(at, 0o700).and_then(|()| put_new()),
        other => other,
    }
}

fn write_new(
    at: BorrowedFd<'_>,
    name: &[u8],
    mode: RawMode,
    content: &[u8],
) -> Result<Stat, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let bits = Bits::from_raw_mode(mode);
    let mut file = File::from(openat(at, name, flags, bits)?);
    file.write_all(content)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    rustix::fs::fstat(&file)
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
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            },
            kind => kind,
        };
        found.push((name.into(), kind));
    }
    Ok(found)
}

/// Gives something another name on the same file system, and replaces nothing by that.
fn move_name(
    at: BorrowedFd<'_>,
    name: &[u8],
    there: BorrowedFd<'_>,
    new_name: &[u8],
) -> Result<bool, Errno> {
    let stat = match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(false),
        Err(error) => return Err(error),
    };
    let rename = || match renameat_with(at, name, there, new_name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            match statat(there, new_name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => renameat(at, name, there, new_name),
                Ok(_) => Err(Errno::EXIST),
                Err(error) => Err(error),
            }
        }
        other => other,
    };
    match rename() {
        Err(Errno::ACCESS) => {}
        other => return other.map(|()| true),
    }
    // Directories that were closed are opened up meanwhile: the one it is in, and itself, whose
    // parent changes.
    let above = rustix::fs::fstat(at)?.st_mode;
    set_mode(at, above | 0o700)?;
    let moved = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        let handle = path_handle(at, name)?;
        set_mode(handle.as_fd(), stat.st_mode | 0o700)?;
        let moved = rename();
        set_mode(handle.as_fd(), stat.st_mode)?;
        moved
    } else {
        rename()
    };
    set_mode(at, above)?;
    moved.map(|()| true)
}

/// Removes whatever has this name, whole, however deep and however closed it is.
pub(crate) fn remove(at: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(at, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(Errno::ACCESS) => {
            set_mode(at, 0o700)?;
            match unlinkat(at, name, AtFlags::empty()) {
                Ok(()) => return Ok(()),
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error),
            }
        }
        Err(error) => return Err(error),
    }
    let top = open_directory(at, name)?;
    let mut moved = 0;
    loop {
        let before = moved;
        empty(top.as_fd(), top.as_fd(), 0, &mut moved)?;
        match unlinkat(at, name, AtFlags::REMOVEDIR) {
            // Something deep was moved up to the top: once more.
            Err(Errno::NOTEMPTY | Errno::EXIST) if moved > before => {}
            Err(Errno::ACCESS) => set_mode(at, 0o700)?,
            other => return other,
        }
    }
}

fn empty(
    top: BorrowedFd<'_>,
    at: BorrowedFd<'_>,
    depth: usize,
    moved: &mut u64,
) -> Result<(), Errno> {
    for (name, kind) in names(at)? {
        if kind != FileType::Directory {
            match unlinkat(at, &*name, AtFlags::empty()) {
                Err(Errno::ACCESS) => {
                    set_mode(at, 0o700)?;
                    unlinkat(at, &*name, AtFlags::empty())?;
                }
                other => other?,
            }
            continue;
        }
        let child = open_directory(at, &name)?;
        if depth >= DEEPEST {
            set_mode(child.as_fd(), 0o700)?;
            *moved += 1;
            let unique = format!(".moved-{}-{moved}", std::process::id());
            match renameat(at, &*name, top, unique) {
                Err(Errno::ACCESS) => set_mode(at, 0o700)?,
                other => other?,
            }
            continue;
        }
        empty(top, child.as_fd(), depth + 1, moved)?;
        match unlinkat(at, &*name, AtFlags::REMOVEDIR) {
            Err(Errno::ACCESS) => {
                set_mode(at, 0o700)?;
                unlinkat(at, &*name, AtFlags::REMOVEDIR)?;
            }
            other => other?,
        }
    }
    Ok(())
}
