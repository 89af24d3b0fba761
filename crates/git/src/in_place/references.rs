//! HEAD and references of the user's repository around a proposal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::undone;
use crate::error::GitError;
use crate::types::Oid;
use crate::user::UserRepository;
use crate::worktree::RefusedPath;

/// Where HEAD and all references were before a proposal.
#[derive(Debug)]
pub(super) struct References {
    head: String,
    known: BTreeMap<String, Oid>,
}

impl References {
    pub(super) fn record(user: &UserRepository) -> Result<Self, GitError> {
        Ok(Self {
            head: user.hermetic().text(["symbolic-ref", "HEAD"])?,
            known: read(user)?,
        })
    }

    pub(super) fn get(&self, reference: &str) -> Option<Oid> {
        self.known.get(reference).copied()
    }

    /// Undoes what a proposal did to branches and tags; says what that was.
    pub(super) fn put_back(&self, user: &UserRepository) -> Result<Vec<RefusedPath>, GitError> {
        // First of all: with a HEAD that is damaged git would see no repository, and a branch that
        // is checked out can't be deleted under it.
        point_head(&user.git_dir, &self.head)?;
        let git = user.hermetic();
        let found = read(user)?;
        let (mut deletions, mut orders) = (String::new(), String::new());
        let mut undone_here = Vec::new();
        for (name, oid) in found
            .iter()
            .filter(|(name, _)| !self.known.contains_key(*name))
        {
            deletions.push_str(&format_order("delete", name, &[oid]));
            undone_here.push(undone(
                name.as_bytes(),
                &format!("it was removed again; it pointed at {oid}"),
            ));
        }
        for (name, oid) in &self.known {
            let now = found.get(name);
            if now != Some(oid) {
                orders.push_str(&format_order("update", name, &[oid]));
                let was = now.map_or_else(|| "gone".to_owned(), |now| format!("moved to {now}"));
                undone_here.push(undone(
                    name.as_bytes(),
                    &format!("it was put back; it was {was}"),
                ));
            }
        }
        // A reference below the name of another one has to be gone before that can be made.
        for orders in [deletions, orders].iter().filter(|it| !it.is_empty()) {
            git.run_with(["update-ref", "--no-deref", "--stdin"], orders.as_bytes())?;
        }
        Ok(undone_here)
    }
}

/// Points HEAD at a branch by writing the file: git would not work with a HEAD that is damaged.
pub(super) fn point_head(git_dir: &Path, reference: &str) -> Result<(), GitError> {
    let path = git_dir.join("HEAD");
    let line = format!("ref: {reference}\n");
    if fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_file())
        && fs::read_to_string(&path).is_ok_and(|text| text == line)
    {
        return Ok(());
    }
    let temporary = git_dir.join("HEAD.loopwright");
    fs::write(&temporary, line)
        .and_then(|()| fs::rename(&temporary, &path))
        .map_err(GitError::io("write", &path))
}

fn format_order(order: &str, name: &str, oids: &[&Oid]) -> String {
    let mut line = format!("{order} {name}");
    for oid in oids {
        line.push(' ');
        line.push_str(&oid.to_hex());
    }
    line.push('\n');
    line
}

fn read(user: &UserRepository) -> Result<BTreeMap<String, Oid>, GitError> {
    let format = "--format=%(objectname) %(symref) %(refname)";
    let text = user.hermetic().text(["for-each-ref", format])?;
    let mut found = BTreeMap::new();
    for line in text.lines() {
        // One that names another is no value of its own; the shape holds it.
        if let Some((oid, rest)) = line.split_once(' ')
            && let Some(name) = rest.strip_prefix(' ')
            && let Some(oid) = Oid::from_hex(oid.as_bytes())
        {
            found.insert(name.to_owned(), oid);
        }
    }
    Ok(found)
}
