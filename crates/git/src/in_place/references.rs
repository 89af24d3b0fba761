//! HEAD and references of the user's repository around a proposal.
//!
//! A repository has one set of references for all its work trees and all its users, so that a
//! reference that moved while a proposal ran may be anybody's work. What is put back is what can
//! only have been done in this checkout, which is the proposal's while it runs: HEAD, the branch
//! that was checked out, and branches that HEAD was seen on; and replacements of objects, because git
//! would obey them. Everything else is left as it is and named, except that a branch or tag that is
//! gone is made again, which loses nobody anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::undone;
use crate::branch::{PREFIX, checked_out};
use crate::disk;
use crate::error::GitError;
use crate::types::Oid;
use crate::user::UserRepository;
use crate::worktree::RefusedPath;

/// How much of what was added to HEAD's log is read.
const NEWS_BYTES_MAX: u64 = 16 << 20;

/// Where HEAD and all references were before a proposal.
#[derive(Debug)]
pub(super) struct References {
    head: String,
    known: BTreeMap<String, Oid>,
    /// How long HEAD's log was.
    log_bytes: u64,
}

/// A reference as it was and as it is.
struct Moved<'a> {
    name: &'a str,
    before: Option<Oid>,
    now: Option<Oid>,
}

impl References {
    pub(super) fn record(user: &UserRepository, head: &str) -> Result<Self, GitError> {
        Ok(Self {
            head: head.to_owned(),
            known: read(user)?,
            log_bytes: fs::metadata(log_of(user)).map_or(0, |facts| facts.len()),
        })
    }

    /// Undoes what a proposal did to HEAD and branches; says what that was, and what was left. A
    /// commit that a branch is taken off goes to `keep` first, which says in words how to have it.
    pub(super) fn put_back(
        &self,
        user: &UserRepository,
        keep: &mut dyn FnMut(Oid) -> Result<String, GitError>,
    ) -> Result<Vec<RefusedPath>, GitError> {
        let trail = Trail::since(user, self.log_bytes)?;
        // First of all: with a HEAD that is damaged git would see no repository, and a branch that
        // is checked out can't be deleted under it.
        point_head(&user.git_dir, &self.head)?;
        let found = read(user)?;
        // Where it can't be told, everything counts as somebody's.
        let elsewhere: Option<BTreeSet<String>> = checked_out(&user.hermetic())
            .ok()
            .map(|all| all.into_iter().map(|(reference, _)| reference).collect());
        let names: BTreeSet<&String> = self.known.keys().chain(found.keys()).collect();
        let all = names.into_iter().map(|name| Moved {
            name,
            before: self.known.get(name).copied(),
            now: found.get(name).copied(),
        });
        let is_moved = |it: &Moved<'_>| it.before != it.now && !is_never_ours(it.name);
        let mut all: Vec<Moved<'_>> = all.filter(is_moved).collect();
        // What is new first: nothing can be made below the name of another, or above it.
        all.sort_by_key(|moved| moved.before.is_some());
        let mut undone_here = Vec::new();
        for moved in all {
            let name = moved.name;
            let is_ours = name == self.head;
            let is_free = elsewhere.as_ref().is_some_and(|all| !all.contains(name));
            let may_go = trail.shows(&moved) || self.is_in_the_way(&moved);
            let may_move = is_ours || (is_free && may_go) || is_replacement(name);
            let words = if may_move || moved.now.is_none() {
                // What stands in for an object is no commit of anybody's work.
                let to_keep = moved.now.filter(|_| !is_replacement(name));
                let kept = to_keep.map(&mut *keep).transpose()?;
                put_back(user, &moved, is_ours, &kept.unwrap_or_default())?
            } else {
                left_alone(&moved)
            };
            undone_here.push(undone(name.as_bytes(), &words));
        }
        Ok(undone_here)
    }

    /// Whether it can only have been made after the checked-out branch had been taken away.
    fn is_in_the_way(&self, moved: &Moved<'_>) -> bool {
        let is_below = |name: &str, above: &str| {
            let rest = name.strip_prefix(above);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let name = moved.name;
        moved.before.is_none() && (is_below(name, &self.head) || is_below(&self.head, name))
    }
}

/// What only others move: what was fetched, and what loops have kept.
fn is_never_ours(name: &str) -> bool {
    name.starts_with("refs/remotes/") || name.starts_with(PREFIX)
}

/// What makes git read one object in place of another (git-replace).
fn is_replacement(name: &str) -> bool {
    name.starts_with("refs/replace/")
}

fn put_back(
    user: &UserRepository,
    moved: &Moved<'_>,
    must: bool,
    kept: &str,
) -> Result<String, GitError> {
    if let Err(error) = move_reference(user, moved.name, moved.before, moved.now) {
        if must {
            return Err(error);
        }
        return Ok(left_alone(moved));
    }
    Ok(match (moved.before, moved.now) {
        (Some(_), Some(now)) => format!("it was put back; it was moved to {now}{kept}"),
        (Some(_), None) => "it was put back; it was gone".to_owned(),
        (None, now) => format!(
            "it was removed again; it pointed at {}{kept}",
            or_nothing(now)
        ),
    })
}

fn left_alone(moved: &Moved<'_>) -> String {
    match (moved.before, moved.now) {
        (None, _) => "it is new, whoever made it, and was left alone".to_owned(),
        (Some(before), None) => {
            format!("it is gone and could not be made again; it was at {before}")
        }
        (Some(before), Some(now)) => {
            format!("it moved from {before} to {now}, whoever did that, and was left alone")
        }
    }
}

/// Brings a reference to `to` (`None`: removes it) if it still stands at `from`.
pub(super) fn move_reference(
    user: &UserRepository,
    name: &str,
    to: Option<Oid>,
    from: Option<Oid>,
) -> Result<(), GitError> {
    let zero = || "0".repeat(user.format.id_bytes() * 2);
    let hex = |oid: Option<Oid>| oid.map_or_else(zero, |oid| oid.to_hex());
    let git = user.hermetic();
    let moved = match to {
        Some(to) => git.run(["update-ref", "--no-deref", name, &to.to_hex(), &hex(from)]),
        None => git.run(["update-ref", "--no-deref", "-d", name, &hex(from)]),
    };
    let Err(error) = moved else { return Ok(()) };
    let found = git.resolve(name)?;
    if found == from {
        return Err(error);
    }
    Err(GitError::Moved {
        reference: name.to_owned(),
        expected: from,
        found,
    })
}

/// Where HEAD of this work tree has been during a proposal. The log is this work tree's alone:
/// what others do in theirs is not in it.
struct Trail {
    branches: BTreeSet<String>,
    commits: BTreeSet<Oid>,
}

impl Trail {
    fn since(user: &UserRepository, log_bytes: u64) -> Result<Self, GitError> {
        let git = user.hermetic();
        let mut trail = Self {
            branches: BTreeSet::new(),
            commits: BTreeSet::new(),
        };
        let on = git.output(["symbolic-ref", "--quiet", "HEAD"], b"")?;
        let on = String::from_utf8_lossy(&on.stdout).trim().to_owned();
        if on.starts_with("refs/heads/") {
            trail.branches.insert(on);
            trail.commits.extend(git.resolve("HEAD^{commit}")?);
        }
        for line in String::from_utf8_lossy(&news(user, log_bytes)).lines() {
            trail.add(line);
        }
        Ok(trail)
    }

    fn add(&mut self, line: &str) {
        let (facts, words) = line.split_once('\t').unwrap_or((line, ""));
        let commit = facts.split(' ').nth(1);
        self.commits
            .extend(commit.and_then(|hex| Oid::from_hex(hex.as_bytes())));
        let between = words
            .split_once("moving from ")
            .and_then(|(_, names)| names.split_once(" to "));
        if let Some((from, to)) = between {
            for name in [from, to] {
                self.branches.insert(format!("refs/heads/{name}"));
            }
        }
    }

    /// Whether HEAD was on this branch, and where it points now.
    fn shows(&self, moved: &Moved<'_>) -> bool {
        let was_at = moved.now.is_some_and(|now| self.commits.contains(&now));
        self.branches.contains(moved.name) && was_at
    }
}

fn log_of(user: &UserRepository) -> PathBuf {
    user.git_dir.join("logs/HEAD")
}

/// What was added to HEAD's log. Without a log, and in one that was cut, nothing can be shown, and
/// nothing is put back.
fn news(user: &UserRepository, log_bytes: u64) -> Vec<u8> {
    let mut news = Vec::new();
    // The shape has seen to it that it is a file, if anything.
    let read = File::open(log_of(user)).and_then(|mut file| {
        file.seek(SeekFrom::Start(log_bytes))?;
        file.take(NEWS_BYTES_MAX).read_to_end(&mut news)
    });
    match read {
        Ok(_) => news,
        Err(_) => Vec::new(),
    }
}

/// Points HEAD at a branch by writing the file: git would not work with a HEAD that is damaged.
pub(super) fn point_head(git_dir: &Path, reference: &str) -> Result<(), GitError> {
    let path = git_dir.join("HEAD");
    let line = format!("ref: {reference}\n");
    let length = line.len() as u64;
    if fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_file() && facts.len() == length)
        && fs::read_to_string(&path).is_ok_and(|text| text == line)
    {
        return Ok(());
    }
    disk::replace_durably(&path, line.as_bytes())
}

fn or_nothing(oid: Option<Oid>) -> String {
    oid.map_or_else(|| "nothing".to_owned(), |oid| oid.to_hex())
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
