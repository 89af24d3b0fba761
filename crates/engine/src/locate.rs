//! Finding a project's store without starting git: reading a record must not cost more than the
//! reading. Wherever the layout is not the plain one, git is asked after all.

#![expect(
    clippy::disallowed_methods,
    reason = "the user's own repository, as git itself reads it"
)]

use std::fs;
use std::path::{Path, PathBuf};

use loopwright_git::{GitError, Refusal, common_directory};

use crate::error::EngineError;
use crate::project::{Project, chosen_store, store_of};

/// Variables by which git looks elsewhere.
const GIT_ELSEWHERE: [&str; 3] = ["GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE"];

/// Where a project's store is, and the top of its checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The store's folder; whether there is a store in it is another question.
    pub store: PathBuf,
    /// The top of the checkout, where there is one.
    pub top: Option<PathBuf>,
}

/// Longest line with a path in it.
const LINE_BYTES_MAX: u64 = 8192;

/// Where the store of the project around `directory` is; the same place as [`Project::find`] says.
pub fn locate(directory: &Path, store: Option<&Path>) -> Result<Located, EngineError> {
    let plain = plain_checkout(directory);
    if let Some(store) = chosen_store(directory, store)? {
        return Ok(Located {
            store,
            top: plain.map(|(top, _)| top),
        });
    }
    if let Some((top, common_dir)) = plain {
        return Ok(Located {
            store: store_of(directory, None, &common_dir)?,
            top: Some(top),
        });
    }
    match Project::find(directory, None) {
        Ok(project) => Ok(Located {
            store: project.store,
            top: Some(project.user.top),
        }),
        // Git can't be run there now; the record can be read all the same.
        Err(EngineError::Git(GitError::Refused(Refusal::Trapped(trap))))
            if trap.common_dir.is_some() =>
        {
            let common_dir = trap.common_dir.unwrap_or_default();
            Ok(Located {
                store: store_of(directory, None, &common_dir)?,
                top: Some(trap.top),
            })
        }
        Err(error) => {
            // An interrupted proposal may have left no repository at all.
            let common_dir = common_directory(directory, &mut |_| ());
            match common_dir.map(|it| store_of(directory, None, &it)) {
                Some(Ok(store)) if store.is_dir() => Ok(Located { store, top: None }),
                _ => Err(error),
            }
        }
    }
}

/// The top of a checkout laid out plainly, and its common git directory.
fn plain_checkout(directory: &Path) -> Option<(PathBuf, PathBuf)> {
    if GIT_ELSEWHERE
        .iter()
        .any(|name| std::env::var_os(name).is_some())
    {
        return None;
    }
    let directory = fs::canonicalize(directory).ok()?;
    let top = directory
        .ancestors()
        .find(|folder| folder.join(".git").exists())?;
    let dot_git = top.join(".git");
    let is_linked = !dot_git.is_dir();
    let git_dir = if !is_linked {
        dot_git
    } else if !dot_git.is_file() {
        return None;
    } else {
        let text = line_of(&dot_git)?;
        let named = text.strip_prefix("gitdir:")?.trim();
        fs::canonicalize(top.join(named)).ok()?
    };
    if !git_dir.join("HEAD").is_file() {
        return None;
    }
    let named = git_dir.join("commondir");
    let common_dir = if named.is_file() && is_linked {
        let text = line_of(&named)?;
        fs::canonicalize(git_dir.join(text.trim())).ok()?
    } else if named.exists() {
        return None;
    } else {
        git_dir
    };
    Some((top.to_path_buf(), common_dir))
}

/// A file of one line.
fn line_of(path: &Path) -> Option<String> {
    let is_short = fs::metadata(path).is_ok_and(|facts| facts.len() <= LINE_BYTES_MAX);
    is_short.then(|| fs::read_to_string(path).ok())?
}
