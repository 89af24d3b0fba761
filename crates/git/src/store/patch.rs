//! Differences of two trees as text, for people and for `git apply`.

use std::borrow::Cow;

use super::ObjectStore;
use crate::error::GitError;
use crate::git::{Git, split_nul};
use crate::quote::quoted;
use crate::types::Oid;

impl ObjectStore {
    /// The patch from one tree (or commit) to another; holds for binary files too.
    pub fn patch(&self, before: &Oid, after: &Oid) -> Result<Vec<u8>, GitError> {
        let (before, after) = (before.to_hex(), after.to_hex());
        self.naming(&before, &after)?.run([
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
        self.naming(&before, &after)?.text([
            "diff",
            "--stat=100",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            &before,
            &after,
        ])
    }

    /// Git that names the paths of a difference so that none can steer a terminal and all can be told
    /// apart. By itself it lets through what is not UTF-8 and what reorders a line, or else
    /// escapes every letter that is not ASCII.
    fn naming(&self, before: &str, after: &str) -> Result<Git, GitError> {
        let arguments = ["diff", "--name-only", "-z", "--no-renames", before, after];
        let names = self.git.run(arguments)?;
        let is_plain = split_nul(&names).all(|name| matches!(quoted(name), Cow::Borrowed(_)));
        let git = self.git.clone();
        Ok(if is_plain {
            git
        } else {
            git.with_setting("core.quotePath=true")
        })
    }
}
