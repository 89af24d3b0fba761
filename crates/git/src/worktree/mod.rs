//! A checked-out tree that is brought to known states and read back by walking stamps.
//!
//! - [`WorkTree::restore`] makes the directory hold exactly a tree: bytes, modes, links, nothing
//!   else.
//! - [`WorkTree::bring`] brings a checkout of the user's to a tree and loses nothing by it.
//! - [`WorkTree::collect`] says which tree the directory holds now.
//!
//! Both walk the disk beside a mirror of the last known state, so that an unchanged file costs
//! one `stat`. What a program running in the tree can arrange (links, odd modes, pipes, deep or
//! closed directories) is never followed, obeyed or waited for.

mod bring;
mod collect;
mod ignore;
mod learn;
mod mirror;
mod restore;
mod scan;
mod stamp;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use collect::RefusedPath;
pub(crate) use mirror::{Directory, FileNode, Node};
pub(crate) use stamp::{Stamp, now_ns};

use crate::aside::Aside;
use crate::error::GitError;
use crate::place::Place;
use crate::types::{ObjectFormat, Oid, RepoPath, TreeListing};
use scan::{Finding, Scan};

/// A directory holding a checkout, and what is known about it.
#[derive(Debug)]
pub(crate) struct WorkTree {
    path: PathBuf,
    format: ObjectFormat,
    /// Ignore rules from outside the tree.
    excludes: PathBuf,
    /// Of a checkout of the user's (whose submodules have a `.git` of their own): where what can't be
    /// stored goes when it has to give way.
    aside: Option<Aside>,
    /// Of such a checkout: what [`collect`](Self::collect) has stored, with the stamps it had.
    stored: BTreeMap<RepoPath, Stamp>,
    /// Of such a checkout: files of the tree that stood there before it was brought to that tree.
    theirs: BTreeSet<RepoPath>,
    mirror: Directory,
    /// The mirror holds; false before the first restore and after one that failed midway.
    known: bool,
    /// Permission bits (and type) a directory made here gets.
    directory_mode: u32,
    tree: Oid,
    /// What the mirror holds: the tree, and the content of submodules below their paths.
    listing: TreeListing,
}

impl WorkTree {
    /// A work tree at `path`, nothing known about it yet.
    pub(crate) fn new(path: &Path, format: ObjectFormat, empty_tree: Oid, excludes: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            format,
            excludes: excludes.to_path_buf(),
            aside: None,
            stored: BTreeMap::new(),
            theirs: BTreeSet::new(),
            mirror: Directory::default(),
            known: false,
            directory_mode: 0,
            tree: empty_tree,
            listing: TreeListing::default(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn tree(&self) -> Oid {
        self.tree
    }

    pub(crate) fn listing(&self) -> &TreeListing {
        &self.listing
    }

    pub(crate) fn mirror(&self) -> &Directory {
        &self.mirror
    }

    /// The top's own names have changed by our hand; read them again.
    pub(crate) fn doubt_top(&mut self) {
        self.mirror.unsure = true;
    }

    fn scan(&mut self, place: &Place, full: bool) -> Result<Vec<Finding>, GitError> {
        Scan {
            place,
            format: self.format,
            full,
            keep_submodules: self.aside.is_some(),
            taken_ns: 0,
            findings: Vec::new(),
        }
        .run(&mut self.mirror)
    }

    /// The submodule a path lies in, if it lies in one.
    fn submodule_of(&self, path: &RepoPath) -> Option<RepoPath> {
        let mut directory = &self.mirror;
        let mut length = 0;
        for name in path.names() {
            let at = directory.find(name).ok()?;
            let Node::Directory(below) = &directory.entries[at].node else {
                return None;
            };
            length += name.len();
            if below.submodule {
                return Some(RepoPath::new(&path.as_bytes()[..length]));
            }
            length += 1;
            directory = below;
        }
        None
    }
}
