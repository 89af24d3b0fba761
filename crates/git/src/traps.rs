//! Whether git can be run in a repository at all without waiting for ever.
//!
//! A pipe in the place of a file that git reads at its start (a proposal in the user's checkout may
//! leave one, if nobody lives to put it back) holds up every git, and whoever waits for it. So it is
//! looked for by hand before the first git is run.

use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::error::Trap;

/// Directories of a git directory whose entries git reads.
const DIRECTORIES: [&str; 4] = ["", "info", "objects/info", "worktrees"];

/// Longest file that is read by hand: one line with a path in it.
const LINE_BYTES_MAX: u64 = 8192;

/// Looks for a trap in the repository around a directory. What isn't laid out plainly is git's to
/// find.
pub(crate) fn find(directory: &Path) -> Option<Trap> {
    if std::env::var_os("GIT_DIR").is_some() {
        return None;
    }
    let directory = fs::canonicalize(directory).ok()?;
    let is_there = |folder: &&Path| fs::symlink_metadata(folder.join(".git")).is_ok();
    let top = directory.ancestors().find(is_there)?;
    let entry = top.join(".git");
    let trap = |path: PathBuf, common_dir: Option<&PathBuf>| Trap {
        path,
        top: top.to_path_buf(),
        common_dir: common_dir.cloned(),
    };
    if waits(&entry) {
        return Some(trap(entry, None));
    }
    let git_dir = if entry.is_dir() {
        entry
    } else {
        top.join(path_in(&entry, b"gitdir:")?)
    };
    let named = git_dir.join("commondir");
    if waits(&named) {
        // Only linked work trees have such a file; elsewhere somebody put it there.
        let is_main = git_dir.parent() == Some(top);
        return Some(trap(named, is_main.then_some(&git_dir)));
    }
    let common_dir = match path_in(&named, b"") {
        Some(path) => git_dir.join(path),
        None => git_dir.clone(),
    };
    let found = in_directory(&git_dir).or_else(|| in_directory(&common_dir));
    // The branch that is checked out.
    let found = found.or_else(|| {
        let head = common_dir.join(path_in(&git_dir.join("HEAD"), b"ref:")?);
        waits(&head).then_some(head)
    });
    found.map(|path| trap(path, Some(&common_dir)))
}

fn in_directory(git_dir: &Path) -> Option<PathBuf> {
    let folders = DIRECTORIES.iter().map(|name| git_dir.join(name));
    let entries = folders.filter_map(|folder| fs::read_dir(folder).ok());
    entries.flatten().flatten().find_map(|entry| {
        let kind = entry.file_type().ok()?;
        let is_plain = kind.is_file() || kind.is_dir();
        (!is_plain && waits(&entry.path())).then(|| entry.path())
    })
}

/// Whether opening it may wait for somebody: a pipe or a device, or a link to one.
fn waits(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|facts| {
        let kind = facts.file_type();
        kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
    })
}

/// The path that a file of one line names, after a word.
fn path_in(file: &Path, word: &[u8]) -> Option<PathBuf> {
    let facts = fs::metadata(file).ok()?;
    if !facts.is_file() || facts.len() > LINE_BYTES_MAX {
        return None;
    }
    let line = fs::read(file).ok()?;
    let path = line.strip_prefix(word)?.trim_ascii();
    let path = std::ffi::OsString::from_vec(path.to_vec());
    (!path.as_bytes().is_empty()).then(|| path.into())
}
