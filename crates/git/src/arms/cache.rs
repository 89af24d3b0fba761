//! What the cache of an arm holds: everything the patterns cover that is not the tree's own.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::arms::disk;
use crate::arms::error::ArmsError;
use crate::arms::patterns::Patterns;
use crate::arms::plan::Plan;
use crate::arms::stamp::Stamp;
use crate::types::RepoPath;

/// Directories deeper than this are not carried over; no build tool makes any.
const DEPTH: usize = 128;

/// One file or directory of a cache.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) kind: FileType,
    pub(crate) stamp: Stamp,
    pub(crate) names: u64,
    /// Length of the path that a pattern names, at or above this one.
    pub(crate) root: usize,
    /// A directory the arm's own tree needs too.
    pub(crate) of_the_tree: bool,
    /// A directory whose content is too deep to be listed.
    pub(crate) too_deep: bool,
}

/// A cache by path.
pub(crate) type Listing = BTreeMap<RepoPath, Entry>;

/// One arm, as a cache is looked for in it.
pub(crate) struct End<'a> {
    pub(crate) root: BorrowedFd<'a>,
    pub(crate) path: &'a Path,
    pub(crate) plan: &'a Plan,
    /// 0 or 1: which slot it is.
    pub(crate) slot: usize,
}

/// Directories the incumbent's tree needs are carried over only for the cache in them.
pub(crate) fn drop_empty_tree_directories(wanted: &mut Listing) {
    let needed: HashSet<RepoPath> = wanted
        .iter()
        .filter(|(_, entry)| !entry.of_the_tree)
        .flat_map(|(path, _)| std::iter::successors(path.parent(), RepoPath::parent))
        .collect();
    wanted.retain(|path, entry| !entry.of_the_tree || needed.contains(path));
}

/// True if the arm that is brought to `plan` has room for this piece of cache.
pub(crate) fn has_place(path: &RepoPath, entry: &Entry, plan: &Plan, patterns: &Patterns) -> bool {
    if !matches!(
        entry.kind,
        FileType::RegularFile | FileType::Directory | FileType::Symlink | FileType::Fifo
    ) {
        return false;
    }
    let root = RepoPath::new(&path.as_bytes()[..entry.root]);
    let grounded = root
        .parent()
        .is_none_or(|parent| plan.has_directory(&parent) || patterns.lead_through(&parent));
    grounded && !plan.claims(path)
}

/// Lists the cache of one arm.
pub(crate) fn survey(end: &End<'_>, patterns: &Patterns) -> Result<Listing, ArmsError> {
    let mut survey = Survey {
        end,
        patterns,
        found: Listing::new(),
    };
    survey.directory(end.root, &RepoPath::from(""), 0, 0)?;
    Ok(survey.found)
}

struct Survey<'a> {
    end: &'a End<'a>,
    patterns: &'a Patterns,
    found: Listing,
}

impl Survey<'_> {
    /// `root` is the length of the covering path, 0 while none is known.
    fn directory(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &RepoPath,
        root: usize,
        depth: usize,
    ) -> Result<(), ArmsError> {
        let full = path.to_path(self.end.path);
        let names = disk::names(fd).map_err(ArmsError::io("read", &full))?;
        for (name, kind) in names {
            let child = path.join(&name);
            let is_root = root == 0 && self.patterns.name_exactly(&child);
            let root = if is_root {
                child.as_bytes().len()
            } else {
                root
            };
            if root > 0 {
                self.cached(fd, &child, &name, kind, root, depth)
                    .map_err(|error| error.unwrap_or_io("read", &child.to_path(self.end.path)))?;
            } else if kind == FileType::Directory && self.patterns.may_match_below(&child) {
                let tracked = self.end.plan.has_directory(&child);
                if tracked || self.patterns.lead_through(&child) {
                    let inner = disk::open_directory(fd, &name)
                        .map_err(ArmsError::io("read", &child.to_path(self.end.path)))?;
                    self.directory(inner.as_fd(), &child, 0, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn cached(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &RepoPath,
        name: &[u8],
        kind: FileType,
        root: usize,
        depth: usize,
    ) -> Result<(), Failure> {
        let of_the_tree = self.end.plan.has_directory(path);
        let is_file_of_the_tree = !of_the_tree && self.end.plan.find(path).is_some();
        if is_file_of_the_tree || (of_the_tree && kind != FileType::Directory) {
            // The tree's own, or what a run put in its place.
            return Ok(());
        }
        let too_deep = kind == FileType::Directory && depth >= DEPTH;
        let Some(stat) = disk::stat(fd, name)? else {
            return Ok(());
        };
        let entry = Entry {
            kind,
            stamp: Stamp::of(&stat),
            names: link_count(&stat),
            root,
            of_the_tree,
            too_deep,
        };
        self.found.insert(path.clone(), entry);
        if kind == FileType::Directory && !too_deep {
            let inner = disk::open_directory(fd, name)?;
            self.directory(inner.as_fd(), path, root, depth + 1)?;
        }
        Ok(())
    }
}

#[expect(
    clippy::unnecessary_cast,
    reason = "the width of this field differs between platforms"
)]
fn link_count(stat: &Stat) -> u64 {
    stat.st_nlink as u64
}

/// An error with or without words yet.
enum Failure {
    System(Errno),
    Told(ArmsError),
}

impl Failure {
    fn unwrap_or_io(self, action: &'static str, path: &Path) -> ArmsError {
        match self {
            Self::System(error) => ArmsError::io(action, path)(error),
            Self::Told(error) => error,
        }
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl From<ArmsError> for Failure {
    fn from(error: ArmsError) -> Self {
        Self::Told(error)
    }
}
