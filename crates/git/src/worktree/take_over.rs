//! Knowing a checkout that somebody else made.

use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, fstat, statat};

use super::{Directory, FileNode, Node, Stamp, WorkTree, now_ns};
use crate::error::{GitError, Refusal};
use crate::hash::{ObjectKind, hash_object};
use crate::place::{Place, open_directory};
use crate::store::hash_stream;
use crate::types::{Mode, Oid, RepoPath, TreeListing};

impl WorkTree {
    /// Learns stamps and content of a checkout that git says is clean at `tree`.
    pub(crate) fn take_over(&mut self, tree: Oid, listing: &TreeListing) -> Result<(), GitError> {
        let gone = || Refusal::NotARepository(self.path.clone());
        let mut place = Place::open(&self.path)?.ok_or_else(gone)?;
        let taken_ns = now_ns();
        let top = fstat(place.root()).map_err(|error| place.error("look at", b"", error))?;
        self.directory_mode = top.st_mode;
        self.taken_over = true;
        self.mirror = Directory::default();
        for (path, (mode, _)) in listing.iter() {
            if *mode == Mode::Submodule {
                self.mirror
                    .insert_submodule(path.as_bytes(), self.directory_mode);
                continue;
            }
            let node = self.learn(&mut place, path, *mode, taken_ns)?;
            self.mirror
                .insert(path.as_bytes(), node, self.directory_mode);
        }
        let mut mirror = std::mem::take(&mut self.mirror);
        learn_modes(&place, place.root(), &mut mirror)?;
        self.mirror = mirror;
        self.tree = tree;
        self.listing = Arc::clone(listing);
        Ok(())
    }

    fn learn(
        &self,
        place: &mut Place,
        path: &RepoPath,
        mode: Mode,
        taken_ns: i64,
    ) -> Result<FileNode, GitError> {
        let bytes = path.as_bytes();
        let differs = || Refusal::Dirty(vec![path.clone()]);
        let (at, name) = place.parent(bytes, false)?.ok_or_else(differs)?;
        let stat = statat(at, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| differs())?;
        let stamp = Stamp::of(&stat);
        let disk = match (mode, stamp.kind()) {
            (Mode::Link, FileType::Symlink) => {
                let target = place.read_link(bytes)?;
                hash_object(self.format, ObjectKind::Blob, &target)?
            }
            (Mode::File | Mode::Executable, FileType::RegularFile) => {
                let mut file = place.open_file(bytes)?.ok_or_else(differs)?;
                hash_stream(self.format, &mut file, stamp.size, &self.path)?
            }
            _ => return Err(differs().into()),
        };
        Ok(FileNode {
            mode,
            disk,
            stamp,
            racy: stamp.is_racy(taken_ns),
        })
    }
}

/// Directories of the user's have the modes they have.
fn learn_modes(
    place: &Place,
    at: std::os::fd::BorrowedFd<'_>,
    directory: &mut Directory,
) -> Result<(), GitError> {
    let failed = |error| place.error("look at", b"", error);
    directory.stamp.mode = fstat(at).map_err(failed)?.st_mode;
    for entry in &mut directory.entries {
        if let Node::Directory(below) = &mut entry.node {
            let handle = open_directory(at, &entry.name).map_err(failed)?;
            learn_modes(place, handle.as_fd(), below)?;
        }
    }
    Ok(())
}
