//! Moving things out of the way that nobody may delete: what git can't store, in a checkout of the
//! user's or in its git directory.
//!
//! They go to a folder of ours, under the path they had, and stay there until a person removes them.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;

use crate::error::{GitError, Refusal};
use crate::place::Place;
use crate::quote::quoted;
use crate::types::RepoPath;
use crate::worktree::RefusedPath;

/// Why things are moved.
const WHY: &str = "it had to give way, and is stored nowhere else";

/// How much of what is moved at a time is said one by one.
const NAMED_MAX: usize = 12;

/// Where things are moved to.
#[derive(Debug)]
pub(crate) struct Aside {
    /// In which folders are made; the next where one is on another file system.
    above: Vec<PathBuf>,
    /// The folder in use, once there is something to put into it.
    folder: Option<Place>,
    moved: Vec<Moved>,
}

/// Something that was moved.
#[derive(Debug)]
struct Moved {
    /// Where it was, in words for people and as a path in the folder.
    name: RepoPath,
    folder: PathBuf,
    /// The directory it was in, and its path there.
    from: PathBuf,
    path: RepoPath,
}

impl Aside {
    /// Nothing moved yet; what will be goes to new folders in the first of these that is on the same
    /// file system.
    pub(crate) fn new(above: &[PathBuf]) -> Self {
        Self {
            above: above.to_vec(),
            folder: None,
            moved: Vec::new(),
        }
    }

    /// How much was moved and not told yet.
    pub(crate) fn count(&self) -> usize {
        self.moved.len()
    }

    /// Moves what stands at `path` below `from`, and says where it is now; none where nothing stands
    /// there.
    pub(crate) fn take(
        &mut self,
        from: &mut Place,
        path: &RepoPath,
        name: RepoPath,
    ) -> Result<Option<PathBuf>, GitError> {
        let overlaps =
            |it: &Moved| it.name == name || it.name.is_below(&name) || name.is_below(&it.name);
        if self.moved.iter().any(overlaps) {
            self.folder = None;
        }
        let is_there = from.facts(path.as_bytes())?.is_some();
        if !is_there {
            return Ok(None);
        }
        let mut folders = self.above.clone().into_iter();
        loop {
            let to = match &mut self.folder {
                Some(folder) => folder,
                none => match folders.next() {
                    Some(above) => none.insert(new_folder(&above)?),
                    None => return Err(Refusal::CantBeSaved(vec![name]).into()),
                },
            };
            match from.move_to(path.as_bytes(), to, name.as_bytes()) {
                Ok(false) => return Ok(None),
                Ok(true) => {
                    let folder = to.path().to_path_buf();
                    let place = name.to_path(&folder);
                    self.moved.push(Moved {
                        name,
                        folder,
                        from: from.path().to_path_buf(),
                        path: path.clone(),
                    });
                    return Ok(Some(place));
                }
                Err(GitError::Io { source, .. }) if is_refused(&source) => {
                    remove_unused(to, &name);
                    self.folder = None;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves everything back but the first `count`; what can't be moved back stays to be told.
    pub(crate) fn put_back(&mut self, count: usize) {
        let mut left = Vec::new();
        for moved in self.moved.drain(count..).rev() {
            let back = || -> Result<bool, GitError> {
                let (from, to) = (Place::open(&moved.folder)?, Place::open(&moved.from)?);
                match (from, to) {
                    (Some(mut from), Some(mut to)) => {
                        from.move_to(moved.name.as_bytes(), &mut to, moved.path.as_bytes())
                    }
                    _ => Ok(false),
                }
            };
            if !back().unwrap_or(false) {
                left.push(moved);
            }
        }
        self.moved.extend(left.into_iter().rev());
        self.folder = None;
    }

    /// Says what was moved, and where it is now; of much in one folder, how much.
    pub(crate) fn told(&mut self) -> Vec<RefusedPath> {
        self.folder = None;
        let mut words = Vec::new();
        for together in self.moved.chunk_by(|one, next| one.folder == next.folder) {
            let folder = quoted(together[0].folder.as_os_str().as_bytes());
            if together.len() > NAMED_MAX {
                let more = together.len() - 1;
                words.push(RefusedPath {
                    path: together[0].name.clone(),
                    why: format!("it and {more} more were moved to {folder}: {WHY}"),
                });
                continue;
            }
            words.extend(together.iter().map(|moved| RefusedPath {
                path: moved.name.clone(),
                why: format!(
                    "it was moved to {}: {WHY}",
                    quoted(moved.name.to_path(&moved.folder).as_os_str().as_bytes())
                ),
            }));
        }
        self.moved.clear();
        words
    }
}

/// Whether it is the file system that will not have it moved.
fn is_refused(error: &io::Error) -> bool {
    let refusals = [
        Errno::XDEV,
        Errno::BUSY,
        Errno::ACCESS,
        Errno::PERM,
        Errno::ROFS,
        Errno::NAMETOOLONG,
    ];
    Errno::from_io_error(error).is_some_and(|errno| refusals.contains(&errno))
}

/// Removes the directories that were made for something that could not be moved into them.
fn remove_unused(folder: &mut Place, name: &RepoPath) {
    let mut above = name.parent();
    while let Some(path) = above {
        let _ = folder.remove_if_empty(path.as_bytes());
        above = path.parent();
    }
    // One that holds something stays.
    let _ = std::fs::remove_dir(folder.path());
}

fn new_folder(above: &Path) -> Result<Place, GitError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let make = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let time_s = since.map_or(0, |since| since.as_secs());
    match make(above) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(GitError::io("make directory", above)(error));
        }
        _ => {}
    }
    for number in 1_u64.. {
        let path = above.join(format!("{time_s}-{number}"));
        match make(&path) {
            Ok(()) => return Place::open_or_make(&path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(GitError::io("make directory", &path)(error)),
        }
    }
    unreachable!("there are more numbers than folders")
}
