//! The private repository a proposer works in.
//!
//! It has its own `.git` over the store (and the user's objects, so that the project's history
//! can be read in it). What an agent configures, hooks, filters or commits there stays there:
//! no git is ever run inside it. A `.git` that differs in anything from how it was made is
//! thrown away and made anew, which costs a few small files.

mod index;
mod private_git;

use std::path::{Path, PathBuf};

pub use private_git::AgentHead;

use crate::error::GitError;
use crate::plain;
use crate::store::{ObjectStore, Person};
use crate::types::{Change, Oid};
use crate::user::UserRepository;
use crate::worktree::{RefusedPath, WorkTree};
use private_git::{PrivateGit, Template};

/// A proposer's repository: made once, brought back to an incumbent before each trial.
#[derive(Debug)]
pub struct ProposerRepository {
    dir: PathBuf,
    work: WorkTree,
    template: Template,
    git: PrivateGit,
}

/// What a proposal left.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The candidate tree.
    pub tree: Oid,
    /// How it differs from the tree the proposer started from.
    pub changes: Vec<Change>,
    /// What can't be part of it, and why.
    pub refused: Vec<RefusedPath>,
    /// What the proposer did to the repository itself and was undone, in words (in place only:
    /// a private repository is simply made anew).
    pub undone: Vec<RefusedPath>,
    /// The commit the proposer left as HEAD, if it is not the one it started from.
    pub agent_head: Option<AgentHead>,
    /// The proposer removed its own directory; there is no proposal.
    pub removed: bool,
}

impl ProposerRepository {
    /// Sets up a proposer's place in `dir` (its work tree is `dir/work`). Nothing is checked out
    /// before the first [`reset_to`](Self::reset_to).
    pub fn create(
        dir: &Path,
        user: &UserRepository,
        store: &mut ObjectStore,
        identity: &Person,
    ) -> Result<Self, GitError> {
        std::fs::create_dir_all(dir).map_err(GitError::io("make directory", dir))?;
        let excludes = dir.join("exclude");
        let template = Template::new(user, store, identity);
        plain::write(&excludes, template.excludes()).map_err(plain::failed("write", &excludes))?;
        let work = dir.join("work");
        Ok(Self {
            dir: dir.to_path_buf(),
            work: WorkTree::new(&work, store.format(), store.empty_tree()?, &excludes),
            template,
            git: PrivateGit::new(&work),
        })
    }

    /// The work tree: where the proposer is started.
    pub fn work_tree(&self) -> &Path {
        self.work.path()
    }

    /// Brings work tree and `.git` to a commit, whatever was left there.
    pub fn reset_to(&mut self, store: &mut ObjectStore, commit: &Oid) -> Result<(), GitError> {
        let tree = store.read_commit(commit)?.tree;
        let listing = store.checkout_listing(&tree)?;
        self.work.restore(store, tree, &listing)?;
        if !self.git.is_untouched(commit)? {
            let staging = self.dir.join("git.new");
            self.git
                .make(&staging, &self.template, commit, &self.work)?;
            self.work.doubt_top();
        }
        Ok(())
    }

    /// Looks at what can be looked at already for the next [`reset_to`](Self::reset_to). To be called
    /// after every command, whatever it ran on: what was seen before doesn't count any more.
    pub fn look_ahead(&mut self) {
        self.git.look_ahead();
    }

    /// Stores what the proposer left; only stamps of changed files are believed to be news.
    ///
    /// Nothing may be running in the work tree any more.
    pub fn snapshot(&mut self, store: &mut ObjectStore) -> Result<Snapshot, GitError> {
        self.take(store, false)
    }

    /// The same without believing any stamp: every file is read.
    pub fn full_snapshot(&mut self, store: &mut ObjectStore) -> Result<Snapshot, GitError> {
        self.take(store, true)
    }

    fn take(&mut self, store: &mut ObjectStore, full: bool) -> Result<Snapshot, GitError> {
        let agent_head = self.git.agent_head(store.format())?;
        match self.work.collect(store, full)? {
            Some(collected) => Ok(Snapshot {
                tree: collected.tree,
                changes: collected.changes,
                refused: collected.refused,
                undone: Vec::new(),
                agent_head,
                removed: false,
            }),
            None => Ok(Snapshot {
                tree: self.work.tree(),
                changes: Vec::new(),
                refused: Vec::new(),
                undone: Vec::new(),
                agent_head: None,
                removed: true,
            }),
        }
    }
}
