//! One candidate as one commit on the checked-out branch.
//!
//! The merged tree is made without touching anything; only then the checkout is brought to it,
//! the user's commit is run, and, if that fails, the checkout is brought back.

use std::collections::BTreeSet;
use std::fs;

use super::undo::{self, Act, is_cut_off};
use super::{Adopted, Obstacle, merged_tree, obstacle, obstacle_of, outcome, writing};
use crate::error::GitError;
use crate::git::{failure, split_nul, words};
use crate::types::{Oid, RepoPath};
use crate::user::{UserRepository, quiet};
use crate::user_commands::UserCommands;

/// What is brought together.
pub(super) struct Sides<'a> {
    /// The commit that is checked out.
    pub(super) head: &'a Oid,
    /// The tree the candidate was made from.
    pub(super) base: &'a Oid,
    /// The candidate's tree.
    pub(super) candidate: &'a Oid,
}

pub(super) fn apply(
    user: &UserRepository,
    sides: Sides<'_>,
    message: &str,
    commands: &mut dyn UserCommands,
) -> Result<Adopted, GitError> {
    let Sides {
        head,
        base,
        candidate,
    } = sides;
    let head_tree = tree_of(user, head)?;
    let root = side(user, base, None)?;
    let ours = side(user, &head_tree, Some(&root))?;
    let theirs = side(user, candidate, Some(&root))?;
    let wanted = match merged_tree(user, &ours, &theirs)? {
        Ok(tree) => tree,
        Err(paths) => return Ok(Adopted::NotAdopted(Obstacle::Conflict(paths))),
    };
    if wanted == head_tree {
        return Ok(Adopted::AlreadyThere);
    }
    let paths = differing(user, &head_tree, &wanted)?;
    let from = head_tree.to_hex();
    let act = Act {
        head,
        wanted: &wanted,
        commit: None,
        message,
    };
    if let Some(obstacle) = staged(user)? {
        return Ok(Adopted::NotAdopted(obstacle));
    }
    // Only what is known to be clean may be put back later.
    if let Some(obstacle) = in_the_way(user, &head_tree, &paths)? {
        return Ok(Adopted::NotAdopted(obstacle));
    }
    undo::noted(user, &act, || {
        let to = wanted.to_hex();
        let git = quiet(user.as_user());
        let moved = git.output(["read-tree", "-m", "-u", &from, &to], b"")?;
        if !moved.status.success() {
            // Git checks everything before it writes anything; a full disk may still end it midway.
            put_back(user, &head_tree, &paths, &[&wanted])?;
            return Ok(Adopted::NotAdopted(obstacle(&words(&moved))));
        }
        commit(user, &act, &paths, commands)
    })
}

/// Commits what the index holds; if that fails, the checkout is brought back.
fn commit(
    user: &UserRepository,
    act: &Act<'_>,
    paths: &[RepoPath],
    commands: &mut dyn UserCommands,
) -> Result<Adopted, GitError> {
    let message = act.message.as_bytes();
    let commit = writing(user).user_command(&["commit", "--quiet", "-F", "-"], message);
    let run = undo::run(user, act, commit, commands)?;
    if run.is_success() {
        return outcome(user, act);
    }
    let obstacle = obstacle_of(&run);
    if !is_cut_off(&run) {
        put_back(user, &tree_of(user, act.head)?, paths, &[act.wanted])?;
    }
    Ok(Adopted::NotAdopted(obstacle))
}

pub(super) fn tree_of(user: &UserRepository, commit: &Oid) -> Result<Oid, GitError> {
    user.hermetic()
        .resolve(&format!("{commit}^{{tree}}"))?
        .ok_or_else(|| GitError::unexpected(format!("commit {commit} has no tree")))
}

/// A commit that exists only to be merged; nothing ever refers to it.
fn side(user: &UserRepository, tree: &Oid, parent: Option<&Oid>) -> Result<Oid, GitError> {
    let mut arguments = vec!["commit-tree".to_owned(), tree.to_hex()];
    if let Some(parent) = parent {
        arguments.extend(["-p".to_owned(), parent.to_hex()]);
    }
    arguments.extend(["-m".to_owned(), "side of a merge".to_owned()]);
    let git = user
        .hermetic()
        .with_setting("user.name=Loopwright")
        .with_setting("user.email=loopwright@localhost");
    git.text(&arguments)?.parse()
}

/// Staged changes would become part of the commit.
fn staged(user: &UserRepository) -> Result<Option<Obstacle>, GitError> {
    let git = quiet(user.as_user());
    let arguments = ["diff-index", "--cached", "--name-only", "HEAD"];
    let names = git.text(arguments)?;
    Ok((!names.is_empty()).then(|| Obstacle::Dirty(format!("staged: {names}"))))
}

/// What stands in the way of bringing the checkout from HEAD to a tree.
pub(super) fn obstacle_to(
    user: &UserRepository,
    head: &Oid,
    wanted: &Oid,
) -> Result<Option<Obstacle>, GitError> {
    let head_tree = tree_of(user, head)?;
    let paths = differing(user, &head_tree, wanted)?;
    in_the_way(user, &head_tree, &paths)
}

/// Edits of tracked files, and files that are not tracked, at the paths that will be written.
fn in_the_way(
    user: &UserRepository,
    head_tree: &Oid,
    paths: &[RepoPath],
) -> Result<Option<Obstacle>, GitError> {
    let git = quiet(user.as_user());
    let arguments = [
        "diff",
        "--name-only",
        "-z",
        "--no-ext-diff",
        "--no-renames",
        "HEAD",
    ];
    let edited = git.run(arguments)?;
    let edited: BTreeSet<&[u8]> = split_nul(&edited).collect();
    let tracked = names_in(user, &head_tree.to_hex())?;
    let mut names = Vec::new();
    for path in paths {
        // What lies there by way of a tracked link is not in the way: the link itself will go.
        let mut above = std::iter::successors(Some(path.clone()), RepoPath::parent);
        let occupied = !above.any(|it| tracked.contains(it.as_bytes()))
            && fs::symlink_metadata(path.to_path(&user.top)).is_ok_and(|it| !it.is_dir());
        if edited.contains(path.as_bytes()) || occupied {
            names.push(path.to_string());
        }
    }
    Ok((!names.is_empty()).then(|| Obstacle::Dirty(names.join(", "))))
}

fn names_in(user: &UserRepository, tree: &str) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let arguments = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", tree];
    let listed = user.hermetic().run(arguments)?;
    Ok(split_nul(&listed).map(<[u8]>::to_vec).collect())
}

pub(super) fn differing(
    user: &UserRepository,
    before: &Oid,
    after: &Oid,
) -> Result<Vec<RepoPath>, GitError> {
    let (before, after) = (before.to_hex(), after.to_hex());
    let arguments = [
        "diff-tree",
        "-r",
        "-z",
        "--name-only",
        "--no-renames",
        &before,
        &after,
    ];
    let output = user.hermetic().run(arguments)?;
    Ok(split_nul(&output).map(RepoPath::new).collect())
}

/// Brings index and checkout back to HEAD at exactly these paths, which were clean before and hold now
/// what one of the trees `ours` has. What somebody has edited since stays as it is.
pub(super) fn put_back(
    user: &UserRepository,
    head_tree: &Oid,
    paths: &[RepoPath],
    ours: &[&Oid],
) -> Result<(), GitError> {
    let git = quiet(user.as_user());
    let trees = [&[head_tree], ours].concat();
    let edited = undo::edited(user, paths, &trees)?;
    let mut listed = Vec::new();
    for path in paths {
        listed.extend_from_slice(path.as_bytes());
        listed.push(0);
    }
    let reset = [
        "reset",
        "--quiet",
        "--pathspec-from-file=-",
        "--pathspec-file-nul",
    ];
    let git = git.with_variable("GIT_LITERAL_PATHSPECS", "1");
    let output = git.output(reset, &listed)?;
    if !output.status.success() {
        return Err(failure(reset, &output));
    }
    let mut held = Vec::new();
    let in_head = names_in(user, &head_tree.to_hex())?;
    for path in paths.iter().filter(|path| !edited.contains(path)) {
        if in_head.contains(path.as_bytes()) {
            held.extend_from_slice(path.as_bytes());
            held.push(0);
        } else {
            let file = path.to_path(&user.top);
            let _ = fs::remove_file(&file);
            let mut parent = file.parent();
            // Directories that came with the candidate go with it; others are not empty.
            while let Some(directory) = parent.filter(|it| *it != user.top) {
                if fs::remove_dir(directory).is_err() {
                    break;
                }
                parent = directory.parent();
            }
        }
    }
    if held.is_empty() {
        return Ok(());
    }
    git.run_with(["checkout-index", "--force", "-u", "-z", "--stdin"], &held)?;
    Ok(())
}
