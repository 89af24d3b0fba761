//! Knowing a checkout that is there already: the user's own, or one an earlier process left.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};
use rustix::io::Errno;

use super::{Directory, FileNode, Node, Stamp, WorkTree, now_ns};
use crate::aside::Aside;
use crate::error::{GitError, Refusal};
use crate::hash::{ObjectKind, hash_object};
use crate::place::{Place, open_directory};
use crate::store::{ObjectStore, hash_stream};
use crate::types::{Mode, Objects as _, Oid, RepoPath, TreeListing};

impl WorkTree {
    /// Learns stamps and content of a checkout of the user's that git says is clean at `tree`. What
    /// has to give way in it and can't be stored goes to `aside`.
    pub(crate) fn take_over(
        &mut self,
        store: &ObjectStore,
        tree: Oid,
        listing: &TreeListing,
        aside: &[PathBuf],
    ) -> Result<(), GitError> {
        let gone = || Refusal::NotARepository(self.path.clone());
        let mut place = Place::open(&self.path)?.ok_or_else(gone)?;
        let taken_ns = now_ns();
        let top = fstat(place.root()).map_err(|error| place.error("look at", b"", error))?;
        self.directory_mode = top.st_mode;
        self.aside = Some(Aside::new(aside));
        self.mirror = Directory::default();
        for (path, (mode, oid)) in listing.iter() {
            if *mode == Mode::Submodule {
                self.mirror
                    .insert_submodule(path.as_bytes(), self.directory_mode);
                continue;
            }
            let differs = || Refusal::Dirty(vec![path.clone()]);
            let (node, _) = self
                .look(&mut place, path, *mode, taken_ns)?
                .ok_or_else(differs)?;
            let is_converted = store.is_converted(*mode) || self.submodule_of(path).is_some();
            if node.disk != *oid && !is_converted {
                return Err(Refusal::ConvertedInPlace(path.clone()).into());
            }
            self.mirror
                .insert(path.as_bytes(), node, self.directory_mode);
        }
        let root = place.root();
        learn_modes(&place, root, &mut self.mirror)?;
        self.tree = tree;
        self.listing = Arc::clone(listing);
        self.known = true;
        Ok(())
    }

    /// Expects a checkout of the user's to hold `tree`, and knows of nothing that it does: what is
    /// not exactly so counts as changed, and what is not there as missing.
    pub(crate) fn expect(
        &mut self,
        store: &mut ObjectStore,
        tree: Oid,
        listing: &TreeListing,
        aside: &[PathBuf],
    ) -> Result<(), GitError> {
        let plain = store.listing(&tree)?;
        store.use_attributes_of(&plain)?;
        let gone = || Refusal::NotARepository(self.path.clone());
        let mut place = Place::open(&self.path)?.ok_or_else(gone)?;
        let top = fstat(place.root()).map_err(|error| place.error("look at", b"", error))?;
        self.directory_mode = top.st_mode;
        self.aside = Some(Aside::new(aside));
        self.learn(&mut place, store, listing)?;
        let held = Arc::clone(&self.listing);
        for (path, (mode, oid)) in listing.iter().filter(|(path, _)| path.is_safe()) {
            if *mode == Mode::Submodule {
                self.mirror
                    .insert_submodule(path.as_bytes(), self.directory_mode);
            } else if !held.contains_key(path) {
                // A stamp that nothing has.
                let node = FileNode {
                    mode: *mode,
                    disk: *oid,
                    stamp: Stamp::default(),
                    racy: true,
                };
                self.mirror
                    .insert(path.as_bytes(), node, self.directory_mode);
            }
        }
        let root = place.root();
        learn_modes(&place, root, &mut self.mirror)?;
        self.tree = tree;
        self.listing = Arc::clone(listing);
        self.known = true;
        Ok(())
    }

    /// Learns what of a listing the directory holds exactly; the rest counts as unknown.
    ///
    /// Reading a large checkout is several times quicker than writing it.
    pub(super) fn learn(
        &mut self,
        place: &mut Place,
        store: &ObjectStore,
        listing: &TreeListing,
    ) -> Result<(), GitError> {
        let taken_ns = now_ns();
        self.mirror = Directory {
            unsure: true,
            stamp: Stamp {
                mode: self.directory_mode,
                ..Stamp::default()
            },
            ..Directory::default()
        };
        let mut held = BTreeMap::new();
        for (path, (mode, oid)) in listing.iter().filter(|(path, _)| path.is_safe()) {
            // The blob does not say what a converted file should look like.
            if *mode == Mode::Submodule || store.is_converted(*mode) {
                continue;
            }
            if let Some((node, stat)) = self.look(place, path, *mode, taken_ns)?
                && node.disk == *oid
                && self.is_as_written(*mode, &stat)
            {
                self.mirror
                    .insert(path.as_bytes(), node, self.directory_mode);
                held.insert(path.clone(), (*mode, *oid));
            }
        }
        if self.aside.is_some() {
            let root = place.root();
            learn_modes(place, root, &mut self.mirror)?;
        }
        self.listing = Arc::new(held);
        Ok(())
    }

    /// True if a file has the bits we would give it, and no second name outside.
    fn is_as_written(&self, mode: Mode, stat: &Stat) -> bool {
        let wanted = match mode {
            Mode::Executable => 0o777,
            _ => 0o666,
        };
        mode == Mode::Link
            || self.aside.is_some()
            || (stat.st_nlink == 1 && stat.st_mode & 0o7777 == self.directory_mode & wanted)
    }

    /// The file of this kind at a path, read; `None` if something else (or nothing) is there.
    fn look(
        &self,
        place: &mut Place,
        path: &RepoPath,
        mode: Mode,
        taken_ns: i64,
    ) -> Result<Option<(FileNode, Stat)>, GitError> {
        let bytes = path.as_bytes();
        let Some((at, name)) = place.parent(bytes, false)? else {
            return Ok(None);
        };
        let Ok(stat) = statat(at, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(None);
        };
        let stamp = Stamp::of(&stat);
        let disk = match (mode, stamp.kind()) {
            (Mode::Link, FileType::Symlink) => {
                let target = place.read_link(bytes)?;
                hash_object(self.format, ObjectKind::Blob, &target)?
            }
            (Mode::File | Mode::Executable, FileType::RegularFile) => {
                let Some(mut file) = place.open_file(bytes)? else {
                    return Ok(None);
                };
                hash_stream(self.format, &mut file, stamp.size, &self.path)?
            }
            _ => return Ok(None),
        };
        let node = FileNode {
            mode,
            disk,
            stamp,
            racy: stamp.is_racy(taken_ns),
        };
        Ok(Some((node, stat)))
    }
}

/// Directories of the user's have the modes they have.
fn learn_modes(
    place: &Place,
    at: BorrowedFd<'_>,
    directory: &mut Directory,
) -> Result<(), GitError> {
    let failed = |error| place.error("look at", b"", error);
    directory.stamp.mode = fstat(at).map_err(failed)?.st_mode;
    for entry in &mut directory.entries {
        if let Node::Directory(below) = &mut entry.node {
            match open_directory(at, &entry.name) {
                Ok(handle) => learn_modes(place, handle.as_fd(), below)?,
                // It is missing; the scan says so.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
    Ok(())
}
