//! The user's checkout itself: where it stands, what is in it that nobody has recorded, and bringing
//! it to a tree.
//!
//! Nothing is cleared away that was not stored before: [`Checkout::save_strays`] hangs it on the
//! run's keep-alive chain. What can't be stored is moved aside, or stops the run.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Owner, undone};
use crate::error::{GitError, MovedInPlace, Refusal};
use crate::git::Git;
use crate::store::{CommitSpec, ObjectStore, Person};
use crate::types::{Oid, TreeListing};
use crate::user::UserRepository;
use crate::worktree::{RefusedPath, Stamp, WorkTree};

/// Below which commits are kept that our store can't hold.
const PUT_BACK: &str = "refs/loopwright/put-back/";

/// What becomes of strays that can't be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unstorable {
    /// They stop the run: nobody but the user can have left them.
    Refuse,
    /// They are moved aside: a proposal may have left them.
    MoveAside,
}

/// The user's checkout.
#[derive(Debug)]
pub(super) struct Checkout {
    pub(super) user: UserRepository,
    pub(super) work: WorkTree,
    /// The branch that is the loop's to move.
    pub(super) reference: String,
    /// The commit it was left at.
    pub(super) at: Oid,
    /// The index as we left it; another one may hold anything.
    pub(super) index: Option<Stamp>,
    pub(super) owner: Owner,
}

impl Checkout {
    pub(super) fn listing(&self) -> &TreeListing {
        self.work.listing()
    }

    /// Refuses unless HEAD is the branch, and the branch is where it was left.
    pub(super) fn expect_unmoved(&self) -> Result<(), GitError> {
        let position = Position::of(&self.user)?;
        if position.is(&self.reference, &self.at) {
            return Ok(());
        }
        Err(position.moved(&self.user.top, &self.reference, self.at))
    }

    /// Stores whatever the checkout holds that the tree it was brought to does not, and says where
    /// that is. `known` is a tree that is stored already. Ignored files are none of it.
    pub(super) fn save_strays(
        &mut self,
        store: &mut ObjectStore,
        known: Option<Oid>,
        unstorable: Unstorable,
    ) -> Result<Vec<RefusedPath>, GitError> {
        let Some(collected) = self.work.collect(store, false)? else {
            return Err(Refusal::NotARepository(self.user.top.clone()).into());
        };
        if unstorable == Unstorable::Refuse && !collected.refused.is_empty() {
            let paths = collected.refused.into_iter().map(|refused| refused.path);
            return Err(Refusal::CantBeSaved(paths.collect()).into());
        }
        if collected.tree == self.work.tree() || Some(collected.tree) == known {
            return Ok(Vec::new());
        }
        let message = format!(
            "what stood in the checkout of loop {}\n",
            self.owner.loop_name
        );
        let commit = self.keep(store, collected.tree, &message)?;
        let paths = collected.changes.len();
        let why = format!(
            "{paths} changed or new files that no trial made were saved as commit {commit} and \
             cleared away; to see them: git --git-dir={} show {commit}",
            store.dir().display()
        );
        Ok(vec![undone(self.user.top.as_os_str().as_bytes(), &why)])
    }

    /// Keeps a commit alive that is to be taken off its branch: it may be the user's as well as the
    /// proposal's. Says how to have it, to be put behind its id; nothing where it is the loop's.
    pub(super) fn keep_commit(
        &self,
        store: &mut ObjectStore,
        commit: Oid,
    ) -> Result<String, GitError> {
        let git = self.user.hermetic();
        let (hex, at) = (commit.to_hex(), self.at.to_hex());
        let is_old = git.output(["merge-base", "--is-ancestor", &hex, &at], b"")?;
        if is_old.status.success() {
            return Ok(String::new());
        }
        let place = store.dir().display().to_string();
        let later = |kept: &Oid| {
            format!(
                "to have it: git branch NAME {hex} (or, once git has collected it there: \
                 git fetch {place} {kept}:NAME)"
            )
        };
        match store.import_new(&git, &commit, &self.at) {
            Ok(()) => {
                self.link(store, commit)?;
                return Ok(format!(", which is kept; {}", later(&commit)));
            }
            // It stands on what our store has not, or git takes something in it for harmful.
            Err(GitError::Command { .. } | GitError::ObjectsRefused { .. }) => {}
            Err(error) => return Err(error),
        }
        match self.keep_content(store, &git, &hex) {
            Ok(kept) => Ok(format!(
                ", whose content is kept as {kept}; {}",
                later(&kept)
            )),
            Err(GitError::Command { .. } | GitError::ObjectsRefused { .. }) => {
                let name = format!("{PUT_BACK}{hex}");
                git.run(["update-ref", &name, &hex])?;
                Ok(format!(
                    ", which is kept as {name}; to have it: git branch NAME {hex}"
                ))
            }
            Err(error) => Err(error),
        }
    }

    /// A commit of ours with what somebody's holds.
    fn keep_content(&self, store: &mut ObjectStore, git: &Git, hex: &str) -> Result<Oid, GitError> {
        let tree = git.resolve(&format!("{hex}^{{tree}}"))?;
        let tree = tree.ok_or_else(|| GitError::unexpected("a commit without a tree"))?;
        let known = store.read_commit(&self.at)?.tree;
        store.import_new(git, &tree, &known)?;
        let words = git.text(["log", "-1", "--format=%B", hex])?;
        self.keep(store, tree, &format!("{words}\n\nThis was commit {hex}\n"))
    }

    /// A commit of a tree on the run's keep-alive chain.
    fn keep(&self, store: &mut ObjectStore, tree: Oid, message: &str) -> Result<Oid, GitError> {
        let commit = store.commit(&CommitSpec {
            tree,
            parents: &[self.at],
            author: &Person::loopwright(),
            time_s: now_s(),
            message,
        })?;
        self.link(store, commit)?;
        Ok(commit)
    }

    /// Hangs a commit on that chain.
    fn link(&self, store: &mut ObjectStore, commit: Oid) -> Result<(), GitError> {
        let run = &self.owner.run;
        let previous = store.chain_head(run)?;
        store.append_to_chain(run, previous, commit, now_s())?;
        Ok(())
    }

    /// Work tree and index at a tree; HEAD stays. What is not stored and has to give way is moved aside.
    pub(super) fn bring_to(&mut self, store: &mut ObjectStore, tree: Oid) -> Result<(), GitError> {
        let listing = store.checkout_listing(&tree)?;
        let redrawn = self.work.bring(store, tree, &listing)?;
        if redrawn || self.index != index_stamp(&self.user) {
            // Git takes a file whose size differs from the index's for changed, unread; and an index
            // that others wrote may be damaged, or hide changes.
            let _ = std::fs::remove_file(self.user.git_dir.join("index"));
        }
        let git = self.user.hermetic().with_work_tree(&self.user.top);
        git.run(["read-tree", "--reset", &tree.to_hex()])?;
        git.output(["update-index", "-q", "--refresh"], b"")?;
        self.index = index_stamp(&self.user);
        Ok(())
    }

    /// The same for the commit it was left at.
    pub(super) fn bring_back(&mut self, store: &mut ObjectStore) -> Result<(), GitError> {
        let tree = store.read_commit(&self.at)?.tree;
        self.bring_to(store, tree)
    }
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().cast_signed())
}

pub(super) fn index_stamp(user: &UserRepository) -> Option<Stamp> {
    let index = user.git_dir.join("index");
    let stat = rustix::fs::lstat(&index).ok()?;
    Some(Stamp::of(&stat))
}

/// Where HEAD stands.
#[derive(Debug)]
pub(super) struct Position {
    /// The branch; empty where HEAD is detached.
    pub(super) reference: String,
    pub(super) commit: Option<Oid>,
}

impl Position {
    pub(super) fn of(user: &UserRepository) -> Result<Self, GitError> {
        let git = user.hermetic();
        let symbolic = git.output(["symbolic-ref", "--quiet", "HEAD"], b"")?;
        Ok(Self {
            reference: String::from_utf8_lossy(&symbolic.stdout).trim().to_owned(),
            commit: git.resolve("HEAD^{commit}")?,
        })
    }

    pub(super) fn is(&self, reference: &str, commit: &Oid) -> bool {
        self.reference == reference && self.commit == Some(*commit)
    }

    /// The refusal of a checkout that is not where it was left.
    pub(super) fn moved(&self, top: &Path, reference: &str, expected: Oid) -> GitError {
        let commit = self
            .commit
            .map_or_else(|| "no commit".to_owned(), |commit| commit.to_hex());
        let on = if self.reference.is_empty() {
            "no branch"
        } else {
            short(&self.reference)
        };
        Refusal::MovedInPlace(Box::new(MovedInPlace {
            top: top.to_path_buf(),
            branch: short(reference).to_owned(),
            expected,
            found: format!("{on}, {commit}"),
            commit,
        }))
        .into()
    }
}

fn short(reference: &str) -> &str {
    reference.strip_prefix("refs/heads/").unwrap_or(reference)
}
