//! Committing a candidate in the user's checkout, with the user's hooks and signing.

use super::checkout::{Checkout, Position, Unstorable, index_stamp};
use super::outside::Outside;
use super::{InPlace, clear_leftovers, locks, mender_of, references};
use crate::adopt::{Obstacle, obstacle_of};
use crate::branch::{sync_fan_outs, sync_reference};
use crate::error::GitError;
use crate::store::ObjectStore;
use crate::types::{Oid, RepoPath};
use crate::user_commands::{UserCommands, UserEnd, UserRun};
use crate::worktree::RefusedPath;

/// How committing in the user's checkout went. After anything but `Committed` the checkout is back
/// at the incumbent.
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
    /// No commit was made.
    Refused(Obstacle),
    /// It was stopped on request before a commit was made.
    Stopped,
}

impl InPlace {
    /// Commits a candidate on the checked-out branch with the user's hooks and signing. Says, too,
    /// what was undone to be able to.
    pub fn commit(
        &mut self,
        store: &mut ObjectStore,
        tree: &Oid,
        message: &str,
        commands: &mut dyn UserCommands,
    ) -> Result<(InPlaceCommit, Vec<RefusedPath>), GitError> {
        let mut undone = self.make_ready(store)?;
        if let Some(why) = self.unfit(store, tree)? {
            let refused = InPlaceCommit::Refused(Obstacle::Failed(why));
            return Ok((refused, undone));
        }
        // What the branch holds already is not looked at again: it is the user's, however old.
        let before = store.read_commit(&self.checkout.at)?.tree;
        let listed = store.list_objects(tree, &before)?;
        match store.copy_out(&listed, &self.checkout.user.hermetic()) {
            Err(error @ GitError::ObjectsRefused { .. }) => {
                return Ok((InPlaceCommit::Refused(harmful(&error)), undone));
            }
            copied => copied?,
        }
        self.note(Some((*tree, message)))?;
        self.checkout.bring_to(store, *tree)?;
        let git = self.checkout.user.as_user().syncing();
        let git = git
            .with_variable("GIT_EDITOR", "true")
            .with_variable("GIT_NO_REPLACE_OBJECTS", "1");
        let arguments = ["commit", "--quiet", "--allow-empty", "-F", "-"];
        let run = commands.run(git.user_command(&arguments, message.as_bytes()))?;
        let commit = self.look_at(store, tree, message, run, &mut undone)?;
        undone.extend(self.checkout.work.told_aside());
        Ok((commit, undone))
    }

    /// Why git may not be let commit this; `None` if it may.
    fn unfit(&mut self, store: &mut ObjectStore, tree: &Oid) -> Result<Option<String>, GitError> {
        let before = store.read_commit(&self.checkout.at)?.tree;
        let changes = store.diff(&before, tree)?;
        let obeyed: Option<RepoPath> = changes
            .into_iter()
            .map(|change| change.path)
            .find(|path| self.guard.obeys(path));
        if let Some(path) = obeyed {
            return Ok(Some(format!(
                "the proposal changes {path}, which git itself would run or obey while committing"
            )));
        }
        let user = &self.checkout.user;
        let mut mender = mender_of(&self.state_dir, user);
        let now = Outside::record(user, self.checkout.listing(), &mut mender)?;
        Ok(self.outside.differs(&now).map(|file| {
            format!(
                "{} changed since this run was started, by whomever, and git would obey it while \
                 committing; if it is as you want it, start again: `loopwright run`",
                file.display()
            )
        }))
    }

    /// What came of the command is where HEAD stands now, however the command itself ended.
    fn look_at(
        &mut self,
        store: &mut ObjectStore,
        expected: &Oid,
        message: &str,
        run: UserRun,
        undone: &mut Vec<RefusedPath>,
    ) -> Result<InPlaceCommit, GitError> {
        let parent = self.checkout.at;
        let user = &self.checkout.user;
        let position = Position::of(user)?;
        if position.is(&self.checkout.reference, &parent) {
            self.put_right(store, None, undone)?;
            return Ok(match run.end {
                UserEnd::Stopped => InPlaceCommit::Stopped,
                _ => InPlaceCommit::Refused(obstacle_of(&run)),
            });
        }
        let git = user.hermetic();
        let made = position
            .commit
            .filter(|_| position.reference == self.checkout.reference);
        let parents = git.text(["rev-list", "--parents", "--max-count=1", "HEAD"])?;
        let (Some(commit), true) = (made, parents.ends_with(&format!(" {parent}"))) else {
            return Err(position.moved(&user.top, &self.checkout.reference, parent));
        };
        let missing = || GitError::unexpected("the commit made just now can't be found");
        let tree = git.resolve("HEAD^{tree}")?.ok_or_else(missing)?;
        match store.import_new(&git, &commit, &parent) {
            Err(error @ GitError::ObjectsRefused { .. }) => {
                // A hook made it so.
                self.take_off(&commit)?;
                self.put_right(store, None, undone)?;
                return Ok(InPlaceCommit::Refused(harmful(&error)));
            }
            imported => imported?,
        }
        // A command that failed may have made it all the same; so may somebody else, meanwhile.
        if !run.is_success() && !store.read_commit(&commit)?.is_worded_as(message) {
            return Err(position.moved(&user.top, &self.checkout.reference, parent));
        }
        if tree == *expected {
            let listed = store.list_objects(&commit, &parent)?;
            sync_fan_outs(&user.common_dir, &listed)?;
            sync_reference(&user.common_dir, &self.checkout.reference)?;
            self.checkout.index = index_stamp(user);
            self.checkout.at = commit;
            self.checkout.work.settle();
            self.close_note()?;
            return Ok(InPlaceCommit::Committed { commit });
        }
        self.take_off(&commit)?;
        self.put_right(store, Some(tree), undone)?;
        Ok(InPlaceCommit::Rewritten { commit, tree })
    }

    /// Takes a commit that was made just now off the branch again.
    fn take_off(&self, commit: &Oid) -> Result<(), GitError> {
        let Checkout {
            user,
            reference,
            at,
            ..
        } = &self.checkout;
        references::move_reference(user, reference, Some(*at), Some(*commit))
    }

    /// Brings the checkout back after a commit that is not to stay, whose tree is `known`. What hooks
    /// or anybody else left there meanwhile is saved.
    fn put_right(
        &mut self,
        store: &mut ObjectStore,
        known: Option<Oid>,
        undone: &mut Vec<RefusedPath>,
    ) -> Result<(), GitError> {
        let user = &self.checkout.user;
        let mut mender = mender_of(&self.state_dir, user);
        let reference = &self.checkout.reference;
        locks::clear(user, reference, &self.shape, store.dir(), &mut mender)?;
        clear_leftovers(user, &mut mender)?;
        undone.extend(mender.said());
        let strays = self
            .checkout
            .save_strays(store, known, Unstorable::MoveAside)?;
        undone.extend(strays);
        self.checkout.bring_back(store)?;
        self.close_note()
    }
}

fn harmful(error: &GitError) -> Obstacle {
    Obstacle::Failed(error.to_string())
}
