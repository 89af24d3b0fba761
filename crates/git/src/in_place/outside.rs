//! What git obeys from outside of the repository: the user's own configuration, and hooks that are
//! shared by all their repositories. A proposal can write there as well as the user can, so nothing
//! is put back; a commit is refused where any of it changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::guard::{Content, hooks_of, is_outside, read_directory};
use crate::error::GitError;
use crate::git::split_nul;
use crate::user::{UserRepository, quiet};

/// Settings that neither run anything during a commit nor change what is committed.
const HARMLESS: &[&str] = &[
    "advice.",
    "alias.",
    "branch.",
    "color.",
    "column.",
    "credential.",
    "diff.",
    "difftool.",
    "fetch.",
    "format.",
    "help.",
    "http.",
    "init.",
    "log.",
    "merge.",
    "mergetool.",
    "pager.",
    "pretty.",
    "pull.",
    "push.",
    "rebase.",
    "remote.",
    "rerere.",
    "safe.",
    "sendemail.",
    "stash.",
    "status.",
    "tag.",
    "url.",
];

/// What git obeyed from outside when the checkout was taken over.
#[derive(Debug)]
pub(super) struct Outside {
    settings: Vec<(PathBuf, Vec<u8>)>,
    hooks: BTreeMap<PathBuf, Content>,
}

impl Outside {
    pub(super) fn record(user: &UserRepository) -> Result<Self, GitError> {
        let mut hooks = BTreeMap::new();
        let directory = hooks_of(user)?;
        if is_outside(user, &directory) {
            read_directory(&directory, &mut hooks)?;
        }
        Ok(Self {
            settings: settings(user)?,
            hooks,
        })
    }

    /// A file of these that changed since; `None` if all is as it was.
    pub(super) fn changed(&self, user: &UserRepository) -> Result<Option<PathBuf>, GitError> {
        let now = Self::record(user)?;
        let new = now.settings.iter().find(|it| !self.settings.contains(it));
        let gone = self.settings.iter().find(|it| !now.settings.contains(it));
        if let Some((file, _)) = new.or(gone) {
            return Ok(Some(file.clone()));
        }
        let differs = |path: &&PathBuf| self.hooks.get(*path) != now.hooks.get(*path);
        let hook = self.hooks.keys().chain(now.hooks.keys()).find(differs);
        Ok(hook.cloned())
    }
}

/// Each setting from a file outside of the repository, with that file.
fn settings(user: &UserRepository) -> Result<Vec<(PathBuf, Vec<u8>)>, GitError> {
    let listed = quiet(user.as_user()).run(["config", "--list", "--show-origin", "-z"])?;
    let records: Vec<&[u8]> = split_nul(&listed).collect();
    let mut found = Vec::new();
    for pair in records.chunks_exact(2) {
        let Some(file) = pair[0].strip_prefix(b"file:") else {
            continue;
        };
        let file = user.top.join(OsStr::from_bytes(file));
        let name = pair[1].to_ascii_lowercase();
        let is_harmless = HARMLESS
            .iter()
            .any(|prefix| name.starts_with(prefix.as_bytes()));
        if is_outside(user, &file) && !is_harmless {
            found.push((file, pair[1].to_vec()));
        }
    }
    Ok(found)
}
