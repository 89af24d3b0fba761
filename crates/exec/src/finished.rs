//! What came of a command.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::capture::Captured;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code, whatever it left behind.
    Exited(i32),
    /// A signal that wasn't ours ended it.
    Signaled(i32),
    /// Its time was up, and the whole family was ended.
    TimedOut,
    /// It was stopped on request, and the whole family was ended.
    Stopped,
    /// It never ran.
    NotStarted {
        /// Why, in words.
        reason: String,
    },
    /// The supervisor died before it could tell (killed from outside, out of
    /// memory). The family was ended all the same; how the command ended is
    /// unknown.
    SupervisorLost {
        /// What is known, in words.
        detail: String,
    },
}

impl Ending {
    /// Whether the command ran to its end and exited with code 0.
    pub fn is_success(&self) -> bool {
        *self == Self::Exited(0)
    }
}

/// The fence the family ran in, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// A PID namespace: the family sees and reaches no process outside, and the
    /// kernel itself ends it with its first process.
    PidNamespace,
    /// A subreaper, and Landlock's scope for signals: nobody leaves the family
    /// and nobody in it can signal a process outside.
    SubreaperScoped,
    /// A subreaper alone. Weak: the family can kill the supervisor, the engine
    /// and whatever else its user may signal.
    Subreaper,
}

impl Containment {
    /// Whether the family could have reached processes outside.
    pub fn is_weak(self) -> bool {
        self == Self::Subreaper
    }
}

/// A process that outlived its command and that the supervisor ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its process id as its own family saw it (in a PID namespace: the number
    /// inside).
    pub pid: u32,
    /// Its short name, as in `/proc/PID/comm`.
    pub name: String,
    /// Whether it is gone. `false` only where there is no PID namespace, for a
    /// process that no signal of ours may reach (set-user-id) or that hangs in
    /// the kernel.
    pub ended: bool,
}

/// What came of a command. Nothing of its family runs any more.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// Its output: both streams where they are merged, else standard output.
    pub output: Captured,
    /// Its standard error, where the streams are separate.
    pub stderr: Option<Captured>,
    /// From the start of the command to its end (not its family's). Zero if it
    /// never ran; until the loss was noticed if the supervisor was lost.
    pub wall: Duration,
    /// CPU time in user mode of the whole family, `None` if unknown. Processes
    /// whose parent told the kernel to forget them (SIGCHLD ignored) are not
    /// in it.
    pub cpu_user: Option<Duration>,
    /// CPU time in the kernel, likewise.
    pub cpu_system: Option<Duration>,
    /// The largest resident size any one process of the family had. Never less
    /// than the supervisor's own few megabytes, since a child begins as its
    /// parent's image.
    pub max_rss_bytes: Option<u64>,
    /// Processes the command left behind when it ended by itself; at most
    /// [`Finished::MAX_LEFTOVERS`] are named.
    pub leftovers: Vec<Leftover>,
    /// The fence it ran in. `None` if the supervisor was lost before it said.
    pub containment: Option<Containment>,
    /// Why no stronger fence was had, in words, where one was tried.
    pub containment_note: Option<String>,
}

impl Finished {
    /// How many left-over processes are named.
    pub const MAX_LEFTOVERS: usize = 64;
}
