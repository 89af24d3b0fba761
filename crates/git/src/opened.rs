//! Opening up what was closed (`chmod`) so that it can be looked into, and closing it again.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Folders of a store that hold what is kept: much, and never written again.
const KEPT: [&str; 2] = ["objects.git", "blobs"];

/// What was opened up, and what it was before.
#[derive(Debug, Default)]
pub struct Opened {
    paths: Vec<(PathBuf, u32)>,
}

impl Opened {
    /// Whether something is ours and closed to us.
    pub fn is_needed(path: &Path) -> bool {
        needed(path).is_some()
    }

    /// Gives the owner's bits to something that is ours and lacks them; follows no link.
    pub fn open(&mut self, path: &Path) {
        let Some((before, bits)) = needed(path) else {
            return;
        };
        let wanted = fs::Permissions::from_mode(before | bits);
        if fs::set_permissions(path, wanted).is_ok() {
            self.paths.push((path.to_path_buf(), before));
        }
    }

    /// The same for a store, as far as it has to be written: not for what it only keeps.
    pub fn open_store(&mut self, folder: &Path) {
        self.open(folder);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            self.open(&path);
            let is_kept = KEPT.iter().any(|name| path.ends_with(name));
            if !is_kept && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                    self.open(&entry.path());
                }
            }
        }
    }

    /// Makes everything as it was.
    pub fn close_again(self) {
        for (path, before) in self.paths.into_iter().rev() {
            // What can't be closed was open to its owner all along.
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(before));
        }
    }
}

/// The permission bits of something that is ours, and those that its owner needs, where they lack.
fn needed(path: &Path) -> Option<(u32, u32)> {
    let uid = geteuid();
    if uid.is_root() {
        return None;
    }
    let facts = fs::symlink_metadata(path).ok()?;
    if facts.uid() != uid.as_raw() {
        return None;
    }
    let bits = if facts.is_dir() {
        0o700
    } else if facts.is_file() {
        0o600
    } else {
        return None;
    };
    let mode = facts.mode() & 0o7777;
    (mode & bits != bits).then_some((mode, bits))
}
