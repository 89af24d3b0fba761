//! Inputs git does not carry (`data`, `node_modules`): shared with the user's checkout by a
//! link, and fingerprinted so that a command that writes through the link is found out.
//!
//! A fingerprint has two digests. `digest` says what the input *is*: names, kinds, sizes and
//! permissions of everything in it, link targets, and the content of files of at most 1 MiB
//! (the first 4,096 of them, 64 MiB in all, in the order of their names); a larger file counts
//! with its size and its modification time. `stamps` says that nothing was *done* to it since:
//! it covers inode, modification and change time of everything, and no ordinary program can
//! change a file without changing that. It does not prove that a file was not changed within a
//! clock tick (some milliseconds) of the fingerprint, nor anything about what a link inside the
//! input points to, nor about a machine whose clock was set back.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};
use sha2::{Digest as _, Sha256};

use crate::arms::disk;
use crate::arms::error::ArmsError;
use crate::arms::slot::to_hex;
use crate::arms::stamp::Stamp;
use crate::types::RepoPath;

const SMALL_FILE_BYTES: u64 = 1 << 20;
const READ_FILES: u64 = 4096;
const READ_BYTES: u64 = 64 << 20;
/// Deeper directories count with their own stamp only.
const DEPTH: usize = 200;

/// One declared input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputLink {
    /// Where it appears in an arm.
    pub path: RepoPath,
    /// Where it is: the same path in the user's checkout, absolute.
    pub target: PathBuf,
}

impl InputLink {
    /// Finds the declared inputs in the user's checkout. Whether one is tracked by git can only
    /// be said against a tree: [`Arms::prepare`](crate::arms::Arms::prepare) refuses those.
    pub fn resolve<S: AsRef<str>>(checkout: &Path, declared: &[S]) -> Result<Vec<Self>, ArmsError> {
        let top = checkout
            .canonicalize()
            .map_err(ArmsError::io("find", checkout))?;
        let mut links = BTreeMap::new();
        for name in declared {
            let link = resolve_one(&top, name.as_ref())?;
            links.insert(link.path.clone(), link);
        }
        Ok(links.into_values().collect())
    }
}

fn resolve_one(checkout: &Path, name: &str) -> Result<InputLink, ArmsError> {
    let outside = || ArmsError::LinkOutside {
        link: name.to_owned(),
        checkout: checkout.to_path_buf(),
    };
    let missing = || ArmsError::LinkMissing {
        link: name.to_owned(),
        checkout: checkout.to_path_buf(),
    };
    let trimmed = name.trim_end_matches('/');
    let path = RepoPath::from(trimmed.strip_prefix("./").unwrap_or(trimmed));
    if !path.is_safe() {
        return Err(outside());
    }
    let target = path.to_path(checkout);
    let parent = target.parent().unwrap_or(checkout);
    let parent = parent.canonicalize().map_err(|_| missing())?;
    if !parent.starts_with(checkout) {
        return Err(outside());
    }
    // The input itself may well be a link to another disk.
    if !target.exists() {
        return Err(missing());
    }
    Ok(InputLink { path, target })
}

/// What an input was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFingerprint {
    /// Which input.
    pub link: InputLink,
    /// What it is; belongs into the digest of everything a measurement depends on.
    pub digest: String,
    /// How many files it has.
    pub files: u64,
    /// How large they are together.
    pub bytes: u64,
    stamps: [u8; 32],
    newest_ctime_ns: i64,
}

/// An input that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLink {
    /// Which input.
    pub link: RepoPath,
    /// A file in it that was made or changed since, if one can be named (a removal can't).
    pub example: Option<PathBuf>,
}

impl LinkFingerprint {
    /// Looks at an input closely.
    pub fn take(link: &InputLink) -> Result<Self, ArmsError> {
        let walk = Walk::over(&link.target, true, i64::MAX)?;
        Ok(Self {
            link: link.clone(),
            digest: to_hex(&<[u8; 32]>::from(walk.content.finalize())),
            files: walk.files,
            bytes: walk.bytes,
            stamps: walk.stamps.finalize().into(),
            newest_ctime_ns: walk.newest_ctime_ns,
        })
    }

    /// Looks again, at the stamps only: one `stat` a file.
    pub fn recheck(&self) -> Result<Option<ChangedLink>, ArmsError> {
        let changed = |example| {
            Ok(Some(ChangedLink {
                link: self.link.path.clone(),
                example,
            }))
        };
        if !self.link.target.exists() {
            return changed(None);
        }
        let walk = Walk::over(&self.link.target, false, self.newest_ctime_ns)?;
        if <[u8; 32]>::from(walk.stamps.finalize()) == self.stamps {
            return Ok(None);
        }
        changed(walk.newer)
    }
}

struct Walk {
    content: Sha256,
    stamps: Sha256,
    read_content: bool,
    files: u64,
    bytes: u64,
    read_files: u64,
    read_bytes: u64,
    newest_ctime_ns: i64,
    /// Look for a file changed after this.
    after_ns: i64,
    newer: Option<PathBuf>,
}

impl Walk {
    fn over(target: &Path, read_content: bool, after_ns: i64) -> Result<Self, ArmsError> {
        let mut walk = Self {
            content: Sha256::new(),
            stamps: Sha256::new(),
            read_content,
            files: 0,
            bytes: 0,
            read_files: 0,
            read_bytes: 0,
            newest_ctime_ns: i64::MIN,
            after_ns,
            newer: None,
        };
        // Only here is a link followed: the input may be one.
        let real = target
            .canonicalize()
            .map_err(ArmsError::io("find", target))?;
        let (parent, name) = match (real.parent(), real.file_name()) {
            (Some(parent), Some(name)) => (parent, name.as_encoded_bytes()),
            _ => (Path::new("/"), b".".as_slice()),
        };
        let parent = disk::open_input(rustix::fs::CWD, parent.as_os_str().as_encoded_bytes())
            .map_err(ArmsError::io("open", parent))?;
        walk.entry(parent.as_fd(), name, &real, 0)?;
        Ok(walk)
    }

    fn entry(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        path: &Path,
        depth: usize,
    ) -> Result<(), ArmsError> {
        let fail = |error| ArmsError::io("read", path)(error);
        let Some(stat) = disk::stat(parent, name).map_err(fail)? else {
            return Ok(());
        };
        let stamp = Stamp::of(&stat);
        self.note_stamp(name, &stamp, path);
        let kind = disk::kind(&stat);
        if depth > 0 {
            self.field(name);
        }
        self.field(&stamp.mode.to_le_bytes());
        match kind {
            FileType::Directory if depth < DEPTH => {
                let fd = disk::open_input(parent, name).map_err(fail)?;
                let mut names = disk::names(fd.as_fd()).map_err(fail)?;
                names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
                for (child, _) in names {
                    let child_path = path.join(os_name(&child));
                    self.entry(fd.as_fd(), &child, &child_path, depth + 1)?;
                }
                self.field(b"/");
            }
            FileType::Symlink => {
                let target = disk::link_target(parent, name).map_err(fail)?;
                self.field(&target);
            }
            FileType::RegularFile => self.file(parent, name, &stat, &stamp).map_err(fail)?,
            _ => {}
        }
        Ok(())
    }

    fn note_stamp(&mut self, name: &[u8], stamp: &Stamp, path: &Path) {
        self.stamps.update((name.len() as u64).to_le_bytes());
        self.stamps.update(name);
        self.stamps.update(stamp.inode.to_le_bytes());
        self.stamps.update(stamp.size.to_le_bytes());
        self.stamps.update(stamp.mode.to_le_bytes());
        self.stamps.update(stamp.mtime_ns.to_le_bytes());
        self.stamps.update(stamp.ctime_ns.to_le_bytes());
        self.newest_ctime_ns = self.newest_ctime_ns.max(stamp.ctime_ns);
        let is_directory = FileType::from_raw_mode(stamp.mode) == FileType::Directory;
        if stamp.ctime_ns > self.after_ns && (self.newer.is_none() || !is_directory) {
            self.newer = Some(path.to_path_buf());
        }
    }

    fn file(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        stat: &Stat,
        stamp: &Stamp,
    ) -> rustix::io::Result<()> {
        self.files += 1;
        self.bytes += stamp.size;
        self.field(&stamp.size.to_le_bytes());
        if !self.read_content {
            return Ok(());
        }
        let within = self.read_files < READ_FILES && self.read_bytes + stamp.size <= READ_BYTES;
        if stamp.size <= SMALL_FILE_BYTES && within {
            self.read_files += 1;
            self.read_bytes += stamp.size;
            let digest = disk::digest_of(parent, name, disk::kind(stat))?;
            self.field(&digest);
        } else {
            self.field(&stamp.mtime_ns.to_le_bytes());
        }
        Ok(())
    }

    /// Adds a value to the digest of what the input is, so that no two lists of values collide.
    fn field(&mut self, value: &[u8]) {
        if self.read_content {
            self.content.update((value.len() as u64).to_le_bytes());
            self.content.update(value);
        }
    }
}

fn os_name(name: &[u8]) -> &std::ffi::OsStr {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(name)
}
