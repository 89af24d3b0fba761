//! Whether git can be run in a repository at all without waiting for ever.
//!
//! A pipe in the place of a file that git reads at its start (a proposal in the user's checkout may
//! leave one, if nobody lives to put it back) holds up every git, and whoever waits for it. So it is
//! looked for by hand before the first git is run; and so is what would lead git to another repository.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::error::{Trap, TrapKind};

/// Directories of a git directory whose entries git reads.
const DIRECTORIES: [&str; 3] = ["", "objects/info", "objects/pack"];

/// Those in which it reads whatever lies below.
const DEEP: [&str; 5] = ["info", "refs", "logs", "modules", "worktrees"];

/// Files of a checkout that git reads by itself.
const READ_IN_CHECKOUT: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];

/// Longest file that is read by hand: one line with a path in it.
const LINE_BYTES_MAX: u64 = 8192;

/// Longest file that git is let read at its start.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Where things lie, read by hand.
struct Layout {
    top: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    /// A file that would lead git to another repository.
    astray: Option<PathBuf>,
}

/// Looks for a trap in the repository around a directory. What isn't laid out plainly is git's to
/// find.
pub(crate) fn find(directory: &Path) -> Option<Trap> {
    let layout = match lay_out(directory, &mut |_| ())? {
        Ok(layout) => layout,
        Err(trap) => return Some(trap),
    };
    let trap = |path: PathBuf, what: TrapKind| Trap {
        path,
        what,
        top: layout.top.clone(),
        common_dir: Some(layout.common_dir.clone()),
    };
    if let Some(path) = layout.astray {
        return Some(trap(path, TrapKind::Elsewhere));
    }
    let (git_dir, common_dir) = (&layout.git_dir, &layout.common_dir);
    let head = git_dir.join("HEAD");
    let branch = path_in(&head, b"ref:").map(|name| (common_dir.join(name), LINE_BYTES_MAX));
    let sizes = [
        (head, LINE_BYTES_MAX),
        (common_dir.join("config"), FILE_BYTES_MAX),
        (common_dir.join("packed-refs"), FILE_BYTES_MAX),
    ];
    let is_huge = |path: &Path, bytes_max: u64| {
        fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() > bytes_max)
    };
    for (path, bytes_max) in sizes.into_iter().chain(branch) {
        if is_huge(&path, bytes_max) {
            return Some(trap(path, TrapKind::Huge));
        }
    }
    let mut directories = vec![&layout.common_dir];
    if layout.git_dir != layout.common_dir {
        directories.push(&layout.git_dir);
    }
    let mut found = directories.into_iter().flat_map(|it| in_git_directory(it));
    Some(trap(found.next()?, TrapKind::Waits))
}

/// The git directory that all work trees of the repository around a directory share, found without
/// running git. Each path is shown to `open` before it is looked into.
pub fn common_directory(directory: &Path, open: &mut dyn FnMut(&Path)) -> Option<PathBuf> {
    match lay_out(directory, open)? {
        Ok(layout) => Some(layout.common_dir),
        Err(trap) => trap.common_dir,
    }
}

fn lay_out(directory: &Path, open: &mut dyn FnMut(&Path)) -> Option<Result<Layout, Trap>> {
    if std::env::var_os("GIT_DIR").is_some() {
        return None;
    }
    let directory = fs::canonicalize(directory).ok()?;
    let top = directory.ancestors().find(|folder| {
        let entry = || fs::symlink_metadata(folder.join(".git"));
        match entry() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                open(folder);
                entry().is_ok()
            }
            found => found.is_ok(),
        }
    })?;
    let entry = top.join(".git");
    let trap = |path: PathBuf, common_dir: Option<&PathBuf>| Trap {
        path,
        what: TrapKind::Waits,
        top: top.to_path_buf(),
        common_dir: common_dir.cloned(),
    };
    if waits(&entry) {
        return Some(Err(trap(entry, None)));
    }
    open(&entry);
    let (git_dir, is_linked) = if entry.is_dir() {
        (entry, false)
    } else {
        (top.join(path_in(&entry, b"gitdir:")?), true)
    };
    // Where git puts the directories of linked work trees.
    let shared = (git_dir.parent())
        .filter(|above| is_linked && above.ends_with("worktrees"))
        .and_then(Path::parent);
    for path in shared
        .into_iter()
        .chain(git_dir.parent())
        .chain([&*git_dir])
    {
        if path != top {
            open(path);
        }
    }
    let named = git_dir.join("commondir");
    let known = match shared {
        Some(shared) => Some(shared.to_path_buf()),
        // Only linked work trees have such a file; elsewhere somebody put it there.
        None => (!is_linked).then(|| git_dir.clone()),
    };
    if waits(&named) {
        return Some(Err(trap(named, known.as_ref())));
    }
    open(&named);
    let read = path_in(&named, b"").map(|path| git_dir.join(path));
    let real = |path: &PathBuf| fs::canonicalize(path).ok();
    let is_astray = match (&read, &known) {
        (Some(read), Some(known)) => real(read) != real(known),
        _ => false,
    };
    let common_dir = known.or(read).unwrap_or_else(|| git_dir.clone());
    Some(Ok(Layout {
        top: top.to_path_buf(),
        astray: is_astray.then_some(named),
        git_dir,
        common_dir,
    }))
}

/// Looks for a trap in a checkout itself: rules that git reads there, at any depth. Other
/// repositories in it are not entered, nor is a link followed.
pub(crate) fn find_in_checkout(top: &Path) -> Option<Trap> {
    let is_read = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        READ_IN_CHECKOUT.iter().any(|read| name == *read)
    };
    let mut directories = vec![top.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let entries: Vec<_> = entries_of(&directory).collect();
        if directory != top && entries.iter().any(|(path, _)| path.ends_with(".git")) {
            continue;
        }
        for (path, kind) in entries {
            if kind.is_dir() {
                if !path.ends_with(".git") {
                    directories.push(path);
                }
            } else if !kind.is_file() && is_read(&path) && waits(&path) {
                return Some(Trap {
                    path,
                    what: TrapKind::Waits,
                    top: top.to_path_buf(),
                    common_dir: None,
                });
            }
        }
    }
    None
}

/// All that git would wait for in a git directory.
pub(crate) fn in_git_directory(git_dir: &Path) -> Vec<PathBuf> {
    let flat = DIRECTORIES.iter().map(|name| git_dir.join(name));
    let objects = (0..=u8::MAX).map(|byte| git_dir.join(format!("objects/{byte:02x}")));
    let mut found = Vec::new();
    let mut look = |path: PathBuf, kind: FileType| {
        if !kind.is_file() && !kind.is_dir() && waits(&path) {
            found.push(path);
        }
    };
    for (path, kind) in flat.chain(objects).flat_map(|it| entries_of(&it)) {
        look(path, kind);
    }
    let mut directories: Vec<PathBuf> = DEEP.iter().map(|name| git_dir.join(name)).collect();
    while let Some(directory) = directories.pop() {
        for (path, kind) in entries_of(&directory) {
            // Those of submodules hold objects in thousands.
            if kind.is_dir() && !path.ends_with("objects") {
                directories.push(path);
            } else {
                look(path, kind);
            }
        }
    }
    found
}

/// What a directory holds, with the kind of each; nothing where it can't be read.
fn entries_of(directory: &Path) -> impl Iterator<Item = (PathBuf, FileType)> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)))
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
