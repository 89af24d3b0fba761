//! How a candidate's cache is made from the incumbent's.
//!
//! A candidate starts from the incumbent's cache, whatever an earlier candidate did to its own:
//! one candidate can't poison the next. The copy is made by difference. A file counts as
//! already copied only if both ends still have the stamps noted right after it was copied.
//! Modes and modification times come along, so that build tools can use what they find; names
//! that share a file go on sharing it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::arms::cache::{End, Entry, Listing, drop_empty_tree_directories, has_place, survey};
use crate::arms::disk::{self, Opener};
use crate::arms::error::ArmsError;
use crate::arms::faults::Faults;
use crate::arms::patterns::Patterns;
use crate::arms::stamp::{Stamp, now_ns};
use crate::types::RepoPath;

/// Files of the two slots that are known to hold the same.
#[derive(Debug, Default)]
pub(crate) struct Pairs(HashMap<RepoPath, Pair>);

#[derive(Debug, Clone, Copy)]
struct Pair {
    /// By slot.
    stamps: [Stamp; 2],
    racy: bool,
}

impl Pairs {
    /// Forgets them all: one of the slots was replaced.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

/// How many cache files were copied.
pub(crate) type Copied = usize;

/// Makes the cache in `to` equal to the one in `from`.
pub(crate) fn inherit(
    from: &End<'_>,
    to: &End<'_>,
    patterns: &Patterns,
    pairs: &mut Pairs,
    faults: &mut Faults,
) -> Result<Copied, ArmsError> {
    let mut wanted = survey(from, patterns)?;
    wanted.retain(|path, entry| has_place(path, entry, to.plan, patterns));
    drop_empty_tree_directories(&mut wanted);
    let mut present = survey(to, patterns)?;
    present.retain(|_, entry| !entry.of_the_tree);
    let mut copy = Copy {
        source: Opener::new(from.root),
        target: Opener::new(to.root),
        from,
        to,
        present,
        pairs,
        surveyed_ns: now_ns(),
        copied: 0,
    };
    copy.remove_surplus(&wanted, faults)?;
    copy.make_directories(&wanted, faults)?;
    copy.copy_files(&wanted, faults)?;
    copy.finish_directories(&wanted)?;
    copy.pairs.0.retain(|path, _| wanted.contains_key(path));
    Ok(copy.copied)
}

struct Copy<'a> {
    from: &'a End<'a>,
    to: &'a End<'a>,
    source: Opener<'a>,
    target: Opener<'a>,
    present: Listing,
    pairs: &'a mut Pairs,
    surveyed_ns: i64,
    copied: Copied,
}

impl Copy<'_> {
    fn fail(
        &self,
        action: &'static str,
        path: &RepoPath,
    ) -> impl FnOnce(Errno) -> ArmsError + use<> {
        ArmsError::io(action, &path.to_path(self.to.path))
    }

    /// Removes what the incumbent's cache does not have, or has as another kind of thing.
    fn remove_surplus(&mut self, wanted: &Listing, faults: &mut Faults) -> Result<(), ArmsError> {
        let surplus: Vec<RepoPath> = self
            .present
            .iter()
            .filter(|(path, entry)| {
                entry.too_deep
                    || wanted
                        .get(*path)
                        .is_none_or(|other| other.kind != entry.kind)
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in surplus {
            // Gone already together with a directory above it?
            if self.present.contains_key(&path) {
                faults.reach("remove cache")?;
                let (parent, name) = disk::split(path.as_bytes());
                let result = self.target.directory(parent);
                result
                    .and_then(|parent| disk::remove(parent, name))
                    .map_err(self.fail("remove", &path))?;
                self.target.forget();
                self.forget_present(path);
            }
        }
        Ok(())
    }

    fn forget_present(&mut self, path: RepoPath) {
        let below: Vec<RepoPath> = self
            .present
            .range(path.join(b"")..)
            .map(|(other, _)| other)
            .take_while(|other| other.is_below(&path))
            .cloned()
            .collect();
        for other in below {
            self.present.remove(&other);
        }
        self.present.remove(&path);
    }

    fn make_directories(&mut self, wanted: &Listing, faults: &mut Faults) -> Result<(), ArmsError> {
        for (path, entry) in wanted {
            if entry.kind != FileType::Directory {
                self.make_parents(path, entry.root)?;
                continue;
            }
            let (parent, name) = disk::split(path.as_bytes());
            if self.present.contains_key(path) {
                // It may be read-only; its own mode comes back when all is done.
                let result = self.target.directory(parent);
                result
                    .and_then(|parent| set_mode(parent, name, 0o700))
                    .map_err(self.fail("open", path))?;
                continue;
            }
            faults.reach("make cache directory")?;
            self.make_parents(path, entry.root)?;
            let result = self.target.directory(parent);
            result
                .and_then(|parent| disk::make_directory(parent, name))
                .map_err(self.fail("make directory", path))?;
        }
        Ok(())
    }

    /// The directories a pattern leads through, which neither tree nor cache holds.
    fn make_parents(&mut self, path: &RepoPath, root: usize) -> Result<(), ArmsError> {
        if path.as_bytes().len() != root {
            return Ok(());
        }
        let Some(parent) = path.parent() else {
            return Ok(());
        };
        let mut made = RepoPath::from("");
        for name in parent.names() {
            let next = made.join(name);
            let result = self.target.directory(made.as_bytes());
            result
                .and_then(|above| match disk::make_directory(above, name) {
                    Err(Errno::EXIST) => Ok(()),
                    other => other,
                })
                .map_err(self.fail("make directory", &next))?;
            made = next;
        }
        Ok(())
    }

    fn copy_files(&mut self, wanted: &Listing, faults: &mut Faults) -> Result<(), ArmsError> {
        // By file of the source: the first name of it that the target has.
        let mut shared: HashMap<u64, RepoPath> = HashMap::new();
        let mut noted = Vec::new();
        for (path, entry) in wanted {
            let shares = entry.kind == FileType::RegularFile && entry.names > 1;
            if self.is_copied(path, entry)? {
                if shares {
                    shared
                        .entry(entry.stamp.inode)
                        .or_insert_with(|| path.clone());
                    noted.push(path);
                }
                continue;
            }
            if entry.kind == FileType::Directory {
                continue;
            }
            faults.reach("copy cache")?;
            let first = shared.get(&entry.stamp.inode).filter(|_| shares).cloned();
            let done = match &first {
                Some(first) => self.share(first, path),
                None => self.copy(path, entry),
            };
            if done.map_err(self.fail("copy to", path))? {
                self.copied += 1;
                noted.push(path);
                if shares && first.is_none() {
                    shared.insert(entry.stamp.inode, path.clone());
                }
            }
        }
        // Only now, because another name given to a file changes its stamp.
        for path in noted {
            self.note(path, &wanted[path])?;
        }
        Ok(())
    }

    /// True if the target already has this very file.
    fn is_copied(&mut self, path: &RepoPath, entry: &Entry) -> Result<bool, ArmsError> {
        let Some(present) = self.present.get(path) else {
            return Ok(false);
        };
        match entry.kind {
            FileType::Directory | FileType::Fifo => return Ok(true),
            FileType::Symlink => {
                return self.same_target(path).map_err(self.fail("compare", path));
            }
            _ => {}
        }
        let Some(pair) = self.pairs.0.get(path) else {
            return Ok(false);
        };
        let same = pair.stamps[self.from.slot] == entry.stamp
            && pair.stamps[self.to.slot] == present.stamp;
        if !same || !pair.racy {
            return Ok(same);
        }
        let equal = self
            .same_content(path)
            .map_err(self.fail("compare", path))?;
        if equal {
            self.note(path, entry)?;
        }
        Ok(equal)
    }

    fn same_target(&mut self, path: &RepoPath) -> rustix::io::Result<bool> {
        let (parent, name) = disk::split(path.as_bytes());
        let one = disk::link_target(self.source.directory(parent)?, name)?;
        Ok(one == disk::link_target(self.target.directory(parent)?, name)?)
    }

    fn same_content(&mut self, path: &RepoPath) -> rustix::io::Result<bool> {
        let (parent, name) = disk::split(path.as_bytes());
        let one = disk::open_file(self.source.directory(parent)?, name)?;
        let other = disk::open_file(self.target.directory(parent)?, name)?;
        equal(one, other)
    }

    /// Remembers that both ends hold the same.
    fn note(&mut self, path: &RepoPath, entry: &Entry) -> Result<(), ArmsError> {
        if entry.kind != FileType::RegularFile {
            return Ok(());
        }
        let (parent, name) = disk::split(path.as_bytes());
        let stat = self
            .target
            .directory(parent)
            .and_then(|parent| disk::stat(parent, name))
            .map_err(ArmsError::io("read", &path.to_path(self.to.path)))?;
        let Some(stat) = stat else {
            return Ok(());
        };
        let stamp = Stamp::of(&stat);
        let mut stamps = [stamp; 2];
        stamps[self.from.slot] = entry.stamp;
        let racy = stamp.is_racy(now_ns()) || entry.stamp.is_racy(self.surveyed_ns);
        self.pairs.0.insert(path.clone(), Pair { stamps, racy });
        Ok(())
    }

    /// Gives a file of the target another name.
    fn share(&mut self, first: &RepoPath, path: &RepoPath) -> rustix::io::Result<bool> {
        let (first_parent, first_name) = disk::split(first.as_bytes());
        let (parent, name) = disk::split(path.as_bytes());
        let mut other = Opener::new(self.to.root);
        let from = other.directory(first_parent)?;
        let to = self.target.directory(parent)?;
        disk::remove(to, name)?;
        rustix::fs::linkat(from, first_name, to, name, AtFlags::empty())?;
        Ok(true)
    }

    /// Copies one file; false if it can't be read, which makes it no part of the cache.
    fn copy(&mut self, path: &RepoPath, entry: &Entry) -> rustix::io::Result<bool> {
        let (parent, name) = disk::split(path.as_bytes());
        let from = self.source.directory(parent)?;
        let to = self.target.directory(parent)?;
        disk::remove(to, name)?;
        match entry.kind {
            FileType::Symlink => {
                disk::make_link(to, name, &disk::link_target(from, name)?)?;
            }
            FileType::Fifo => {
                rustix::fs::mkfifoat(to, name, Mode::from_raw_mode(entry.stamp.mode & 0o777))?;
            }
            _ => match disk::open_file(from, name) {
                Ok(source) => copy_content(&source, to, name, &entry.stamp)?,
                Err(Errno::ACCESS | Errno::NOENT | Errno::LOOP) => return Ok(false),
                Err(error) => return Err(error),
            },
        }
        Ok(true)
    }

    /// Gives directories their modes and times, inner ones first.
    fn finish_directories(&mut self, wanted: &Listing) -> Result<(), ArmsError> {
        for (path, entry) in wanted.iter().rev() {
            if entry.kind != FileType::Directory {
                continue;
            }
            let (parent, name) = disk::split(path.as_bytes());
            let result = self.target.directory(parent);
            result
                .and_then(|parent| {
                    set_mode(parent, name, entry.stamp.mode & 0o7777)?;
                    set_mtime(parent, name, entry.stamp.mtime_ns)
                })
                .map_err(self.fail("finish", path))?;
            self.target.forget();
        }
        Ok(())
    }
}

fn set_mode(parent: BorrowedFd<'_>, name: &[u8], mode: u32) -> rustix::io::Result<()> {
    rustix::fs::chmodat(parent, name, Mode::from_raw_mode(mode), AtFlags::empty())
}

/// Sets when a file was changed, without following a link.
pub(crate) fn set_mtime(
    parent: BorrowedFd<'_>,
    name: &[u8],
    mtime_ns: i64,
) -> rustix::io::Result<()> {
    rustix::fs::utimensat(
        parent,
        name,
        &timestamps(mtime_ns),
        AtFlags::SYMLINK_NOFOLLOW,
    )
}

fn timestamps(mtime_ns: i64) -> Timestamps {
    const SECOND_NS: i64 = 1_000_000_000;
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: mtime_ns.div_euclid(SECOND_NS),
            tv_nsec: mtime_ns.rem_euclid(SECOND_NS),
        },
    }
}

/// Copies content, mode and time; shares the blocks where the file system can.
fn copy_content(
    source: &File,
    to: BorrowedFd<'_>,
    name: &[u8],
    stamp: &Stamp,
) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut target = File::from(rustix::fs::openat(
        to,
        name,
        flags,
        Mode::from_raw_mode(0o600),
    )?);
    if rustix::fs::ioctl_ficlone(&target, source).is_err() {
        let mut reader = source;
        std::io::copy(&mut reader, &mut target).map_err(disk::errno)?;
    }
    rustix::fs::fchmod(&target, Mode::from_raw_mode(stamp.mode & 0o7777))?;
    rustix::fs::futimens(&target, &timestamps(stamp.mtime_ns))
}

fn equal(mut one: File, mut other: File) -> rustix::io::Result<bool> {
    let (mut left, mut right) = (vec![0; 32 * 1024], vec![0; 32 * 1024]);
    loop {
        let count = one.read(&mut left).map_err(disk::errno)?;
        if count == 0 {
            return Ok(other.read(&mut right).map_err(disk::errno)? == 0);
        }
        match other.read_exact(&mut right[..count]) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            other => other.map_err(disk::errno)?,
        }
        if left[..count] != right[..count] {
            return Ok(false);
        }
    }
}
