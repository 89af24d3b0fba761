//! Locks that a git left which was ended with its proposal. Whoever is at work in this repository, in
//! whichever of its work trees, keeps theirs.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::guard::{NAME_BYTES_MAX, real};
use super::mender::Mender;
use super::shape::{Shape, git_directories};
use crate::error::{GitError, Refusal};
use crate::user::UserRepository;

/// How long a git at work is waited for; in tests of this crate, which hold locks on purpose, shorter.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 10_000 });

/// The folder in a git directory that our store is in, where nobody says otherwise.
const OUR_FOLDER: &str = "loopwright";

/// Commands of git that run for long and lock nothing.
const HARMLESS: [&[u8]; 5] = [
    b"cat-file",
    b"check-attr",
    b"check-ignore",
    b"credential-cache--daemon",
    b"fsmonitor--daemon",
];

/// Git's own options that take the next word.
const VALUED: [&[u8]; 7] = [
    b"-c",
    b"-C",
    b"--git-dir",
    b"--work-tree",
    b"--namespace",
    b"--config-env",
    b"--attr-source",
];

/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Removes the locks of dead gits. Waits for those that are in the loop's way and may be a live one's:
/// of this work tree and of its branch; refuses if they stay. Others that may be are left alone.
pub(super) fn clear(
    user: &UserRepository,
    reference: &str,
    shape: &Shape,
    store: &Path,
    mender: &mut Mender,
) -> Result<(), GitError> {
    let git_directories = git_directories(user);
    let common_dir = &git_directories[0];
    let git_dir = git_directories.last().unwrap_or(common_dir);
    let own = ["index.lock", "HEAD.lock"].map(|name| git_dir.join(name));
    let branch = common_dir.join(format!("{reference}.lock"));
    let packed = common_dir.join("packed-refs.lock");
    let here = Workplace {
        folders: vec![real(&user.top), git_dir.clone()],
        store,
    };
    let anywhere = Workplace {
        folders: all_folders(user, common_dir, mender)?,
        store,
    };
    for path in own {
        clear_one(&path, &here, true, mender)?;
    }
    for path in [branch, packed] {
        clear_one(&path, &anywhere, true, mender)?;
    }
    let mut others = shape.locks(mender)?;
    others.push(common_dir.join("config.lock"));
    for path in others {
        clear_one(&path, &anywhere, false, mender)?;
    }
    Ok(())
}

fn clear_one(
    path: &Path,
    workplace: &Workplace<'_>,
    is_in_the_way: bool,
    mender: &mut Mender,
) -> Result<(), GitError> {
    let deadline = Instant::now() + PATIENCE;
    while mender.look(path)?.is_some() {
        if !workplace.may_be_held(path) {
            let moved = mender.take_away(path)?;
            mender.say(path, &format!("it was removed: its git is gone{moved}"));
            return Ok(());
        }
        if !is_in_the_way {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Refusal::Locked(path.to_path_buf()).into());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Removes locks of a git of ours that was ended, at these paths; waits for those that may be a living
/// one's, and refuses if they stay.
pub(crate) fn clear_ended(user: &UserRepository, paths: &[PathBuf]) -> Result<(), GitError> {
    let store = user.common_dir.join(OUR_FOLDER);
    let workplace = Workplace {
        folders: vec![
            real(&user.top),
            user.git_dir.clone(),
            user.common_dir.clone(),
        ],
        store: &store,
    };
    let deadline = Instant::now() + PATIENCE;
    for path in paths {
        while fs::symlink_metadata(path).is_ok() {
            if !workplace.may_be_held(path) {
                match fs::remove_file(path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(GitError::io("remove", path)(error));
                    }
                    _ => break,
                }
            }
            if Instant::now() > deadline {
                return Err(Refusal::Locked(path.clone()).into());
            }
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

/// Where a git has to be at work to hold a lock.
struct Workplace<'a> {
    folders: Vec<PathBuf>,
    /// Our own store may lie in one of them; who works in there holds none.
    store: &'a Path,
}

impl Workplace<'_> {
    fn may_be_held(&self, lock: &Path) -> bool {
        // Nothing that is older than this boot is anybody's.
        if is_older_than_boot(lock) {
            return false;
        }
        let owner = owner_of(lock);
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.map(|entry| entry.path()).any(|process| {
            has_open(&process, lock) || (is_git(&process) && self.may_be_in(&process, owner))
        })
    }

    /// Whether a process works in one of the folders. Where that can't be told, it may if it is of
    /// the user who made the lock.
    fn may_be_in(&self, process: &Path, owner: Option<u32>) -> bool {
        let at = match fs::read_link(process.join("cwd")) {
            Ok(at) => at,
            Err(error) => {
                let is_closed = error.kind() == io::ErrorKind::PermissionDenied;
                return is_closed && owner_of(process) == owner;
            }
        };
        let names = git_dir_of(process);
        let mut places = std::iter::once(at.clone()).chain(names.map(|name| at.join(name)));
        places.any(|place| {
            let is_inside = self.folders.iter().any(|folder| place.starts_with(folder));
            is_inside && !place.starts_with(self.store)
        })
    }
}

fn is_git(process: &Path) -> bool {
    let name = fs::read(process.join("comm")).unwrap_or_default();
    if !name.starts_with(b"git") {
        return false;
    }
    let words = fs::read(process.join("cmdline")).unwrap_or_default();
    !command_of(&words).is_some_and(|word| HARMLESS.contains(&word))
}

/// The first word of git's command line that is neither an option nor the value of one.
fn command_of(line: &[u8]) -> Option<&[u8]> {
    let mut words = line.split(|byte| *byte == 0).skip(1);
    while let Some(word) = words.next() {
        if VALUED.contains(&word) {
            words.next();
        } else if !word.starts_with(b"-") {
            return Some(word);
        }
    }
    None
}

fn has_open(process: &Path, lock: &Path) -> bool {
    let opened = fs::read_dir(process.join("fd"));
    let mut opened = opened.into_iter().flatten().flatten();
    opened.any(|entry| fs::read_link(entry.path()).is_ok_and(|path| path == lock))
}

/// The git directory that its environment names.
fn git_dir_of(process: &Path) -> Option<PathBuf> {
    let environment = fs::read(process.join("environ")).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let named = entries.find_map(|entry| entry.strip_prefix(b"GIT_DIR="))?;
    Some(PathBuf::from(OsStr::from_bytes(named)))
}

fn is_older_than_boot(path: &Path) -> bool {
    let booted_s = fs::read_to_string("/proc/stat").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
        line.trim().parse::<i64>().ok()
    });
    let facts = fs::symlink_metadata(path);
    match (booted_s, facts) {
        // The clock may have been set a little since.
        (Some(booted_s), Ok(facts)) => facts.mtime() + 60 < booted_s,
        _ => false,
    }
}

fn owner_of(path: &Path) -> Option<u32> {
    fs::symlink_metadata(path).ok().map(|facts| facts.uid())
}

/// All work trees of the repository, and its git directory.
fn all_folders(
    user: &UserRepository,
    common_dir: &Path,
    mender: &mut Mender,
) -> Result<Vec<PathBuf>, GitError> {
    let mut folders = vec![real(&user.top), common_dir.to_path_buf()];
    // The main work tree, where there is one.
    if common_dir.ends_with(".git") {
        folders.extend(common_dir.parent().map(Path::to_path_buf));
    }
    for (folder, _) in mender.list(&common_dir.join("worktrees"))? {
        if let Some(named) = mender.read(&folder.join("gitdir"), NAME_BYTES_MAX)? {
            let named = folder.join(OsStr::from_bytes(named.trim_ascii_end()));
            folders.extend(named.parent().map(real));
        }
    }
    Ok(folders)
}
