//! Compares an arm with its plan and says what has to be done; changes no content.
//!
//! One pass over the directories: a `stat` for every file that should be there, a removal for
//! everything that should not. File content is read only where the file system's word is not
//! good enough (see `stamp`).

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::FileType;

use crate::arms::disk::{self, Digest};
use crate::arms::error::ArmsError;
use crate::arms::patterns::Patterns;
use crate::arms::plan::{Plan, Wanted};
use crate::arms::stamp::{Stamp, now_ns};
use crate::types::{Mode, Oid, RepoPath};

/// What we know about a file we wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) mode: Mode,
    pub(crate) oid: Oid,
    pub(crate) stamp: Stamp,
    /// The stamp alone proves nothing: the file was young when it was taken.
    pub(crate) racy: bool,
    pub(crate) digest: Digest,
}

/// Everything known about one arm's tracked files.
pub(crate) type KnownFiles = HashMap<RepoPath, Known>;

/// What has to be done to bring an arm to its plan.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Paths to remove, with everything below.
    pub(crate) removals: Vec<RepoPath>,
    /// Directories to make, outer ones first.
    pub(crate) directories: Vec<RepoPath>,
    /// Items of the plan to write anew.
    pub(crate) writes: Vec<usize>,
}

impl Work {
    pub(crate) fn is_empty(&self) -> bool {
        self.removals.is_empty() && self.directories.is_empty() && self.writes.is_empty()
    }
}

/// One comparison.
pub(crate) struct Scan<'a> {
    plan: &'a Plan,
    cache: &'a Patterns,
    known: &'a mut KnownFiles,
    /// By item: true if it must be written whatever the disk holds.
    forced: &'a [bool],
    root_path: &'a Path,
    now_ns: i64,
    work: Work,
}

/// A directory of the plan: the items with these indices are below it.
struct Place {
    path: RepoPath,
    from: usize,
    to: usize,
    in_cache: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn run(
        root: BorrowedFd<'_>,
        root_path: &'a Path,
        plan: &'a Plan,
        cache: &'a Patterns,
        known: &'a mut KnownFiles,
        forced: &'a [bool],
    ) -> Result<Work, ArmsError> {
        let mut scan = Self {
            plan,
            cache,
            known,
            forced,
            root_path,
            now_ns: now_ns(),
            work: Work::default(),
        };
        let top = Place {
            path: RepoPath::from(""),
            from: 0,
            to: plan.items.len(),
            in_cache: false,
        };
        scan.directory(Some(root), &top)?;
        Ok(scan.work)
    }

    fn fail(&self, path: &RepoPath) -> impl FnOnce(rustix::io::Errno) -> ArmsError + use<> {
        ArmsError::io("read", &path.to_path(self.root_path))
    }

    /// Compares one directory; `None` stands for one that has yet to be made. Returns whether
    /// anything in it stays.
    fn directory(&mut self, fd: Option<BorrowedFd<'_>>, place: &Place) -> Result<bool, ArmsError> {
        let mut on_disk: HashMap<Box<[u8]>, FileType> = HashMap::new();
        if let Some(fd) = fd {
            disk::normalise_directory(fd).map_err(self.fail(&place.path))?;
            on_disk.extend(disk::names(fd).map_err(self.fail(&place.path))?);
        }
        let skip = match place.path.as_bytes().len() {
            0 => 0,
            length => length + 1,
        };
        let plan = self.plan;
        let mut index = place.from;
        while index < place.to {
            let path = &plan.items[index].path;
            let rest = &path.as_bytes()[skip..];
            let Some(slash) = rest.iter().position(|byte| *byte == b'/') else {
                let kind = on_disk.remove(rest);
                self.item(fd, index, rest, kind)?;
                index += 1;
                continue;
            };
            let prefix = &path.as_bytes()[..=skip + slash];
            let below = plan.items[index..place.to]
                .partition_point(|item| item.path.as_bytes().starts_with(prefix));
            let kind = on_disk.remove(&rest[..slash]);
            let child = RepoPath::new(&path.as_bytes()[..skip + slash]);
            self.wanted_directory(
                fd,
                child,
                &rest[..slash],
                kind,
                place,
                (index, index + below),
            )?;
            index += below;
        }
        let mut stays = place.from < place.to;
        for (name, kind) in on_disk {
            stays |= self.left_over(fd, place, &name, kind)?;
        }
        Ok(stays)
    }

    fn wanted_directory(
        &mut self,
        parent: Option<BorrowedFd<'_>>,
        path: RepoPath,
        name: &[u8],
        kind: Option<FileType>,
        outer: &Place,
        (from, to): (usize, usize),
    ) -> Result<(), ArmsError> {
        let in_cache = outer.in_cache || self.cache.name_exactly(&path);
        let place = Place {
            path,
            from,
            to,
            in_cache,
        };
        if let (Some(parent), Some(FileType::Directory)) = (parent, kind) {
            let fd = disk::open_directory(parent, name).map_err(self.fail(&place.path))?;
            self.directory(Some(fd.as_fd()), &place)?;
            return Ok(());
        }
        if kind.is_some() {
            self.work.removals.push(place.path.clone());
        }
        self.work.directories.push(place.path.clone());
        self.directory(None, &place)?;
        Ok(())
    }

    fn item(
        &mut self,
        parent: Option<BorrowedFd<'_>>,
        index: usize,
        name: &[u8],
        kind: Option<FileType>,
    ) -> Result<(), ArmsError> {
        let item = &self.plan.items[index];
        let good = match (&item.wanted, parent, kind) {
            (Wanted::EmptyDirectory, ..) => {
                let outer = Place {
                    path: RepoPath::from(""),
                    from: index,
                    to: index,
                    in_cache: false,
                };
                let path = item.path.clone();
                return self.wanted_directory(parent, path, name, kind, &outer, (index, index));
            }
            (Wanted::InputLink(target), Some(parent), Some(FileType::Symlink)) => {
                use std::os::unix::ffi::OsStrExt as _;
                disk::link_target(parent, name).map_err(self.fail(&item.path))?
                    == target.as_os_str().as_bytes()
            }
            (_, None, _) | (_, _, None) | (Wanted::InputLink(_), ..) => false,
            (Wanted::Blob(mode, oid) | Wanted::InnerBlob(mode, oid, _), Some(parent), _) => {
                !self.forced[index]
                    && self
                        .is_unchanged(parent, index, name, (*mode, *oid))
                        .map_err(self.fail(&item.path))?
            }
        };
        if !good {
            self.work.writes.push(index);
        }
        Ok(())
    }

    fn is_unchanged(
        &mut self,
        parent: BorrowedFd<'_>,
        index: usize,
        name: &[u8],
        content: (Mode, Oid),
    ) -> rustix::io::Result<bool> {
        let Some(known) = self.known.get_mut(&self.plan.items[index].path) else {
            return Ok(false);
        };
        if (known.mode, known.oid) != content {
            return Ok(false);
        }
        known.still_holds(parent, name, self.now_ns)
    }

    /// Something the plan does not name: stays if it is cache, or holds cache.
    fn left_over(
        &mut self,
        parent: Option<BorrowedFd<'_>>,
        outer: &Place,
        name: &[u8],
        kind: FileType,
    ) -> Result<bool, ArmsError> {
        let path = outer.path.join(name);
        if outer.in_cache || self.cache.name_exactly(&path) {
            return Ok(true);
        }
        if let (Some(parent), FileType::Directory) = (parent, kind)
            && self.cache.lead_through(&path)
        {
            let fd = disk::open_directory(parent, name).map_err(self.fail(&path))?;
            let place = Place {
                path: path.clone(),
                from: 0,
                to: 0,
                in_cache: false,
            };
            if self.directory(Some(fd.as_fd()), &place)? {
                return Ok(true);
            }
        }
        self.work.removals.push(path);
        Ok(false)
    }
}

impl Known {
    /// What is known about a file just written.
    pub(crate) fn new(content: (Mode, Oid), stamp: Stamp, digest: Digest) -> Self {
        Self {
            mode: content.0,
            oid: content.1,
            stamp,
            racy: stamp.is_racy(now_ns()),
            digest,
        }
    }

    /// True if the file still is what it was; reads it if its stamp can't prove that.
    pub(crate) fn still_holds(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        now_ns: i64,
    ) -> rustix::io::Result<bool> {
        let Some(stat) = disk::stat(parent, name)? else {
            return Ok(false);
        };
        if Stamp::of(&stat) != self.stamp {
            return Ok(false);
        }
        if self.racy {
            if disk::digest_of(parent, name, disk::kind(&stat))? != self.digest {
                return Ok(false);
            }
            self.racy = self.stamp.is_racy(now_ns);
        }
        Ok(true)
    }
}
