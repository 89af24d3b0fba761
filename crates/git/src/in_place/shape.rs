//! The shape of a git directory: whatever has to be so that git can work in it at all, and works on
//! what it seems to.
//!
//! A pipe in the place of `HEAD` makes git wait for ever, a link in the place of `refs` makes it
//! write elsewhere, a line of junk in `packed-refs` makes it see no repository. All of it is mended
//! by hand, following no link, before any git is run; what git itself can undo (a branch that was
//! moved, made or deleted) is left to [`References`](super::references::References).

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::saved::{from_hex, path_from, to_hex};
use super::undone;
use crate::error::{GitError, Refusal};
use crate::types::Oid;
use crate::user::UserRepository;
use crate::worktree::RefusedPath;

/// Directories that git reads or writes and that lie deeper than the git directory's own entries.
const DEEPER: &[&str] = &["objects/info", "objects/pack", "refs/heads", "refs/tags"];

/// Longest reference file that is read.
const REFERENCE_BYTES_MAX: u64 = 4096;

/// What stands under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    File,
    Directory,
    /// A link, with its target in hexadecimal.
    Link(String),
    /// A pipe or a device: opening it may never come back.
    Trap,
    Socket,
}

/// A git directory's shape before a proposal. Paths and contents are hexadecimal.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Shape {
    /// The checkout's `.git`, and which one it is.
    entry: (String, u64, u64),
    /// The git directory of the work tree and the one that all share.
    directories: Vec<String>,
    entries: Vec<(String, Kind)>,
    /// References that name other ones.
    symbolic: Vec<(String, String)>,
    packed: Option<String>,
}

impl Shape {
    pub(super) fn record(user: &UserRepository) -> Result<Self, GitError> {
        let entry = user.top.join(".git");
        let facts = fs::symlink_metadata(&entry).map_err(GitError::io("look at", &entry))?;
        let mut directories = vec![user.common_dir.clone()];
        if user.git_dir != user.common_dir {
            directories.push(user.git_dir.clone());
        }
        let mut entries = Vec::new();
        for directory in &directories {
            let deeper = DEEPER.iter().map(|name| directory.join(name));
            for path in listed(directory)?.into_iter().chain(deeper) {
                if let Some(kind) = kind_of(&path)? {
                    entries.push((hex(&path), kind));
                }
            }
        }
        let mut symbolic = Vec::new();
        for directory in &directories {
            walk(&directory.join("refs"), &mut |path, facts| {
                if let Some(content) = small(path, facts)
                    && content.starts_with(b"ref: ")
                {
                    symbolic.push((hex(path), to_hex(&content)));
                }
                Ok(())
            })?;
        }
        let packed = fs::read(user.common_dir.join("packed-refs")).ok();
        Ok(Self {
            entry: (hex(&entry), facts.dev(), facts.ino()),
            directories: directories.iter().map(|path| hex(path)).collect(),
            entries,
            symbolic,
            packed: packed.map(|content| to_hex(&content)),
        })
    }

    /// Makes the git directory one that git can work in; says what had to be undone for that.
    pub(super) fn mend(&self) -> Result<Vec<RefusedPath>, GitError> {
        let damaged = || GitError::unexpected("the note of a proposal in place can't be read");
        let entry = path_from(&self.entry.0).ok_or_else(damaged)?;
        let is_same = |facts: &Metadata| (facts.dev(), facts.ino()) == (self.entry.1, self.entry.2);
        if !fs::symlink_metadata(&entry).is_ok_and(|facts| is_same(&facts)) {
            return Err(Refusal::GitDirectoryReplaced(entry).into());
        }
        let directories: Option<Vec<PathBuf>> = self
            .directories
            .iter()
            .map(|path| path_from(path))
            .collect();
        let directories = directories.ok_or_else(damaged)?;
        let mut mended = Vec::new();
        for (path, kind) in &self.entries {
            let path = path_from(path).ok_or_else(damaged)?;
            put_back(&path, kind, &mut mended)?;
        }
        for directory in &directories {
            self.clear_traps(directory, &mut mended)?;
            self.mend_references(&directory.join("refs"), &mut mended)?;
            // Histories of references: only their kind matters, git appends to them.
            walk(&directory.join("logs"), &mut |path, facts| {
                if !facts.is_file() {
                    remove(path, &mut mended)?;
                }
                Ok(())
            })?;
        }
        for (path, content) in &self.symbolic {
            let path = path_from(path).ok_or_else(damaged)?;
            let content = from_hex(content).ok_or_else(damaged)?;
            rewrite(&path, &content, &mut mended)?;
        }
        if let Some(common_dir) = directories.first() {
            let packed = common_dir.join("packed-refs");
            match self.packed.as_ref().map(|hex| from_hex(hex)) {
                Some(Some(content)) => rewrite(&packed, &content, &mut Vec::new())?,
                // Whatever git packed is there as single files again after this.
                _ => discard(&packed)?,
            }
        }
        Ok(mended)
    }

    /// Removes pipes, devices and links that were not there.
    fn clear_traps(&self, directory: &Path, mended: &mut Vec<RefusedPath>) -> Result<(), GitError> {
        for path in listed(directory)? {
            let is_trap = matches!(kind_of(&path)?, Some(Kind::Trap | Kind::Link(_)));
            let name = hex(&path);
            if is_trap && !self.entries.iter().any(|(known, _)| *known == name) {
                remove(&path, mended)?;
            }
        }
        Ok(())
    }

    /// Removes from `refs` what is no plain reference: links, locks, junk, references to others.
    fn mend_references(&self, refs: &Path, mended: &mut Vec<RefusedPath>) -> Result<(), GitError> {
        walk(refs, &mut |path, facts| {
            let content = small(path, facts).unwrap_or_default();
            let name = hex(path);
            let is_known = self.symbolic.iter().any(|(known, _)| *known == name);
            let is_lock = path.extension().is_some_and(|ending| ending == "lock");
            if is_known || (!is_lock && Oid::from_hex(content.trim_ascii_end()).is_some()) {
                return Ok(());
            }
            remove(path, mended)
        })
    }
}

/// Puts an entry of this kind back where another stands or none. What a file holds is put back by
/// others; a directory starts empty.
fn put_back(path: &Path, kind: &Kind, mended: &mut Vec<RefusedPath>) -> Result<(), GitError> {
    let found = kind_of(path)?;
    if found.as_ref() == Some(kind) {
        return Ok(());
    }
    if found.is_some() {
        remove(path, mended)?;
    }
    let made = match kind {
        Kind::Directory => fs::create_dir(path),
        Kind::Link(target) => match path_from(target) {
            Some(target) => symlink(target, path),
            None => Ok(()),
        },
        Kind::File | Kind::Trap | Kind::Socket => Ok(()),
    };
    made.map_err(GitError::io("write", path))
}

fn rewrite(path: &Path, content: &[u8], mended: &mut Vec<RefusedPath>) -> Result<(), GitError> {
    let is_same = fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file())
        && fs::read(path).is_ok_and(|found| found == content);
    if is_same {
        return Ok(());
    }
    remove(path, mended)?;
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, content))
        .map_err(GitError::io("write", path))
}

fn remove(path: &Path, mended: &mut Vec<RefusedPath>) -> Result<(), GitError> {
    discard(path)?;
    let name = path.file_name().unwrap_or_default();
    let within = path.components().rev().skip(1);
    let within = within.take_while(|part| part.as_os_str() != ".git");
    let mut shown: PathBuf = PathBuf::from(".git");
    shown.extend(within.collect::<Vec<_>>().into_iter().rev());
    shown.push(name);
    mended.push(undone(
        shown.as_os_str().as_bytes(),
        "it was undone: git could not have worked with it",
    ));
    Ok(())
}

/// Removes whatever stands there, following nothing.
fn discard(path: &Path) -> Result<(), GitError> {
    let facts = match fs::symlink_metadata(path) {
        Ok(facts) => facts,
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return Err(GitError::io("look at", path)(error)),
    };
    let removed = if facts.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed.map_err(GitError::io("remove", path))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn kind_of(path: &Path) -> Result<Option<Kind>, GitError> {
    let facts = match fs::symlink_metadata(path) {
        Ok(facts) => facts,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(GitError::io("look at", path)(error)),
    };
    Ok(Some(if facts.is_file() {
        Kind::File
    } else if facts.is_dir() {
        Kind::Directory
    } else if facts.is_symlink() {
        let target = fs::read_link(path).map_err(GitError::io("read", path))?;
        Kind::Link(hex(&target))
    } else if facts.file_type().is_socket() {
        Kind::Socket
    } else {
        Kind::Trap
    }))
}

/// The content of a file no longer than a reference.
fn small(path: &Path, facts: &Metadata) -> Option<Vec<u8>> {
    (facts.is_file() && facts.len() <= REFERENCE_BYTES_MAX).then(|| fs::read(path).ok())?
}

fn listed(directory: &Path) -> Result<Vec<PathBuf>, GitError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(GitError::io("read", directory)(error)),
    };
    entries
        .map(|entry| Ok(entry.map_err(GitError::io("read", directory))?.path()))
        .collect()
}

/// Visits everything below a directory that is no directory itself; follows no link.
fn walk(
    directory: &Path,
    visit: &mut dyn FnMut(&Path, &Metadata) -> Result<(), GitError>,
) -> Result<(), GitError> {
    for path in listed(directory)? {
        let facts = match fs::symlink_metadata(&path) {
            Ok(facts) => facts,
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(GitError::io("look at", &path)(error)),
        };
        if facts.is_dir() {
            walk(&path, visit)?;
        } else {
            visit(&path, &facts)?;
        }
    }
    Ok(())
}

fn hex(path: &Path) -> String {
    to_hex(path.as_os_str().as_bytes())
}
