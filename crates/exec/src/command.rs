//! What to run: the description of one outside command.
//!
//! Plain data, made by the caller and sent to the supervisor. Nothing here
//! touches the system.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::capture::Capture;

/// One outside command: what, where, with what, for how long.
#[derive(Clone, Debug)]
pub struct Command {
    /// What is run.
    pub program: Program,
    /// The directory it runs in. It must exist.
    pub cwd: PathBuf,
    /// Its environment.
    pub env: Environment,
    /// What it can read.
    pub stdin: Stdin,
    /// How long the command may take, counted from its start. `None`: for ever.
    pub time_limit: Option<Duration>,
    /// The time between SIGTERM and SIGKILL at the limit or a gentle stop.
    /// Zero kills at once.
    pub grace: Duration,
    /// How long processes that the command left behind may go on before they
    /// are ended: enough for the `tee` of a process substitution to write its
    /// last lines. Costs nothing where nothing is left.
    pub linger: Duration,
    /// One output stream or two.
    pub streams: Streams,
    /// How much of the output is kept, and where.
    pub capture: Capture,
    /// How the family is fenced in.
    pub isolation: Isolation,
    /// Files and folders the family can't write, with all below. Held where the
    /// fence is a namespace; [`Finished::containment_note`](crate::Finished) says if
    /// it isn't. What isn't there is passed over.
    pub read_only: Vec<PathBuf>,
}

impl Command {
    /// The default time between SIGTERM and SIGKILL.
    pub const DEFAULT_GRACE: Duration = Duration::from_secs(2);
    /// The default time for left-over processes to end by themselves.
    pub const DEFAULT_LINGER: Duration = Duration::from_millis(100);

    /// `/bin/sh -c LINE` in `cwd` with everything else at its default: the
    /// engine's environment, no input, no limit, merged streams.
    pub fn shell(line: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        Self::new(Program::Shell(line.into()), cwd.into())
    }

    /// A program and its arguments, without a shell; else as [`Command::shell`].
    pub fn argv<A: Into<OsString>>(
        words: impl IntoIterator<Item = A>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        let words = words.into_iter().map(Into::into).collect();
        Self::new(Program::Argv(words), cwd.into())
    }

    fn new(program: Program, cwd: PathBuf) -> Self {
        Self {
            program,
            cwd,
            env: Environment::default(),
            stdin: Stdin::Null,
            time_limit: None,
            grace: Self::DEFAULT_GRACE,
            linger: Self::DEFAULT_LINGER,
            streams: Streams::Merged,
            capture: Capture::default(),
            isolation: Isolation::Auto,
            read_only: Vec::new(),
        }
    }
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A line for `/bin/sh -c`. Where it is plainly a program and its arguments, that
    /// is started without a shell.
    Shell(String),
    /// A program and its arguments. The program is looked up in the command's
    /// own `PATH` unless it holds a slash.
    Argv(Vec<OsString>),
}

/// The command's environment: the engine's (or nothing), less `remove`, plus
/// `set`. What to do about `GIT_*` is the caller's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Whether to begin with the engine's environment.
    pub inherit: bool,
    /// Variables to set. They win over `remove`.
    pub set: BTreeMap<OsString, OsString>,
    /// Variables not to pass on.
    pub remove: BTreeSet<OsString>,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            inherit: true,
            set: BTreeMap::new(),
            remove: BTreeSet::new(),
        }
    }
}

/// What the command can read on its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: `/dev/null`.
    Null,
    /// These bytes, then the end. They are handed over in an unnamed file in
    /// memory: a command that doesn't read them can't block anybody.
    Bytes(Arc<[u8]>),
}

/// One output stream or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Standard output and error share one pipe, so that their order is kept.
    Merged,
    /// Each has its own pipe.
    Separate,
}

/// How the command's family is fenced in. What was had is told by
/// [`Containment`](crate::Containment).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The strongest fence the system offers.
    Auto,
    /// As on a system without PID namespaces.
    WithoutNamespace,
    /// As on a system with neither PID namespaces nor Landlock's signal scope.
    SubreaperOnly,
}
