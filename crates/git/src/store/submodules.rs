//! Submodules: read-only content, copied from where the user's checkout has it. No network.
//!
//! A submodule the user has initialised is filled in wherever a tree is checked out; one that is
//! not stays an empty directory, as git itself leaves it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::{ObjectStore, upkeep};
use crate::arms::Submodules;
use crate::error::{GitError, Refusal};
use crate::git::Git;
use crate::types::{Mode, Objects as _, Oid, RepoPath, TreeListing};

impl ObjectStore {
    /// Commits whose content was copied into this store whole: bases and submodules.
    pub(crate) fn bases(&self) -> Result<BTreeSet<Oid>, GitError> {
        upkeep::read_bases(&self.dir)
    }

    /// Copies the commits of initialised submodules, and of submodules in them.
    pub(super) fn import_submodules(
        &mut self,
        checkout: &Path,
        listing: &TreeListing,
    ) -> Result<(), GitError> {
        let entries = listing
            .iter()
            .filter(|(_, (mode, _))| *mode == Mode::Submodule);
        for (path, (_, commit)) in entries {
            let place = path.to_path(checkout);
            if fs::symlink_metadata(place.join(".git")).is_err() {
                continue;
            }
            let git = Git::at(&place);
            let name = format!("{commit}^{{commit}}");
            if git.resolve(&name)? != Some(*commit) {
                let path = path.clone();
                return Err(Refusal::SubmoduleMissing { path }.into());
            }
            self.import_commit(&git, commit)?;
            let tree = self.read_commit(commit)?.tree;
            let inner = self.listing(&tree)?;
            self.import_submodules(&place, &inner)?;
        }
        Ok(())
    }

    /// The listing a checkout of a tree has: the tree's, and below each submodule its content.
    pub fn checkout_listing(&mut self, tree: &Oid) -> Result<TreeListing, GitError> {
        let listing = self.listing(tree)?;
        if let Some((_, expanded)) = self.expanded.iter().find(|(known, _)| known == tree) {
            return Ok(Arc::clone(expanded));
        }
        let has_any = listing.values().any(|(mode, _)| *mode == Mode::Submodule);
        let expanded = if has_any {
            let bases = self.bases()?;
            let mut expanded = (*listing).clone();
            self.expand(&listing, None, &bases, &mut expanded)?;
            Arc::new(expanded)
        } else {
            listing
        };
        self.expanded.push_front((*tree, Arc::clone(&expanded)));
        self.expanded.truncate(super::LISTINGS_KEPT);
        Ok(expanded)
    }

    fn expand(
        &mut self,
        listing: &TreeListing,
        at: Option<&RepoPath>,
        bases: &BTreeSet<Oid>,
        into: &mut std::collections::BTreeMap<RepoPath, (Mode, Oid)>,
    ) -> Result<(), GitError> {
        for (path, (mode, oid)) in listing.iter() {
            let full = at.map_or_else(|| path.clone(), |at| at.join(path.as_bytes()));
            if at.is_some() {
                into.insert(full.clone(), (*mode, *oid));
            }
            if *mode == Mode::Submodule && bases.contains(oid) {
                let tree = self.read_commit(oid)?.tree;
                let inner = self.listing(&tree)?;
                self.expand(&inner, Some(&full), bases, into)?;
            }
        }
        Ok(())
    }

    /// A second handle that gives arms the content of submodules.
    pub fn submodules(&self) -> Result<SubmoduleContent, GitError> {
        Ok(SubmoduleContent {
            store: self.another(),
            bases: self.bases()?,
        })
    }
}

/// The content of submodules, for arms.
#[derive(Debug)]
pub struct SubmoduleContent {
    store: ObjectStore,
    bases: BTreeSet<Oid>,
}

impl Submodules for SubmoduleContent {
    fn listing(&mut self, _path: &RepoPath, commit: &Oid) -> Result<Option<TreeListing>, GitError> {
        if !self.bases.contains(commit) {
            return Ok(None);
        }
        let tree = self.store.read_commit(commit)?.tree;
        self.store.listing(&tree).map(Some)
    }

    fn checkout_bytes(
        &mut self,
        _submodule: &RepoPath,
        _inner: &RepoPath,
        _mode: Mode,
        oid: &Oid,
    ) -> Result<Vec<u8>, GitError> {
        self.store.read_blob(oid)
    }
}
