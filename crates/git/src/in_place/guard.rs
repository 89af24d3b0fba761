//! Configuration and hooks of the user's repository: recorded, compared, put back. What is replaced
//! is stored first: it may be the user's own work.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::saved::{self, SavedGuard};
use super::undone;
use crate::error::GitError;
use crate::git::split_nul;
use crate::store::ObjectStore;
use crate::types::{Change, Mode, RepoPath, TreeListing};
use crate::user::{UserRepository, quiet};
use crate::worktree::RefusedPath;

/// Files of the shared git directory that git obeys.
const OBEYED: &[&str] = &[
    "config",
    "info/exclude",
    "info/attributes",
    "info/grafts",
    "objects/info/alternates",
    "shallow",
];

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

/// What was put back.
#[derive(Debug, Default)]
pub(super) struct PutBack {
    /// In words.
    pub(super) undone: Vec<RefusedPath>,
    /// What was replaced, as new files of a tree.
    pub(super) replaced: Vec<Change>,
}

impl Guard {
    pub(super) fn record(user: &UserRepository, listing: &TreeListing) -> Result<Self, GitError> {
        let git = quiet(user.as_user());
        let hooks = hooks_of(user)?;
        let mut singles: Vec<PathBuf> = OBEYED
            .iter()
            .map(|name| user.common_dir.join(name))
            .collect();
        singles.push(user.git_dir.join("config.worktree"));
        let mut directories = vec![user.common_dir.join("hooks")];
        if !is_outside(user, &hooks) {
            directories.push(hooks.clone());
        }
        for module in module_directories(user, listing) {
            let head = module.join("HEAD");
            // A submodule's HEAD is mostly a commit; where it is a branch, that counts too.
            if let Ok(text) = fs::read_to_string(&head)
                && let Some(branch) = text.trim_end().strip_prefix("ref: ")
            {
                singles.push(module.join(branch));
            }
            singles.extend(["config", "index", "info/attributes"].map(|name| module.join(name)));
            singles.push(head);
            directories.push(module.join("hooks"));
        }
        let mut in_tree = Vec::new();
        let origins = git.run(["config", "--list", "--show-origin", "--name-only", "-z"])?;
        for record in split_nul(&origins) {
            if let Some(file) = record.strip_prefix(b"file:") {
                let path = user.top.join(std::ffi::OsStr::from_bytes(file));
                in_tree.extend(inside(&user.top, &path));
            }
        }
        in_tree.extend(inside(&user.top, &hooks));
        in_tree.retain(|path| !path.as_bytes().starts_with(b".git/"));
        in_tree.sort();
        in_tree.dedup();
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
            singles,
            directories,
            known: BTreeMap::new(),
            in_tree,
            tracked,
        };
        guard.known = guard.read()?;
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

    fn read(&self) -> Result<BTreeMap<PathBuf, Content>, GitError> {
        let mut found = BTreeMap::new();
        for path in &self.singles {
            if let Some(content) = read(path)? {
                found.insert(path.clone(), content);
            }
        }
        for directory in &self.directories {
            read_directory(directory, &mut found)?;
        }
        found.retain(|path, _| !self.tracked.contains(path));
        Ok(found)
    }

    /// Makes everything as it was recorded; says what had been changed.
    pub(super) fn put_back(&self, store: &mut ObjectStore) -> Result<PutBack, GitError> {
        let mut put_back = PutBack::default();
        let found = self.read()?;
        for (path, content) in &found {
            if self.known.get(path) == Some(content) {
                continue;
            }
            let saved = self.save_content(store, path, content, &mut put_back)?;
            let what = if let Some(before) = self.known.get(path) {
                put(path, before)?;
                "it was put back"
            } else {
                remove(path)?;
                "it was removed"
            };
            let why = format!("{what}: git would have obeyed it{saved}");
            put_back.undone.push(self.words(path, &why));
        }
        put_back.undone.extend(self.put_missing()?);
        Ok(put_back)
    }

    /// Makes what is gone as it was recorded; says what that was.
    pub(super) fn put_missing(&self) -> Result<Vec<RefusedPath>, GitError> {
        let mut undone = Vec::new();
        for (path, content) in &self.known {
            if fs::symlink_metadata(path).is_err() {
                put(path, content)?;
                undone.push(self.words(path, "it was put back"));
            }
        }
        Ok(undone)
    }

    /// Stores what is about to be replaced; says where it is.
    fn save_content(
        &self,
        store: &mut ObjectStore,
        path: &Path,
        content: &Content,
        put_back: &mut PutBack,
    ) -> Result<String, GitError> {
        let (mode, bytes) = match content {
            Content::File(_, u32::MAX) => return Ok(String::new()),
            Content::File(bytes, mode) if mode & 0o100 != 0 => (Mode::Executable, &bytes[..]),
            Content::File(bytes, _) => (Mode::File, &bytes[..]),
            Content::Link(target) => (Mode::Link, target.as_os_str().as_bytes()),
        };
        let oid = store.write_blob(bytes)?;
        let below = path.strip_prefix(&self.top).unwrap_or(path);
        let names: Vec<&[u8]> = below
            .iter()
            .map(|name| match name.as_bytes() {
                // No tree may hold this name.
                b".git" => &b"git-directory"[..],
                name => name,
            })
            .filter(|name| *name != b"/")
            .collect();
        put_back.replaced.push(Change {
            path: RepoPath::new(names.join(&b'/')),
            before: None,
            after: Some((mode, oid)),
        });
        Ok(format!("; what stood there is kept as {oid}"))
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

    fn words(&self, path: &Path, why: &str) -> RefusedPath {
        let shown = path.strip_prefix(&self.top).unwrap_or(path);
        undone(shown.as_os_str().as_bytes(), why)
    }
}

/// Where git looks for hooks.
pub(super) fn hooks_of(user: &UserRepository) -> Result<PathBuf, GitError> {
    let hooks = user.as_user().text(["rev-parse", "--git-path", "hooks"])?;
    let hooks = user.top.join(hooks);
    Ok(fs::canonicalize(&hooks).unwrap_or(hooks))
}

/// True if a path is neither in the checkout nor in a git directory of it.
pub(super) fn is_outside(user: &UserRepository, path: &Path) -> bool {
    [&user.top, &user.git_dir, &user.common_dir]
        .iter()
        .all(|inside| !path.starts_with(inside))
}

/// The git directories of initialised submodules.
fn module_directories(user: &UserRepository, listing: &TreeListing) -> Vec<PathBuf> {
    listing
        .iter()
        .filter(|(_, (mode, _))| *mode == Mode::Submodule)
        .filter_map(|(path, _)| {
            let place = path.to_path(&user.top);
            let text = fs::read_to_string(place.join(".git")).ok()?;
            let directory = place.join(text.trim_end().strip_prefix("gitdir: ")?);
            fs::canonicalize(directory).ok()
        })
        .collect()
}

/// The content of all files below a directory.
pub(super) fn read_directory(
    directory: &Path,
    found: &mut BTreeMap<PathBuf, Content>,
) -> Result<(), GitError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(());
        }
        Err(error) => return Err(GitError::io("read", directory)(error)),
    };
    for entry in entries {
        let path = entry.map_err(GitError::io("read", directory))?.path();
        let is_directory = fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_dir());
        if is_directory {
            read_directory(&path, found)?;
        } else if let Some(content) = read(&path)? {
            found.insert(path, content);
        }
    }
    Ok(())
}

fn inside(top: &Path, path: &Path) -> Option<RepoPath> {
    let below = path.strip_prefix(top).ok()?;
    Some(RepoPath::new(below.as_os_str().as_bytes()))
}

fn read(path: &Path) -> Result<Option<Content>, GitError> {
    let facts = match fs::symlink_metadata(path) {
        Ok(facts) => facts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(GitError::io("look at", path)(error)),
    };
    if facts.is_symlink() {
        let target = fs::read_link(path).map_err(GitError::io("read", path))?;
        return Ok(Some(Content::Link(target)));
    }
    if !facts.is_file() {
        // A pipe, a socket, a directory: whatever it is, it is not what was there.
        return Ok(Some(Content::File(Vec::new(), u32::MAX)));
    }
    let content = fs::read(path).map_err(GitError::io("read", path))?;
    Ok(Some(Content::File(
        content,
        facts.permissions().mode() & 0o7777,
    )))
}

/// Removes whatever is there.
fn remove(path: &Path) -> Result<(), GitError> {
    let gone = match fs::remove_file(path) {
        Err(_) if fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir()) => {
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    gone.map_err(GitError::io("remove", path))
}

fn put(path: &Path, content: &Content) -> Result<(), GitError> {
    remove(path)?;
    let written = match (path.parent(), content) {
        (Some(parent), Content::Link(target)) => {
            fs::create_dir_all(parent).and_then(|()| symlink(target, path))
        }
        (Some(parent), Content::File(bytes, mode)) => fs::create_dir_all(parent)
            .and_then(|()| fs::write(path, bytes))
            .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(*mode))),
        (None, _) => Ok(()),
    };
    written.map_err(GitError::io("write", path))
}
