//! Permission bits in a git directory: a proposal may have closed what git, or we, have to read and
//! write there.
//!
//! What was recorded gets the bits it had; of all else nothing is changed but the owner's bits that
//! are needed. Nobody but its owner can change them, and root needs none.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode as Bits, OFlags, Stat, chmod, fstat, openat, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::saved::{path_from, to_hex};
use super::undone;
use crate::error::GitError;
use crate::place::names;
use crate::worktree::RefusedPath;

/// The owner's bits of a directory that is worked in.
const WORKED_IN: u32 = 0o700;
const READ: u32 = 0o400;
const WRITTEN: u32 = 0o600;

/// Nothing of git's lies deeper.
const DEEPEST: usize = 64;

const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The bits of git directories, and of what lies in them, before a proposal.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Modes {
    /// Paths in hexadecimal.
    known: Vec<(String, u32)>,
}

impl Modes {
    pub(super) fn record(top: &Path, directories: &[PathBuf]) -> Self {
        let mut known = Vec::new();
        let mut add = |path: &Path| {
            if let Ok(stat) = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
                && is_plain(&stat)
            {
                known.push((to_hex(path.as_os_str().as_bytes()), stat.st_mode & 0o7777));
            }
        };
        add(top);
        for directory in directories {
            add(directory);
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                add(&entry.path());
            }
        }
        Self { known }
    }

    /// Gives the top of a checkout and everything in its git directories the bits that are needed;
    /// says what was closed. `store` is our own folder, which may lie in one of them.
    pub(super) fn put_back(
        &self,
        top: Option<&Path>,
        directories: &[PathBuf],
        store: &Path,
    ) -> Result<Vec<RefusedPath>, GitError> {
        if geteuid().is_root() {
            return Ok(Vec::new());
        }
        let known = self.known.iter();
        let known = known.filter_map(|(path, mode)| Some((path_from(path)?, *mode)));
        let mut opening = Opening {
            known: known.collect(),
            store,
            closed: Vec::new(),
        };
        if let Some(top) = top {
            let opened = opening.directory(CWD, top.as_os_str(), top);
            opened.map_err(failed(top))?;
        }
        for directory in directories {
            match opening.directory(CWD, directory.as_os_str(), directory) {
                Ok(Some(handle)) => opening.walk(&handle, directory, Part::Git, 0)?,
                Ok(None) => {}
                Err(error) => return Err(failed(directory)(error)),
            }
        }
        Ok(opening.said())
    }
}

/// What of a git directory is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Git,
    Logs,
    Objects,
    Store,
    ObjectsOfStore,
    /// What was moved aside is as it was found, and no part of anything.
    Aside,
}

impl Part {
    /// What a directory of this name in it is.
    fn of(self, name: &[u8], is_store: bool) -> Self {
        match (self, name) {
            (Self::Git, _) if is_store => Self::Store,
            (Self::Git, b"objects") => Self::Objects,
            (Self::Git, b"logs") => Self::Logs,
            (Self::Store, b"objects" | b"blobs") => Self::ObjectsOfStore,
            (Self::Git, b"loopwright-aside") | (Self::Store, b"aside") => Self::Aside,
            (part, _) => part,
        }
    }
}

struct Opening<'a> {
    known: std::collections::BTreeMap<PathBuf, u32>,
    store: &'a Path,
    closed: Vec<PathBuf>,
}

impl Opening<'_> {
    /// Opens a directory, with the bits it has to have; none where there is none.
    fn directory(
        &mut self,
        at: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
    ) -> Result<Option<OwnedFd>, Errno> {
        let handle = match openat(at, name, PATH_ONLY | OFlags::DIRECTORY, Bits::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error),
        };
        let stat = fstat(&handle)?;
        let mode = stat.st_mode & 0o7777;
        let wanted = self.known.get(path).copied().unwrap_or(mode) | WORKED_IN;
        if mode != wanted {
            self.set(&handle, &stat, wanted, path)?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&handle, ".", flags, Bits::empty()).map(Some)
    }

    fn set(&mut self, handle: &OwnedFd, stat: &Stat, mode: u32, path: &Path) -> Result<(), Errno> {
        if stat.st_uid != geteuid().as_raw() {
            // Whoever owns it says who may use it.
            return Ok(());
        }
        let name = format!("/proc/self/fd/{}", handle.as_raw_fd());
        chmod(name, Bits::from_raw_mode(mode))?;
        self.closed.push(path.to_path_buf());
        Ok(())
    }

    fn walk(
        &mut self,
        handle: &OwnedFd,
        path: &Path,
        part: Part,
        depth: usize,
    ) -> Result<(), GitError> {
        for (name, kind) in names(handle.as_fd()).map_err(failed(path))? {
            let below = path.join(OsStr::from_bytes(&name));
            if kind == FileType::Directory && depth < DEEPEST {
                let part = part.of(&name, below == self.store);
                if part == Part::Aside {
                    continue;
                }
                let opened = self.directory(handle.as_fd(), OsStr::from_bytes(&name), &below);
                match opened {
                    Ok(Some(handle)) => self.walk(&handle, &below, part, depth + 1)?,
                    // Of somebody else's, whom git's words will name.
                    Ok(None) | Err(Errno::ACCESS) => {}
                    Err(error) => return Err(failed(&below)(error)),
                }
            } else if kind == FileType::RegularFile {
                self.file(handle.as_fd(), &name, &below, part)
                    .map_err(failed(&below))?;
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        at: BorrowedFd<'_>,
        name: &[u8],
        path: &Path,
        part: Part,
    ) -> Result<(), Errno> {
        // Our own objects are many, and who closes them closes what they lie in, too.
        if part == Part::ObjectsOfStore && self.closed.is_empty() {
            return Ok(());
        }
        let stat = match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error),
        };
        let known = self.known.get(path).copied();
        let needed = match part {
            Part::Logs | Part::Store => WRITTEN,
            _ => READ | known.unwrap_or(0) & WRITTEN,
        };
        let mode = stat.st_mode & 0o7777;
        if mode & needed == needed {
            return Ok(());
        }
        let wanted = known.unwrap_or(mode) | needed;
        let handle = openat(at, name, PATH_ONLY, Bits::empty())?;
        self.set(&handle, &stat, wanted, path)
    }

    fn said(self) -> Vec<RefusedPath> {
        let Some(first) = self.closed.first() else {
            return Vec::new();
        };
        let words = match self.closed.len() - 1 {
            0 => "its permissions were put back".to_owned(),
            more => format!("its permissions, and those of {more} more in there, were put back"),
        };
        vec![undone(first.as_os_str().as_bytes(), &words)]
    }
}

fn is_plain(stat: &Stat) -> bool {
    let kind = FileType::from_raw_mode(stat.st_mode);
    matches!(kind, FileType::RegularFile | FileType::Directory)
}

fn failed(path: &Path) -> impl Fn(Errno) -> GitError + '_ {
    |error| GitError::io("open up", path)(error.into())
}
