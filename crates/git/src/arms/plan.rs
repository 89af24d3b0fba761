//! What an arm must hold: a tree's listing with submodules spelled out and inputs linked in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::arms::error::ArmsError;
use crate::arms::links::InputLink;
use crate::arms::patterns::SetupInputs;
use crate::error::GitError;
use crate::types::{Mode, Oid, RepoPath, TreeListing};

/// Where the content of submodules comes from.
pub trait Submodules {
    /// The listing of `commit`, which the tree names at `path`; `None` leaves the directory
    /// empty, as `git clone` does.
    fn listing(&mut self, path: &RepoPath, commit: &Oid) -> Result<Option<TreeListing>, GitError>;

    /// The bytes a checkout of the submodule has at `inner`, a path inside of it.
    fn checkout_bytes(
        &mut self,
        submodule: &RepoPath,
        inner: &RepoPath,
        mode: Mode,
        oid: &Oid,
    ) -> Result<Vec<u8>, GitError>;
}

/// What belongs at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A file or link of the tree.
    Blob(Mode, Oid),
    /// A file or link of a submodule whose own path has this many bytes.
    InnerBlob(Mode, Oid, usize),
    /// A submodule nobody has the content of.
    EmptyDirectory,
    /// A link to an input in the user's checkout.
    InputLink(PathBuf),
}

/// One path of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) path: RepoPath,
    pub(crate) wanted: Wanted,
}

impl Item {
    /// The content, if it is one of a git object.
    pub(crate) fn content(&self) -> Option<(Mode, Oid)> {
        match self.wanted {
            Wanted::Blob(mode, oid) | Wanted::InnerBlob(mode, oid, _) => Some((mode, oid)),
            Wanted::EmptyDirectory | Wanted::InputLink(_) => None,
        }
    }
}

/// Everything an arm must hold, sorted by path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) items: Vec<Item>,
    /// The files that say how blobs are turned into checkout bytes. When they change, an
    /// unchanged blob may still have another content on the disk.
    pub(crate) attributes: Vec<(RepoPath, Oid)>,
}

impl Plan {
    /// Spells out `listing` with `links` put in.
    pub(crate) fn build(
        listing: &TreeListing,
        links: &[InputLink],
        submodules: Option<&mut (dyn Submodules + '_)>,
    ) -> Result<Self, ArmsError> {
        let mut items = Vec::with_capacity(listing.len() + links.len());
        let mut submodules = submodules;
        for (path, (mode, oid)) in listing.iter() {
            if !path.is_safe() {
                return Err(ArmsError::UnsafePath(path.clone()));
            }
            if *mode == Mode::Submodule {
                expand(path, oid, submodules.as_deref_mut(), &mut items)?;
            } else {
                let wanted = Wanted::Blob(*mode, *oid);
                items.push(Item {
                    path: path.clone(),
                    wanted,
                });
            }
        }
        items.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let mut plan = Self::of_items(items);
        plan.drop_filled_submodules();
        plan.check_clashes()?;
        if !links.is_empty() {
            plan.add_links(links)?;
        }
        Ok(plan)
    }

    /// A plan of these items, which are sorted by path.
    pub(crate) fn of_items(items: Vec<Item>) -> Self {
        let attributes = items
            .iter()
            .filter(|item| item.path.names().next_back() == Some(b".gitattributes".as_slice()))
            .filter_map(|item| Some((item.path.clone(), item.content()?.1)))
            .collect();
        Self { items, attributes }
    }

    /// A listing may itself spell out what is below a submodule's entry; then the entry itself
    /// asks for nothing.
    fn drop_filled_submodules(&mut self) {
        let filled: Vec<RepoPath> = self
            .items
            .iter()
            .filter(|item| item.wanted == Wanted::EmptyDirectory)
            .filter(|item| {
                let (from, to) = self.range_below(&item.path);
                from < to
            })
            .map(|item| item.path.clone())
            .collect();
        if !filled.is_empty() {
            self.items.retain(|item| {
                item.wanted != Wanted::EmptyDirectory || !filled.contains(&item.path)
            });
        }
    }

    fn add_links(&mut self, links: &[InputLink]) -> Result<(), ArmsError> {
        let mut added = BTreeMap::new();
        for link in links {
            if let Some(tracked) = self.collision(&link.path) {
                return Err(ArmsError::LinkTracked {
                    link: link.path.clone(),
                    tracked: tracked.clone(),
                });
            }
            added.insert(link.path.clone(), link.target.clone());
        }
        self.items
            .extend(added.into_iter().map(|(path, target)| Item {
                path,
                wanted: Wanted::InputLink(target),
            }));
        self.items
            .sort_unstable_by(|one, other| one.path.cmp(&other.path));
        self.check_clashes()
    }

    /// An item at, above or below `path`.
    fn collision(&self, path: &RepoPath) -> Option<&RepoPath> {
        if let Some(index) = self.find(path).or_else(|| self.item_above(path)) {
            return Some(&self.items[index].path);
        }
        let (from, to) = self.range_below(path);
        (from < to).then(|| &self.items[from].path)
    }

    fn check_clashes(&self) -> Result<(), ArmsError> {
        let mut last_parent = None;
        for item in &self.items {
            let parent = item.path.parent();
            if parent == last_parent {
                continue;
            }
            if let Some(index) = self.item_above(&item.path) {
                return Err(ArmsError::Clash {
                    outer: self.items[index].path.clone(),
                    inner: item.path.clone(),
                });
            }
            last_parent = parent;
        }
        Ok(())
    }

    /// The index of the item at exactly `path`.
    pub(crate) fn find(&self, path: &RepoPath) -> Option<usize> {
        self.items.binary_search_by(|item| item.path.cmp(path)).ok()
    }

    /// The index of an item that stands where `path` needs a directory.
    pub(crate) fn item_above(&self, path: &RepoPath) -> Option<usize> {
        let mut above = path.parent();
        while let Some(directory) = above {
            if let Some(index) = self.find(&directory) {
                return Some(index);
            }
            above = directory.parent();
        }
        None
    }

    /// The items below a directory, as a range of indices.
    pub(crate) fn range_below(&self, directory: &RepoPath) -> (usize, usize) {
        let prefix = directory.join(b"");
        let from = self.items.partition_point(|item| item.path < prefix);
        let below = self.items[from..]
            .partition_point(|item| item.path.as_bytes().starts_with(prefix.as_bytes()));
        (from, from + below)
    }

    /// True if the plan needs a directory at `path`.
    pub(crate) fn has_directory(&self, path: &RepoPath) -> bool {
        let (from, to) = self.range_below(path);
        from < to
            || self
                .find(path)
                .is_some_and(|index| self.items[index].wanted == Wanted::EmptyDirectory)
    }

    /// True if something of the plan is at `path`, below it or in the way of it.
    pub(crate) fn claims(&self, path: &RepoPath) -> bool {
        self.find(path).is_some() || self.item_above(path).is_some() || self.has_directory(path)
    }

    /// A digest of what a setup depends on.
    pub(crate) fn digest_of(&self, inputs: &SetupInputs) -> [u8; 32] {
        use sha2::{Digest as _, Sha256};
        let mut hash = Sha256::new();
        hash.update(inputs.surroundings.as_bytes());
        hash.update([0]);
        let patterns = &inputs.files;
        for pattern in patterns.as_written() {
            hash.update(pattern.as_bytes());
            hash.update([0]);
        }
        for item in &self.items {
            let Some((mode, oid)) = item.content() else {
                continue;
            };
            if patterns.is_empty() || patterns.cover(&item.path) {
                hash.update([1]);
                hash.update(item.path.as_bytes());
                hash.update([0]);
                hash.update(mode.octal());
                hash.update(oid.as_bytes());
            }
        }
        hash.finalize().into()
    }

    /// The indices of this plan's items whose content differs from `base`'s, or is new.
    pub(crate) fn changed_since(&self, base: &Self) -> Vec<usize> {
        let mut changed = Vec::new();
        let mut old = base.items.iter().peekable();
        for (index, item) in self.items.iter().enumerate() {
            while old.next_if(|other| other.path < item.path).is_some() {}
            let same = old
                .next_if(|other| other.path == item.path)
                .is_some_and(|other| other.content() == item.content());
            if !same {
                changed.push(index);
            }
        }
        changed
    }

    /// The paths of this plan that `newer` no longer has.
    pub(crate) fn missing_in(&self, newer: &Self) -> Vec<RepoPath> {
        let mut missing = Vec::new();
        let mut new = newer.items.iter().peekable();
        for item in &self.items {
            while new.next_if(|other| other.path < item.path).is_some() {}
            if new.peek().is_none_or(|other| other.path != item.path) {
                missing.push(item.path.clone());
            }
        }
        missing
    }
}

/// Puts a submodule's content in place of its entry, and so on for submodules inside of it.
fn expand(
    path: &RepoPath,
    commit: &Oid,
    submodules: Option<&mut (dyn Submodules + '_)>,
    items: &mut Vec<Item>,
) -> Result<(), ArmsError> {
    let Some(provider) = submodules else {
        items.push(empty(path));
        return Ok(());
    };
    let Some(listing) = provider.listing(path, commit)? else {
        items.push(empty(path));
        return Ok(());
    };
    if listing.is_empty() {
        items.push(empty(path));
    }
    for (inner, (mode, oid)) in listing.iter() {
        let full = path.join(inner.as_bytes());
        if !full.is_safe() {
            return Err(ArmsError::UnsafePath(full));
        }
        if *mode == Mode::Submodule {
            expand(&full, oid, Some(&mut *provider), items)?;
        } else {
            let wanted = Wanted::InnerBlob(*mode, *oid, path.as_bytes().len());
            items.push(Item { path: full, wanted });
        }
    }
    Ok(())
}

fn empty(path: &RepoPath) -> Item {
    Item {
        path: path.clone(),
        wanted: Wanted::EmptyDirectory,
    }
}

/// A few plans, so that a trial that changes nothing costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    kept: Vec<(TreeListing, Arc<Plan>)>,
}

impl Plans {
    const KEPT: usize = 4;

    /// The plan of a listing, built or remembered.
    pub(crate) fn plan(
        &mut self,
        listing: &TreeListing,
        links: &[InputLink],
        submodules: Option<&mut (dyn Submodules + '_)>,
    ) -> Result<Arc<Plan>, ArmsError> {
        let same = |known: &TreeListing| Arc::ptr_eq(known, listing) || known == listing;
        if let Some(index) = self.kept.iter().position(|(known, _)| same(known)) {
            let found = self.kept.remove(index);
            let plan = Arc::clone(&found.1);
            self.kept.push(found);
            return Ok(plan);
        }
        let plan = Arc::new(Plan::build(listing, links, submodules)?);
        if self.kept.len() >= Self::KEPT {
            self.kept.remove(0);
        }
        self.kept.push((Arc::clone(listing), Arc::clone(&plan)));
        Ok(plan)
    }
}
