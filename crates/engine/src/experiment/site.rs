//! The site: where proposals are made. By default a private repository that nobody else sees, or,
//! asked for by `--in-place`, the user's own checkout.

use std::path::{Path, PathBuf};

use loopwright_git::{
    GitError, InPlace, InPlaceCommit, ObjectStore, Oid, ProposerRepository, Snapshot,
};

/// Where proposals are made.
pub enum Site {
    /// A repository of the proposer's own.
    Apart(Box<ProposerRepository>),
    /// The user's checkout.
    InPlace {
        /// Its keeper.
        keeper: Box<InPlace>,
        /// Its top.
        top: PathBuf,
        /// The commit it stands at.
        at: Oid,
    },
}

impl Site {
    /// Where the proposer is started.
    pub fn work_tree(&self) -> &Path {
        match self {
            Self::Apart(repository) => repository.work_tree(),
            Self::InPlace { top, .. } => top,
        }
    }

    /// Brings it to `commit`, ready for a proposal.
    pub fn begin(&mut self, objects: &mut ObjectStore, commit: &Oid) -> Result<(), GitError> {
        match self {
            Self::Apart(repository) => repository.reset_to(objects, commit),
            Self::InPlace { keeper, at, .. } => {
                keeper.restore(objects, commit)?;
                *at = *commit;
                keeper.begin()
            }
        }
    }

    /// The tree that the proposer left.
    pub fn snapshot(&mut self, objects: &mut ObjectStore) -> Result<Snapshot, GitError> {
        match self {
            Self::Apart(repository) => repository.snapshot(objects),
            Self::InPlace { keeper, at, .. } => {
                let snapshot = keeper.snapshot(objects)?;
                // The user's checkout shows the incumbent while the candidate is measured.
                keeper.restore(objects, at)?;
                Ok(snapshot)
            }
        }
    }

    /// The same, every file read. Only a private repository still holds what a proposer left.
    pub fn full_snapshot(&mut self, objects: &mut ObjectStore) -> Result<Snapshot, GitError> {
        match self {
            Self::Apart(repository) => repository.full_snapshot(objects),
            Self::InPlace { keeper, .. } => keeper.full_snapshot(objects),
        }
    }

    /// Commits in the user's checkout; none where that is not the place.
    pub fn commit_in_place(
        &mut self,
        objects: &mut ObjectStore,
        tree: &Oid,
        message: &str,
    ) -> Result<Option<InPlaceCommit>, GitError> {
        let Self::InPlace { keeper, at, .. } = self else {
            return Ok(None);
        };
        let committed = keeper.commit(objects, tree, message)?;
        match committed {
            InPlaceCommit::Committed { commit } => *at = commit,
            InPlaceCommit::Rewritten { .. } | InPlaceCommit::Refused(_) => {
                keeper.restore(objects, at)?;
            }
        }
        Ok(Some(committed))
    }

    /// The commit that an attempt which was cut off has made already; none where there is none.
    pub fn committed_before(
        &self,
        objects: &mut ObjectStore,
        tree: &Oid,
        parent: &Oid,
    ) -> Result<Option<Oid>, GitError> {
        let Self::InPlace { at, .. } = self else {
            return Ok(None);
        };
        let facts = objects.read_commit(at)?;
        Ok((facts.tree == *tree && facts.parents == [*parent]).then_some(*at))
    }

    /// Whether it is the user's own checkout.
    pub fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace { .. })
    }

    /// Leaves the user's checkout at the incumbent.
    pub fn close(&mut self, objects: &mut ObjectStore) -> Result<(), GitError> {
        match self {
            Self::Apart(_) => Ok(()),
            Self::InPlace { keeper, at, .. } => keeper.restore(objects, at),
        }
    }
}
