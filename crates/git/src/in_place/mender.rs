//! Putting things right in a git directory that a stranger had their hands on: no link is followed,
//! and whatever has to go is moved aside.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::undone;
use crate::aside::Aside;
use crate::disk;
use crate::error::GitError;
use crate::place::Place;
use crate::types::RepoPath;
use crate::worktree::RefusedPath;

/// Works below the directories of one checkout.
#[derive(Debug)]
pub(super) struct Mender {
    /// The top of the checkout and its git directories; what they lie in is not looked at.
    anchors: Vec<Anchor>,
    aside: Aside,
    said: Vec<RefusedPath>,
}

#[derive(Debug)]
struct Anchor {
    path: PathBuf,
    /// Once it was needed, and where there is such a directory.
    place: Option<Place>,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) kind: FileType,
    pub(super) bytes: u64,
    /// Permission bits.
    pub(super) mode: u32,
}

impl Mender {
    /// Works below these directories; what has to go is moved to folders in one of `asides`.
    pub(super) fn new(anchors: Vec<PathBuf>, asides: &[PathBuf]) -> Self {
        let anchor = |path| Anchor { path, place: None };
        Self {
            anchors: anchors.into_iter().map(anchor).collect(),
            aside: Aside::new(asides),
            said: Vec::new(),
        }
    }

    /// What was put right, in words.
    pub(super) fn said(mut self) -> Vec<RefusedPath> {
        // Each says where its thing is.
        drop(self.aside.told());
        self.said
    }

    /// Notes something that was put right.
    pub(super) fn say(&mut self, path: &Path, words: &str) {
        let shown = self.shown(path);
        self.said.push(undone(&shown, words));
    }

    /// Whether something below a path is ours to put right.
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.anchors.iter().any(|it| path.starts_with(&it.path))
    }

    /// What stands at a path; nothing where a link is on the way.
    pub(super) fn look(&mut self, path: &Path) -> Result<Option<Standing>, GitError> {
        let Some((place, below)) = place_of(&mut self.anchors, path)? else {
            return Ok(None);
        };
        let stat = place.facts(below.as_bytes())?;
        Ok(stat.map(|stat| Standing {
            kind: FileType::from_raw_mode(stat.st_mode),
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode & 0o7777,
        }))
    }

    /// The content of a plain file of at most `bytes_max`; nothing where there is no such file.
    pub(super) fn read(
        &mut self,
        path: &Path,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let Some((place, below)) = place_of(&mut self.anchors, path)? else {
            return Ok(None);
        };
        let Some(file) = place.open_file(below.as_bytes())? else {
            return Ok(None);
        };
        let mut content = Vec::new();
        // One byte more tells a file that is longer.
        let read = file.take(bytes_max + 1).read_to_end(&mut content);
        let read = read.map_err(GitError::io("read", path))?;
        Ok((read as u64 <= bytes_max).then_some(content))
    }

    /// Where a link points; nothing where there is no link.
    pub(super) fn target(&mut self, path: &Path) -> Result<Option<PathBuf>, GitError> {
        let is_link = |it: Standing| it.kind == FileType::Symlink;
        if !self.look(path)?.is_some_and(is_link) {
            return Ok(None);
        }
        let Some((place, below)) = place_of(&mut self.anchors, path)? else {
            return Ok(None);
        };
        let target = place.read_link(below.as_bytes())?;
        Ok(Some(PathBuf::from(OsStr::from_bytes(&target))))
    }

    /// What a directory holds; nothing where there is none.
    pub(super) fn list(&mut self, directory: &Path) -> Result<Vec<(PathBuf, FileType)>, GitError> {
        let Some((place, below)) = place_of(&mut self.anchors, directory)? else {
            return Ok(Vec::new());
        };
        let found = place.list(below.as_bytes())?;
        let found = found.into_iter();
        Ok(found
            .map(|(name, kind)| (directory.join(OsStr::from_bytes(&name)), kind))
            .collect())
    }

    /// Moves whatever stands at a path aside; says where it is now, in words to be put behind others.
    pub(super) fn take_away(&mut self, path: &Path) -> Result<String, GitError> {
        let name = self.name_of(path);
        let Some((place, below)) = place_of(&mut self.anchors, path)? else {
            return Ok(String::new());
        };
        let place = self.aside.take(place, &below, name)?;
        Ok(match place {
            Some(place) => format!("; what stood there is now {}", place.display()),
            None => String::new(),
        })
    }

    /// Writes a file durably; what stands there or in its way is moved aside. Says where that is.
    pub(super) fn write(
        &mut self,
        path: &Path,
        content: &[u8],
        mode: Option<u32>,
    ) -> Result<String, GitError> {
        let moved = self.make_room(path)?;
        if place_of(&mut self.anchors, path)?.is_some() {
            disk::replace_durably(path, content)?;
            if let Some(mode) = mode {
                self.set_mode(path, mode)?;
            }
        }
        Ok(moved)
    }

    /// Puts a link in the same way.
    pub(super) fn link(&mut self, path: &Path, target: &Path) -> Result<String, GitError> {
        let moved = self.make_room(path)?;
        if place_of(&mut self.anchors, path)?.is_some() {
            std::os::unix::fs::symlink(target, path).map_err(GitError::io("write", path))?;
        }
        Ok(moved)
    }

    /// Makes an empty directory in the same way.
    pub(super) fn directory(&mut self, path: &Path) -> Result<String, GitError> {
        let moved = self.make_room(path)?;
        if place_of(&mut self.anchors, path)?.is_some() {
            std::fs::create_dir(path).map_err(GitError::io("write", path))?;
        }
        Ok(moved)
    }

    /// Gives a file these permission bits.
    pub(super) fn set_mode(&mut self, path: &Path, mode: u32) -> Result<(), GitError> {
        let Some((place, below)) = place_of(&mut self.anchors, path)? else {
            return Ok(());
        };
        place.set_mode(below.as_bytes(), mode)
    }

    /// Sees to it that nothing stands at a path and only directories above it.
    fn make_room(&mut self, path: &Path) -> Result<String, GitError> {
        let Some((place, below)) = place_of(&mut self.anchors, path)? else {
            return Ok(String::new());
        };
        let root = place.path().to_path_buf();
        let bytes = below.as_bytes();
        let mut in_the_way = None;
        for end in (0..bytes.len()).filter(|at| bytes[*at] == b'/') {
            let stat = place.facts(&bytes[..end])?;
            let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
            if kind.is_some_and(|kind| kind != FileType::Directory) {
                in_the_way = Some(root.join(OsStr::from_bytes(&bytes[..end])));
                break;
            }
        }
        let moved = self.take_away(&in_the_way.unwrap_or_else(|| path.to_path_buf()))?;
        if let Some((place, below)) = place_of(&mut self.anchors, path)? {
            // With all the directories on the way.
            place.parent(below.as_bytes(), true)?;
        }
        Ok(moved)
    }

    /// A path for people: below the top, or as if the git directory were there.
    fn shown(&self, path: &Path) -> Vec<u8> {
        let mut anchors = self.anchors.iter().map(|anchor| &anchor.path);
        let top = anchors.next();
        if let Some(below) = top.and_then(|top| path.strip_prefix(top).ok()) {
            return below.as_os_str().as_bytes().to_vec();
        }
        let below = anchors.filter_map(|anchor| path.strip_prefix(anchor).ok());
        match below.min_by_key(|below| below.as_os_str().len()) {
            Some(below) => [b".git/", below.as_os_str().as_bytes()].concat(),
            None => path.as_os_str().as_bytes().to_vec(),
        }
    }

    /// The same as the name of what is moved aside, which is no repository there.
    fn name_of(&self, path: &Path) -> RepoPath {
        let shown = self.shown(path);
        let names: Vec<&[u8]> = shown
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
            .map(|name| match name {
                b".git" => &b"git-directory"[..],
                name => name,
            })
            .collect();
        RepoPath::new(names.join(&b'/'))
    }
}

/// The directory that a path is reached from, and its path there. Of several the outermost: what lies
/// between might have been made a link.
fn place_of<'a>(
    anchors: &'a mut [Anchor],
    path: &Path,
) -> Result<Option<(&'a mut Place, RepoPath)>, GitError> {
    let reaching = anchors.iter_mut();
    let anchor = reaching
        .filter(|anchor| path.starts_with(&anchor.path))
        .min_by_key(|anchor| anchor.path.as_os_str().len());
    let Some(anchor) = anchor else {
        return Ok(None);
    };
    if anchor.place.is_none() {
        anchor.place = Place::open(&anchor.path)?;
    }
    let below = path.strip_prefix(&anchor.path).unwrap_or(path);
    let below = RepoPath::new(below.as_os_str().as_bytes());
    Ok(anchor.place.as_mut().map(|place| (place, below)))
}
