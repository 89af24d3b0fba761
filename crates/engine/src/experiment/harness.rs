//! The harness: everything that judges the work. Its digest says whether two trials may be compared.
//!
//! It covers the protected files, the linked inputs and the settings that matter; not
//! `loopwright.toml` as a file, because most of what stands in it may change freely.

use loopwright_core::canonical::to_canonical;
use loopwright_core::digest::Digest;
use loopwright_core::experiment::state::Incumbent;
use loopwright_core::experiment::{HarnessStart, State};
use loopwright_core::ids::BranchName;
use loopwright_core::spec::{ExperimentSpec, PatternSet};
use loopwright_git::arms::LinkFingerprint;
use loopwright_git::{Change, ObjectStore, Objects as _, Oid, Person, TreeListing};
use serde_json::json;

use crate::error::EngineError;

use super::own_commit::OwnCommit;

const HARNESS_DOMAIN: &str = "loopwright/harness/1";

/// How the subject of an incumbent with other protected files begins; it ends with whose they are.
const HARNESS_SUBJECT: &str = "loopwright: the harness of ";

/// What a harness is made of.
pub struct Harness<'a> {
    /// The settings.
    pub spec: &'a ExperimentSpec,
    /// Where commands run.
    pub workdir: &'a str,
    /// The linked inputs.
    pub links: &'a [LinkFingerprint],
    /// In place, where a segment begins because its user had moved the branch, and that segment's number:
    /// it is another beginning whatever the files are.
    pub moved: Option<(String, u64)>,
}

impl Harness<'_> {
    /// The digest with the protected files as they are in `listing`.
    pub fn digest(&self, listing: &TreeListing) -> Result<Digest, EngineError> {
        let protected = self.spec.protect_set();
        let files: Vec<[String; 3]> = listing
            .iter()
            .filter(|(path, _)| protected.matches(path.as_bytes()))
            .map(|(path, (mode, oid))| [path.to_string(), mode.octal().to_owned(), oid.to_hex()])
            .collect();
        let links: Vec<[String; 2]> = self
            .links
            .iter()
            .map(|link| [link.link.path.to_string(), link.digest.clone()])
            .collect();
        let mut all = json!({
            "files": files,
            "links": links,
            "settings": self.spec.harness_texts(),
            "workdir": self.workdir,
        });
        if let Some(moved) = &self.moved {
            all["moved"] = json!(moved);
        }
        let bytes = to_canonical(&all).map_err(|error| EngineError::refused(error.to_string()))?;
        Ok(Digest::of(HARNESS_DOMAIN, &bytes))
    }

    /// The harness a new run starts with: that of `commit`.
    pub fn first(
        &self,
        objects: &mut ObjectStore,
        commit: Oid,
    ) -> Result<HarnessStart, EngineError> {
        let tree = objects.read_commit(&commit)?.tree;
        let digest = self.digest(&objects.listing(&tree)?)?;
        Ok(HarnessStart {
            digest,
            commit: commit.to_hex(),
            tree: tree.to_hex(),
        })
    }

    /// The harness an old run goes on with. Its protected files are those of the segment, unless
    /// `source` (the user's commit) has others: then the incumbent gets those, as a commit of its
    /// own, and a new segment starts from there.
    pub fn next(
        &self,
        objects: &mut ObjectStore,
        state: &State,
        branch: &BranchName,
        source: Option<Oid>,
        author: &Person,
    ) -> Result<Option<HarnessStart>, EngineError> {
        let (Some(segment), Some(incumbent)) = (&state.segment, state.starts_from(branch)) else {
            return Ok(None);
        };
        let (mut commit, mut tree): (Oid, Oid) =
            (incumbent.commit.parse()?, incumbent.tree.parse()?);
        let segment_listing = objects.listing(&segment.tree.parse()?)?;
        let mut harness_listing = segment_listing.clone();
        if let Some(source) = source {
            let source_tree = objects.read_commit(&source)?.tree;
            harness_listing = objects.listing(&source_tree)?;
            if let Some(own) = self.overlaid(objects, incumbent, &source)? {
                tree = own.tree;
                commit = own.make(objects, author)?;
                objects.make_durable()?;
            }
        }
        let digest = self.digest(&harness_listing)?;
        Ok(Some(HarnessStart {
            digest,
            commit: commit.to_hex(),
            tree: tree.to_hex(),
        }))
    }

    /// The incumbent with the protected files of `source`, as a commit; none where it has them.
    fn overlaid(
        &self,
        objects: &mut ObjectStore,
        incumbent: &Incumbent,
        source: &Oid,
    ) -> Result<Option<OwnCommit>, EngineError> {
        let (parent, tree): (Oid, Oid) = (incumbent.commit.parse()?, incumbent.tree.parse()?);
        let from = objects.read_commit(source)?;
        let (listing, harness) = (objects.listing(&tree)?, objects.listing(&from.tree)?);
        let changes = overlay(&listing, &harness, &self.spec.protect_set());
        if changes.is_empty() {
            return Ok(None);
        }
        Ok(Some(OwnCommit {
            tree: objects.write_tree(&tree, &changes)?,
            parent,
            // So that it is the same one whenever it is made.
            time_s: from.time_s.max(objects.read_commit(&parent)?.time_s),
            message: format!("{HARNESS_SUBJECT}{source}\n"),
        }))
    }

    /// Whether `found` is what an invocation made of the incumbent, whichever commit of the user's it
    /// took the protected files from.
    pub fn is_start_of(
        &self,
        objects: &mut ObjectStore,
        state: &State,
        branch: &BranchName,
        found: &Oid,
    ) -> Result<bool, EngineError> {
        let (Some(incumbent), true) = (state.starts_from(branch), objects.has(found)?) else {
            return Ok(false);
        };
        let message = objects.read_commit(found)?.message;
        let source = message.strip_prefix(HARNESS_SUBJECT).map(str::trim_end);
        let Some(source) = source.and_then(|hex| hex.parse::<Oid>().ok()) else {
            return Ok(false);
        };
        if !objects.has(&source)? {
            return Ok(false);
        }
        let own = self.overlaid(objects, incumbent, &source)?;
        Ok(match own {
            Some(own) => own.is(objects, found)?,
            None => false,
        })
    }
}

/// What has to change in `listing` for its protected files to be those of `harness`.
fn overlay(listing: &TreeListing, harness: &TreeListing, protected: &PatternSet) -> Vec<Change> {
    loopwright_git::diff_listings(listing, harness)
        .into_iter()
        .filter(|change| protected.matches(change.path.as_bytes()))
        .collect()
}
