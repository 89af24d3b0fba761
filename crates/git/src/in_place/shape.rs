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
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::mender::{Mender, Standing};
use super::modes::Modes;
use super::packed;
use super::saved::{from_hex, path_from, to_hex};
use crate::error::{GitError, Refusal};
use crate::traps;
use crate::types::Oid;
use crate::user::UserRepository;
use crate::worktree::RefusedPath;

/// Directories that git reads or writes and that lie deeper than the git directory's own entries.
const DEEPER: &[&str] = &["objects/info", "objects/pack", "refs/heads", "refs/tags"];

/// Longest reference file that is read.
const REFERENCE_BYTES_MAX: u64 = 4096;

/// Longest file of packed references that is read: room for millions.
const PACKED_BYTES_MAX: u64 = 256 << 20;

/// What makes another work tree one, and is put back where something stands there that git would
/// wait for.
const OF_WORKTREE: [&str; 3] = ["HEAD", "gitdir", "commondir"];

/// Why something was moved out of git's way.
const IN_THE_WAY: &str = "it was undone: git could not have worked with it";

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
    /// Files of other work trees, with what they hold.
    #[serde(default)]
    others: Vec<(String, String)>,
    /// Permission bits.
    #[serde(default)]
    modes: Modes,
    /// How long an id is, in hexadecimal.
    id_digits: usize,
}

impl Shape {
    pub(super) fn record(user: &UserRepository, mender: &mut Mender) -> Result<Self, GitError> {
        let entry = user.top.join(".git");
        let facts = fs::symlink_metadata(&entry).map_err(GitError::io("look at", &entry))?;
        let directories = git_directories(user);
        let id_digits = user.format.id_bytes() * 2;
        let (mut entries, mut references) = (Vec::new(), Vec::new());
        for directory in &directories {
            for path in read_by_git(mender, directory)? {
                if let Some(kind) = kind_of(mender, &path)? {
                    entries.push((hex(&path), kind));
                }
            }
            for (path, _) in below(mender, &directory.join("refs"))? {
                let content = small(mender, &path)?.unwrap_or_default();
                if !is_lock(&path) && (is_id(&content, id_digits) || is_symbolic(&content)) {
                    references.push((hex(&path), to_hex(&content)));
                }
            }
        }
        let mut others = Vec::new();
        for (folder, _) in mender.list(&directories[0].join("worktrees"))? {
            for path in OF_WORKTREE.map(|name| folder.join(name)) {
                if let Some(content) = small(mender, &path)? {
                    others.push((hex(&path), to_hex(&content)));
                }
            }
        }
        let packed = mender.read(&directories[0].join("packed-refs"), PACKED_BYTES_MAX)?;
        Ok(Self {
            entry: Some((hex(&entry), facts.dev(), facts.ino())),
            directories: directories.iter().map(|path| hex(path)).collect(),
            entries,
            references,
            packed: packed.map(|content| to_hex(&content)),
            others,
            modes: Modes::record(&user.top, &directories),
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
        self.others.retain(|(path, _)| passes(path));
        self
    }

    /// The git directories, that of the work tree last.
    pub(super) fn directories(&self) -> Result<Vec<PathBuf>, GitError> {
        let paths: Option<_> = self.directories.iter().map(|it| path_from(it)).collect();
        paths.ok_or_else(damaged)
    }

    /// Gives what a proposal closed the permissions back that are needed; says what that was.
    /// `store` is our own folder. Comes before all else.
    pub(super) fn open_up(&self, store: &Path) -> Result<Vec<RefusedPath>, GitError> {
        let entry = self.entry.as_ref().and_then(|(path, ..)| path_from(path));
        let top = entry.as_deref().and_then(Path::parent);
        let opened = self.modes.put_back(top, &self.directories()?, store)?;
        self.expect_same_entry()?;
        Ok(opened)
    }

    /// Makes the git directory one that git can work in.
    pub(super) fn mend(&self, mender: &mut Mender) -> Result<(), GitError> {
        self.expect_same_entry()?;
        let mut made_anew = Vec::new();
        for (path, kind) in &self.entries {
            let path = path_from(path).ok_or_else(damaged)?;
            if put_back(&path, kind, mender)? {
                made_anew.push(path);
            }
        }
        let known = self.known_references()?;
        for directory in &self.directories()? {
            self.clear_traps(directory, &known, mender)?;
            self.mend_references(&directory.join("refs"), &known, mender)?;
            // Histories of references: only their kind matters, git appends to them.
            for (path, kind) in below(mender, &directory.join("logs"))? {
                if kind != FileType::RegularFile {
                    undo(&path, mender)?;
                }
            }
        }
        for (path, content) in &known {
            // References that were carried off with the directory they were in, and those that name
            // others: nobody but a fetch makes or changes such.
            let is_carried_off = made_anew.iter().any(|above| path.starts_with(above));
            let is_missing = mender.look(path)?.is_none();
            if (is_carried_off && is_missing) || (is_symbolic(content) && !is_fetched(path)) {
                rewrite(path, content, mender)?;
            }
        }
        self.mend_packed(mender)
    }

    /// Locks of references.
    pub(super) fn locks(&self, mender: &mut Mender) -> Result<Vec<PathBuf>, GitError> {
        let mut found = Vec::new();
        for directory in self.directories()? {
            let all = below(mender, &directory.join("refs"))?.into_iter();
            found.extend(all.map(|(path, _)| path).filter(|path| is_lock(path)));
        }
        Ok(found)
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

    fn known_references(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>, GitError> {
        let known = self.references.iter();
        known
            .map(|(path, content)| Some((path_from(path)?, from_hex(content)?)))
            .collect::<Option<_>>()
            .ok_or_else(damaged)
    }

    /// Undoes pipes, devices and links that were not there.
    fn clear_traps(
        &self,
        directory: &Path,
        references: &BTreeMap<PathBuf, Vec<u8>>,
        mender: &mut Mender,
    ) -> Result<(), GitError> {
        let mut found = Vec::new();
        for path in read_by_git(mender, directory)? {
            if matches!(kind_of(mender, &path)?, Some(Kind::Trap | Kind::Link(_))) {
                found.push(path);
            }
        }
        found.extend(traps::in_git_directory(directory));
        let small = OF_WORKTREE.map(|name| directory.join(name)).into_iter();
        let others = self.others.iter().filter_map(|(path, _)| path_from(path));
        for path in small.chain(others) {
            let is_huge = |it: Standing| it.bytes > REFERENCE_BYTES_MAX;
            if mender.look(&path)?.is_some_and(is_huge) {
                undo(&path, mender)?;
                found.push(path);
            }
        }
        for path in found {
            let name = hex(&path);
            if self.entries.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let other = self.others.iter().find(|(known, _)| *known == name);
            let other = other.and_then(|(_, content)| from_hex(content));
            match references.get(&path).cloned().or(other) {
                Some(content) => rewrite(&path, &content, mender)?,
                None if mender.look(&path)?.is_some() => undo(&path, mender)?,
                None => {}
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
        mender: &mut Mender,
    ) -> Result<(), GitError> {
        for (path, kind) in below(mender, refs)? {
            let is_file = kind == FileType::RegularFile;
            let content = small(mender, &path)?.unwrap_or_default();
            let is_fit = is_id(&content, self.id_digits)
                || (is_symbolic(&content) && is_fetched(&path))
                || (is_lock(&path) && is_file);
            if is_fit {
                continue;
            }
            match known.get(&path) {
                Some(content) => rewrite(&path, content, mender)?,
                None => undo(&path, mender)?,
            }
        }
        Ok(())
    }

    fn mend_packed(&self, mender: &mut Mender) -> Result<(), GitError> {
        let Some(common_dir) = self.directories()?.into_iter().next() else {
            return Ok(());
        };
        let path = common_dir.join("packed-refs");
        let before = self.packed.as_ref().map(|hex| from_hex(hex));
        let before = before
            .map(|content| content.ok_or_else(damaged))
            .transpose()?;
        let standing = mender.look(&path)?;
        let found = mender.read(&path, PACKED_BYTES_MAX)?;
        match packed::mended(found.as_deref(), before.as_deref(), self.id_digits) {
            Some(content) if found.as_ref() == Some(&content) => Ok(()),
            Some(content) => rewrite(&path, &content, mender),
            None if standing.is_some() => undo(&path, mender),
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
fn put_back(path: &Path, kind: &Kind, mender: &mut Mender) -> Result<bool, GitError> {
    let found = kind_of(mender, path)?;
    if found.as_ref() == Some(kind) {
        return Ok(false);
    }
    if found.is_some() {
        undo(path, mender)?;
    }
    match kind {
        Kind::Directory => drop(mender.directory(path)?),
        Kind::Link(target) => {
            if let Some(target) = path_from(target) {
                mender.link(path, &target)?;
            }
        }
        Kind::File | Kind::Trap | Kind::Socket => {}
    }
    Ok(true)
}

fn rewrite(path: &Path, content: &[u8], mender: &mut Mender) -> Result<(), GitError> {
    let length = content.len() as u64;
    if mender.read(path, length)?.as_deref() == Some(content) {
        return Ok(());
    }
    let moved = mender.write(path, content, None)?;
    mender.say(path, &format!("it was put back{moved}"));
    Ok(())
}

fn undo(path: &Path, mender: &mut Mender) -> Result<(), GitError> {
    let moved = mender.take_away(path)?;
    mender.say(path, &format!("{IN_THE_WAY}{moved}"));
    Ok(())
}

fn kind_of(mender: &mut Mender, path: &Path) -> Result<Option<Kind>, GitError> {
    let Some(standing) = mender.look(path)? else {
        return Ok(None);
    };
    Ok(Some(match standing.kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Socket => Kind::Socket,
        FileType::Symlink => match mender.target(path)? {
            Some(target) => Kind::Link(hex(&target)),
            None => Kind::Trap,
        },
        _ => Kind::Trap,
    }))
}

/// The content of a file no longer than a reference.
fn small(mender: &mut Mender, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
    mender.read(path, REFERENCE_BYTES_MAX)
}

/// The git directory that all work trees share, and that of this one where it is another, as they
/// are reached without a link.
pub(super) fn git_directories(user: &UserRepository) -> Vec<PathBuf> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let (common_dir, git_dir) = (real(&user.common_dir), real(&user.git_dir));
    if git_dir == common_dir {
        return vec![common_dir];
    }
    vec![common_dir, git_dir]
}

/// What git reads or writes of a git directory, but for references and objects.
fn read_by_git(mender: &mut Mender, directory: &Path) -> Result<Vec<PathBuf>, GitError> {
    let paths = |found: Vec<(PathBuf, FileType)>| found.into_iter().map(|(path, _)| path);
    let mut found: Vec<PathBuf> = paths(mender.list(directory)?).collect();
    found.extend(DEEPER.iter().map(|name| directory.join(name)));
    for folder in ["info", "objects/info"].map(|name| directory.join(name)) {
        found.extend(paths(mender.list(&folder)?));
    }
    Ok(found)
}

/// Everything below a directory that is no directory itself; no link is followed.
fn below(mender: &mut Mender, directory: &Path) -> Result<Vec<(PathBuf, FileType)>, GitError> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for (path, kind) in mender.list(&directory)? {
            if kind == FileType::Directory {
                directories.push(path);
            } else {
                found.push((path, kind));
            }
        }
    }
    Ok(found)
}

fn hex(path: &Path) -> String {
    to_hex(path.as_os_str().as_bytes())
}
