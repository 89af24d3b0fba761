//! From the checkout to the tree: git's own `update-index` on an index of ours.
//!
//! An index is needed because git looks there whether a file had carriage returns before.

use std::collections::BTreeMap;
use std::path::Path;

use super::ToClean;
use crate::error::GitError;
use crate::git::split_nul;
use crate::store::ObjectStore;
use crate::types::{Change, Oid, RepoPath, TreeListing};

/// Stores changed files converted; gives their changes.
pub(crate) fn clean(
    store: &mut ObjectStore,
    work_tree: &Path,
    base: &Oid,
    listing: &TreeListing,
    files: Vec<ToClean>,
) -> Result<Vec<Change>, GitError> {
    let index = store.dir().join("clean.index");
    let git = store.git().clone().with_work_tree(work_tree);
    let git = store
        .configured(git)
        .with_variable("GIT_INDEX_FILE", &index);
    let base = base.to_hex();
    git.run(["read-tree", &base])?;
    let mut input = Vec::new();
    for file in &files {
        input.extend_from_slice(file.path.as_bytes());
        input.push(0);
    }
    git.run_with(
        ["update-index", "-z", "--add", "--replace", "--stdin"],
        &input,
    )?;
    let output = git.run(["diff-index", "--cached", "-z", "--no-renames", &base])?;
    let _ = std::fs::remove_file(&index);
    let mut converted: BTreeMap<RepoPath, Oid> = BTreeMap::new();
    let mut records = split_nul(&output);
    while let (Some(facts), Some(path)) = (records.next(), records.next()) {
        // `:100644 100644 <before> <after> M`
        let after = facts.split(|byte| *byte == b' ').nth(3);
        if let Some(oid) = after.and_then(Oid::from_hex) {
            converted.insert(RepoPath::new(path), oid);
        }
    }
    let mut changes = Vec::with_capacity(files.len());
    for file in files {
        let before = listing.get(&file.path).copied();
        // What git does not list came out as it was.
        let Some(oid) = converted
            .get(&file.path)
            .copied()
            .or(before.map(|(_, oid)| oid))
        else {
            continue;
        };
        store.expect_durable(oid)?;
        changes.push(Change {
            before,
            after: Some((file.mode, oid)),
            path: file.path,
        });
    }
    Ok(changes)
}
