//! The note an interrupted in-place proposal leaves for the process that resumes.
//!
//! It exists from the start of a proposal until the checkout is at a commit again. Paths and
//! contents are bytes, hence written in hexadecimal.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::guard::Guard;
use super::shape::Shape;
use super::{references, remove_leftovers, undone};
use crate::error::GitError;
use crate::git::Git;
use crate::types::Oid;
use crate::worktree::RefusedPath;

const FILE: &str = "proposal.json";

/// Configuration and hooks as they were.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedGuard {
    pub(super) top: String,
    pub(super) singles: Vec<String>,
    pub(super) directories: Vec<String>,
    pub(super) tracked: Vec<String>,
    /// Path, whether it is a link, content or target, permission bits.
    pub(super) known: Vec<(String, bool, String, u32)>,
}

/// Everything needed to put the repository back.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) git_dir: String,
    pub(super) reference: String,
    pub(super) commit: Oid,
    pub(super) guard: SavedGuard,
    pub(super) shape: Shape,
}

impl Note {
    pub(super) fn write(&self, state_dir: &Path) -> Result<(), GitError> {
        let path = state_dir.join(FILE);
        let temporary = state_dir.join("proposal.new");
        let text = serde_json::to_vec(self).map_err(|error| {
            GitError::unexpected(format!("BUG: a note can't be written: {error}"))
        })?;
        fs::write(&temporary, text)
            .and_then(|()| fs::rename(&temporary, &path))
            .map_err(GitError::io("write", &path))
    }

    pub(super) fn remove(state_dir: &Path) -> Result<(), GitError> {
        let path = state_dir.join(FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(GitError::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    fn read(state_dir: &Path) -> Result<Option<Self>, GitError> {
        let path = state_dir.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(GitError::io("read", &path)(error)),
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            GitError::unexpected(format!("{} can't be read: {error}", path.display()))
        })
    }
}

/// True between the start of a proposal and the commit or restore that ends it.
pub(super) fn is_interrupted(state_dir: &Path) -> bool {
    state_dir.join(FILE).exists()
}

/// Puts configuration, hooks, HEAD and the loop's branch back after an interrupted proposal;
/// what was changed is listed. `None` if no proposal was interrupted.
pub(super) fn recover(state_dir: &Path) -> Result<Option<Vec<RefusedPath>>, GitError> {
    let Some(note) = Note::read(state_dir)? else {
        return Ok(None);
    };
    let unreadable = || {
        let path = state_dir.join(FILE);
        GitError::unexpected(format!("{} can't be read", path.display()))
    };
    let git_dir = path_from(&note.git_dir).ok_or_else(unreadable)?;
    let guard = Guard::load(&note.guard).ok_or_else(unreadable)?;
    let mut undone_here = note.shape.mend()?;
    undone_here.extend(guard.put_back()?);
    remove_leftovers(&git_dir);
    let git = Git::on(&git_dir);
    references::point_head(&git_dir, &note.reference)?;
    let now = git.resolve(&note.reference)?;
    if now != Some(note.commit) {
        git.run(["update-ref", &note.reference, &note.commit.to_hex()])?;
        let was = now.map_or_else(|| "gone".to_owned(), |now| format!("at {now}"));
        undone_here.push(undone(
            note.reference.as_bytes(),
            &format!("it was put back; it was {was}"),
        ));
    }
    Ok(Some(undone_here))
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

pub(super) fn path_from(hex: &str) -> Option<PathBuf> {
    Some(PathBuf::from(OsString::from_vec(from_hex(hex)?)))
}
