//! What can go wrong for whoever asks the engine to do something, in words and with what to do.

use loopwright_core::spec::Problems;
use loopwright_git::GitError;
use loopwright_git::arms::ArmsError;
use loopwright_record::{
    BlobError, Held, LeaseError, LoadError, OpenError, ReadError, StorageError,
};

use crate::driver::DriveError;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Something was asked that can't work; nothing was spent.
    #[error("{what}")]
    Refused {
        /// What, in words.
        what: String,
        /// What to do about it, one hint a line.
        hints: Vec<String>,
    },
    /// The specification is wrong.
    #[error(transparent)]
    Specification(#[from] Problems),
    /// Somebody else drives the run.
    #[error("{0}")]
    Held(Box<Held>),
    /// The store can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The record can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The record doesn't fit this release's machines.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A blob can't be read or written.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The run could not be driven on.
    #[error(transparent)]
    Drive(DriveError),
    /// Git, or the files of a checkout.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The checkouts in which trees are measured.
    #[error(transparent)]
    Arms(#[from] ArmsError),
    /// No command can be started.
    #[error(transparent)]
    Start(#[from] loopwright_exec::StartError),
    /// The system starts no command where one could be started.
    #[error("no command can be started here: {0}")]
    NotStarted(String),
    /// Anything else of the file system.
    #[error("{what}: {error}")]
    Io {
        /// What was done, and where.
        what: String,
        /// The system's word.
        error: std::io::Error,
    },
}

impl EngineError {
    /// A refusal without a hint.
    pub fn refused(what: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            hints: Vec::new(),
        }
    }

    /// A refusal with what to do about it.
    pub fn refused_with(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            hints: vec![hint.into()],
        }
    }

    /// A function that puts what was done in front of the system's word.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}

impl From<LeaseError> for EngineError {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::Held(held) => Self::Held(held),
            LeaseError::Storage(error) => Self::Storage(error),
        }
    }
}

impl From<DriveError> for EngineError {
    fn from(error: DriveError) -> Self {
        Self::Drive(error)
    }
}
