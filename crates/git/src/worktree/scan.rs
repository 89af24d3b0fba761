//! Comparing the disk with the mirror: what was changed, what is missing, what is new.

use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{AtFlags, FileType, fstat, statat};
use rustix::io::Errno;

use super::mirror::{Directory, FileNode, Node};
use super::stamp::{Stamp, now_ns};
use crate::error::GitError;
use crate::hash::{ObjectKind, hash_object};
use crate::place::{Place, names, open_directory};
use crate::store::hash_stream;
use crate::types::{Mode, ObjectFormat, RepoPath};

/// One way in which the disk differs from the mirror.
#[derive(Debug)]
pub(super) enum Finding {
    /// A file or link whose stamp differs; the content may still be equal.
    Changed { path: RepoPath, stamp: Stamp },
    /// A file the mirror knows is not there (as a file or link).
    Missing { path: RepoPath },
    /// A submodule's directory is not there.
    MissingDirectory { path: RepoPath },
    /// Something the mirror does not know.
    Extra { path: RepoPath, kind: FileType },
    /// A directory whose permission bits are not what they were.
    DirectoryMode { path: RepoPath, mode: u32 },
}

/// How a scan goes about it.
pub(super) struct Scan<'a> {
    pub(super) place: &'a Place,
    pub(super) format: ObjectFormat,
    /// Believe no stamp: read everything.
    pub(super) full: bool,
    /// Submodules are repositories of the user's: their `.git` is not looked at.
    pub(super) keep_submodules: bool,
    pub(super) taken_ns: i64,
    pub(super) findings: Vec<Finding>,
}

impl Scan<'_> {
    /// Walks the whole tree.
    pub(super) fn run(mut self, mirror: &mut Directory) -> Result<Vec<Finding>, GitError> {
        self.taken_ns = now_ns();
        let mut path = Vec::with_capacity(256);
        let root = self.place.root();
        self.directory(root, mirror, &mut path)?;
        Ok(self.findings)
    }

    fn directory(
        &mut self,
        at: BorrowedFd<'_>,
        mirror: &mut Directory,
        path: &mut Vec<u8>,
    ) -> Result<(), GitError> {
        let stat = fstat(at).map_err(|error| self.place.error("look at", path, error))?;
        let stamp = Stamp::of(&stat);
        if mirror.stamp.mode != 0 && stamp.mode != mirror.stamp.mode {
            self.findings.push(Finding::DirectoryMode {
                path: RepoPath::new(path.as_slice()),
                mode: mirror.stamp.mode,
            });
        }
        let doubted = self.full || mirror.unsure || stamp != mirror.stamp;
        let same_names = !doubted || self.compare_names(at, mirror, path)?;
        if same_names && (stamp.mode == mirror.stamp.mode || mirror.stamp.mode == 0) {
            mirror.stamp = stamp;
            mirror.unsure = stamp.is_racy(self.taken_ns);
        }
        for entry in &mut mirror.entries {
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(&entry.name);
            match &mut entry.node {
                Node::File(file) => self.file(at, &entry.name, file, path)?,
                Node::Directory(below) => match open_directory(at, &entry.name) {
                    Ok(handle) => self.directory(handle.as_fd(), below, path)?,
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => self.missing(below, path),
                    Err(error) => return Err(self.place.error("open", path, error)),
                },
            }
            path.truncate(length);
        }
        Ok(())
    }

    /// Reads the names of a directory; true if they are the mirror's.
    fn compare_names(
        &mut self,
        at: BorrowedFd<'_>,
        mirror: &Directory,
        path: &[u8],
    ) -> Result<bool, GitError> {
        let found = names(at).map_err(|error| self.place.error("read", path, error))?;
        let mut known = 0;
        let mut extras = 0;
        for (name, kind) in found {
            let top = path.is_empty() || (self.keep_submodules && mirror.submodule);
            if top && *name == *b".git" {
                continue;
            }
            let expected = mirror.find(&name).ok().map(|at| &mirror.entries[at].node);
            let fits = match expected {
                Some(Node::Directory(_)) => kind == FileType::Directory,
                Some(Node::File(_)) => kind != FileType::Directory,
                None => false,
            };
            if fits {
                known += 1;
                continue;
            }
            extras += 1;
            let path = RepoPath::new(path).join(&name);
            self.findings.push(Finding::Extra { path, kind });
        }
        Ok(extras == 0 && known == mirror.entries.len())
    }

    fn file(
        &mut self,
        at: BorrowedFd<'_>,
        name: &[u8],
        file: &mut FileNode,
        path: &[u8],
    ) -> Result<(), GitError> {
        let stat = match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => {
                let path = RepoPath::new(path);
                self.findings.push(Finding::Missing { path });
                return Ok(());
            }
            Err(error) => return Err(self.place.error("look at", path, error)),
        };
        let stamp = Stamp::of(&stat);
        if stamp == file.stamp {
            if !file.racy && !self.full {
                return Ok(());
            }
            if self.still_holds(at, name, file)? {
                file.racy = stamp.is_racy(self.taken_ns);
                return Ok(());
            }
        }
        let path = RepoPath::new(path);
        self.findings.push(if stamp.kind() == FileType::Directory {
            // Reported as an extra with the names of its directory.
            Finding::Missing { path }
        } else {
            Finding::Changed { path, stamp }
        });
        Ok(())
    }

    /// Reads a file whose stamp is too fresh and compares its content.
    fn still_holds(
        &self,
        at: BorrowedFd<'_>,
        name: &[u8],
        file: &FileNode,
    ) -> Result<bool, GitError> {
        let path = self.place.path();
        let found = if file.mode == Mode::Link {
            match rustix::fs::readlinkat(at, name, Vec::new()) {
                Ok(target) => hash_object(self.format, ObjectKind::Blob, target.to_bytes())?,
                Err(_) => return Ok(false),
            }
        } else {
            match crate::place::open_file(at, name) {
                Ok(Some(mut open)) => hash_stream(self.format, &mut open, file.stamp.size, path)?,
                _ => return Ok(false),
            }
        };
        Ok(found == file.disk)
    }

    /// A directory is gone: so are all files the mirror has in it.
    fn missing(&mut self, mirror: &Directory, path: &mut Vec<u8>) {
        if mirror.submodule {
            let path = RepoPath::new(path.as_slice());
            self.findings.push(Finding::MissingDirectory { path });
        }
        for entry in &mirror.entries {
            let length = path.len();
            path.push(b'/');
            path.extend_from_slice(&entry.name);
            match &entry.node {
                Node::Directory(below) => self.missing(below, path),
                Node::File(_) => {
                    let path = RepoPath::new(path.as_slice());
                    self.findings.push(Finding::Missing { path });
                }
            }
            path.truncate(length);
        }
    }
}
