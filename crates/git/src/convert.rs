//! Conversions between what a tree holds and what a checkout holds.

use crate::types::RepoPath;

/// Which paths of a tree are converted on their way to and from a checkout.
#[derive(Debug, Default)]
pub(crate) struct Conversions {
    paths: std::collections::BTreeSet<RepoPath>,
}

impl Conversions {
    /// True if the bytes at this path differ between tree and checkout.
    pub(crate) fn touches(&self, path: &RepoPath) -> bool {
        self.paths.contains(path)
    }
}
