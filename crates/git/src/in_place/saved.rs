//! The note an interrupted in-place proposal or commit leaves for the process that resumes.
//!
//! It exists from the start of a proposal (or a commit) until the checkout is at a commit again.
//! Paths and contents are bytes, hence written in hexadecimal.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Owner;
use super::shape::Shape;
use crate::disk;
use crate::error::GitError;
use crate::plain;
use crate::types::Oid;

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
    /// What is being committed; none while a proposal is made.
    pub(super) tree: Option<Oid>,
    /// What that commit is to say.
    pub(super) message: Option<String>,
    pub(super) owner: Owner,
    pub(super) guard: SavedGuard,
    pub(super) shape: Shape,
}

impl Note {
    pub(super) fn write(&self, state_dir: &Path) -> Result<(), GitError> {
        let text = serde_json::to_vec(self).map_err(|error| {
            GitError::unexpected(format!("BUG: a note can't be written: {error}"))
        })?;
        disk::replace_durably(&state_dir.join(FILE), &text)
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

    pub(super) fn read(state_dir: &Path) -> Result<Option<Self>, GitError> {
        let path = state_dir.join(FILE);
        let text = match plain::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(plain::failed("read", &path)(error)),
        };
        let note = serde_json::from_slice(&text);
        note.map(Some).map_err(|_| unreadable(state_dir))
    }
}

/// The error for a note that can't be made sense of.
pub(super) fn unreadable(state_dir: &Path) -> GitError {
    GitError::Damaged {
        path: state_dir.join(FILE),
        what: "this note about an interrupted proposal can't be read; look at the checkout's \
               configuration, hooks and changes yourself, then remove the note"
            .to_owned(),
    }
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
