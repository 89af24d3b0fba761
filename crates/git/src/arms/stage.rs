//! The directories of the arms, and which slot stands at the path commands see.
//!
//! Each slot always has a checkout, parked or in the active place. So after a crash the one in
//! the active place belongs to the slot that has none, and no record of it is needed that
//! could be wrong.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::arms::disk;
use crate::arms::error::ArmsError;
use crate::arms::faults::Faults;
use crate::arms::slot::replace_file;
use crate::plain;

/// The names of the two slots; a slot is known by its index here.
pub(crate) const SLOTS: [&str; 2] = ["a", "b"];

/// The directories; one process at a time.
#[derive(Debug)]
pub(crate) struct Stage {
    directory: PathBuf,
    /// `active/tree`, the only path a command ever sees.
    pub(crate) tree: PathBuf,
    /// Which slot stands there.
    pub(crate) active: Option<usize>,
    /// Held until the process ends or drops it.
    _lock: File,
}

impl Stage {
    /// Makes or opens the directories and puts back what a dead process left in place.
    pub(crate) fn open(directory: &Path) -> Result<Self, ArmsError> {
        for inner in ["active", "a", "b"] {
            let path = directory.join(inner);
            fs::create_dir_all(&path).map_err(ArmsError::io("make directory", &path))?;
        }
        let directory = directory
            .canonicalize()
            .map_err(ArmsError::io("find", directory))?;
        let lock_path = directory.join("lock");
        let lock = plain::open_to_write(&lock_path).map_err(ArmsError::io("open", &lock_path))?;
        take_lock(&lock, &lock_path, &directory)?;
        let stage = Self {
            tree: directory.join("active").join("tree"),
            directory,
            active: None,
            _lock: lock,
        };
        stage.recover()?;
        Ok(stage)
    }

    /// Removes `folder`, where the directories are, unless a process has these open; says whether
    /// it did.
    pub(crate) fn remove_unused(folder: &Path, directory: &Path) -> Result<bool, ArmsError> {
        let lock_path = directory.join("lock");
        let lock = match plain::open(&lock_path, File::options().write(true)) {
            Ok(lock) => Some(lock),
            // Nobody can hold what is no lock.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {
                None
            }
            Err(error) => return Err(ArmsError::io("open", &lock_path)(error)),
        };
        if let Some(lock) = &lock
            && !try_lock(lock, &lock_path)?
        {
            return Ok(false);
        }
        remove_all(folder)?;
        Ok(true)
    }

    /// The directory of a slot.
    pub(crate) fn home(&self, slot: usize) -> PathBuf {
        self.directory.join(SLOTS[slot])
    }

    /// The directory above the active tree.
    pub(crate) fn ceiling(&self) -> &Path {
        self.tree.parent().unwrap_or(&self.directory)
    }

    /// Moves back what stands in the active place. Both slots always have a checkout, so it is
    /// that of the slot which has none; if that can't be said, it is nobody's.
    fn recover(&self) -> Result<(), ArmsError> {
        let parked = [0, 1].map(|slot| self.home(slot).join("tree"));
        let missing = |slot: usize| fs::symlink_metadata(&parked[slot]).is_err();
        if fs::symlink_metadata(&self.tree).is_ok() {
            match (is_real_directory(&self.tree), missing(0), missing(1)) {
                (true, true, false) => self.put_back(&parked[0])?,
                (true, false, true) => self.put_back(&parked[1])?,
                _ => remove_all(&self.tree)?,
            }
        }
        for path in parked.iter().filter(|path| !is_real_directory(path)) {
            remove_all(path)?;
            fs::create_dir(path).map_err(ArmsError::io("make directory", path))?;
        }
        Ok(())
    }

    fn put_back(&self, parked: &Path) -> Result<(), ArmsError> {
        // Moving a directory rewrites its "..": that takes the right to write in it.
        let open = disk::open_root(&self.tree);
        open.and_then(disk::normalise_directory)
            .map_err(ArmsError::io("open", &self.tree))?;
        fs::rename(&self.tree, parked).map_err(ArmsError::io("move back", &self.tree))
    }

    /// Moves a slot's checkout to the active place, which is free.
    pub(crate) fn move_in(&mut self, slot: usize, faults: &mut Faults) -> Result<(), ArmsError> {
        let parked = self.home(slot).join("tree");
        faults.reach("move in")?;
        fs::rename(&parked, &self.tree).map_err(ArmsError::io("move", &parked))?;
        self.active = Some(slot);
        faults.reach("moved in")
    }

    /// Moves the active checkout back; says whose it was and whether it still was there.
    pub(crate) fn move_out(
        &mut self,
        inode: Option<u64>,
        faults: &mut Faults,
    ) -> Result<Option<(usize, bool)>, ArmsError> {
        let Some(slot) = self.active else {
            return Ok(None);
        };
        faults.reach("move out")?;
        let found = fs::symlink_metadata(&self.tree);
        let ours = self.holds(inode);
        let parked = self.home(slot).join("tree");
        if ours {
            self.put_back(&parked)?;
        } else if found.is_ok() {
            remove_all(&self.tree)?;
        }
        self.active = None;
        faults.reach("moved out")?;
        Ok(Some((slot, ours)))
    }

    /// True if the active place still holds the directory that was moved there.
    pub(crate) fn holds(&self, directory_inode: Option<u64>) -> bool {
        is_real_directory(&self.tree) && inode(&self.tree) == directory_inode
    }

    /// Which slot holds the incumbent, as far as was written down.
    pub(crate) fn incumbent(&self) -> usize {
        let text = plain::read(&self.directory.join("incumbent")).unwrap_or_default();
        usize::from(text.trim_ascii() == SLOTS[1].as_bytes())
    }

    /// Writes down which slot holds the incumbent.
    pub(crate) fn set_incumbent(&self, slot: usize) -> Result<(), ArmsError> {
        replace_file(&self.directory.join("incumbent"), SLOTS[slot].as_bytes())
    }
}

/// Takes the lock, or says who can't have the arms. A process that is just dying, or just being
/// started by the last holder, may have it for an instant longer: that is waited for.
fn take_lock(lock: &File, path: &Path, directory: &Path) -> Result<(), ArmsError> {
    const PAUSE: Duration = Duration::from_millis(10);
    for attempt in 0..50 {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        if try_lock(lock, path)? {
            return Ok(());
        }
    }
    Err(ArmsError::InUse(directory.to_path_buf()))
}

fn try_lock(lock: &File, path: &Path) -> Result<bool, ArmsError> {
    match rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(ArmsError::io("lock", path)(error)),
    }
}

/// True for a directory that is not a link to one.
pub(crate) fn is_real_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// The inode of a directory.
pub(crate) fn inode(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|meta| meta.ino())
}

/// Removes whatever is at `path`, however deep, following no link.
pub(crate) fn remove_all(path: &Path) -> Result<(), ArmsError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        let error = std::io::Error::from(ErrorKind::InvalidInput);
        return Err(ArmsError::io("remove", path)(error));
    };
    disk::open_root(parent)
        .and_then(|parent| disk::remove(parent, name.as_encoded_bytes()))
        .map_err(ArmsError::io("remove", path))
}
