//! Differences of two trees as text, for people and for `git apply`.

use super::ObjectStore;
use crate::error::GitError;
use crate::types::Oid;

impl ObjectStore {
    /// The patch from one tree (or commit) to another; holds for binary files too.
    pub fn patch(&self, before: &Oid, after: &Oid) -> Result<Vec<u8>, GitError> {
        let (before, after) = (before.to_hex(), after.to_hex());
        self.git.run([
            "diff",
            "--binary",
            "--full-index",
            "--find-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            &before,
            &after,
        ])
    }

    /// Lines added and removed per path, as `git diff --stat` draws them.
    pub fn summary(&self, before: &Oid, after: &Oid) -> Result<String, GitError> {
        let (before, after) = (before.to_hex(), after.to_hex());
        self.git.text([
            "diff",
            "--stat=100",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            &before,
            &after,
        ])
    }
}
