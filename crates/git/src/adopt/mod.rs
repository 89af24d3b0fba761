//! Bringing a result to the branch the user has checked out, with the user's own hooks, signing
//! and identity.
//!
//! Conflicts are found before anything is touched. A hook that refuses, a signature that fails,
//! a disk that is full: the checkout is put back as it was and the reason is handed on; the
//! result itself stays in the store. So is it where a hook made something else of it: that is not
//! what was measured.

mod apply;
mod undo;

use crate::branch::UserBranch;
use crate::error::{GitError, Refusal};
use crate::git::{Git, failure, split_nul};
use crate::store::ObjectStore;
use crate::types::{Oid, RepoPath};
use crate::user::{UserRepository, quiet};
use crate::user_commands::{UserCommands, UserEnd, UserRun};

/// How adopting went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adopted {
    /// The checked-out branch has it already.
    AlreadyThere,
    /// The branch was simply moved forward.
    FastForwarded {
        /// To here.
        commit: Oid,
    },
    /// A merge or a new commit was made, and it holds what it should.
    Committed {
        /// The new commit.
        commit: Oid,
    },
    /// Nothing was changed.
    NotAdopted(Obstacle),
}

/// Why a result was not adopted; the checkout is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// It does not apply.
    #[error("these paths conflict with what the branch holds: {}", shown(.0))]
    Conflict(Vec<RepoPath>),
    /// Changes that are not committed are in the way.
    #[error("changes that are not committed are in the way: {0}")]
    Dirty(String),
    /// A hook said no.
    #[error("a hook refused the commit{}", after_colon(.0))]
    HookRefused(String),
    /// The commit could not be signed.
    #[error("the commit could not be signed: {0}")]
    SigningFailed(String),
    /// A hook made something else of it, which nobody measured.
    #[error("a hook changed what was to be committed: tree {expected} became {tree}")]
    Rewritten {
        /// What its tree should have been.
        expected: Oid,
        /// What it was.
        tree: Oid,
    },
    /// Somebody asked for its end.
    #[error("it was stopped")]
    Stopped,
    /// Anything else git said.
    #[error("git could not commit: {0}")]
    Failed(String),
}

/// What was said, where anything was.
fn after_colon(said: &str) -> String {
    match said.trim() {
        "" => ", and said nothing".to_owned(),
        said => format!(": {said}"),
    }
}

fn shown(paths: &[RepoPath]) -> String {
    let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
    paths.join(", ")
}

/// Adopts the loop's branch: forward if possible, else by a merge.
pub fn adopt_branch(
    user: &UserRepository,
    branch: &UserBranch,
    message: &str,
    commands: &mut dyn UserCommands,
) -> Result<Adopted, GitError> {
    user.expect_no_trap()?;
    if let Some(obstacle) = undo::recover(user)? {
        return Ok(Adopted::NotAdopted(obstacle));
    }
    refuse_unready(user)?;
    let Some(commit) = branch.current()? else {
        return Err(GitError::Moved {
            reference: branch.reference().to_owned(),
            expected: None,
            found: None,
        });
    };
    let head = current_head(user)?;
    if is_ancestor(user, &commit, &head)? {
        return Ok(Adopted::AlreadyThere);
    }
    let hex = commit.to_hex();
    let git = writing(user);
    if is_ancestor(user, &head, &commit)? {
        let tree = apply::tree_of(user, &commit)?;
        if let Some(obstacle) = apply::obstacle_to(user, &head, &tree)? {
            return Ok(Adopted::NotAdopted(obstacle));
        }
        let merge = ["merge", "--quiet", "--ff-only", &hex];
        let act = undo::Act {
            head: &head,
            wanted: &tree,
            commit: Some(&commit),
            message,
        };
        let run = undo::noted(user, &act, || {
            undo::run(user, &act, git.user_command(&merge, b""), commands)
        })?;
        return Ok(if run.is_success() {
            Adopted::FastForwarded { commit }
        } else {
            Adopted::NotAdopted(obstacle_of(&run))
        });
    }
    let expected = match merged_tree(user, &head, &commit)? {
        Ok(tree) => tree,
        Err(paths) => return Ok(Adopted::NotAdopted(Obstacle::Conflict(paths))),
    };
    if let Some(obstacle) = apply::obstacle_to(user, &head, &expected)? {
        return Ok(Adopted::NotAdopted(obstacle));
    }
    let arguments = [
        "merge",
        "--quiet",
        "--no-ff",
        "--no-edit",
        "-m",
        message,
        &hex,
    ];
    let act = undo::Act {
        head: &head,
        wanted: &expected,
        commit: None,
        message,
    };
    undo::noted(user, &act, || {
        let run = undo::run(user, &act, git.user_command(&arguments, b""), commands)?;
        if run.is_success() {
            return outcome(user, &act);
        }
        let obstacle = obstacle_of(&run);
        if !undo::is_cut_off(&run) && user.git_dir.join("MERGE_HEAD").exists() {
            quiet(user.as_user()).run(["merge", "--abort"])?;
        }
        Ok(Adopted::NotAdopted(obstacle))
    })
}

/// Adopts one candidate, kept or not: what it changed in its base becomes one commit.
///
/// `candidate` is a commit of the store whose first parent is what it was made from.
pub fn adopt_candidate(
    user: &UserRepository,
    store: &mut ObjectStore,
    candidate: &Oid,
    message: &str,
    commands: &mut dyn UserCommands,
) -> Result<Adopted, GitError> {
    user.expect_no_trap()?;
    if let Some(obstacle) = undo::recover(user)? {
        return Ok(Adopted::NotAdopted(obstacle));
    }
    refuse_unready(user)?;
    let facts = store.read_commit(candidate)?;
    let base = match facts.parents.first() {
        Some(parent) => store.read_commit(parent)?.tree,
        None => store.empty_tree()?,
    };
    let objects = store.list_trees(&[facts.tree, base])?;
    store.copy_out(&objects, &user.hermetic())?;
    let head = current_head(user)?;
    let sides = apply::Sides {
        head: &head,
        base: &base,
        candidate: &facts.tree,
    };
    apply::apply(user, sides, message, commands)
}

/// What must not be under way when the checkout is to be changed.
pub(crate) fn refuse_unready(user: &UserRepository) -> Result<(), GitError> {
    if quiet(user.as_user())
        .output(["symbolic-ref", "-q", "HEAD"], b"")?
        .stdout
        .is_empty()
    {
        return Err(Refusal::Detached.into());
    }
    for (name, what) in [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("BISECT_LOG", "bisect"),
    ] {
        if user.git_dir.join(name).exists() {
            return Err(Refusal::Busy(what).into());
        }
    }
    Ok(())
}

/// Git as the user, never asking anybody anything.
fn writing(user: &UserRepository) -> Git {
    user.as_user()
        .with_variable("GIT_EDITOR", "true")
        .with_variable("GIT_MERGE_AUTOEDIT", "no")
}

fn current_head(user: &UserRepository) -> Result<Oid, GitError> {
    user.hermetic()
        .resolve("HEAD^{commit}")?
        .ok_or_else(|| Refusal::NoCommits(user.top.clone()).into())
}

fn is_ancestor(user: &UserRepository, old: &Oid, new: &Oid) -> Result<bool, GitError> {
    let (old, new) = (old.to_hex(), new.to_hex());
    let arguments = ["merge-base", "--is-ancestor", &old, &new];
    let output = user.hermetic().output(arguments, b"")?;
    match output.status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(failure(arguments, &output)),
    }
}

/// The tree a merge of two commits gives, or the paths in conflict. Touches nothing.
fn merged_tree(
    user: &UserRepository,
    ours: &Oid,
    theirs: &Oid,
) -> Result<Result<Oid, Vec<RepoPath>>, GitError> {
    let (ours, theirs) = (ours.to_hex(), theirs.to_hex());
    let arguments = [
        "merge-tree",
        "--write-tree",
        "-z",
        "--name-only",
        "--no-messages",
        &ours,
        &theirs,
    ];
    let output = quiet(user.as_user()).output(arguments, b"")?;
    let mut records = split_nul(&output.stdout);
    match (output.status.code(), records.next().and_then(Oid::from_hex)) {
        (Some(0), Some(tree)) => Ok(Ok(tree)),
        (Some(1), Some(_)) => Ok(Err(records.map(RepoPath::new).collect())),
        _ => Err(failure(arguments, &output)),
    }
}

/// Looks at the commit that was made: is it what was asked for? If not, it is taken back.
fn outcome(user: &UserRepository, act: &undo::Act<'_>) -> Result<Adopted, GitError> {
    let commit = current_head(user)?;
    let tree = apply::tree_of(user, &commit)?;
    if tree == *act.wanted {
        return Ok(Adopted::Committed { commit });
    }
    undo::take_back_rewritten(user, act, &commit, &tree)?;
    Ok(Adopted::NotAdopted(Obstacle::Rewritten {
        expected: *act.wanted,
        tree,
    }))
}

/// Why a command of the user's did not commit.
pub(crate) fn obstacle_of(run: &UserRun) -> Obstacle {
    match &run.end {
        UserEnd::CutOff(why) => Obstacle::Failed(format!("{why}: {}", run.said)),
        UserEnd::Stopped => Obstacle::Stopped,
        UserEnd::Succeeded | UserEnd::Failed => obstacle(&run.said),
    }
}

/// Sorts what git said when it did not commit.
fn obstacle(text: &str) -> Obstacle {
    let text = text.to_owned();
    let says = |needle: &str| text.contains(needle);
    if says("would be overwritten") || says("not uptodate") || says("commit your changes or stash")
    {
        Obstacle::Dirty(text)
    } else if says("failed to sign") || says("gpg failed") || says("signing failed") {
        Obstacle::SigningFailed(text)
    } else if says("fatal:") || says("error:") {
        Obstacle::Failed(text)
    } else {
        // Git itself always says fatal or error; without either, a hook ended the commit.
        Obstacle::HookRefused(text)
    }
}
