//! Taking things away: moved elsewhere, or removed whole.

use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{AtFlags, FileType, RenameFlags, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::handles::{names, open_directory, path_handle, set_mode};

/// Below this depth a tree that is being removed is flattened instead of entered.
const DEEPEST: usize = 64;

/// Gives something another name on the same file system, and replaces nothing by that.
pub(super) fn move_name(
    at: BorrowedFd<'_>,
    name: &[u8],
    there: BorrowedFd<'_>,
    new_name: &[u8],
) -> Result<bool, Errno> {
    let stat = match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(false),
        Err(error) => return Err(error),
    };
    let rename = || match renameat_with(at, name, there, new_name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            match statat(there, new_name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => renameat(at, name, there, new_name),
                Ok(_) => Err(Errno::EXIST),
                Err(error) => Err(error),
            }
        }
        other => other,
    };
    match rename() {
        Err(Errno::ACCESS) => {}
        other => return other.map(|()| true),
    }
    // Directories that were closed are opened up meanwhile: the one it is in, and itself, whose
    // parent changes.
    let above = rustix::fs::fstat(at)?.st_mode;
    set_mode(at, above | 0o700)?;
    let moved = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        let handle = path_handle(at, name)?;
        set_mode(handle.as_fd(), stat.st_mode | 0o700)?;
        let moved = rename();
        set_mode(handle.as_fd(), stat.st_mode)?;
        moved
    } else {
        rename()
    };
    set_mode(at, above)?;
    moved.map(|()| true)
}

/// Removes whatever has this name, whole, however deep and however closed it is.
pub(crate) fn remove(at: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(at, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(Errno::ACCESS) => {
            set_mode(at, 0o700)?;
            match unlinkat(at, name, AtFlags::empty()) {
                Ok(()) => return Ok(()),
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error),
            }
        }
        Err(error) => return Err(error),
    }
    let top = open_directory(at, name)?;
    let mut moved = 0;
    loop {
        let before = moved;
        empty(top.as_fd(), top.as_fd(), 0, &mut moved)?;
        match unlinkat(at, name, AtFlags::REMOVEDIR) {
            // Something deep was moved up to the top: once more.
            Err(Errno::NOTEMPTY | Errno::EXIST) if moved > before => {}
            Err(Errno::ACCESS) => set_mode(at, 0o700)?,
            other => return other,
        }
    }
}

fn empty(
    top: BorrowedFd<'_>,
    at: BorrowedFd<'_>,
    depth: usize,
    moved: &mut u64,
) -> Result<(), Errno> {
    for (name, kind) in names(at)? {
        if kind != FileType::Directory {
            match unlinkat(at, &*name, AtFlags::empty()) {
                Err(Errno::ACCESS) => {
                    set_mode(at, 0o700)?;
                    unlinkat(at, &*name, AtFlags::empty())?;
                }
                other => other?,
            }
            continue;
        }
        let child = open_directory(at, &name)?;
        if depth >= DEEPEST {
            set_mode(child.as_fd(), 0o700)?;
            *moved += 1;
            let unique = format!(".moved-{}-{moved}", std::process::id());
            match renameat(at, &*name, top, unique) {
                Err(Errno::ACCESS) => set_mode(at, 0o700)?,
                other => other?,
            }
            continue;
        }
        empty(top, child.as_fd(), depth + 1, moved)?;
        match unlinkat(at, &*name, AtFlags::REMOVEDIR) {
            Err(Errno::ACCESS) => {
                set_mode(at, 0o700)?;
                unlinkat(at, &*name, AtFlags::REMOVEDIR)?;
            }
            other => other?,
        }
    }
    Ok(())
}
