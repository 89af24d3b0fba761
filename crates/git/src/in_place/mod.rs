//! Working in the user's own checkout (`--in-place`): the checked-out branch itself moves.
//!
//! The checkout must be clean at the start. While a proposal runs, its repository is in a
//! stranger's hands: configuration, hooks, references and HEAD are recorded before
//! ([`InPlace::begin`]) and put back after ([`InPlace::snapshot`]) before any git is run, so
//! nothing the proposer configured is ever used. The work tree is read and restored by the
//! engine's own walk; ignored files of the user's stay.

mod guard;
mod references;
mod saved;
mod shape;

use std::path::{Path, PathBuf};

use crate::adopt::{Obstacle, obstacle, refuse_unready};
use crate::branch::{sync_fan_outs, sync_reference};
use crate::error::{GitError, Refusal};
use crate::git::words;
use crate::proposer::{AgentHead, Snapshot};
use crate::store::ObjectStore;
use crate::types::{Oid, RepoPath};
use crate::user::UserRepository;
use crate::worktree::{Extras, RefusedPath, Stamp, WorkTree};
use guard::Guard;
use references::References;
use saved::Note;
use shape::Shape;

/// What a merge, rebase or the like leaves in a git directory, and locks of a git that died.
const LEFTOVERS: &[&str] = &[
    "index.lock",
    "HEAD.lock",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "BISECT_START",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];

/// The user's checkout as the place of proposals.
#[derive(Debug)]
pub struct InPlace {
    state_dir: PathBuf,
    user: UserRepository,
    work: WorkTree,
    reference: String,
    guard: Guard,
    references: References,
    shape: Shape,
    /// The index as we left it; another one may hold anything.
    index: Option<Stamp>,
}

/// How committing in the user's checkout went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InPlaceCommit {
    /// The branch holds exactly what was measured.
    Committed {
        /// The new commit.
        commit: Oid,
    },
    /// A hook of the user's changed the content; what was committed was not measured.
    Rewritten {
        /// The new commit.
        commit: Oid,
        /// Its tree.
        tree: Oid,
    },
    /// No commit was made; the checkout holds the candidate until it is restored.
    Refused(Obstacle),
}

impl InPlace {
    /// Puts configuration, hooks, HEAD and the checked-out branch back if a proposal was
    /// interrupted (the engine died), and says what had been changed. To be called before the
    /// repository is discovered. `None`: nothing was interrupted.
    pub fn recover(state_dir: &Path) -> Result<Option<Vec<RefusedPath>>, GitError> {
        saved::recover(state_dir)
    }

    /// Takes over a clean checkout. `state_dir` is a place of ours for small files.
    ///
    /// After an interrupted proposal the checkout need not be clean: what the proposal left in
    /// it is cleared away first. Ignored files stay.
    pub fn open(
        state_dir: &Path,
        user: &UserRepository,
        store: &mut ObjectStore,
    ) -> Result<Self, GitError> {
        let mut user = user.clone();
        if saved::recover(state_dir)?.is_some() {
            user = user.discover_again()?;
        }
        refuse_unready(&user)?;
        if user.sparse {
            return Err(Refusal::SparseInPlace.into());
        }
        std::fs::create_dir_all(state_dir).map_err(GitError::io("make directory", state_dir))?;
        let excludes = state_dir.join("exclude");
        std::fs::write(&excludes, user.excludes()).map_err(GitError::io("write", &excludes))?;
        if saved::is_interrupted(state_dir) {
            clear_checkout(&user, &excludes)?;
            Note::remove(state_dir)?;
        }
        let dirty = user.dirty()?;
        if !dirty.is_clean() {
            let paths = dirty.modified.into_iter().chain(dirty.untracked);
            return Err(Refusal::Dirty(paths.collect()).into());
        }
        let Some(branch) = &user.branch else {
            return Err(Refusal::Detached.into());
        };
        store.import_base(&user, &user.head)?;
        let tree = store.read_commit(&user.head)?.tree;
        let listing = store.checkout_listing(&tree)?;
        let mut work = WorkTree::new(&user.top, store.format(), tree, &excludes);
        work.take_over(store, tree, &listing)?;
        Ok(Self {
            reference: format!("refs/heads/{branch}"),
            guard: Guard::record(&user, &listing)?,
            references: References::record(&user)?,
            shape: Shape::record(&user)?,
            index: index_stamp(&user),
            state_dir: state_dir.to_path_buf(),
            user,
            work,
        })
    }

    /// Records configuration, hooks and references: a proposal is about to start.
    pub fn begin(&mut self) -> Result<(), GitError> {
        self.guard = Guard::record(&self.user, self.work.listing())?;
        self.record()?;
        let commit = self.incumbent()?;
        Note {
            git_dir: saved::to_hex(self.user.git_dir.as_os_str().as_encoded_bytes()),
            reference: self.reference.clone(),
            commit,
            guard: self.guard.save(),
            shape: self.shape.clone(),
        }
        .write(&self.state_dir)
    }

    fn incumbent(&self) -> Result<Oid, GitError> {
        let found = self.references.get(&self.reference);
        found.ok_or_else(|| Refusal::NoCommits(self.user.top.clone()).into())
    }

    /// Stores what the proposer left, after putting back what it did to the repository itself.
    ///
    /// What was put back is in `undone`. Nothing of the proposer's may be running any more.
    pub fn snapshot(&mut self, store: &mut ObjectStore) -> Result<Snapshot, GitError> {
        self.take(store, false)
    }

    /// The same without believing any stamp.
    pub fn full_snapshot(&mut self, store: &mut ObjectStore) -> Result<Snapshot, GitError> {
        self.take(store, true)
    }

    fn take(&mut self, store: &mut ObjectStore, full: bool) -> Result<Snapshot, GitError> {
        let mut undone = self.shape.mend()?;
        undone.extend(self.guard.put_back()?);
        remove_leftovers(&self.user.git_dir);
        let agent_head = self.agent_head()?;
        undone.extend(self.references.put_back(&self.user)?);
        let collected = self.work.collect(store, full)?;
        let Some(collected) = collected else {
            return Ok(Snapshot {
                tree: self.work.tree(),
                changes: Vec::new(),
                refused: Vec::new(),
                undone,
                agent_head,
                removed: true,
            });
        };
        Ok(Snapshot {
            tree: collected.tree,
            changes: collected.changes,
            refused: collected.refused,
            undone,
            agent_head,
            removed: false,
        })
    }

    fn agent_head(&self) -> Result<Option<AgentHead>, GitError> {
        let git = self.user.hermetic();
        let Some(oid) = git.resolve("HEAD^{commit}")? else {
            return Ok(None);
        };
        if self.references.get(&self.reference) == Some(oid) {
            return Ok(None);
        }
        let branch = git.output(["symbolic-ref", "--quiet", "--short", "HEAD"], b"")?;
        let branch = String::from_utf8_lossy(&branch.stdout).trim().to_owned();
        let message = git.text(["log", "-1", "--format=%B", &oid.to_hex()])?;
        Ok(Some(AgentHead {
            oid,
            branch: (!branch.is_empty()).then_some(branch),
            message: Some(message),
        }))
    }

    /// Brings checkout, index and branch to a commit that the user's repository has.
    pub fn restore(&mut self, store: &mut ObjectStore, commit: &Oid) -> Result<(), GitError> {
        self.shape.mend()?;
        self.guard.put_back()?;
        remove_leftovers(&self.user.git_dir);
        let git = self.user.hermetic();
        references::point_head(&self.user.git_dir, &self.reference)?;
        git.run(["update-ref", &self.reference, &commit.to_hex()])?;
        let tree = store.read_commit(commit)?.tree;
        self.bring_to(store, tree)?;
        self.record()?;
        Note::remove(&self.state_dir)
    }

    /// Notes how references and the rest of the git directory are now.
    fn record(&mut self) -> Result<(), GitError> {
        self.references = References::record(&self.user)?;
        self.shape = Shape::record(&self.user)?;
        self.index = index_stamp(&self.user);
        Ok(())
    }

    /// Work tree and index at a tree; HEAD stays.
    fn bring_to(&mut self, store: &mut ObjectStore, tree: Oid) -> Result<(), GitError> {
        let listing = store.checkout_listing(&tree)?;
        let redrawn = self
            .work
            .restore(store, tree, &listing, Extras::KeepIgnored)?;
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

    /// Commits a candidate on the checked-out branch with the user's hooks and signing.
    ///
    /// After anything but `Committed`, [`restore`](Self::restore) brings the incumbent back.
    pub fn commit(
        &mut self,
        store: &mut ObjectStore,
        tree: &Oid,
        message: &str,
    ) -> Result<InPlaceCommit, GitError> {
        self.guard.put_back()?;
        let head = self.incumbent()?;
        let before = store.read_commit(&head)?.tree;
        if let Some(path) = self.touches_what_git_obeys(store, &before, tree)? {
            return Ok(InPlaceCommit::Refused(Obstacle::Failed(format!(
                "the proposal changes {path}, which git itself would run or obey while committing"
            ))));
        }
        let listed = store.list_trees(&[*tree])?;
        store.copy_out(&listed, &self.user.hermetic())?;
        self.bring_to(store, *tree)?;
        let git = self.user.as_user().syncing();
        let git = git.with_variable("GIT_EDITOR", "true");
        let arguments = ["commit", "--quiet", "--allow-empty", "-F", "-"];
        let output = git.output(arguments, message.as_bytes())?;
        if !output.status.success() {
            return Ok(InPlaceCommit::Refused(obstacle(&words(&output))));
        }
        self.committed(store, &head, tree)
    }

    fn committed(
        &mut self,
        store: &mut ObjectStore,
        parent: &Oid,
        expected: &Oid,
    ) -> Result<InPlaceCommit, GitError> {
        let git = self.user.hermetic();
        let missing = || GitError::unexpected("the commit made just now can't be found");
        let commit = git.resolve("HEAD^{commit}")?.ok_or_else(missing)?;
        let tree = git.resolve("HEAD^{tree}")?.ok_or_else(missing)?;
        store.import_new(&git, &commit, parent)?;
        let listed = store.list_objects(&commit, parent)?;
        sync_fan_outs(&self.user.common_dir, &listed)?;
        sync_reference(&self.user.common_dir, &self.reference)?;
        self.record()?;
        if tree != *expected {
            return Ok(InPlaceCommit::Rewritten { commit, tree });
        }
        Note::remove(&self.state_dir)?;
        Ok(InPlaceCommit::Committed { commit })
    }

    /// A changed path that is a hook or a configuration file in use.
    fn touches_what_git_obeys(
        &self,
        store: &mut ObjectStore,
        before: &Oid,
        after: &Oid,
    ) -> Result<Option<RepoPath>, GitError> {
        let changes = store.diff(before, after)?;
        Ok(changes
            .into_iter()
            .map(|change| change.path)
            .find(|path| self.guard.obeys(path)))
    }
}

fn index_stamp(user: &UserRepository) -> Option<Stamp> {
    let index = user.git_dir.join("index");
    let stat = rustix::fs::lstat(&index).ok()?;
    Some(Stamp::of(&stat))
}

fn remove_leftovers(git_dir: &Path) {
    for name in LEFTOVERS {
        let path = git_dir.join(name);
        // Whatever it is; usually there is nothing.
        if std::fs::remove_file(&path).is_err() {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Removes what an interrupted proposal left in the checkout, by git itself; ignored files stay.
fn clear_checkout(user: &UserRepository, excludes: &Path) -> Result<(), GitError> {
    let git = user.hermetic().with_work_tree(&user.top);
    let git = git.with_setting(format!("core.excludesFile={}", excludes.display()));
    git.run(["read-tree", "--reset", "-u", "HEAD"])?;
    git.run(["clean", "-q", "-d", "-f", "-f"])?;
    Ok(())
}

/// Words for something the proposer did to the repository that was undone.
fn undone(what: &[u8], why: &str) -> RefusedPath {
    RefusedPath {
        path: RepoPath::new(what),
        why: why.to_owned(),
    }
}
