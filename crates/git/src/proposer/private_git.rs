//! The proposer's `.git`: made from a template, watched by stamps, never obeyed.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use rustix::fs::{AtFlags, FileType, statat};

use super::index::index_of;
use crate::error::GitError;
use crate::hash::{ObjectKind, hash_object};
use crate::place::{Place, names, open_directory};
use crate::store::{ObjectStore, Person, parse_commit};
use crate::types::{ObjectFormat, Oid};
use crate::user::UserRepository;
use crate::worktree::{Stamp, WorkTree, now_ns};

/// Files of the proposer's `.git` above this are not read to find its HEAD.
const LARGEST_READ_BYTES: u64 = 1 << 20;

/// What every `.git` of a proposer is made of.
#[derive(Debug)]
pub(super) struct Template {
    format: ObjectFormat,
    branch: String,
    configuration: String,
    alternates: Vec<u8>,
    excludes: Vec<u8>,
    shallow: Option<Vec<u8>>,
}

impl Template {
    pub(super) fn new(user: &UserRepository, store: &ObjectStore, identity: &Person) -> Self {
        let mut directories = vec![store.dir().join("objects")];
        directories.extend(user.object_directories());
        let mut alternates = Vec::new();
        for directory in directories {
            alternates.extend_from_slice(&quoted(directory.as_os_str().as_bytes()));
            alternates.push(b'\n');
        }
        Self {
            format: store.format(),
            branch: user
                .branch
                .clone()
                .unwrap_or_else(|| "loopwright".to_owned()),
            configuration: configuration(store.format(), identity),
            alternates,
            excludes: user.excludes(),
            shallow: fs::read(user.common_dir.join("shallow")).ok(),
        }
    }

    pub(super) fn excludes(&self) -> &[u8] {
        &self.excludes
    }
}

fn configuration(format: ObjectFormat, identity: &Person) -> String {
    let (version, extensions) = match format {
        ObjectFormat::Sha1 => (0, ""),
        ObjectFormat::Sha256 => (1, "[extensions]\n\tobjectformat = sha256\n"),
    };
    let (name, email) = (value(&identity.name), value(&identity.email));
    format!(
        "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n\
         \tlogallrefupdates = true\n{extensions}[user]\n\tname = {name}\n\temail = {email}\n\
         [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[commit]\n\tgpgsign = false\n"
    )
}

/// A value of a configuration file, quoted.
fn value(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', " ");
    format!("\"{escaped}\"")
}

/// A line of `alternates`, quoted where git would misread it.
fn quoted(path: &[u8]) -> Vec<u8> {
    let plain = path
        .iter()
        .all(|byte| !matches!(byte, b'"' | b'\\' | b'\n' | b'#'));
    if plain {
        return path.to_vec();
    }
    let mut line = vec![b'"'];
    for byte in path {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            byte => line.push(*byte),
        }
    }
    line.push(b'"');
    line
}

/// A commit the proposer left as HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHead {
    /// Its id (in the proposer's repository).
    pub oid: Oid,
    /// The branch it was on, if any.
    pub branch: Option<String>,
    /// What the commit says, if it could be read.
    pub message: Option<String>,
}

/// A file of `.git` as it was made.
#[derive(Debug)]
struct Known {
    path: Vec<u8>,
    stamp: Stamp,
    content: Oid,
    racy: bool,
}

/// The `.git` in a proposer's work tree.
#[derive(Debug)]
pub(super) struct PrivateGit {
    path: PathBuf,
    head: Option<Oid>,
    /// By path, sorted; directories are in it with their kind only.
    files: Vec<Known>,
    directories: Vec<Vec<u8>>,
    format: ObjectFormat,
    /// What a look ahead found; good for one question.
    looked: Option<bool>,
}

impl PrivateGit {
    /// The `.git` of this work tree, not made yet.
    pub(super) fn new(work: &Path) -> Self {
        Self {
            path: work.join(".git"),
            head: None,
            files: Vec::new(),
            directories: Vec::new(),
            format: ObjectFormat::Sha1,
            looked: None,
        }
    }

    /// Makes it anew, pointing at `head`, with an index that knows the work tree to be clean.
    pub(super) fn make(
        &mut self,
        staging: &Path,
        template: &Template,
        head: &Oid,
        work: &WorkTree,
    ) -> Result<(), GitError> {
        self.head = None;
        self.format = template.format;
        let branch = format!("refs/heads/{}", template.branch);
        let index = index_of(work, template.format)?;
        let mut files: Vec<(&str, &[u8])> = Vec::new();
        let head_line = format!("ref: {branch}\n");
        let branch_line = format!("{head}\n");
        files.push(("HEAD", head_line.as_bytes()));
        files.push(("config", template.configuration.as_bytes()));
        files.push(("index", &index));
        files.push(("info/exclude", &template.excludes));
        files.push(("objects/info/alternates", &template.alternates));
        files.push((&branch, branch_line.as_bytes()));
        if let Some(shallow) = &template.shallow {
            files.push(("shallow", shallow));
        }
        files.sort_unstable();
        remove_directory(staging)?;
        for directory in ["", "hooks", "objects/pack", "refs/tags"] {
            let path = staging.join(directory);
            fs::create_dir_all(&path).map_err(GitError::io("make directory", &path))?;
        }
        for (name, content) in &files {
            let path = staging.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(GitError::io("make directory", parent))?;
            }
            fs::write(&path, content).map_err(GitError::io("write", &path))?;
        }
        Place::open_or_make(work.path())?.remove(b".git")?;
        fs::rename(staging, &self.path).map_err(GitError::io("write", &self.path))?;
        self.note(&files)?;
        self.head = Some(*head);
        Ok(())
    }

    /// Remembers how everything looks that was just made.
    fn note(&mut self, files: &[(&str, &[u8])]) -> Result<(), GitError> {
        self.files.clear();
        let found = self.walk()?.unwrap_or_default();
        for (path, stamp) in found.files {
            let content = files
                .iter()
                .find(|(name, _)| name.as_bytes() == path)
                .map_or(&b""[..], |(_, content)| content);
            self.files.push(Known {
                content: hash_object(self.format, ObjectKind::Blob, content)?,
                path,
                stamp,
                racy: true,
            });
        }
        self.directories = found.directories;
        Ok(())
    }

    /// True if it is, file for file, what was made for this commit.
    pub(super) fn is_untouched(&mut self, head: &Oid) -> Result<bool, GitError> {
        let looked = self.looked.take();
        if self.head.as_ref() != Some(head) {
            return Ok(false);
        }
        looked.map_or_else(|| self.matches(), Ok)
    }

    /// Looks ahead, for the next question whether it is untouched. No command may run in between.
    pub(super) fn look_ahead(&mut self) {
        self.looked = None;
        self.looked = self.matches().ok();
    }

    fn matches(&mut self) -> Result<bool, GitError> {
        let taken_ns = now_ns();
        let Some(found) = self.walk()? else {
            return Ok(false);
        };
        if found.odd
            || found.directories != self.directories
            || found.files.len() != self.files.len()
        {
            return Ok(false);
        }
        for ((path, stamp), known) in found.files.iter().zip(&mut self.files) {
            if *path != known.path || *stamp != known.stamp {
                return Ok(false);
            }
            if known.racy {
                let content = read_limited(&self.path, path, u64::MAX)?.unwrap_or_default();
                if hash_object(self.format, ObjectKind::Blob, &content)? != known.content {
                    return Ok(false);
                }
                known.racy = stamp.is_racy(taken_ns);
            }
        }
        Ok(true)
    }

    /// Everything in it, sorted; `None` if there is no such directory.
    fn walk(&self) -> Result<Option<Walk>, GitError> {
        let Some(place) = Place::open(&self.path)? else {
            return Ok(None);
        };
        let mut walk = Walk {
            // A proposer may leave a million files; more than were made is all we need to know.
            limit: if self.files.is_empty() {
                usize::MAX
            } else {
                self.files.len() + self.directories.len()
            },
            ..Walk::default()
        };
        walk.directory(&place, place.root(), &[])?;
        walk.files
            .sort_unstable_by(|one, other| one.0.cmp(&other.0));
        walk.directories.sort_unstable();
        Ok(Some(walk))
    }

    /// The commit the proposer left, if it is another than the one it was given.
    pub(super) fn agent_head(
        &mut self,
        format: ObjectFormat,
    ) -> Result<Option<AgentHead>, GitError> {
        let Some(given) = self.head else {
            return Ok(None);
        };
        let Some(line) = read_limited(&self.path, b"HEAD", 4096)? else {
            return Ok(None);
        };
        let line = line.trim_ascii();
        let (oid, branch) = match line.strip_prefix(b"ref: ") {
            None => (Oid::from_hex(line), None),
            Some(name) if is_plain_reference(name) => {
                let short = name.strip_prefix(b"refs/heads/").unwrap_or(name);
                let branch = String::from_utf8_lossy(short).into_owned();
                (self.reference(name)?, Some(branch))
            }
            Some(_) => (None, None),
        };
        let Some(oid) = oid.filter(|oid| *oid != given) else {
            return Ok(None);
        };
        Ok(Some(AgentHead {
            message: self.message(&oid, format),
            oid,
            branch,
        }))
    }

    fn reference(&self, name: &[u8]) -> Result<Option<Oid>, GitError> {
        if let Some(content) = read_limited(&self.path, name, 4096)? {
            return Ok(Oid::from_hex(content.trim_ascii()));
        }
        let packed = read_limited(&self.path, b"packed-refs", LARGEST_READ_BYTES)?;
        Ok(packed.and_then(|packed| {
            packed.split(|byte| *byte == b'\n').find_map(|line| {
                let (hex, rest) = line.split_at_checked(format_hex(self.format))?;
                (rest.strip_prefix(b" ")? == name).then(|| Oid::from_hex(hex))?
            })
        }))
    }

    /// The message of a commit that lies loose in the proposer's own objects.
    fn message(&self, oid: &Oid, format: ObjectFormat) -> Option<String> {
        let hex = oid.to_hex();
        let path = format!("objects/{}/{}", &hex[..2], &hex[2..]);
        let packed = read_limited(&self.path, path.as_bytes(), LARGEST_READ_BYTES).ok()??;
        let mut whole = Vec::new();
        ZlibDecoder::new(packed.as_slice())
            .take(LARGEST_READ_BYTES)
            .read_to_end(&mut whole)
            .ok()?;
        let end = whole.iter().take(64).position(|byte| *byte == 0)?;
        let content = &whole[end + 1..];
        let honest = hash_object(format, ObjectKind::Commit, content).ok()? == *oid;
        honest.then(|| parse_commit(content).map(|commit| commit.message))?
    }
}

fn format_hex(format: ObjectFormat) -> usize {
    format.id_bytes() * 2
}

/// A name that leads nowhere but below `.git/refs`.
fn is_plain_reference(name: &[u8]) -> bool {
    name.starts_with(b"refs/")
        && name
            .split(|byte| *byte == b'/')
            .all(|part| !part.is_empty() && part != b"." && part != b"..")
        && !name.contains(&0)
}

/// Reads a small plain file below a directory, following nothing.
fn read_limited(base: &Path, path: &[u8], limit: u64) -> Result<Option<Vec<u8>>, GitError> {
    let Some(mut place) = Place::open(base)? else {
        return Ok(None);
    };
    let Some(file) = place.open_file(path)? else {
        return Ok(None);
    };
    let mut content = Vec::new();
    file.take(limit)
        .read_to_end(&mut content)
        .map_err(GitError::io("read", &base.join(OsStr::from_bytes(path))))?;
    Ok(Some(content))
}

fn remove_directory(path: &Path) -> Result<(), GitError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(GitError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// What a walk through `.git` met.
#[derive(Debug, Default)]
struct Walk {
    files: Vec<(Vec<u8>, Stamp)>,
    directories: Vec<Vec<u8>>,
    /// Something that is neither a file nor a directory, or too much of everything.
    odd: bool,
    limit: usize,
}

impl Walk {
    fn directory(
        &mut self,
        place: &Place,
        at: std::os::fd::BorrowedFd<'_>,
        path: &[u8],
    ) -> Result<(), GitError> {
        let failed = |error| place.error("read", path, error);
        for (name, kind) in names(at).map_err(failed)? {
            if self.odd || self.files.len() + self.directories.len() > self.limit {
                self.odd = true;
                return Ok(());
            }
            let mut full = path.to_vec();
            if !full.is_empty() {
                full.push(b'/');
            }
            full.extend_from_slice(&name);
            match kind {
                FileType::Directory => {
                    let handle = open_directory(at, &name).map_err(failed)?;
                    self.directories.push(full.clone());
                    self.directory(place, handle.as_fd(), &full)?;
                }
                FileType::RegularFile => {
                    let stat = statat(at, &*name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
                    self.files.push((full, Stamp::of(&stat)));
                }
                _ => self.odd = true,
            }
        }
        Ok(())
    }
}
