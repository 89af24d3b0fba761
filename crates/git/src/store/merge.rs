//! Bringing a candidate that was made from one tree to another tree.

use super::{CommitSpec, ObjectStore, Person};
use crate::error::GitError;
use crate::git::{failure, split_nul};
use crate::types::{Oid, RepoPath};

impl ObjectStore {
    /// The tree `new_base` plus what `candidate` changed in `base` (all three are trees).
    ///
    /// A change that no longer applies is a [`GitError::Conflict`] naming the paths.
    pub fn apply_candidate(
        &mut self,
        candidate: &Oid,
        base: &Oid,
        new_base: &Oid,
    ) -> Result<Oid, GitError> {
        if base == new_base {
            return Ok(*candidate);
        }
        if candidate == base {
            return Ok(*new_base);
        }
        let root = self.merge_side(*base, &[])?;
        let ours = self.merge_side(*new_base, &[root])?;
        let theirs = self.merge_side(*candidate, &[root])?;
        let (ours, theirs) = (ours.to_hex(), theirs.to_hex());
        let arguments = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
            &ours,
            &theirs,
        ];
        let output = self.git.output(arguments, b"")?;
        let mut records = split_nul(&output.stdout);
        let tree = records.next().and_then(Oid::from_hex);
        match (output.status.code(), tree) {
            (Some(0), Some(tree)) => {
                let mut written = Vec::new();
                self.new_objects(Some(*new_base), tree, &mut written)?;
                for oid in written {
                    self.expect_durable(oid)?;
                }
                Ok(tree)
            }
            (Some(1), Some(_)) => Err(GitError::Conflict {
                paths: records.map(RepoPath::new).collect(),
            }),
            _ => Err(failure(arguments, &output)),
        }
    }

    fn merge_side(&mut self, tree: Oid, parents: &[Oid]) -> Result<Oid, GitError> {
        self.commit(&CommitSpec {
            tree,
            parents,
            author: &Person::loopwright(),
            time_s: 0,
            message: "side of a merge\n",
        })
    }
}
