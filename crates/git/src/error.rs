//! What can go wrong between Loopwright and git, in words.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use crate::types::{Oid, RepoPath};

/// What git would do with something in its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrapKind {
    /// Wait for it, for ever.
    Waits,
    /// Go by it to another repository.
    Elsewhere,
    /// Read it for a very long time.
    Huge,
}

impl TrapKind {
    fn words(self) -> &'static str {
        match self {
            Self::Waits => "is a pipe or a device, and git would wait for it for ever",
            Self::Huge => "is far larger than any such file",
            Self::Elsewhere => "leads git to another repository, and does not belong there",
        }
    }
}

/// Something in a git directory on account of which git had better not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// It.
    pub path: PathBuf,
    /// What git would do.
    pub what: TrapKind,
    /// The top of the checkout.
    pub top: PathBuf,
    /// The git directory that all work trees share, where that can be told.
    pub common_dir: Option<PathBuf>,
}

/// A failure of this crate.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Reading or writing a file failed.
    #[error("{action} {path}: {source}")]
    Io {
        /// What was being done: "read", "write", …
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Git could not be started at all.
    #[error("git could not be started ({source}); install git 2.38 or newer and put it in PATH")]
    NoGit {
        /// What the system said.
        source: io::Error,
    },
    /// A git command failed.
    #[error("`git {command}` failed ({status}): {message}")]
    Command {
        /// Its arguments.
        command: String,
        /// How it ended.
        status: String,
        /// What it said, shortened.
        message: String,
    },
    /// Git takes objects for harmful or malformed, and keeps them out of a repository.
    #[error("git takes none of it into the repository: {words}")]
    ObjectsRefused {
        /// What it said.
        words: String,
    },
    /// Git answered something this crate does not understand.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
    /// A command of the user's could not be run.
    #[error("{0}")]
    NotRun(String),
    /// An object that must be there is not.
    #[error("object {oid} is missing from {place}")]
    Missing {
        /// Which.
        oid: Oid,
        /// Where it was looked for.
        place: PathBuf,
    },
    /// The repository is of a kind a loop can't start from.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A candidate does not apply to the tree it is to be brought to.
    #[error("the change no longer applies: {} in conflict", join(paths))]
    Conflict {
        /// The paths in conflict.
        paths: Vec<RepoPath>,
    },
    /// A file of our own is not what was put there.
    #[error("{path} is damaged: {what}")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A reference was moved by somebody else.
    #[error("{reference} has moved: expected {}, found {}", or_none(*expected), or_none(*found))]
    Moved {
        /// Its full name.
        reference: String,
        /// What we left there.
        expected: Option<Oid>,
        /// What is there now.
        found: Option<Oid>,
    },
    /// The user's repository lacks the base (or its history): it was collected as garbage.
    #[error(
        "commit {base} or its history is no longer in the project's repository; the result stays in the loop's store and can still be shown or adopted as a patch"
    )]
    BaseGone {
        /// The base.
        base: Oid,
    },
    /// A branch of the user's occupies the name ours would lie below.
    #[error("{reference} can't be made because the branch {other} exists; rename that branch")]
    BranchInTheWay {
        /// The loop's branch.
        reference: String,
        /// What is in its way.
        other: String,
    },
    /// The loop's branch is checked out somewhere; moving it would pull a work tree's floor away.
    #[error("{reference} is checked out in {worktree}; switch that work tree to another branch")]
    CheckedOut {
        /// Its full name.
        reference: String,
        /// Where it is checked out.
        worktree: PathBuf,
    },
}

/// Why a loop can't start in this repository, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No repository here.
    #[error(
        "{0} is not inside a git repository; run `git init` there and commit the project first"
    )]
    NotARepository(PathBuf),
    /// Git can't be run in the repository.
    #[error(
        "{} {}; if a proposal in this checkout was interrupted, `loopwright resume` puts it right, else remove it",
        .0.path.display(),
        .0.what.words()
    )]
    Trapped(Box<Trap>),
    /// No commit yet.
    #[error(
        "the repository {0} has no commit yet; run `git add -A && git commit -m start` there first"
    )]
    NoCommits(PathBuf),
    /// No work tree.
    #[error(
        "{0} is a bare repository; clone it (`git clone {0} project`) and run the loop in the clone"
    )]
    Bare(PathBuf),
    /// Objects of the base commit were never fetched.
    #[error(
        "{count} objects of the commit to start from were never fetched into this partial clone; run `git fetch --refetch --no-filter` (or clone again without --filter) first"
    )]
    PartialObjectsMissing {
        /// How many.
        count: usize,
    },
    /// Git refuses the directory because somebody else owns it.
    #[error("git does not trust {path}: {message}")]
    NotTrusted {
        /// Where.
        path: PathBuf,
        /// Git's words.
        message: String,
    },
    /// Nobody to sign commits with.
    #[error(
        "no identity to commit with; run `git config user.name \"Your Name\"` and `git config user.email you@example.org` first"
    )]
    NoIdentity,
    /// LFS files without git-lfs.
    #[error(
        "{example} and {others} more files are stored with Git LFS, and git-lfs is not installed; install git-lfs and run `git lfs pull` first"
    )]
    LfsMissing {
        /// One of the files.
        example: RepoPath,
        /// How many more.
        others: usize,
    },
    /// A submodule lacks the commit the project names.
    #[error(
        "the submodule {path} lacks the commit this project names; run `git submodule update {path}` first"
    )]
    SubmoduleMissing {
        /// Where it is.
        path: RepoPath,
    },
    /// Files are stored through a filter program of the user's.
    #[error(
        "{example} goes through the filter {driver:?} on its way into git, and a loop runs no such program; take the filter out of .gitattributes or the driver out of git's configuration first"
    )]
    FilterDriver {
        /// Its name.
        driver: String,
        /// One of the files.
        example: RepoPath,
    },
    /// The work tree is dirty and the loop is to work in it.
    #[error("the work tree has changes that are not committed ({}); commit or stash them, or run without --in-place", join(.0))]
    Dirty(Vec<RepoPath>),
    /// The checkout's own git directory is another than before a proposal.
    #[error(
        "{0} was removed or replaced while a proposal was made in the checkout; bring it back, then go on"
    )]
    GitDirectoryReplaced(PathBuf),
    /// The checkout's files look different from what the tree holds, by settings outside the tree.
    #[error(
        "{0} is stored differently from how it is checked out (core.autocrlf or info/attributes, say), and --in-place works on the files as they are; put the rule into .gitattributes, or run without --in-place"
    )]
    ConvertedInPlace(RepoPath),
    /// The checkout is not where the loop left it.
    #[error("{0}")]
    MovedInPlace(Box<MovedInPlace>),
    /// A proposal in another checkout was interrupted and nobody has put that one right.
    #[error(
        "a proposal of loop {loop_name} in {top} was interrupted, and that checkout was not put right yet; first go on there (`cd {top} && loopwright resume --loop {loop_name}`)"
    )]
    InterruptedElsewhere {
        /// The other checkout.
        top: PathBuf,
        /// Whose proposal.
        loop_name: String,
    },
    /// Things in the checkout would have to be cleared away and can be neither saved nor moved aside.
    #[error(
        "these would have to be cleared away and can't be saved before (git can't store them): {}; move them out of the checkout (or have git ignore them), then go on with `loopwright resume`",
        join(.0)
    )]
    CantBeSaved(Vec<RepoPath>),
    /// A file that git obeys is too large to be put back after a proposal.
    #[error(
        "{0} is larger than 64 MiB, so that --in-place could not put it back after a proposal; make it smaller, or run without --in-place"
    )]
    TooLargeToHold(PathBuf),
    /// Something is locked by a git that may be at work.
    #[error(
        "{0} is locked by a git that is at work in this repository, or was when it died; wait for it (or, if no git runs there, remove the file), then go on with `loopwright resume`"
    )]
    Locked(PathBuf),
    /// A sparse checkout and the loop is to work in it.
    #[error(
        "the checkout is sparse; run `git sparse-checkout disable` first, or run without --in-place"
    )]
    SparseInPlace,
    /// HEAD is detached and the loop is to move a branch.
    #[error("HEAD is detached; check out a branch first")]
    Detached,
    /// A merge, rebase or the like is under way.
    #[error("a {0} is under way in this repository; finish or abort it first")]
    Busy(&'static str),
}

/// A checkout that is not where the loop left it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{top} stands at {found}, and the loop left it at {branch}, {expected}: nothing was changed; to \
     go on from where the loop stands, give what is there a name (`git branch NAME {commit}`), \
     commit or stash changes, then `git checkout -B {branch} {expected}`; to start from what is \
     there, run a new loop (`--loop NAME`)"
)]
pub struct MovedInPlace {
    /// The checkout.
    pub top: PathBuf,
    /// The branch the loop works on.
    pub branch: String,
    /// The commit it was left at.
    pub expected: Oid,
    /// What HEAD is, in words.
    pub found: String,
    /// The commit that is checked out, or what stands for none.
    pub commit: String,
}

impl GitError {
    /// An answer that makes no sense.
    pub(crate) fn unexpected(message: impl Into<String>) -> Self {
        Self::Unexpected(message.into())
    }

    /// Wraps an I/O error with what was being done and where.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

fn join(paths: &[RepoPath]) -> String {
    const SHOWN: usize = 5;
    let mut text = paths
        .iter()
        .take(SHOWN)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > SHOWN {
        let _ = write!(text, " and {} more", paths.len() - SHOWN);
    }
    text
}

fn or_none(oid: Option<Oid>) -> String {
    oid.map_or_else(|| "nothing".to_owned(), |oid| oid.to_hex())
}
