//! Does what a scan found: removes, makes directories, writes files. Written files are new
//! files (never an old one overwritten, which could be a second name of something else) and
//! get the time of now.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::arms::disk::{self, Opener};
use crate::arms::error::ArmsError;
use crate::arms::faults::Faults;
use crate::arms::plan::{Item, Plan, Submodules, Wanted};
use crate::arms::scan::{Known, KnownFiles, Work};
use crate::arms::stamp::Stamp;
use crate::error::GitError;
use crate::types::{Mode, Objects, Oid, RepoPath};

/// Where bytes come from.
pub(crate) struct Content<'a, 'b> {
    pub(crate) objects: &'a mut dyn Objects,
    pub(crate) submodules: Option<&'a mut (dyn Submodules + 'b)>,
}

impl Content<'_, '_> {
    fn bytes(&mut self, item: &Item, mode: Mode, oid: &Oid) -> Result<Vec<u8>, GitError> {
        let (Wanted::InnerBlob(_, _, length), Some(submodules)) =
            (&item.wanted, self.submodules.as_deref_mut())
        else {
            return self.objects.checkout_bytes(&item.path, mode, oid);
        };
        let path = item.path.as_bytes();
        let (submodule, inner) = (
            RepoPath::new(&path[..*length]),
            RepoPath::new(&path[length + 1..]),
        );
        submodules.checkout_bytes(&submodule, &inner, mode, oid)
    }
}

/// Removes from the cache what an earlier tree had there and this one has not, and whatever a
/// run put in the place of it. Comes before the scan, which takes what is in a cache as given.
pub(crate) fn remove_former(
    root: BorrowedFd<'_>,
    root_path: &Path,
    plan: &Plan,
    former: &[RepoPath],
    faults: &mut Faults,
) -> Result<(), ArmsError> {
    let mut opener = Opener::new(root);
    for path in former {
        faults.reach("remove former file")?;
        remove_one_former(&mut opener, plan, path)
            .map_err(ArmsError::io("remove", &path.to_path(root_path)))?;
    }
    Ok(())
}

/// Brings an arm to its plan.
pub(crate) fn apply(
    root: BorrowedFd<'_>,
    root_path: &Path,
    plan: &Plan,
    work: &Work,
    known: &mut KnownFiles,
    content: &mut Content<'_, '_>,
    faults: &mut Faults,
) -> Result<(), ArmsError> {
    let mut opener = Opener::new(root);
    for path in &work.removals {
        faults.reach("remove")?;
        known.remove(path);
        remove(&mut opener, path).map_err(ArmsError::io("remove", &path.to_path(root_path)))?;
    }
    opener.forget();
    for path in &work.directories {
        faults.reach("make directory")?;
        let (parent, name) = disk::split(path.as_bytes());
        opener
            .directory(parent)
            .and_then(|parent| disk::make_directory(parent, name))
            .map_err(ArmsError::io("make directory", &path.to_path(root_path)))?;
    }
    for index in &work.writes {
        faults.reach("write")?;
        write(&mut opener, root_path, &plan.items[*index], known, content)?;
    }
    Ok(())
}

fn remove(opener: &mut Opener<'_>, path: &RepoPath) -> rustix::io::Result<()> {
    let (parent, name) = disk::split(path.as_bytes());
    let removed = match opener.directory(parent) {
        Ok(parent) => disk::remove(parent, name),
        // No directory, so nothing in it.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
        Err(error) => Err(error),
    };
    opener.forget();
    removed
}

/// Removes a file the tree no longer has from the cache, with the directories only it needed
/// and whatever a run put in their place.
fn remove_one_former(
    opener: &mut Opener<'_>,
    plan: &Plan,
    path: &RepoPath,
) -> rustix::io::Result<()> {
    remove(opener, path)?;
    let above = std::iter::successors(path.parent(), RepoPath::parent);
    for directory in above.take_while(|directory| !plan.has_directory(directory)) {
        let (parent, name) = disk::split(directory.as_bytes());
        let removed = opener
            .directory(parent)
            .and_then(|parent| rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR));
        opener.forget();
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTDIR | Errno::LOOP) => remove(opener, &directory)?,
            // There is cache in it.
            Err(_) => break,
        }
    }
    Ok(())
}

fn write(
    opener: &mut Opener<'_>,
    root_path: &Path,
    item: &Item,
    known: &mut KnownFiles,
    content: &mut Content<'_, '_>,
) -> Result<(), ArmsError> {
    use std::os::unix::ffi::OsStrExt as _;
    known.remove(&item.path);
    let full = item.path.to_path(root_path);
    let (parent, name) = disk::split(item.path.as_bytes());
    let parent = opener
        .directory(parent)
        .map_err(ArmsError::io("open the directory of", &full))?;
    let (mode, oid) = match &item.wanted {
        Wanted::Blob(mode, oid) | Wanted::InnerBlob(mode, oid, _) => (*mode, *oid),
        Wanted::InputLink(target) => {
            return disk::remove(parent, name)
                .and_then(|()| disk::make_link(parent, name, target.as_os_str().as_bytes()))
                .map(drop)
                .map_err(ArmsError::io("link", &full));
        }
        Wanted::EmptyDirectory => return Ok(()),
    };
    let bytes = content.bytes(item, mode, &oid)?;
    disk::remove(parent, name).map_err(ArmsError::io("replace", &full))?;
    let stat = match mode {
        Mode::Link => disk::make_link(parent, name, &bytes),
        Mode::Executable => disk::make_file(parent, name, &bytes, 0o755),
        _ => disk::make_file(parent, name, &bytes, 0o644),
    }
    .map_err(ArmsError::io("write", &full))?;
    let news = Known::new((mode, oid), Stamp::of(&stat), disk::digest(&bytes));
    known.insert(item.path.clone(), news);
    Ok(())
}
