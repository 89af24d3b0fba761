//! Examining a candidate: what its changes must not do, whoever made them. A proposal, an old change
//! that is tried again and what the user's commit hook made of one all come through here, before
//! anything of them is measured.

use std::collections::BTreeMap;

use loopwright_core::digest::Digest;
use loopwright_core::experiment::Named;
use loopwright_core::experiment::results::Findings;
use loopwright_core::experiment::shadow;
use loopwright_core::scrub::{Pieces, Secrets};
use loopwright_git::{
    Change, Mode, ObjectStore, Objects as _, Oid, RepoPath, TreeListing, apply_changes,
    diff_listings,
};

use crate::error::EngineError;

use super::workshop::Workshop;

/// How often each secret occurs, by digest: what is known of a secret is that it is the same one.
type Occurrences = BTreeMap<Digest, u64>;

impl Workshop {
    /// What speaks against a candidate that changes the tree `base` like that.
    pub(super) fn examine(
        &mut self,
        base: Oid,
        changes: &[Change],
    ) -> Result<Findings, EngineError> {
        let mut protected: Named = changes
            .iter()
            .filter(|change| self.protected.matches(change.path.as_bytes()))
            .map(|change| change.path.to_string())
            .collect();
        for link in self.input_links() {
            let takes_place = |change: &&Change| {
                let (path, link) = (&change.path, &link.path);
                path == link || path.is_below(link) || link.is_below(path)
            };
            let added = changes.iter().filter(|change| change.after.is_some());
            let in_place = added.filter(takes_place);
            protected.extend(in_place.map(|change| {
                format!("{} (the input {} is linked there)", change.path, link.path)
            }));
        }
        Ok(Findings {
            protected,
            shadowing: self.shadowing(base, changes)?,
            secrets: new_secrets(&mut self.objects, &self.secrets, changes)?,
        })
    }

    /// What has to change in a tree for its protected files to be those that judge this segment.
    pub(super) fn foreign_harness(
        &mut self,
        listing: &TreeListing,
    ) -> Result<Vec<Change>, EngineError> {
        let judging = self.judging;
        let judging = self.objects.checkout_listing(&judging)?;
        let differs = diff_listings(listing, &judging);
        let of_harness = |change: &Change| self.protected.matches(change.path.as_bytes());
        Ok(differs.into_iter().filter(of_harness).collect())
    }

    /// What a checkout of `tree` holds for a measurement: its protected files are the segment's,
    /// whatever the tree has. A candidate with others never comes this far; if one does, it is
    /// judged by the referee that everybody is judged by.
    pub(super) fn listing_to_measure(&mut self, tree: &Oid) -> Result<TreeListing, EngineError> {
        let listing = self.objects.checkout_listing(tree)?;
        let foreign = self.foreign_harness(&listing)?;
        if foreign.is_empty() {
            return Ok(listing);
        }
        Ok(apply_changes(&listing, &foreign))
    }

    /// New files that would be imported in place of what judges the change.
    fn shadowing(&mut self, base: Oid, changes: &[Change]) -> Result<Named, EngineError> {
        if self.spec.protect.is_empty() || changes.iter().all(|change| change.before.is_some()) {
            return Ok(Named::default());
        }
        let listing = self.objects.listing(&base)?;
        let protected: Vec<String> = listing
            .keys()
            .filter(|path| self.protected.matches(path.as_bytes()))
            .map(latin)
            .collect();
        let added: Vec<String> = changes
            .iter()
            .filter(|change| change.before.is_none())
            .map(|change| latin(&change.path))
            .collect();
        let found = shadow::shadowing(added.iter().map(String::as_str), &protected);
        let changed = changes.iter().map(|change| &change.path);
        let shadows = |path: &&RepoPath| found.contains(&latin(path));
        Ok(changed.filter(shadows).map(ToString::to_string).collect())
    }
}

/// A path as text without a loss, byte for byte: module names are told apart by their bytes.
fn latin(path: &RepoPath) -> String {
    path.as_bytes().iter().copied().map(char::from).collect()
}

/// Changed files that hold what looks like a secret, which the changed files did not hold before
/// (one that moves from a file to another is not new).
fn new_secrets(
    objects: &mut ObjectStore,
    secrets: &Secrets,
    changes: &[Change],
) -> Result<Named, EngineError> {
    let mut more = Vec::new();
    let mut gone = Occurrences::new();
    for change in changes {
        let mut after = occurrences(objects, secrets, change.after)?;
        if change.before.is_none() {
            add(&mut after, secrets, change.path.as_bytes());
        }
        // What was there before is only of interest where it makes a difference.
        let before = occurrences(objects, secrets, change.before)?;
        for (secret, count) in before {
            let now = after.entry(secret).or_default();
            *gone.entry(secret).or_default() += count.saturating_sub(*now);
            *now = now.saturating_sub(count);
        }
        after.retain(|_, count| *count > 0);
        if !after.is_empty() {
            more.push((change, after));
        }
    }
    let mut found = Named::default();
    for (change, after) in more {
        let mut is_new = false;
        for (secret, count) in after {
            let moved = gone.entry(secret).or_default();
            is_new |= count > *moved;
            *moved = moved.saturating_sub(count);
        }
        if is_new {
            found.push(change.path.to_string());
        }
    }
    Ok(found)
}

fn occurrences(
    objects: &mut ObjectStore,
    secrets: &Secrets,
    entry: Option<(Mode, Oid)>,
) -> Result<Occurrences, EngineError> {
    let mut found = Occurrences::new();
    let Some((mode, oid)) = entry else {
        return Ok(found);
    };
    if mode == Mode::Submodule {
        return Ok(found);
    }
    let mut pieces = Pieces::new(secrets);
    let mut search = |piece: &[u8]| add(&mut found, secrets, piece);
    objects.read_blob_in_pieces(&oid, &mut |bytes| pieces.feed(bytes, &mut search))?;
    pieces.finish(&mut search);
    Ok(found)
}

fn add(found: &mut Occurrences, secrets: &Secrets, bytes: &[u8]) {
    for finding in secrets.findings(bytes) {
        let digest = Digest::of_content(&bytes[finding.range]);
        *found.entry(digest).or_default() += 1;
    }
}
