//! Gives files the two trees agree on the same modification time in both arms.
//!
//! A cache is only as good as the times of the sources it was built from: with any other time
//! (even an older one) Python compiles again and make may build all anew, and the candidate
//! would pay for that where the incumbent does not. So when a candidate inherits a cache, its
//! arm is made to look like the incumbent's in every file that is the same in both, and the
//! files that differ are written anew: exactly what a switch in the incumbent's own checkout
//! would look like.

use std::os::fd::BorrowedFd;
use std::path::Path;

use crate::arms::disk::{self, Opener};
use crate::arms::error::ArmsError;
use crate::arms::inherit::set_mtime;
use crate::arms::plan::Plan;
use crate::arms::scan::KnownFiles;
use crate::arms::stamp::{Stamp, now_ns};

/// Takes over the times of `base` for the items that are not `changed`.
pub(crate) fn align(
    root: BorrowedFd<'_>,
    root_path: &Path,
    plan: &Plan,
    changed: &[bool],
    known: &mut KnownFiles,
    base: &KnownFiles,
) -> Result<(), ArmsError> {
    let mut opener = Opener::new(root);
    for (item, _) in plan
        .items
        .iter()
        .zip(changed)
        .filter(|(_, changed)| !**changed)
    {
        let (Some(own), Some(other)) = (known.get_mut(&item.path), base.get(&item.path)) else {
            continue;
        };
        let same = (own.mode, own.oid) == (other.mode, other.oid) && own.digest == other.digest;
        if !same || own.stamp.mtime_ns == other.stamp.mtime_ns {
            continue;
        }
        let (parent, name) = disk::split(item.path.as_bytes());
        let stat = opener.directory(parent).and_then(|parent| {
            set_mtime(parent, name, other.stamp.mtime_ns)?;
            disk::stat(parent, name)
        });
        let full = item.path.to_path(root_path);
        if let Some(stat) = stat.map_err(ArmsError::io("set the time of", &full))? {
            own.stamp = Stamp::of(&stat);
            own.racy = own.stamp.is_racy(now_ns());
        }
    }
    Ok(())
}
