//! Taking back what a git that was ended midway did, at its limit, because somebody asked or because
//! we were killed: branch, index and checkout are as they were before it.
//!
//! What is under way is noted in the git directory of the work tree, so that whoever adopts next can
//! take back what a killed one has left.

use std::collections::BTreeSet;
use std::fs;

use serde::{Deserialize, Serialize};

use super::apply::{differing, put_back, tree_of};
use super::{Obstacle, current_head};
use crate::disk;
use crate::error::GitError;
use crate::git::split_nul;
use crate::in_place::locks;
use crate::plain;
use crate::types::{Oid, RepoPath};
use crate::user::{UserRepository, quiet};
use crate::user_commands::{UserCommand, UserCommands, UserEnd, UserRun};

/// What was to be done in one go.
pub(super) struct Act<'a> {
    /// The commit that was checked out.
    pub(super) head: &'a Oid,
    /// The tree that the branch was to hold. What differs from the head's was clean before.
    pub(super) wanted: &'a Oid,
    /// The commit the branch was to move to; none where one was to be made.
    pub(super) commit: Option<&'a Oid>,
    /// What that one was to say.
    pub(super) message: &'a str,
}

/// The note's name, beside those that git itself leaves while it is at work.
const NOTE: &str = "LOOPWRIGHT_ADOPTING";

/// An act as it is noted.
#[derive(Serialize, Deserialize)]
struct Noted {
    head: String,
    wanted: String,
    commit: Option<String>,
    message: String,
}

/// Does an act's work, noted from before it begins until it is done or taken back.
pub(super) fn noted<T>(
    user: &UserRepository,
    act: &Act<'_>,
    work: impl FnOnce() -> Result<T, GitError>,
) -> Result<T, GitError> {
    let note = user.git_dir.join(NOTE);
    let noted = Noted {
        head: act.head.to_hex(),
        wanted: act.wanted.to_hex(),
        commit: act.commit.map(Oid::to_hex),
        message: act.message.to_owned(),
    };
    let text = serde_json::to_vec(&noted).expect("BUG: a note is plain data");
    disk::replace_durably(&note, &text)?;
    let done = work()?;
    forget(user)?;
    Ok(done)
}

/// Removes the note: nothing is under way any more.
fn forget(user: &UserRepository) -> Result<(), GitError> {
    let note = user.git_dir.join(NOTE);
    match fs::remove_file(&note) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(GitError::io("remove", &note)(error))
        }
        _ => Ok(()),
    }
}

/// Takes back an act that a killed process has left midway; what stands in the way of that, where
/// something does.
pub(super) fn recover(user: &UserRepository) -> Result<Option<Obstacle>, GitError> {
    let note = user.git_dir.join(NOTE);
    let text = match plain::read(&note) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(GitError::io("read", &note)(error)),
    };
    let noted: Noted = serde_json::from_slice(&text)
        .map_err(|error| GitError::unexpected(format!("{}: {error}", note.display())))?;
    let (head, wanted): (Oid, Oid) = (noted.head.parse()?, noted.wanted.parse()?);
    let commit = noted.commit.map(|hex| hex.parse()).transpose()?;
    let act = Act {
        head: &head,
        wanted: &wanted,
        commit: commit.as_ref(),
        message: &noted.message,
    };
    let found = current_head(user)?;
    // Somebody has gone on from there, or it came to its end.
    let is_past =
        found != head && (!is_of(user, &act, &found)? || tree_of(user, &found)? == wanted);
    if !is_past {
        let edited = edited_since(user, &act)?;
        if !edited.is_empty() {
            return Ok(Some(Obstacle::Dirty(super::shown(&edited))));
        }
        take_back(user, &act)?;
    }
    forget(user)?;
    Ok(None)
}

/// The paths of an act that hold neither what they held before nor what they were to hold.
fn edited_since(user: &UserRepository, act: &Act<'_>) -> Result<Vec<RepoPath>, GitError> {
    let head_tree = tree_of(user, act.head)?;
    let paths = differing(user, &head_tree, act.wanted)?;
    edited(user, &paths, &[&head_tree, act.wanted])
}

/// Which of these paths hold what none of the trees has: somebody has edited them meanwhile.
pub(super) fn edited(
    user: &UserRepository,
    paths: &[RepoPath],
    trees: &[&Oid],
) -> Result<Vec<RepoPath>, GitError> {
    let mut edited = paths.to_vec();
    for tree in trees {
        let arguments = [
            "diff",
            "--name-only",
            "-z",
            "--no-ext-diff",
            "--no-renames",
            &tree.to_hex(),
        ];
        let names = quiet(user.as_user()).run(arguments)?;
        let others: BTreeSet<RepoPath> = split_nul(&names).map(RepoPath::new).collect();
        edited.retain(|path| others.contains(path));
    }
    Ok(edited)
}

/// Takes back a commit of the act that a hook made another one of.
pub(super) fn take_back_rewritten(
    user: &UserRepository,
    act: &Act<'_>,
    commit: &Oid,
    tree: &Oid,
) -> Result<(), GitError> {
    move_head_back(user, act, commit)?;
    let head_tree = tree_of(user, act.head)?;
    let mut paths: BTreeSet<RepoPath> = BTreeSet::new();
    for after in [act.wanted, tree] {
        paths.extend(differing(user, &head_tree, after)?);
    }
    let paths: Vec<RepoPath> = paths.into_iter().collect();
    put_back(user, &head_tree, &paths, &[act.wanted, tree])
}

fn move_head_back(user: &UserRepository, act: &Act<'_>, found: &Oid) -> Result<(), GitError> {
    let (head, found) = (act.head.to_hex(), found.to_hex());
    let why = "loopwright: an adoption is taken back";
    let arguments = ["update-ref", "-m", why, "HEAD", &head, &found];
    user.hermetic().run(arguments).map(drop)
}

/// Runs the command of an act. Where git did not come to an end of its own, so that it may have done
/// half of it, everything is brought back to before.
pub(super) fn run(
    user: &UserRepository,
    act: &Act<'_>,
    command: UserCommand,
    commands: &mut dyn UserCommands,
) -> Result<UserRun, GitError> {
    let done = commands.run(command);
    let is_whole = matches!(&done, Ok(run) if !is_cut_off(run));
    if !is_whole {
        let taken_back = take_back(user, act).and_then(|()| forget(user));
        return match (done, taken_back) {
            (done, Ok(())) => done,
            // Why it was cut off is not lost by what came of it.
            (Err(first), Err(second)) => Err(GitError::unexpected(format!("{first}; {second}"))),
            (Ok(_), Err(error)) => Err(error),
        };
    }
    done
}

/// Whether git did not come to an end of its own.
pub(super) fn is_cut_off(run: &UserRun) -> bool {
    matches!(run.end, UserEnd::CutOff(_) | UserEnd::Stopped)
}

/// Brings everything back to before the act. A commit of somebody else's is left where it is.
fn take_back(user: &UserRepository, act: &Act<'_>) -> Result<(), GitError> {
    remove_locks(user)?;
    let found = current_head(user)?;
    if found != *act.head {
        if !is_of(user, act, &found)? {
            return Err(GitError::Moved {
                reference: "HEAD".to_owned(),
                expected: Some(*act.head),
                found: Some(found),
            });
        }
        move_head_back(user, act, &found)?;
    }
    if user.git_dir.join("MERGE_HEAD").exists() {
        quiet(user.as_user()).run(["merge", "--quit"])?;
    }
    let head_tree = tree_of(user, act.head)?;
    let paths = differing(user, &head_tree, act.wanted)?;
    put_back(user, &head_tree, &paths, &[act.wanted])
}

/// Whether it is the commit of the act.
fn is_of(user: &UserRepository, act: &Act<'_>, found: &Oid) -> Result<bool, GitError> {
    if let Some(commit) = act.commit {
        return Ok(found == commit);
    }
    let facts = user
        .hermetic()
        .text(["log", "-1", "--format=%P%n%T%n%s", &found.to_hex()])?;
    let mut lines = facts.lines();
    let mut next = || lines.next().unwrap_or_default();
    let (parents, tree, subject) = (next(), next(), next());
    let is_worded = act.message.lines().next() == Some(subject);
    let is_on_head = parents.split(' ').next() == Some(act.head.to_hex().as_str());
    Ok(is_on_head && (is_worded || tree == act.wanted.to_hex()))
}

/// Removes the locks that a git which was killed has left.
fn remove_locks(user: &UserRepository) -> Result<(), GitError> {
    let mut locks = ["index.lock", "HEAD.lock"]
        .map(|name| user.git_dir.join(name))
        .to_vec();
    if let Some(branch) = &user.branch {
        locks.push(user.common_dir.join(format!("refs/heads/{branch}.lock")));
    }
    locks::clear_ended(user, &locks)
}
