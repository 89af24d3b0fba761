//! Working in the user's own checkout (`--in-place`): the checked-out branch itself moves.
//!
//! The checkout must be clean at the start. While a proposal runs, its repository is in a
//! stranger's hands: configuration, hooks, HEAD and the checked-out branch are recorded before
//! ([`InPlace::begin`]) and put back after ([`InPlace::snapshot`]). What git obeys, and whatever has
//! to be so that git can work at all, is put back by hand before any git is run, so nothing the
//! proposer configured is ever used. The work tree is read and restored by the
//! engine's own walk; ignored files of the user's stay.
//!
//! Two things hold throughout. Whatever is cleared away or put back was stored before, on the
//! run's keep-alive chain, and is named. And every reference moves by compare-and-swap: what
//! somebody else did meanwhile ends the run's work here instead of being undone.

mod checkout;
mod commit;
mod guard;
pub(crate) mod locks;
mod mender;
mod modes;
mod outside;
mod packed;
mod recovery;
mod references;
mod saved;
mod shape;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::adopt::refuse_unready;
use crate::error::{GitError, Refusal};
use crate::plain;
use crate::proposer::{AgentHead, Snapshot};
use crate::store::ObjectStore;
use crate::types::{Oid, RepoPath};
use crate::user::UserRepository;
use crate::worktree::{RefusedPath, WorkTree};
use checkout::{Checkout, Unstorable, index_stamp};
use guard::Guard;
use mender::Mender;
use outside::Outside;
use references::References;
use saved::Note;
use shape::Shape;

pub use commit::InPlaceCommit;
pub use recovery::Interrupted;

/// What a merge, rebase or the like leaves in a git directory.
const LEFTOVERS: &[&str] = &[
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

/// Who works in a checkout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The run, on whose keep-alive chain things are kept.
    pub run: String,
    /// Its loop, for people.
    pub loop_name: String,
}

/// Which settings of the user's from outside of the repository a run goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserSettings {
    /// Those that stand now: a person has started it.
    AsTheyAre,
    /// Those that it was started with, where that is known: it goes on with what was begun.
    AsHeld,
}

/// The user's checkout as the place of proposals.
#[derive(Debug)]
pub struct InPlace {
    state_dir: PathBuf,
    checkout: Checkout,
    guard: Guard,
    outside: Outside,
    settings_changed: Option<PathBuf>,
    references: References,
    shape: Shape,
    /// A note says that the checkout is in the middle of something.
    is_noted: bool,
}

impl InPlace {
    /// Takes over a clean checkout for a run. `state_dir` is a place of ours for small files;
    /// after an interrupted proposal [`recover`](Self::recover) comes first.
    pub fn open(
        state_dir: &Path,
        owner: Owner,
        user: &UserRepository,
        store: &mut ObjectStore,
        settings: UserSettings,
    ) -> Result<Self, GitError> {
        refuse_unready(user)?;
        if user.sparse {
            return Err(Refusal::SparseInPlace.into());
        }
        let dirty = user.dirty()?;
        if !dirty.is_clean() {
            let paths = dirty.modified.into_iter().chain(dirty.untracked);
            return Err(Refusal::Dirty(paths.collect()).into());
        }
        let Some(branch) = &user.branch else {
            return Err(Refusal::Detached.into());
        };
        let reference = format!("refs/heads/{branch}");
        store.import_base(user, &user.head)?;
        let excludes = excludes_of(state_dir, user)?;
        let tree = store.read_commit(&user.head)?.tree;
        let listing = store.checkout_listing(&tree)?;
        let mut work = WorkTree::new(&user.top, store.format(), tree, &excludes);
        work.take_over(store, tree, &listing, &asides(state_dir, user))?;
        let mut mender = mender_of(state_dir, user);
        let now = Outside::record(user, &listing, &mut mender)?;
        let (outside, settings_changed) = now.held(state_dir, settings)?;
        Ok(Self {
            guard: Guard::record(user, &listing, &mut mender)?,
            outside,
            settings_changed,
            references: References::record(user, &reference)?,
            shape: Shape::record(user, &mut mender)?,
            state_dir: state_dir.to_path_buf(),
            checkout: Checkout {
                user: user.clone(),
                work,
                reference,
                at: user.head,
                index: index_stamp(user),
                owner,
            },
            is_noted: false,
        })
    }

    /// The top of the checkout.
    pub fn top(&self) -> &Path {
        &self.checkout.user.top
    }

    /// The commit it stands at by the loop's doing.
    pub fn at(&self) -> Oid {
        self.checkout.at
    }

    /// A file of settings outside of the repository that is not what it was when a run in a checkout
    /// of this repository was started last.
    pub fn settings_changed(&self) -> Option<&Path> {
        self.settings_changed.as_deref()
    }

    /// Brings the checkout to a commit of the loop's and hands it to a proposal: from here on it is
    /// in a stranger's hands. Says what had to be undone for that.
    pub fn begin(
        &mut self,
        store: &mut ObjectStore,
        commit: &Oid,
    ) -> Result<Vec<RefusedPath>, GitError> {
        let mut undone = self.make_ready(store)?;
        if self.checkout.at != *commit {
            let (user, reference) = (&self.checkout.user, &self.checkout.reference);
            let from = Some(self.checkout.at);
            references::move_reference(user, reference, Some(*commit), from)?;
            self.checkout.at = *commit;
        }
        self.checkout.bring_back(store)?;
        let user = &self.checkout.user;
        let mut mender = mender_of(&self.state_dir, user);
        self.guard = Guard::record(user, self.checkout.listing(), &mut mender)?;
        self.references = References::record(user, &self.checkout.reference)?;
        self.shape = Shape::record(user, &mut mender)?;
        self.note(None)?;
        undone.extend(self.checkout.work.told_aside());
        Ok(undone)
    }

    /// What has to hold before anything is written: the checkout is where the loop left it, idle,
    /// with settings as they were; what somebody left in it since is saved.
    fn make_ready(&mut self, store: &mut ObjectStore) -> Result<Vec<RefusedPath>, GitError> {
        let mut undone = self.put_settings_back()?;
        self.checkout.expect_unmoved()?;
        refuse_unready(&self.checkout.user)?;
        let strays = self.checkout.save_strays(store, None, Unstorable::Refuse)?;
        undone.extend(strays);
        Ok(undone)
    }

    fn put_settings_back(&mut self) -> Result<Vec<RefusedPath>, GitError> {
        let mender = mender_of(&self.state_dir, &self.checkout.user);
        put_settings_back(&self.shape, &self.guard, &self.state_dir, mender)
    }

    /// Notes that a proposal is made, or a tree committed, and with which message.
    fn note(&mut self, committing: Option<(Oid, &str)>) -> Result<(), GitError> {
        let git_dir = self.checkout.user.git_dir.as_os_str();
        Note {
            git_dir: saved::to_hex(git_dir.as_encoded_bytes()),
            reference: self.checkout.reference.clone(),
            commit: self.checkout.at,
            tree: committing.map(|(tree, _)| tree),
            message: committing.map(|(_, message)| message.to_owned()),
            owner: self.checkout.owner.clone(),
            guard: self.guard.save(),
            shape: self.shape.clone(),
        }
        .write(&self.state_dir)?;
        self.is_noted = true;
        Ok(())
    }

    fn close_note(&mut self) -> Result<(), GitError> {
        Note::remove(&self.state_dir)?;
        self.is_noted = false;
        Ok(())
    }

    /// Stores what the proposer left, after putting back what it did to the repository itself, and
    /// brings the checkout back to the incumbent.
    ///
    /// What was put back is in `undone`. Nothing of the proposer's may be running any more.
    pub fn snapshot(&mut self, store: &mut ObjectStore) -> Result<Snapshot, GitError> {
        let (mut undone, agent_head) = self.take_back(store)?;
        let Some(collected) = self.checkout.work.collect(store, false)? else {
            return Ok(Snapshot {
                tree: self.checkout.work.tree(),
                changes: Vec::new(),
                refused: Vec::new(),
                undone,
                agent_head,
                removed: true,
            });
        };
        self.checkout.bring_back(store)?;
        undone.extend(self.checkout.work.told_aside());
        self.close_note()?;
        Ok(Snapshot {
            tree: collected.tree,
            changes: collected.changes,
            refused: collected.refused,
            undone,
            agent_head,
            removed: false,
        })
    }

    /// Takes the repository back from a proposal: settings, HEAD, references.
    fn take_back(
        &mut self,
        store: &mut ObjectStore,
    ) -> Result<(Vec<RefusedPath>, Option<AgentHead>), GitError> {
        let mut undone = self.put_settings_back()?;
        let (user, reference) = (&self.checkout.user, &self.checkout.reference);
        let mut mender = mender_of(&self.state_dir, user);
        locks::clear(user, reference, &self.shape, store.dir(), &mut mender)?;
        clear_leftovers(user, &mut mender)?;
        undone.extend(mender.said());
        let agent_head = self.agent_head()?;
        let checkout = &self.checkout;
        let mut keep = |commit| checkout.keep_commit(store, commit);
        if let Some(head) = agent_head.as_ref().filter(|head| head.branch.is_none()) {
            let kept = keep(head.oid)?;
            let words = format!("it was on no branch, at {}{kept}", head.oid);
            undone.push(self::undone(b"HEAD", &words));
        }
        undone.extend(self.references.put_back(&checkout.user, &mut keep)?);
        Ok((undone, agent_head))
    }

    fn agent_head(&self) -> Result<Option<AgentHead>, GitError> {
        let git = self.checkout.user.hermetic();
        let Some(oid) = git.resolve("HEAD^{commit}")? else {
            return Ok(None);
        };
        if oid == self.checkout.at {
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

    /// Leaves the checkout at the incumbent: a proposal that was stopped is undone, what it had
    /// done so far is saved. Where nothing is under way, nothing but settings is touched.
    pub fn close(&mut self, store: &mut ObjectStore) -> Result<Vec<RefusedPath>, GitError> {
        let mut undone = if self.is_noted {
            let (mut undone, _) = self.take_back(store)?;
            let strays = self
                .checkout
                .save_strays(store, None, Unstorable::MoveAside)?;
            undone.extend(strays);
            self.checkout.bring_back(store)?;
            self.close_note()?;
            undone
        } else {
            self.put_settings_back()?
        };
        undone.extend(self.checkout.work.told_aside());
        Ok(undone)
    }
}

/// Where goes what has to give way and can't be stored.
fn asides(state_dir: &Path, user: &UserRepository) -> [PathBuf; 2] {
    asides_in(state_dir, &user.common_dir)
}

fn asides_in(state_dir: &Path, common_dir: &Path) -> [PathBuf; 2] {
    // The store may be on another file system.
    [state_dir.join("aside"), common_dir.join("loopwright-aside")]
}

fn mender_of(state_dir: &Path, user: &UserRepository) -> Mender {
    let mut anchors = vec![guard::real(&user.top)];
    anchors.extend(shape::git_directories(user));
    Mender::new(anchors, &asides(state_dir, user))
}

/// The git directory as it has to be for git to work in it, then what git obeys. Runs no git.
fn put_settings_back(
    shape: &Shape,
    guard: &Guard,
    state_dir: &Path,
    mut mender: Mender,
) -> Result<Vec<RefusedPath>, GitError> {
    let store = state_dir.parent().unwrap_or(state_dir);
    let mut undone = shape.open_up(store)?;
    shape.mend(&mut mender)?;
    guard.put_back(&mut mender)?;
    undone.extend(mender.said());
    Ok(undone)
}

/// Writes down what the user ignores outside of the tree.
fn excludes_of(state_dir: &Path, user: &UserRepository) -> Result<PathBuf, GitError> {
    std::fs::create_dir_all(state_dir).map_err(GitError::io("make directory", state_dir))?;
    let excludes = state_dir.join("exclude");
    plain::write(&excludes, &user.excludes()).map_err(plain::failed("write", &excludes))?;
    Ok(excludes)
}

/// Takes away what an operation that came to no end left.
fn clear_leftovers(user: &UserRepository, mender: &mut Mender) -> Result<(), GitError> {
    let git_directories = shape::git_directories(user);
    let git_dir = git_directories.last().unwrap_or(&user.git_dir);
    for path in LEFTOVERS.iter().map(|name| git_dir.join(name)) {
        // Usually there is nothing.
        if mender.look(&path)?.is_some() {
            let moved = mender.take_away(&path)?;
            mender.say(&path, &format!("it was ended{moved}"));
        }
    }
    Ok(())
}

/// Words for something the proposer did to the repository that was undone.
fn undone(what: &[u8], why: &str) -> RefusedPath {
    RefusedPath {
        path: RepoPath::new(what),
        why: why.to_owned(),
    }
}
