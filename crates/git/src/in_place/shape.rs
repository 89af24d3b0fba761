//! The shape of a git directory: whatever has to be so that git can work in it at all, and works on
//! what it seems to.
//!
//! A pipe in the place of `HEAD` makes git wait for ever, a link in the place of `refs` makes it
//! write elsewhere, a line of junk in `packed-refs` makes it see no repository. All of it is mended
//! by hand, following no link, before any git is run. What git can read is nobody's damage, and may
//! be anybody's work (references that were fetched, packed, moved elsewhere): it is left as it is,
//! and what of it is to be undone is the business of [`References`](super::references::References).

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::saved::{from_hex, path_from, to_hex};
use super::{packed, undone};
use crate::disk;
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
    /// The checkout's `.git`, and which one it is; none where that checkout is gone.
    entry: Option<(String, u64, u64)>,
    /// The git directory of the work tree and the one that all share.
    directories: Vec<String>,
    entries: Vec<(String, Kind)>,
    /// The references that are files, with what they hold.
    references: Vec<(String, String)>,
    packed: Option<String>,
    /// How long an id is, in hexadecimal.
    id_digits: usize,
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
            for path in read_by_git(directory)? {
                if let Some(kind) = kind_of(&path)? {
                    entries.push((hex(&path), kind));
                }
            }
        }
        let id_digits = user.format.id_bytes() * 2;
        let mut references = Vec::new();
        for directory in &directories {
            walk(&directory.join("refs"), &mut |path, facts| {
                let content = small(path, facts).unwrap_or_default();
                if !is_lock(path) && (is_id(&content, id_digits) || is_symbolic(&content)) {
                    references.push((hex(path), to_hex(&content)));
                }
                Ok(())
            })?;
        }
        let packed = fs::read(user.common_dir.join("packed-refs")).ok();
        Ok(Self {
            entry: Some((hex(&entry), facts.dev(), facts.ino())),
            directories: directories.iter().map(|path| hex(path)).collect(),
            entries,
            references,
            packed: packed.map(|content| to_hex(&content)),
            id_digits,
        })
    }

    /// The same of a checkout that is gone, for the paths that pass.
    pub(super) fn only(mut self, is_wanted: impl Fn(&Path) -> bool) -> Self {
        let passes = |path: &String| path_from(path).is_some_and(|path| is_wanted(&path));
        self.entry = None;
        self.directories.retain(passes);
        self.entries.retain(|(path, _)| passes(path));
        self.references.retain(|(path, _)| passes(path));
        self
    }

    /// Makes the git directory one that git can work in; says what had to be undone for that.
    pub(super) fn mend(&self) -> Result<Vec<RefusedPath>, GitError> {
        self.expect_same_entry()?;
        let mut mended = Vec::new();
        let mut made_anew = Vec::new();
        for (path, kind) in &self.entries {
            let path = path_from(path).ok_or_else(damaged)?;
            if put_back(&path, kind, &mut mended)? {
                made_anew.push(path);
            }
        }
        let known = self.known_references()?;
        for directory in &self.directories()? {
            self.clear_traps(directory, &mut mended)?;
            self.mend_references(&directory.join("refs"), &known, &mut mended)?;
            // Histories of references: only their kind matters, git appends to them.
            walk(&directory.join("logs"), &mut |path, facts| {
                if !facts.is_file() {
                    remove(path, &mut mended)?;
                }
                Ok(())
            })?;
        }
        for (path, content) in &known {
            // References that were carried off with the directory they were in, and those that name
            // others: nobody but a fetch makes or changes such.
            let is_carried_off = made_anew.iter().any(|above| path.starts_with(above));
            let is_missing = fs::symlink_metadata(path).is_err();
            if (is_carried_off && is_missing) || (is_symbolic(content) && !is_fetched(path)) {
                rewrite(path, content, &mut mended)?;
            }
        }
        self.mend_packed(&mut mended)?;
        Ok(mended)
    }

    /// Locks of references.
    pub(super) fn locks(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for directory in self.directories().unwrap_or_default() {
            // Where it can't be read, whoever needs it says so.
            let _ = walk(&directory.join("refs"), &mut |path, _| {
                if is_lock(path) {
                    found.push(path.to_path_buf());
                }
                Ok(())
            });
        }
        found
    }

    fn expect_same_entry(&self) -> Result<(), GitError> {
        let Some((entry, device, inode)) = &self.entry else {
            return Ok(());
        };
        let entry = path_from(entry).ok_or_else(damaged)?;
        let is_same = |facts: &Metadata| (facts.dev(), facts.ino()) == (*device, *inode);
        if !fs::symlink_metadata(&entry).is_ok_and(|facts| is_same(&facts)) {
            return Err(Refusal::GitDirectoryReplaced(entry).into());
        }
        Ok(())
    }

    fn directories(&self) -> Result<Vec<PathBuf>, GitError> {
        let paths: Option<_> = self.directories.iter().map(|it| path_from(it)).collect();
        paths.ok_or_else(damaged)
    }

    fn known_references(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>, GitError> {
        let known = self.references.iter();
        known
            .map(|(path, content)| Some((path_from(path)?, from_hex(content)?)))
            .collect::<Option<_>>()
            .ok_or_else(damaged)
    }

    /// Removes pipes, devices and links that were not there.
    fn clear_traps(&self, directory: &Path, mended: &mut Vec<RefusedPath>) -> Result<(), GitError> {
        for path in read_by_git(directory)? {
            let is_trap = matches!(kind_of(&path)?, Some(Kind::Trap | Kind::Link(_)));
            let name = hex(&path);
            if is_trap && !self.entries.iter().any(|(known, _)| *known == name) {
                remove(&path, mended)?;
            }
        }
        Ok(())
    }

    /// Undoes in `refs` what is no reference: links, junk, and references to others that no fetch
    /// makes.
    fn mend_references(
        &self,
        refs: &Path,
        known: &BTreeMap<PathBuf, Vec<u8>>,
        mended: &mut Vec<RefusedPath>,
    ) -> Result<(), GitError> {
        walk(refs, &mut |path, facts| {
            let content = small(path, facts).unwrap_or_default();
            let is_fit = is_id(&content, self.id_digits)
                || (is_symbolic(&content) && is_fetched(path))
                || (is_lock(path) && facts.is_file());
            if is_fit {
                return Ok(());
            }
            match known.get(path) {
                Some(content) => rewrite(path, content, mended),
                None => remove(path, mended),
            }
        })
    }

    fn mend_packed(&self, mended: &mut Vec<RefusedPath>) -> Result<(), GitError> {
        let Some(common_dir) = self.directories()?.into_iter().next() else {
            return Ok(());
        };
        let path = common_dir.join("packed-refs");
        let before = self.packed.as_ref().map(|hex| from_hex(hex));
        let before = before
            .map(|content| content.ok_or_else(damaged))
            .transpose()?;
        let kind = kind_of(&path)?;
        let is_file = kind == Some(Kind::File);
        let found = is_file.then(|| fs::read(&path).ok()).flatten();
        match packed::mended(found.as_deref(), before.as_deref(), self.id_digits) {
            Some(content) if found.as_ref() == Some(&content) => Ok(()),
            Some(content) => rewrite(&path, &content, mended),
            None if kind.is_some() => remove(&path, mended),
            None => Ok(()),
        }
    }
}

fn damaged() -> GitError {
    GitError::unexpected("the note of a proposal in place can't be read")
}

fn is_id(content: &[u8], digits: usize) -> bool {
    let text = content.trim_ascii_end();
    // All zeros is how git says that there is nothing.
    text.len() == digits && Oid::from_hex(text).is_some() && text.iter().any(|it| *it != b'0')
}

/// Whether it names another reference.
fn is_symbolic(content: &[u8]) -> bool {
    content.starts_with(b"ref: refs/")
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "lock")
}

/// Whether it is one of those that only a fetch makes and changes.
fn is_fetched(path: &Path) -> bool {
    let names: Vec<_> = path.iter().collect();
    names.windows(2).any(|pair| pair == ["refs", "remotes"])
}

/// Puts an entry of this kind back where another stands or none. What a file holds is put back by
/// others; a directory starts empty. False: it is as it was.
fn put_back(path: &Path, kind: &Kind, mended: &mut Vec<RefusedPath>) -> Result<bool, GitError> {
    let found = kind_of(path)?;
    if found.as_ref() == Some(kind) {
        return Ok(false);
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
    made.map_err(GitError::io("write", path))?;
    Ok(true)
}

fn rewrite(path: &Path, content: &[u8], mended: &mut Vec<RefusedPath>) -> Result<(), GitError> {
    if kind_of(path)? == Some(Kind::File) && fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    discard(path)?;
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(GitError::io("write", path))?;
    disk::replace_durably(path, content)?;
    mended.push(undone(&shown(path), "it was put back"));
    Ok(())
}

fn remove(path: &Path, mended: &mut Vec<RefusedPath>) -> Result<(), GitError> {
    discard(path)?;
    mended.push(undone(
        &shown(path),
        "it was undone: git could not have worked with it",
    ));
    Ok(())
}

/// A path in a git directory, for people.
fn shown(path: &Path) -> Vec<u8> {
    let name = path.file_name().unwrap_or_default();
    let within = path.components().rev().skip(1);
    let within = within.take_while(|part| part.as_os_str() != ".git");
    let mut shown: PathBuf = PathBuf::from(".git");
    shown.extend(within.collect::<Vec<_>>().into_iter().rev());
    shown.push(name);
    shown.into_os_string().into_vec()
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

/// What git reads or writes of a git directory, but for references and objects.
fn read_by_git(directory: &Path) -> Result<Vec<PathBuf>, GitError> {
    let mut found = listed(directory)?;
    found.extend(DEEPER.iter().map(|name| directory.join(name)));
    for folder in ["info", "objects/info"].map(|name| directory.join(name)) {
        // Nothing is followed out of the git directory.
        if kind_of(&folder)? == Some(Kind::Directory) {
            found.extend(listed(&folder)?);
        }
    }
    Ok(found)
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
