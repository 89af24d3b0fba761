//! Making a directory of ours hold exactly a tree.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{FileNode, Finding, Stamp, WorkTree};
use crate::error::{GitError, Refusal};
use crate::hash::{ObjectKind, hash_object};
use crate::place::Place;
use crate::store::ObjectStore;
use crate::types::{Mode, Objects as _, Oid, RepoPath, TreeListing, diff_listings};

impl WorkTree {
    /// Brings the directory to `tree` (`listing` is what it holds, submodules filled in); everything
    /// else in it is removed.
    pub(crate) fn restore(
        &mut self,
        store: &mut ObjectStore,
        tree: Oid,
        listing: &TreeListing,
    ) -> Result<(), GitError> {
        let (mut place, redraw) = self.leave(store, tree, listing)?;
        let findings = self.scan(&place, false)?;
        let mut writes: BTreeSet<RepoPath> = BTreeSet::new();
        let mut emptied: BTreeSet<RepoPath> = BTreeSet::new();
        if redraw {
            // Files whose blobs are the same may have to look different.
            writes.extend(listing.keys().cloned());
        }
        self.clear(&mut place, findings, &mut writes)?;
        for change in diff_listings(&self.listing, listing) {
            if change.after.is_none() {
                place.remove(change.path.as_bytes())?;
                self.mirror.remove(change.path.as_bytes());
                emptied.extend(change.path.parent());
                writes.remove(&change.path);
            } else {
                writes.insert(change.path);
            }
        }
        self.write_all(&mut place, store, listing, writes)?;
        for directory in emptied {
            prune(&mut place, directory, listing)?;
        }
        self.arrive(tree, listing);
        Ok(())
    }

    /// Begins to bring the directory to another tree: until it has arrived, nothing is known of it. True
    /// if other attributes count from now on, by which files look different.
    pub(super) fn leave(
        &mut self,
        store: &mut ObjectStore,
        tree: Oid,
        listing: &TreeListing,
    ) -> Result<(Place, bool), GitError> {
        let plain = store.listing(&tree)?;
        let redraw = store.use_attributes_of(&plain)?;
        let mut place = self.open_or_make()?;
        if !self.known {
            self.learn(&mut place, store, listing)?;
        }
        self.known = false;
        Ok((place, redraw))
    }

    /// The directory holds exactly this.
    pub(super) fn arrive(&mut self, tree: Oid, listing: &TreeListing) {
        self.tree = tree;
        self.listing = Arc::clone(listing);
        self.known = true;
    }

    /// Opens the directory; if it is gone, or no directory, makes one.
    pub(super) fn open_or_make(&mut self) -> Result<Place, GitError> {
        let there = Place::open(&self.path)?;
        if self.aside.is_some() {
            // The user's own: never made anew, never cleared as a whole.
            return there.ok_or_else(|| Refusal::NotARepository(self.path.clone()).into());
        }
        let above = self.path.parent().unwrap_or(&self.path).to_path_buf();
        let mut above = Place::open_or_make(&above)?;
        if self.directory_mode == 0 {
            self.directory_mode = above.mode_of_new_directories()?;
        }
        if let Some(place) = there {
            return Ok(place);
        }
        self.known = false;
        let name = self.path.file_name().unwrap_or_default();
        above.remove(name.as_encoded_bytes())?;
        Place::open_or_make(&self.path)
    }

    /// Writes what of these paths the listing holds.
    pub(super) fn write_all(
        &mut self,
        place: &mut Place,
        store: &mut ObjectStore,
        listing: &TreeListing,
        writes: BTreeSet<RepoPath>,
    ) -> Result<(), GitError> {
        let wanted: Vec<(RepoPath, Mode, Oid)> = writes
            .into_iter()
            .filter_map(|path| {
                let (mode, oid) = *listing.get(&path)?;
                Some((path, mode, oid))
            })
            .collect();
        // Directories of submodules first: they say which files are converted.
        for (path, _, _) in wanted
            .iter()
            .filter(|(_, mode, _)| *mode == Mode::Submodule)
        {
            check_safe(path)?;
            place.put_directory(path.as_bytes())?;
            self.mirror
                .insert_submodule(path.as_bytes(), self.directory_mode);
        }
        let mut plain = Vec::new();
        for (path, mode, oid) in wanted {
            check_safe(&path)?;
            if mode == Mode::Submodule {
                continue;
            }
            // The project's attributes say nothing about files of a submodule.
            if store.is_converted(mode) && self.submodule_of(&path).is_none() {
                let content = store.checkout_bytes(&path, mode, &oid)?;
                let disk = hash_object(self.format, ObjectKind::Blob, &content)?;
                self.write(place, &path, mode, disk, &content)?;
            } else {
                plain.push((path, mode, oid));
            }
        }
        let oids: Vec<Oid> = plain.iter().map(|(_, _, oid)| *oid).collect();
        store.read_blobs(&oids, &mut |at, content| {
            let (path, mode, oid) = &plain[at];
            self.write(place, path, *mode, *oid, content)
        })
    }

    /// Undoes what a scan found, except for the files that have to be written again.
    fn clear(
        &mut self,
        place: &mut Place,
        findings: Vec<Finding>,
        writes: &mut BTreeSet<RepoPath>,
    ) -> Result<(), GitError> {
        for finding in findings {
            match finding {
                Finding::DirectoryMode { path, mode } => {
                    place.set_directory_mode(path.as_bytes(), mode)?;
                }
                Finding::Changed { path, .. }
                | Finding::Missing { path }
                | Finding::MissingDirectory { path } => {
                    writes.insert(path);
                }
                Finding::Extra { path, .. } => {
                    self.doubt(&path);
                    place.remove(path.as_bytes())?;
                }
            }
        }
        Ok(())
    }

    /// The mirror's directory holding `path` has to be read again.
    pub(super) fn doubt(&mut self, path: &RepoPath) {
        let mut directory = &mut self.mirror;
        directory.unsure = true;
        for name in path.names() {
            let Ok(at) = directory.find(name) else { return };
            let super::Node::Directory(below) = &mut directory.entries[at].node else {
                return;
            };
            below.unsure = true;
            directory = below;
        }
    }

    fn write(
        &mut self,
        place: &mut Place,
        path: &RepoPath,
        mode: Mode,
        disk: Oid,
        content: &[u8],
    ) -> Result<(), GitError> {
        let stat = place.put(path, mode, content)?;
        let node = FileNode {
            mode,
            disk,
            stamp: Stamp::of(&stat),
            racy: true,
        };
        self.mirror
            .insert(path.as_bytes(), node, self.directory_mode);
        Ok(())
    }
}

fn check_safe(path: &RepoPath) -> Result<(), GitError> {
    if path.is_safe() {
        return Ok(());
    }
    Err(GitError::unexpected(format!(
        "the tree holds the path {path}, which can't be checked out safely"
    )))
}

/// Removes directories that hold nothing of the tree any more.
pub(super) fn prune(
    place: &mut Place,
    directory: RepoPath,
    listing: &TreeListing,
) -> Result<(), GitError> {
    let mut current = Some(directory);
    while let Some(path) = current {
        let first_below = path.join(b"");
        let in_use = listing.contains_key(&path)
            || listing
                .range(first_below..)
                .next()
                .is_some_and(|(next, _)| next.is_below(&path));
        if in_use || !place.remove_if_empty(path.as_bytes())? {
            return Ok(());
        }
        current = path.parent();
    }
    Ok(())
}
