//! Working below a directory somebody hostile may have arranged.
//!
//! Everything goes through directory handles opened without following links, so that nothing is
//! ever written or deleted outside, whatever was replaced by a link. Directories that were made
//! unreadable are opened up first: they are ours.

mod away;
mod handles;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode as Bits, OFlags, RawMode, Stat, mkdirat, openat, readlinkat,
    statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::error::GitError;
use crate::types::{Mode, RepoPath};
use away::move_name;
pub(crate) use away::remove;
pub(crate) use handles::{Name, names, open_directory, open_file};
use handles::{path_handle, set_mode};

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
        if let Some(there) = Self::open(path)? {
            return Ok(there);
        }
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

    /// The same with a file of these permissions, which stays open for writing.
    pub(crate) fn put_new(
        &mut self,
        path: &[u8],
        content: &[u8],
        mode: RawMode,
    ) -> Result<File, GitError> {
        let put = match self.parent(path, true)? {
            Some((at, name)) => put(at, name, || open_new(at, name, mode, content)),
            None => Err(Errno::NOENT),
        };
        put.map_err(|error| self.error("write", path, error))
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

fn make_directory(at: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    remove(at, name)?;
    mkdirat(at, name, Bits::from_raw_mode(0o777))?;
    open_directory(at, name)
}

/// Puts something new at a name, and takes away what stood there.
fn put<T>(
    at: BorrowedFd<'_>,
    name: &[u8],
    put_new: impl Fn() -> Result<T, Errno>,
) -> Result<T, Errno> {
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
    rustix::fs::fstat(open_new(at, name, mode, content)?)
}

fn open_new(at: BorrowedFd<'_>, name: &[u8], mode: RawMode, content: &[u8]) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let bits = Bits::from_raw_mode(mode);
    let mut file = File::from(openat(at, name, flags, bits)?);
    file.write_all(content)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(file)
}
