//! Git commands in which the user's own programs take part: a commit with hooks and signing.
//!
//! Such a command may do anything and take for ever, so it is not run here: whoever calls brings
//! somebody who runs it with a limit, can stop it, and leaves nothing of it running.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::GitError;

/// A command to be run.
#[derive(Debug, Clone)]
pub struct UserCommand {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Variables to set on top of this process's.
    pub set: BTreeMap<OsString, OsString>,
    /// Variables not to hand on.
    pub remove: BTreeSet<OsString>,
    /// What it reads.
    pub input: Vec<u8>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserEnd {
    /// With success.
    Succeeded,
    /// Without, by itself.
    Failed,
    /// It was cut off, in words: at its limit, by a signal.
    CutOff(String),
    /// It was stopped on request.
    Stopped,
}

/// What came of a command.
#[derive(Debug, Clone)]
pub struct UserRun {
    /// How it ended.
    pub end: UserEnd,
    /// The end of what it said.
    pub said: String,
}

impl UserRun {
    /// True if it came to its end and went well.
    pub fn is_success(&self) -> bool {
        self.end == UserEnd::Succeeded
    }
}

/// Runs such commands. On return nothing of what they started runs any more.
pub trait UserCommands {
    /// Runs one to its end.
    fn run(&mut self, command: UserCommand) -> Result<UserRun, GitError>;
}
