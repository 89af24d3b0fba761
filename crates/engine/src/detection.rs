//! Proposing a loop for a project: what its files say, gathered for the pure detection in core.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use loopwright_core::spec::detect::{self, ProjectFacts, Proposal};

use crate::error::EngineError;
use crate::project::Project;

/// Larger files are no scripts.
const READ_BYTES_MAX: u64 = 1 << 20;

/// Proposes a specification for a project.
pub fn propose_loop(project: &Project) -> Result<Proposal, EngineError> {
    let top = &project.user.top;
    let listed = project.user.as_user().run(["ls-files", "-z"])?;
    let tracked: Vec<String> = listed
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect();
    let untracked = untracked_names(top, &tracked)?;
    Ok(detect::detect(&ProjectFacts {
        tracked: &tracked,
        untracked: &untracked,
        read: &|path| read_text(&top.join(path)),
    }))
}

/// Names in the top directory below which git carries nothing.
fn untracked_names(top: &Path, tracked: &[String]) -> Result<Vec<String>, EngineError> {
    let carried: BTreeSet<&str> = tracked
        .iter()
        .map(|path| path.split('/').next().unwrap_or(path))
        .collect();
    let entries = fs::read_dir(top).map_err(EngineError::io(format!("list {}", top.display())))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name != ".git" && !carried.contains(name.as_str()))
        .collect();
    names.sort();
    Ok(names)
}

#[expect(clippy::disallowed_methods, reason = "the user's own checkout")]
fn read_text(path: &Path) -> Option<String> {
    let facts = fs::metadata(path).ok()?;
    if !facts.is_file() || facts.len() > READ_BYTES_MAX {
        return None;
    }
    fs::read_to_string(path).ok()
}
