//! Putting a checkout right after a process died in the middle of a proposal or a commit in it.
//!
//! Between that death and now the user may have worked there. So only the checkout that the note
//! names is touched; a branch that moved is left where it is, unless it holds exactly the commit
//! that was being made; and what the checkout holds is stored before it is cleared away.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::checkout::{Checkout, Position, Unstorable};
use super::guard::Guard;
use super::mender::Mender;
use super::saved::{self, Note};
use super::shape::Shape;
use super::{
    InPlace, Owner, asides, asides_in, excludes_of, guard, locks, mender_of, put_settings_back,
    undone,
};
use crate::adopt::refuse_unready;
use crate::error::{GitError, Refusal};
use crate::store::ObjectStore;
use crate::types::Oid;
use crate::user::UserRepository;
use crate::worktree::{RefusedPath, WorkTree};

/// Longest HEAD.
const HEAD_BYTES_MAX: u64 = 4096;

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
        put_back(&note.shape, &guard, &git_dir, &note.reference, state_dir).map(Some)
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
            recovery.settings_only(&shape, &guard).map(Some)
        }
    }
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
        let note = &self.note;
        let mut undone_here = put_back(
            &note.shape,
            guard,
            &user.git_dir,
            &note.reference,
            self.state_dir,
        )?;
        let user = user.discover_again()?;
        store.import_base(&user, &self.note.commit)?;
        let Some(at) = self.position(&user, store)? else {
            return self.leave(undone_here, &user);
        };
        refuse_unready(&user)?;
        let mut mender = mender_of(self.state_dir, &user);
        let (reference, shape) = (&self.note.reference, &self.note.shape);
        locks::clear(&user, reference, shape, store.dir(), &mut mender)?;
        undone_here.extend(mender.said());
        let mut checkout = self.checkout(user, store, at)?;
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
            && let (Some(commit), Some(tree), Some(message)) =
                (position.commit, note.tree, &note.message)
        {
            // The commit that was being made, if it is on what it was made for and says so. The user
            // may have committed the very same files.
            store.import_base(user, &commit)?;
            let facts = store.read_commit(&commit)?;
            let holds_it = facts.tree == tree && facts.parents == [note.commit];
            if holds_it && facts.is_worded_as(message) {
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
        mut undone_here: Vec<RefusedPath>,
        user: &UserRepository,
    ) -> Result<Vec<RefusedPath>, GitError> {
        let dirty = user.dirty()?;
        if !dirty.is_clean() {
            let paths = dirty.modified.into_iter().chain(dirty.untracked);
            return Err(Refusal::Dirty(paths.collect()).into());
        }
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

    fn settings_only(self, shape: &Shape, guard: &Guard) -> Result<Vec<RefusedPath>, GitError> {
        let mender = mender_for(shape, guard.top(), self.state_dir)?;
        let undone_here = put_settings_back(shape, guard, self.state_dir, mender)?;
        Note::remove(self.state_dir)?;
        Ok(undone_here)
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
        work.expect(store, tree, &listing, &asides(self.state_dir, &user))?;
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

/// The git directory as it has to be for git to work in it, then what git obeys. Runs no git.
fn put_back(
    shape: &Shape,
    guard: &Guard,
    git_dir: &Path,
    reference: &str,
    state_dir: &Path,
) -> Result<Vec<RefusedPath>, GitError> {
    let mender = mender_for(shape, guard.top(), state_dir)?;
    let mut undone = put_settings_back(shape, guard, state_dir, mender)?;
    let mut mender = mender_for(shape, guard.top(), state_dir)?;
    head_back(git_dir, reference, &mut mender)?;
    undone.extend(mender.said());
    Ok(undone)
}

fn mender_for(shape: &Shape, top: &Path, state_dir: &Path) -> Result<Mender, GitError> {
    let directories = shape.directories()?;
    let above = directories.first().map_or(state_dir, PathBuf::as_path);
    let asides = asides_in(state_dir, above);
    let anchors = std::iter::once(top.to_path_buf()).chain(directories.iter().cloned());
    Ok(Mender::new(anchors.collect(), &asides))
}

/// Makes a HEAD that git can read where none is.
fn head_back(git_dir: &Path, reference: &str, mender: &mut Mender) -> Result<(), GitError> {
    let head = guard::real(git_dir).join("HEAD");
    let found = mender.read(&head, HEAD_BYTES_MAX)?;
    let is_head = found.is_some_and(|found| {
        let line = found.trim_ascii_end();
        line.starts_with(b"ref: refs/") || Oid::from_hex(line).is_some()
    });
    if !is_head {
        let moved = mender.write(&head, format!("ref: {reference}\n").as_bytes(), None)?;
        mender.say(&head, &format!("it was put back{moved}"));
    }
    Ok(())
}
