//! Finding a project's store without starting git: reading a record must not cost more than the
//! reading. Wherever the layout is not the plain one, git is asked after all.

#![expect(
    clippy::disallowed_methods,
    reason = "the user's own repository, as git itself reads it"
)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::EngineError;
use crate::project::{Project, STORE_VARIABLE};

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

/// Where the store of the project around `directory` is; the same place as [`Project::find`] says.
pub fn locate(directory: &Path, store: Option<&Path>) -> Result<Located, EngineError> {
    let plain = plain_checkout(directory);
    let chosen = store.map(Path::to_path_buf).or_else(|| {
        std::env::var_os(STORE_VARIABLE)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    });
    if let Some(chosen) = chosen {
        return Ok(Located {
            store: std::path::absolute(directory.join(chosen))
                .map_err(EngineError::io("find the store"))?,
            top: plain.map(|(top, _)| top),
        });
    }
    if let Some((top, common_dir)) = plain {
        return Ok(Located {
            store: common_dir.join("loopwright"),
            top: Some(top),
        });
    }
    let project = Project::find(directory, None)?;
    Ok(Located {
        store: project.store,
        top: Some(project.user.top),
    })
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
    let git_dir = if dot_git.is_dir() {
        dot_git
    } else {
        let text = fs::read_to_string(&dot_git).ok()?;
        let named = text.strip_prefix("gitdir:")?.trim();
        fs::canonicalize(top.join(named)).ok()?
    };
    if !git_dir.join("HEAD").is_file() {
        return None;
    }
    let common_dir = match fs::read_to_string(git_dir.join("commondir")) {
        Ok(text) => fs::canonicalize(git_dir.join(text.trim())).ok()?,
        Err(_) => git_dir,
    };
    Some((top.to_path_buf(), common_dir))
}
