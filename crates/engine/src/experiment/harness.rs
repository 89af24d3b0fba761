//! The harness: everything that judges the work. Its digest says whether two trials may be compared.
//!
//! It covers the protected files, the linked inputs and the settings that matter; not
//! `loopwright.toml` as a file, because most of what stands in it may change freely.

use loopwright_core::canonical::to_canonical;
use loopwright_core::digest::Digest;
use loopwright_core::experiment::{HarnessStart, State};
use loopwright_core::ids::BranchName;
use loopwright_core::spec::{ExperimentSpec, PatternSet};
use loopwright_git::arms::LinkFingerprint;
use loopwright_git::{Change, CommitSpec, ObjectStore, Objects as _, Oid, Person, TreeListing};
use serde_json::json;

use crate::error::EngineError;

const HARNESS_DOMAIN: &str = "loopwright/harness/1";

/// What a harness is made of.
pub struct Harness<'a> {
    /// The settings.
    pub spec: &'a ExperimentSpec,
    /// Where commands run.
    pub workdir: &'a str,
    /// The linked inputs.
    pub links: &'a [LinkFingerprint],
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
        let all = json!({
            "files": files,
            "links": links,
            "settings": self.spec.harness_texts(),
            "workdir": self.workdir,
        });
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
        time_s: i64,
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
            let listing = objects.listing(&tree)?;
            let changes = overlay(&listing, &harness_listing, &self.spec.protect_set());
            if !changes.is_empty() {
                tree = objects.write_tree(&tree, &changes)?;
                let message = format!("loopwright: the harness of {source}\n");
                let parents = [commit];
                commit = objects.commit(&CommitSpec {
                    tree,
                    parents: &parents,
                    author,
                    time_s,
                    message: &message,
                })?;
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
}

/// What has to change in `listing` for its protected files to be those of `harness`.
fn overlay(listing: &TreeListing, harness: &TreeListing, protected: &PatternSet) -> Vec<Change> {
    loopwright_git::diff_listings(listing, harness)
        .into_iter()
        .filter(|change| protected.matches(change.path.as_bytes()))
        .collect()
}
