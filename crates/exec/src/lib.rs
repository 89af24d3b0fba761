//! Running one outside command under a supervisor.
//!
//! Every outside command of Loopwright (a measurement, a proposal, a set-up
//! step, an agent) is started here, by a small **supervisor** in a session of its
//! own: a copy of a process that re-executed the engine's binary. It starts the
//! command inside the strongest fence the system offers, ends the whole
//! *family* (the command and everything it ever started) when the command
//! ends, when its time is up, when it is asked to, or when the engine dies,
//! and doesn't go before the last process of the family is gone.
//!
//! | module | subject |
//! |---|---|
//! | `command` | what to run: the description |
//! | `running` | the engine's side: start, stop, wait |
//! | `reader` | the engine's side: read to the end |
//! | `capture` | what is kept of an output, and its text |
//! | `keeper` | bounded memory for output, and the spill file |
//! | `finished` | what came of it |
//! | `fork_server` | what supervisors are copies of |
//! | `launch` | the channels to a supervisor, and the one that is ready before it is needed |
//! | `patience` | by when a supervisor has to answer |
//! | `plain` | lines that need no shell |
//! | `protocol` | what engine and supervisor say to each other |
//! | `supervisor` | the supervisor's entry and its choice of fence |
//! | `leader` | the loop that starts the command and outlives its family |
//! | `family` | finding and ending the family's processes |
//! | `orphan` | a dead engine's supervisor, found again and ended |
//! | `procfs` | reading `/proc` |
//! | `sys` | the only unsafe code |
//!
//! Everything is synchronous. The engine's side never waits for a process that
//! isn't its own child and never relies on a parent-death signal.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "loopwright-exec stands on Linux's namespaces, subreapers and /proc; other systems need their own supervisor"
);

mod capture;
mod command;
mod family;
mod finished;
mod fork_server;
mod keeper;
mod launch;
mod leader;
mod orphan;
mod patience;
mod plain;
mod procfs;
mod protocol;
mod reader;
mod running;
mod supervisor;
mod sys;

pub use capture::{Capture, Captured, Spill, SpillInfo};
pub use command::{Command, Environment, Isolation, Program, Stdin, Streams};
pub use finished::{Containment, Ending, Finished, Leftover};
pub use launch::Supervisor;
pub use orphan::{Ended, OrphanError, SupervisorId, end_orphans};
pub use procfs::{boot_id, process_alive, start_time_of};
pub use reader::Observer;
pub use running::{Held, Running, StartError, StopHow, Stopper, hold, start};
pub use supervisor::{SUPERVISE_ARGUMENT, supervisor_main};
