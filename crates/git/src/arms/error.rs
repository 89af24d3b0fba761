//! What can go wrong with the arms, in words a user can act on.

use std::io;
use std::path::{Path, PathBuf};

use crate::arms::Role;
use crate::error::GitError;
use crate::types::RepoPath;

/// A failure of the arms.
#[derive(Debug, thiserror::Error)]
pub enum ArmsError {
    /// The object store failed.
    #[error(transparent)]
    Git(#[from] GitError),
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
    /// Another process holds the arms.
    #[error(
        "the measurement directories in {0} are used by another process; wait for it or stop it"
    )]
    InUse(PathBuf),
    /// A tree holds a path no checkout may have.
    #[error("the tree holds the path {0}, which can't be checked out; remove it from the project")]
    UnsafePath(RepoPath),
    /// Two entries of a listing need the same path, once as a file and once as a directory.
    #[error(
        "{inner} can't be checked out because {outer} is not a directory in the same tree; a change replaced a directory that holds protected or linked files"
    )]
    Clash {
        /// The entry that stands in the way.
        outer: RepoPath,
        /// The entry below it.
        inner: RepoPath,
    },
    /// A pattern can't be understood.
    #[error(
        "the pattern {pattern:?} {problem}; name a path relative to the top of the project, like \"target\" or \"**/__pycache__\""
    )]
    Pattern {
        /// As it was written.
        pattern: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A link names something git tracks.
    #[error(
        "link {link} is tracked by git ({tracked}); links are for inputs git does not carry, remove it from `link`"
    )]
    LinkTracked {
        /// The declared link.
        link: RepoPath,
        /// The tracked path it collides with.
        tracked: RepoPath,
    },
    /// A link names something that is not there.
    #[error("link {link} does not exist in {checkout}; create it there or remove it from `link`")]
    LinkMissing {
        /// As it was written.
        link: String,
        /// The user's checkout.
        checkout: PathBuf,
    },
    /// A link leaves the checkout.
    #[error(
        "link {link} is not a path inside the checkout {checkout}; put a symbolic link to the data there and name that"
    )]
    LinkOutside {
        /// As it was written.
        link: String,
        /// The user's checkout.
        checkout: PathBuf,
    },
    /// A step was taken in the wrong order.
    #[error("BUG: the {role} arm is not ready: {problem}")]
    OutOfOrder {
        /// Which arm.
        role: Role,
        /// What was missing.
        problem: &'static str,
    },
    /// A test asked for a failure at this step.
    #[error("stopped on purpose at step {0:?}")]
    Stopped(&'static str),
}

impl ArmsError {
    /// Whether it is the tree itself that can't be checked out, on no host and at no time.
    pub fn is_of_tree(&self) -> bool {
        matches!(
            self,
            Self::UnsafePath(_) | Self::Clash { .. } | Self::LinkTracked { .. }
        )
    }

    /// Wraps an I/O error with what was being done and where.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self + use<E> {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source: source.into(),
        }
    }
}
