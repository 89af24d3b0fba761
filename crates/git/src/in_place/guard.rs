//! Configuration and hooks of the user's repository: recorded, compared, put back. What is replaced
//! is moved aside: it may be the user's own work.
//!
//! Only what lies in the checkout and its git directories is put back, and no link is followed: what
//! one leads to is the user's alone (see [`Outside`](super::outside::Outside)).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::mender::{Mender, Standing};
use super::saved::{self, SavedGuard};
use super::shape::git_directories;
use crate::error::{GitError, Refusal};
use crate::git::split_nul;
use crate::types::{Mode, RepoPath, TreeListing};
use crate::user::{UserRepository, quiet};

/// Files of the shared git directory that git obeys.
const OBEYED: &[&str] = &[
    "config",
    "info/exclude",
    "info/attributes",
    "info/grafts",
    "objects/info/alternates",
    "shallow",
];

/// Longest file that is read for a path in it.
pub(super) const NAME_BYTES_MAX: u64 = 8192;

/// Largest file that is held.
pub(super) const HELD_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    File(Vec<u8>, u32),
    Link(PathBuf),
}

/// What git obeys in a repository, as it was before a proposal.
#[derive(Debug)]
pub(super) struct Guard {
    top: PathBuf,
    singles: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    known: BTreeMap<PathBuf, Content>,
    /// Paths of the tree itself that git obeys: tracked hooks, included configuration.
    in_tree: Vec<RepoPath>,
    /// Files of the tree below a guarded directory; they belong to the proposal.
    tracked: Vec<PathBuf>,
}

impl Guard {
    pub(super) fn record(
        user: &UserRepository,
        listing: &TreeListing,
        mender: &mut Mender,
    ) -> Result<Self, GitError> {
        let mut places = Places::of(user, listing, mender)?;
        let in_tree = places.in_tree(&user.top, mender);
        let tracked = in_tree
            .iter()
            .flat_map(|above| {
                listing
                    .keys()
                    .filter(move |path| *path == above || path.is_below(above))
                    .map(|path| path.to_path(&user.top))
            })
            .collect();
        let mut guard = Self {
            top: user.top.clone(),
            singles: places.singles,
            directories: places.directories,
            known: BTreeMap::new(),
            in_tree,
            tracked,
        };
        for path in guard.obeyed(mender)? {
            if let Some(content) = read(&path, mender)? {
                guard.known.insert(path, content);
            }
        }
        Ok(guard)
    }

    /// True if git would obey the file at this path of the tree.
    pub(super) fn obeys(&self, path: &RepoPath) -> bool {
        self.in_tree
            .iter()
            .any(|obeyed| obeyed == path || path.is_below(obeyed))
    }

    /// What a later process needs to put things back.
    pub(super) fn save(&self) -> SavedGuard {
        let hex_of = |path: &PathBuf| saved::to_hex(path.as_os_str().as_bytes());
        SavedGuard {
            top: hex_of(&self.top),
            singles: self.singles.iter().map(hex_of).collect(),
            directories: self.directories.iter().map(hex_of).collect(),
            tracked: self.tracked.iter().map(hex_of).collect(),
            known: self
                .known
                .iter()
                .map(|(path, content)| {
                    let (link, bytes, mode) = match content {
                        Content::File(bytes, mode) => (false, bytes.as_slice(), *mode),
                        Content::Link(target) => (true, target.as_os_str().as_bytes(), 0),
                    };
                    (hex_of(path), link, saved::to_hex(bytes), mode)
                })
                .collect(),
        }
    }

    /// The guard an earlier process saved; `None` if it can't be read.
    pub(super) fn load(from: &SavedGuard) -> Option<Self> {
        let paths = |list: &[String]| -> Option<Vec<PathBuf>> {
            list.iter().map(|hex| saved::path_from(hex)).collect()
        };
        let mut known = BTreeMap::new();
        for (path, link, bytes, mode) in &from.known {
            let content = if *link {
                Content::Link(saved::path_from(bytes)?)
            } else {
                Content::File(saved::from_hex(bytes)?, *mode)
            };
            known.insert(saved::path_from(path)?, content);
        }
        Some(Self {
            top: saved::path_from(&from.top)?,
            singles: paths(&from.singles)?,
            directories: paths(&from.directories)?,
            known,
            in_tree: Vec::new(),
            tracked: paths(&from.tracked)?,
        })
    }

    /// Everything that git obeys now. A link in the place of a directory is one thing.
    fn obeyed(&self, mender: &mut Mender) -> Result<Vec<PathBuf>, GitError> {
        let mut found = self.singles.clone();
        let mut directories = self.directories.clone();
        while let Some(directory) = directories.pop() {
            let standing = mender.look(&directory)?;
            if standing.is_some_and(|it| it.kind != FileType::Directory) {
                found.push(directory);
                continue;
            }
            for (path, kind) in mender.list(&directory)? {
                if kind == FileType::Directory {
                    directories.push(path);
                } else {
                    found.push(path);
                }
            }
        }
        found.sort();
        found.dedup();
        found.retain(|path| !self.tracked.contains(path));
        Ok(found)
    }

    /// Makes everything as it was recorded.
    pub(super) fn put_back(&self, mender: &mut Mender) -> Result<(), GitError> {
        for path in self.obeyed(mender)? {
            let Some(standing) = mender.look(&path)? else {
                continue;
            };
            let before = self.known.get(&path);
            if before.is_some_and(|it| is_still(it, &path, standing, mender)) {
                continue;
            }
            let (what, moved) = match before {
                Some(before) => ("it was put back", put(&path, before, mender)?),
                None => ("it was removed", mender.take_away(&path)?),
            };
            mender.say(&path, &format!("{what}: git would have obeyed it{moved}"));
        }
        for (path, content) in &self.known {
            let standing = mender.look(path)?;
            if standing.is_none_or(|it| it.kind == FileType::Directory) {
                let moved = put(path, content, mender)?;
                mender.say(path, &format!("it was put back{moved}"));
            }
        }
        Ok(())
    }

    /// The same guard, for the paths that pass.
    pub(super) fn only(mut self, is_wanted: impl Fn(&Path) -> bool) -> Self {
        self.singles.retain(|path| is_wanted(path));
        self.directories.retain(|path| is_wanted(path));
        self.known.retain(|path, _| is_wanted(path));
        self
    }

    /// The top of the checkout.
    pub(super) fn top(&self) -> &Path {
        &self.top
    }
}

/// Where what git obeys lies, in the repository or not.
pub(super) struct Places {
    pub(super) singles: Vec<PathBuf>,
    pub(super) directories: Vec<PathBuf>,
    /// What configuration names: included files, the folder of hooks.
    named: Vec<PathBuf>,
}

impl Places {
    pub(super) fn of(
        user: &UserRepository,
        listing: &TreeListing,
        mender: &mut Mender,
    ) -> Result<Self, GitError> {
        let git_directories = git_directories(user);
        let common_dir = &git_directories[0];
        let git_dir = git_directories.last().unwrap_or(common_dir);
        let mut singles: Vec<PathBuf> = OBEYED.iter().map(|name| common_dir.join(name)).collect();
        singles.push(git_dir.join("config.worktree"));
        // What says which repository this is.
        for directory in &git_directories {
            singles.extend(["commondir", "gitdir"].map(|name| directory.join(name)));
        }
        let submodules = listing
            .iter()
            .filter(|(_, (mode, _))| *mode == Mode::Submodule);
        let checkouts = submodules.map(|(path, _)| path.to_path(&user.top));
        for checkout in checkouts.chain([user.top.clone()]) {
            let entry = checkout.join(".git");
            if fs::symlink_metadata(&entry).is_ok_and(|facts| facts.is_file()) {
                singles.push(entry);
            }
        }
        let mut directories = vec![common_dir.join("hooks")];
        for module in module_directories(user, listing, mender)? {
            let head = module.join("HEAD");
            // A submodule's HEAD is mostly a commit; where it is a branch, that counts too.
            if let Some(text) = mender.read(&head, NAME_BYTES_MAX)?
                && let Some(branch) = text.trim_ascii_end().strip_prefix(b"ref: ")
            {
                singles.push(module.join(std::ffi::OsStr::from_bytes(branch)));
            }
            singles.extend(["config", "index", "info/attributes"].map(|name| module.join(name)));
            singles.push(head);
            directories.push(module.join("hooks"));
        }
        let mut named = Vec::new();
        let git = quiet(user.as_user());
        let origins = git.run(["config", "--list", "--show-origin", "--name-only", "-z"])?;
        for record in split_nul(&origins) {
            if let Some(file) = record.strip_prefix(b"file:") {
                named.push(real(&user.top.join(std::ffi::OsStr::from_bytes(file))));
            }
        }
        named.sort();
        named.dedup();
        singles.extend(named.iter().cloned());
        let hooks = hooks_of(user)?;
        directories.push(hooks.clone());
        named.push(hooks);
        for places in [&mut singles, &mut directories] {
            places.sort();
            places.dedup();
        }
        Ok(Self {
            singles,
            directories,
            named,
        })
    }

    /// What of it is in the tree.
    fn in_tree(&mut self, top: &Path, mender: &Mender) -> Vec<RepoPath> {
        self.singles.retain(|path| mender.covers(path));
        self.directories.retain(|path| mender.covers(path));
        let below = self.named.iter().filter_map(|path| {
            let below = path.strip_prefix(top).ok()?;
            Some(RepoPath::new(below.as_os_str().as_bytes()))
        });
        let mut in_tree: Vec<RepoPath> = below
            .filter(|path| path.names().next() != Some(b".git"))
            .collect();
        in_tree.sort();
        in_tree.dedup();
        in_tree
    }
}

/// A path with no link on the way to what is there.
pub(super) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_path_buf(),
    }
}

/// Where git looks for hooks.
fn hooks_of(user: &UserRepository) -> Result<PathBuf, GitError> {
    let hooks = user.as_user().text(["rev-parse", "--git-path", "hooks"])?;
    Ok(real(&user.top.join(hooks)))
}

/// The git directories of initialised submodules.
fn module_directories(
    user: &UserRepository,
    listing: &TreeListing,
    mender: &mut Mender,
) -> Result<Vec<PathBuf>, GitError> {
    let mut found = Vec::new();
    for (path, _) in listing
        .iter()
        .filter(|(_, (mode, _))| *mode == Mode::Submodule)
    {
        let place = path.to_path(&user.top);
        let named = mender.read(&place.join(".git"), NAME_BYTES_MAX)?;
        let named = named.unwrap_or_default();
        if let Some(named) = named.strip_prefix(b"gitdir: ") {
            let directory = place.join(std::ffi::OsStr::from_bytes(named.trim_ascii_end()));
            found.extend(fs::canonicalize(directory));
        }
    }
    Ok(found)
}

/// What stands at a path, to be put back.
fn read(path: &Path, mender: &mut Mender) -> Result<Option<Content>, GitError> {
    let Some(standing) = mender.look(path)? else {
        return Ok(None);
    };
    match standing.kind {
        FileType::Symlink => Ok(mender.target(path)?.map(Content::Link)),
        FileType::RegularFile => match mender.read(path, HELD_BYTES_MAX)? {
            Some(content) => Ok(Some(Content::File(content, standing.mode))),
            None => Err(Refusal::TooLargeToHold(path.to_path_buf()).into()),
        },
        // A pipe, a socket, a directory: git obeys none of them.
        _ => Ok(None),
    }
}

/// Whether a path still holds what it held. Of a file that has another size nothing is read.
fn is_still(before: &Content, path: &Path, standing: Standing, mender: &mut Mender) -> bool {
    match before {
        Content::Link(target) => mender
            .target(path)
            .is_ok_and(|found| found.as_ref() == Some(target)),
        Content::File(content, mode) => {
            let length = content.len() as u64;
            standing.kind == FileType::RegularFile
                && standing.mode == *mode
                && standing.bytes == length
                && mender
                    .read(path, length)
                    .is_ok_and(|found| found.as_ref() == Some(content))
        }
    }
}

fn put(path: &Path, content: &Content, mender: &mut Mender) -> Result<String, GitError> {
    match content {
        Content::Link(target) => mender.link(path, target),
        Content::File(bytes, mode) => mender.write(path, bytes, Some(*mode)),
    }
}
