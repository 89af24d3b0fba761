//! Putting a checkout right after a process died in the middle of a proposal or a commit in it.
//!
//! Between that death and now the user may have worked there. So only the checkout that the note
//! names is touched; a branch that moved is left where it is, unless it holds exactly the commit
//! that was being made; and what the checkout holds is stored before it is cleared away.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::checkout::{Checkout, Position, Unstorable};
use super::guard::{Guard, PutBack};
use super::saved::{self, Note};
use super::shape::Shape;
use super::{InPlace, Owner, aside_of, excludes_of, references, undone};
use crate::adopt::refuse_unready;
use crate::error::{GitError, Refusal};
use crate::store::ObjectStore;
use crate::types::Oid;
use crate::user::UserRepository;
use crate::worktree::{RefusedPath, WorkTree};

/// What is known of an interrupted proposal.
#[derive(Debug, Clone)]
pub struct Interrupted {
    /// The checkout.
    pub top: PathBuf,
    /// Whose it was.
    pub owner: Owner,
}

impl InPlace {
    /// The proposal that was interrupted in some checkout of this repository, if there is one.
    pub fn interrupted(state_dir: &Path) -> Result<Option<Interrupted>, GitError> {
        let Some(note) = Note::read(state_dir)? else {
            return Ok(None);
        };
        let guard = Guard::load(&note.guard).ok_or_else(|| saved::unreadable(state_dir))?;
        Ok(Some(Interrupted {
            top: guard.top().to_path_buf(),
            owner: note.owner,
        }))
    }

    /// Makes the git directory that an interrupted proposal left one in which git can be run, and
    /// says what that took; [`recover`](Self::recover) does the rest. To be called while nobody
    /// works in that checkout. `None`: nothing was interrupted.
    pub fn make_workable(state_dir: &Path) -> Result<Option<Vec<RefusedPath>>, GitError> {
        let Some(note) = Note::read(state_dir)? else {
            return Ok(None);
        };
        let unreadable = || saved::unreadable(state_dir);
        let git_dir = saved::path_from(&note.git_dir).ok_or_else(unreadable)?;
        let guard = Guard::load(&note.guard).ok_or_else(unreadable)?;
        let mut undone_here = note.shape.mend()?;
        undone_here.extend(guard.put_missing()?);
        head_back(&git_dir, &note.reference)?;
        Ok(Some(undone_here))
    }

    /// Puts a checkout right in which a proposal or a commit was interrupted; says what was done.
    /// `None`: nothing was interrupted.
    ///
    /// To be called while nothing of that proposal runs any more, before the repository is used
    /// under the user's configuration, for the run `owner` that is to work here now.
    pub fn recover(
        state_dir: &Path,
        owner: &Owner,
        user: &UserRepository,
        store: &mut ObjectStore,
    ) -> Result<Option<Vec<RefusedPath>>, GitError> {
        let Some(note) = Note::read(state_dir)? else {
            return Ok(None);
        };
        let unreadable = || saved::unreadable(state_dir);
        let git_dir = saved::path_from(&note.git_dir).ok_or_else(unreadable)?;
        let guard = Guard::load(&note.guard).ok_or_else(unreadable)?;
        let is_here = git_dir == user.git_dir && guard.top() == user.top;
        if !is_here && git_dir.join("HEAD").exists() {
            return Err(Refusal::InterruptedElsewhere {
                top: guard.top().to_path_buf(),
                loop_name: note.owner.loop_name,
            }
            .into());
        }
        let recovery = Recovery {
            state_dir,
            owner,
            note,
        };
        if is_here {
            recovery.here(&guard, user, store).map(Some)
        } else {
            // That work tree was removed; what all work trees share is still as it was left.
            let top = guard.top().to_path_buf();
            let is_left = |path: &Path| !path.starts_with(&git_dir) && !path.starts_with(&top);
            let shape = recovery.note.shape.clone().only(is_left);
            let guard = guard.only(is_left);
            recovery
                .settings_only(&shape, &guard, user, store)
                .map(Some)
        }
    }
}

/// Makes a HEAD where none is: something that no git could read stood there.
fn head_back(git_dir: &Path, reference: &str) -> Result<(), GitError> {
    if fs::symlink_metadata(git_dir.join("HEAD")).is_ok() {
        return Ok(());
    }
    references::point_head(git_dir, reference)
}

struct Recovery<'a> {
    state_dir: &'a Path,
    owner: &'a Owner,
    note: Note,
}

impl Recovery<'_> {
    fn here(
        self,
        guard: &Guard,
        user: &UserRepository,
        store: &mut ObjectStore,
    ) -> Result<Vec<RefusedPath>, GitError> {
        let put_back = put_back(&self.note.shape, guard, store)?;
        head_back(&user.git_dir, &self.note.reference)?;
        let user = user.discover_again()?;
        store.import_base(&user, &self.note.commit)?;
        let Some(at) = self.position(&user, store)? else {
            return self.leave(put_back, &user, store);
        };
        refuse_unready(&user)?;
        remove_dead_locks(&user, &self.note.shape, store.dir());
        let mut checkout = self.checkout(user, store, at)?;
        checkout.save_replaced(store, &put_back.replaced)?;
        let mut undone_here = put_back.undone;
        let known = self.note.tree;
        undone_here.extend(checkout.save_strays(store, known, Unstorable::MoveAside)?);
        checkout.bring_back(store)?;
        undone_here.extend(checkout.work.told_aside());
        Note::remove(self.state_dir)?;
        Ok(undone_here)
    }

    /// The commit the checkout is to stand at; `None` where somebody moved it and another loop is
    /// to start from there.
    fn position(
        &self,
        user: &UserRepository,
        store: &mut ObjectStore,
    ) -> Result<Option<Oid>, GitError> {
        let note = &self.note;
        let position = Position::of(user)?;
        if position.is(&note.reference, &note.commit) {
            return Ok(Some(note.commit));
        }
        if position.reference == note.reference
            && let (Some(commit), Some(tree)) = (position.commit, note.tree)
        {
            // The commit that was being made, if it is on what it was made for.
            store.import_base(user, &commit)?;
            let facts = store.read_commit(&commit)?;
            if facts.tree == tree && facts.parents == [note.commit] {
                return Ok(Some(commit));
            }
        }
        if note.owner.run == self.owner.run {
            return Err(position.moved(&user.top, &note.reference, note.commit));
        }
        Ok(None)
    }

    /// Another loop starts from what is there, if that is a commit.
    fn leave(
        self,
        put_back: PutBack,
        user: &UserRepository,
        store: &mut ObjectStore,
    ) -> Result<Vec<RefusedPath>, GitError> {
        let mut checkout = self.checkout(user.clone(), store, self.note.commit)?;
        checkout.save_replaced(store, &put_back.replaced)?;
        let dirty = user.dirty()?;
        if !dirty.is_clean() {
            let paths = dirty.modified.into_iter().chain(dirty.untracked);
            return Err(Refusal::Dirty(paths.collect()).into());
        }
        let mut undone_here = put_back.undone;
        let (name, before) = (&self.note.owner.loop_name, self.note.commit);
        undone_here.push(undone(
            user.top.as_os_str().as_bytes(),
            &format!(
                "it stood at {before} before the interrupted proposal of loop {name}, and is left where it is now, at {}",
                user.head
            ),
        ));
        Note::remove(self.state_dir)?;
        Ok(undone_here)
    }

    fn settings_only(
        self,
        shape: &Shape,
        guard: &Guard,
        user: &UserRepository,
        store: &mut ObjectStore,
    ) -> Result<Vec<RefusedPath>, GitError> {
        let put_back = put_back(shape, guard, store)?;
        let user = user.discover_again()?;
        store.import_base(&user, &user.head)?;
        let head = user.head;
        let mut checkout = self.checkout(user, store, head)?;
        checkout.save_replaced(store, &put_back.replaced)?;
        Note::remove(self.state_dir)?;
        Ok(put_back.undone)
    }

    fn checkout(
        &self,
        user: UserRepository,
        store: &mut ObjectStore,
        at: Oid,
    ) -> Result<Checkout, GitError> {
        let excludes = excludes_of(self.state_dir, &user)?;
        let tree = store.read_commit(&at)?.tree;
        let listing = store.checkout_listing(&tree)?;
        let mut work = WorkTree::new(&user.top, store.format(), tree, &excludes);
        work.expect(store, tree, &listing, &aside_of(self.state_dir))?;
        Ok(Checkout {
            work,
            reference: self.note.reference.clone(),
            at,
            index: None,
            owner: self.owner.clone(),
            user,
        })
    }
}

/// The git directory as it has to be for git to work in it, then what git obeys.
fn put_back(shape: &Shape, guard: &Guard, store: &mut ObjectStore) -> Result<PutBack, GitError> {
    let mended = shape.mend()?;
    let mut put_back = guard.put_back(store)?;
    put_back.undone.splice(0..0, mended);
    Ok(put_back)
}

/// Removes locks of a git that was ended with its proposal. Where some git is at work in the
/// checkout they may be that one's, and git itself says so.
pub(super) fn remove_dead_locks(user: &UserRepository, shape: &Shape, store: &Path) {
    if is_git_at_work(user, store) {
        return;
    }
    let shared = ["config.lock", "packed-refs.lock"].map(|name| user.common_dir.join(name));
    let own = ["index.lock", "HEAD.lock"].map(|name| user.git_dir.join(name));
    for path in own.into_iter().chain(shared).chain(shape.locks()) {
        let _ = fs::remove_file(path);
    }
}

/// Whether a git works in the checkout; those that read our own store, which may lie in it, don't.
fn is_git_at_work(user: &UserRepository, store: &Path) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.map(|process| process.path()).any(|process| {
        let name = fs::read(process.join("comm")).unwrap_or_default();
        let is_here = fs::read_link(process.join("cwd")).is_ok_and(|at| {
            let inside = at.starts_with(&user.top) || at.starts_with(&user.common_dir);
            inside && !at.starts_with(store)
        });
        name.starts_with(b"git") && is_here
    })
}
