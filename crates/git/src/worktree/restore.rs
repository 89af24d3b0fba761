//! Making the directory hold exactly a tree.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ignore::IgnoreRules;
use super::{Extras, FileNode, Finding, Stamp, WorkTree};
use crate::error::GitError;
use crate::hash::{ObjectKind, hash_object};
use crate::place::Place;
use crate::store::ObjectStore;
use crate::types::{Mode, Objects as _, Oid, RepoPath, TreeListing, diff_listings};

impl WorkTree {
    /// Brings the directory to `tree` (`listing` is what it holds, submodules filled in).
    pub(crate) fn restore(
        &mut self,
        store: &mut ObjectStore,
        tree: Oid,
        listing: &TreeListing,
        extras: Extras,
    ) -> Result<(), GitError> {
        let plain = store.listing(&tree)?;
        if store.use_attributes_of(&plain)? {
            // Files whose blobs are the same may have to look different.
            self.directory_mode = 0;
        }
        let mut place = self.open_or_start_over()?;
        let findings = self.scan(&place, false)?;
        let mut writes: BTreeSet<RepoPath> = BTreeSet::new();
        let mut emptied: BTreeSet<RepoPath> = BTreeSet::new();
        self.clear(&mut place, store, findings, extras, &mut writes)?;
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
        for path in writes {
            if let Some((mode, oid)) = listing.get(&path) {
                self.write(&mut place, store, &path, *mode, *oid)?;
            }
        }
        for directory in emptied {
            prune(&mut place, directory, listing)?;
        }
        self.tree = tree;
        self.listing = Arc::clone(listing);
        Ok(())
    }

    /// Opens the directory; if it is gone or no directory, starts with an empty one.
    fn open_or_start_over(&mut self) -> Result<Place, GitError> {
        if self.directory_mode != 0
            && let Some(place) = Place::open(&self.path)?
        {
            return Ok(place);
        }
        let above = self.path.parent().unwrap_or(&self.path).to_path_buf();
        let name = self.path.file_name().unwrap_or_default();
        Place::open_or_make(&above)?.remove(name.as_encoded_bytes())?;
        let place = Place::open_or_make(&self.path)?;
        let stat =
            rustix::fs::fstat(place.root()).map_err(|error| place.error("look at", b"", error))?;
        self.directory_mode = stat.st_mode;
        self.mirror = super::Directory {
            unsure: true,
            stamp: Stamp {
                mode: stat.st_mode,
                ..Stamp::default()
            },
            ..super::Directory::default()
        };
        self.listing = TreeListing::default();
        Ok(place)
    }

    /// Undoes what a scan found, except for the files that have to be written again.
    fn clear(
        &mut self,
        place: &mut Place,
        store: &mut ObjectStore,
        findings: Vec<Finding>,
        extras: Extras,
        writes: &mut BTreeSet<RepoPath>,
    ) -> Result<(), GitError> {
        let mut unknown = Vec::new();
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
                Finding::Extra { path, kind } => unknown.push((path, kind)),
            }
        }
        for (path, _) in &unknown {
            self.doubt(path);
        }
        if extras == Extras::KeepIgnored && !unknown.is_empty() {
            let mut rules = IgnoreRules::start(store, &self.path, &self.excludes)?;
            let (whole, directories) = Self::without_ignored(place, &mut rules, unknown)?;
            for path in whole {
                place.remove(path.as_bytes())?;
            }
            for path in directories.iter().rev() {
                place.remove_if_empty(path.as_bytes())?;
            }
            return Ok(());
        }
        for (path, _) in unknown {
            place.remove(path.as_bytes())?;
        }
        Ok(())
    }

    /// The mirror's directory holding `path` has to be read again.
    fn doubt(&mut self, path: &RepoPath) {
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
        store: &mut ObjectStore,
        path: &RepoPath,
        mode: Mode,
        oid: Oid,
    ) -> Result<(), GitError> {
        if !path.is_safe() {
            return Err(GitError::unexpected(format!(
                "the tree holds the path {path}, which can't be checked out safely"
            )));
        }
        if mode == Mode::Submodule {
            place.put_directory(path.as_bytes())?;
            self.mirror
                .insert_submodule(path.as_bytes(), self.directory_mode);
            return Ok(());
        }
        // The project's attributes say nothing about files of a submodule.
        let converted = store.is_converted(mode) && self.submodule_of(path).is_none();
        let content = if converted {
            store.checkout_bytes(path, mode, &oid)?
        } else {
            store.read_blob(&oid)?
        };
        let disk = if converted {
            hash_object(self.format, ObjectKind::Blob, &content)?
        } else {
            oid
        };
        let stat = place.put(path, mode, &content)?;
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

/// Removes directories that hold nothing of the tree any more.
fn prune(place: &mut Place, directory: RepoPath, listing: &TreeListing) -> Result<(), GitError> {
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
