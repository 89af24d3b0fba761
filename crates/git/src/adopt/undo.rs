//! Taking back what a git that was ended midway did, at its limit or because somebody asked: branch,
//! index and checkout are as they were before it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::apply::{differing, put_back, tree_of};
use super::current_head;
use crate::error::GitError;
use crate::types::Oid;
use crate::user::{UserRepository, quiet};
use crate::user_commands::{UserCommand, UserCommands, UserEnd, UserRun};

/// How long a lock may be that of a git of the user's, who works on. Whoever left ours is gone.
const LOCK_PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 2000 });

/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(20);

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
        take_back(user, act)?;
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
    let git = user.hermetic();
    let found = current_head(user)?;
    if found != *act.head {
        if !is_of(user, act, &found)? {
            return Err(GitError::Moved {
                reference: "HEAD".to_owned(),
                expected: Some(*act.head),
                found: Some(found),
            });
        }
        let (head, found) = (act.head.to_hex(), found.to_hex());
        let why = "loopwright: an adoption that was cut off is taken back";
        git.run(["update-ref", "-m", why, "HEAD", &head, &found])?;
    }
    if user.git_dir.join("MERGE_HEAD").exists() {
        quiet(user.as_user()).run(["merge", "--quit"])?;
    }
    let head_tree = tree_of(user, act.head)?;
    let paths = differing(user, &head_tree, act.wanted)?;
    put_back(user, &head_tree.to_hex(), &paths)
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
    let until = Instant::now() + LOCK_PATIENCE;
    let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
    while locks.iter().any(is_there) && Instant::now() < until {
        std::thread::sleep(PAUSE);
    }
    for path in locks {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(GitError::io("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}
