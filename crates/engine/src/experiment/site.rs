//! The site: where proposals are made. By default a private repository that nobody else sees, or,
//! asked for by `--in-place`, the user's own checkout.

use std::path::Path;

use loopwright_git::{
    GitError, InPlace, InPlaceCommit, ObjectStore, Oid, ProposerRepository, RefusedPath, Snapshot,
    UserCommands,
};

/// Where proposals are made.
pub enum Site {
    /// A repository of the proposer's own.
    Apart(Box<ProposerRepository>),
    /// The user's checkout.
    InPlace(Box<InPlace>),
}

impl Site {
    /// Where the proposer is started.
    pub fn work_tree(&self) -> &Path {
        match self {
            Self::Apart(repository) => repository.work_tree(),
            Self::InPlace(keeper) => keeper.top(),
        }
    }

    /// Brings it to `commit`, ready for a proposal; says what of the user's had to give way.
    pub fn begin(
        &mut self,
        objects: &mut ObjectStore,
        commit: &Oid,
    ) -> Result<Vec<RefusedPath>, GitError> {
        match self {
            Self::Apart(repository) => {
                repository.reset_to(objects, commit)?;
                Ok(Vec::new())
            }
            Self::InPlace(keeper) => keeper.begin(objects, commit),
        }
    }

    /// The tree that the proposer left. The user's checkout shows the incumbent afterwards, while
    /// the candidate is measured.
    pub fn snapshot(&mut self, objects: &mut ObjectStore) -> Result<Snapshot, GitError> {
        match self {
            Self::Apart(repository) => repository.snapshot(objects),
            Self::InPlace(keeper) => keeper.snapshot(objects),
        }
    }

    /// The same, every file read. Only a private repository still holds what a proposer left.
    pub fn full_snapshot(&mut self, objects: &mut ObjectStore) -> Result<Snapshot, GitError> {
        match self {
            Self::Apart(repository) => repository.full_snapshot(objects),
            Self::InPlace(keeper) => keeper.snapshot(objects),
        }
    }

    /// Commits in the user's checkout, and says what of the user's had to give way; none where that
    /// is not the place.
    pub fn commit_in_place(
        &mut self,
        objects: &mut ObjectStore,
        tree: &Oid,
        message: &str,
        commands: &mut dyn UserCommands,
    ) -> Result<Option<(InPlaceCommit, Vec<RefusedPath>)>, GitError> {
        match self {
            Self::Apart(_) => Ok(None),
            Self::InPlace(keeper) => keeper.commit(objects, tree, message, commands).map(Some),
        }
    }

    /// The commit that the user's checkout stands at by the loop's doing; none where that is not the
    /// place.
    pub fn at(&self) -> Option<Oid> {
        match self {
            Self::Apart(_) => None,
            Self::InPlace(keeper) => Some(keeper.at()),
        }
    }

    /// A file of the user's settings outside of the repository that changed since a run was started
    /// in place; none where they don't count.
    pub fn settings_changed(&self) -> Option<&Path> {
        match self {
            Self::Apart(_) => None,
            Self::InPlace(keeper) => keeper.settings_changed(),
        }
    }

    /// Whether it is the user's own checkout.
    pub fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace(_))
    }

    /// Leaves the user's checkout at the incumbent; says what was undone.
    pub fn close(&mut self, objects: &mut ObjectStore) -> Result<Vec<RefusedPath>, GitError> {
        match self {
            Self::Apart(_) => Ok(Vec::new()),
            Self::InPlace(keeper) => keeper.close(objects),
        }
    }
}
