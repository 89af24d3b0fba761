//! The loop's own branch in the user's repository: the only thing a run writes there.
//!
//! A kept commit is copied over (objects first, synced), then the branch moves by
//! compare-and-swap, with no hook of the user's. If the user has moved, deleted or checked out
//! that branch, this is said and nothing is fought over: the commit stays in the store.

use std::path::{Path, PathBuf};

use crate::disk;
use crate::error::GitError;
use crate::git::Git;
use crate::store::ObjectStore;
use crate::types::Oid;
use crate::user::UserRepository;

/// Below which all branches of loops live.
pub(crate) const PREFIX: &str = "refs/heads/loopwright/";

/// A branch `loopwright/<loop>/<branch>` of the user's repository.
#[derive(Debug, Clone)]
pub struct UserBranch {
    git: Git,
    common_dir: PathBuf,
    partial: bool,
    reference: String,
    zero: String,
}

/// How publishing went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The branch was moved (or made).
    Moved,
    /// It was there already: an earlier attempt had come that far.
    AlreadyThere,
}

impl UserBranch {
    /// The branch of this loop. The names must be fit for a reference.
    pub fn new(user: &UserRepository, loop_name: &str, branch: &str) -> Result<Self, GitError> {
        let reference = format!("{PREFIX}{loop_name}/{branch}");
        let git = user.hermetic();
        let fit = git.output(["check-ref-format", &reference], b"")?;
        if !fit.status.success() {
            return Err(GitError::unexpected(format!(
                "git has no branch named loopwright/{loop_name}/{branch}; use letters, digits, - \
                 and _ in the names of loops and branches"
            )));
        }
        Ok(Self {
            git,
            common_dir: user.common_dir.clone(),
            partial: user.partial,
            reference,
            zero: "0".repeat(user.format.id_bytes() * 2),
        })
    }

    /// Its full name.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Its name as `git branch` shows it.
    pub fn short_name(&self) -> &str {
        self.reference
            .strip_prefix("refs/heads/")
            .unwrap_or(&self.reference)
    }

    /// The commit it points at now.
    pub fn current(&self) -> Result<Option<Oid>, GitError> {
        self.git.resolve(&self.reference)
    }

    /// Brings a commit of the store to the user's repository and points the branch at it, if it
    /// still points at `old` (`None`: if it does not exist).
    ///
    /// Publishing the base at the start of a run keeps its history from being collected.
    pub fn publish(
        &self,
        store: &mut ObjectStore,
        commit: &Oid,
        old: Option<Oid>,
    ) -> Result<Published, GitError> {
        let found = self.current()?;
        if found == Some(*commit) {
            return Ok(Published::AlreadyThere);
        }
        self.expect_unmoved(old, found)?;
        self.expect_not_checked_out()?;
        let known = store.nearest_known(commit, old)?;
        if !self.has(&known)? {
            return Err(GitError::BaseGone { base: known });
        }
        if known != *commit {
            self.copy(store, commit, &known)?;
        }
        self.check_connected(commit, known)?;
        self.move_reference(commit, old)?;
        Ok(Published::Moved)
    }

    fn expect_unmoved(&self, expected: Option<Oid>, found: Option<Oid>) -> Result<(), GitError> {
        if expected == found {
            return Ok(());
        }
        Err(GitError::Moved {
            reference: self.reference.clone(),
            expected,
            found,
        })
    }

    /// Moving a branch that is checked out would make its work tree look edited.
    fn expect_not_checked_out(&self) -> Result<(), GitError> {
        let checked_out = checked_out(&self.git)?;
        let here = checked_out
            .into_iter()
            .find(|(reference, _)| *reference == self.reference);
        match here {
            Some((reference, worktree)) => Err(GitError::CheckedOut {
                reference,
                worktree,
            }),
            None => Ok(()),
        }
    }

    /// Whether `tip` has `commit` in its history, in the user's repository.
    pub fn holds(&self, tip: &Oid, commit: &Oid) -> Result<bool, GitError> {
        let arguments = [
            "merge-base",
            "--is-ancestor",
            &commit.to_hex(),
            &tip.to_hex(),
        ];
        let output = self.git.output(arguments, b"")?;
        // Anything else: one of them is not there.
        Ok(output.status.success())
    }

    fn has(&self, oid: &Oid) -> Result<bool, GitError> {
        let name = format!("{oid}^{{tree}}");
        let output = self.git.output(["cat-file", "-e", &name], b"")?;
        Ok(output.status.success())
    }

    fn copy(&self, store: &mut ObjectStore, commit: &Oid, known: &Oid) -> Result<(), GitError> {
        let listed = store.list_objects(commit, known)?;
        store.copy_out(&listed, &self.git)?;
        sync_fan_outs(&self.common_dir, &listed)
    }

    /// The user's repository must be able to walk everything the branch will reach.
    fn check_connected(&self, commit: &Oid, base: Oid) -> Result<(), GitError> {
        if self.partial {
            return Ok(());
        }
        let hex = commit.to_hex();
        let arguments = ["rev-list", "--objects", "--quiet", &hex, "--not", "--all"];
        if self.git.output(arguments, b"")?.status.success() {
            return Ok(());
        }
        Err(GitError::BaseGone { base })
    }

    fn move_reference(&self, commit: &Oid, old: Option<Oid>) -> Result<(), GitError> {
        let (new, old_hex) = (commit.to_hex(), old.map(|oid| oid.to_hex()));
        let old_hex = old_hex.as_deref().unwrap_or(&self.zero);
        let git = self.git.clone().syncing();
        let moved = git.run([
            "update-ref",
            "-m",
            "loopwright: keep",
            &self.reference,
            &new,
            old_hex,
        ]);
        if let Err(error) = moved {
            self.expect_unmoved(old, self.current()?)?;
            return Err(match self.branch_in_the_way()? {
                Some(other) => GitError::BranchInTheWay {
                    reference: self.reference.clone(),
                    other,
                },
                None => error,
            });
        }
        sync_reference(&self.common_dir, &self.reference)
    }

    /// A branch `loopwright` or `loopwright/<loop>` leaves no room for ours below it.
    fn branch_in_the_way(&self) -> Result<Option<String>, GitError> {
        let mut name = self.reference.as_str();
        while let Some((parent, _)) = name.rsplit_once('/') {
            if parent == "refs/heads" {
                break;
            }
            if self.git.resolve(parent)?.is_some() {
                return Ok(Some(parent.to_owned()));
            }
            name = parent;
        }
        Ok(None)
    }
}

/// The references that are checked out, in whichever work tree, and where.
pub(crate) fn checked_out(git: &Git) -> Result<Vec<(String, PathBuf)>, GitError> {
    let listed = git.run(["worktree", "list", "--porcelain", "-z"])?;
    let mut worktree = PathBuf::new();
    let mut found = Vec::new();
    for line in listed.split(|byte| *byte == 0) {
        let line = String::from_utf8_lossy(line);
        if let Some(path) = line.strip_prefix("worktree ") {
            worktree = PathBuf::from(path);
        } else if let Some(reference) = line.strip_prefix("branch ") {
            found.push((reference.to_owned(), worktree.clone()));
        }
    }
    Ok(found)
}

/// Syncs the directories that listed objects (one a line) lie in as loose files.
pub(crate) fn sync_fan_outs(common_dir: &Path, listed: &[u8]) -> Result<(), GitError> {
    let objects = common_dir.join("objects");
    let mut fan_outs: Vec<&[u8]> = listed
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.get(..2))
        .collect();
    fan_outs.sort_unstable();
    fan_outs.dedup();
    for fan_out in fan_outs {
        let directory = objects.join(String::from_utf8_lossy(fan_out).as_ref());
        if directory.is_dir() {
            disk::sync_directory(&directory)?;
        }
    }
    disk::sync_directory(&objects)
}

/// With references stored as files, the names on the way to one have to be synced too.
pub(crate) fn sync_reference(common_dir: &Path, reference: &str) -> Result<(), GitError> {
    let path = common_dir.join(reference);
    if path.is_file() {
        let top = common_dir.join("refs");
        for directory in path.ancestors().skip(1) {
            disk::sync_directory(directory)?;
            if directory == top {
                break;
            }
        }
    }
    Ok(())
}

impl ObjectStore {
    /// The nearest ancestor (or the commit itself) that a user's repository is known to have:
    /// what was published last, or the base.
    fn nearest_known(&mut self, commit: &Oid, published: Option<Oid>) -> Result<Oid, GitError> {
        let bases = self.bases()?;
        let mut current = *commit;
        loop {
            if published == Some(current) || bases.contains(&current) {
                return Ok(current);
            }
            let parents = self.read_commit(&current)?.parents;
            match parents.first() {
                Some(parent) => current = *parent,
                None => {
                    return Err(GitError::unexpected(format!(
                        "commit {commit} does not stand on a base of this store"
                    )));
                }
            }
        }
    }
}
