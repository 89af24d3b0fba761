//! A dead engine's supervisor, found again and ended.
//!
//! A supervisor whose engine dies ends its family and itself, by the end of
//! their socket. This is for the engine that takes over: it has the old
//! supervisor's identity from the journal and must know, before its first
//! effect, that nothing of the old one's runs any more.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::family::signal_process;
use crate::procfs::{self, Process, boot_id};

/// The variable that marks a family where it isn't held by a PID namespace, so
/// that it can be found when its supervisor was killed from outside.
pub(crate) const FAMILY_MARK: &str = "LOOPWRIGHT_FAMILY";

/// The mark's value, always of the same length: the size of an environment
/// moves the stack, and with it what is measured.
pub(crate) fn family_mark(pid: u32, start_time: u64) -> String {
    format!("{pid:010}-{start_time:020}")
}

/// Which supervisor: its process, and the boot in which that means anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SupervisorId {
    /// Its process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start_time: u64,
    /// Which boot: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

impl SupervisorId {
    /// Whether that very supervisor still runs.
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && procfs::process_alive(self.pid, self.start_time)
    }
}

/// What [`end_orphans`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing of it was there: gone, or of another boot.
    NothingLeft,
    /// It was about to end by itself and did.
    ByItself,
    /// It had to be killed.
    Killed {
        /// How many processes were sent SIGKILL.
        processes: usize,
    },
}

/// What keeps [`end_orphans`] from its promise.
#[derive(Debug, thiserror::Error)]
pub enum OrphanError {
    /// Processes that can't be ended.
    #[error(
        "processes of the dead run's supervisor {supervisor} are still there after {waited:?}: {remaining}; end them by hand, then try again"
    )]
    StillThere {
        /// The supervisor's process id.
        supervisor: u32,
        /// How long was waited.
        waited: Duration,
        /// Who is left, `pid (name)`.
        remaining: String,
    },
}

/// How long a supervisor gets to end by itself, once its engine is dead.
const OWN_END: Duration = Duration::from_millis(1500);

/// Makes sure that a dead engine's supervisor and its whole family are gone,
/// and comes back when they are, or after `patience` with an error.
///
/// Nobody else is touched: if the id now belongs to another process, or is of
/// another boot, there is nothing to do.
pub fn end_orphans(id: &SupervisorId, patience: Duration) -> Result<Ended, OrphanError> {
    if id.boot_id != boot_id() {
        return Ok(Ended::NothingLeft);
    }
    let begun = Instant::now();
    if remaining(id, Session::Trusted).is_empty() {
        return Ok(Ended::NothingLeft);
    }
    let own_end = begun + OWN_END.min(patience / 2);
    while Instant::now() < own_end {
        if remaining(id, Session::Trusted).is_empty() {
            return Ok(Ended::ByItself);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let processes = sweep(id, patience.saturating_sub(begun.elapsed()))?;
    Ok(Ended::Killed { processes })
}

/// How far the session's number is trusted once the supervisor is collected.
///
/// Its number is then free, and a session of that number may be a stranger's:
/// good enough to wait a moment for (a namespace's first process may be about to
/// end), never to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    Trusted,
    Doubted,
}

/// Kills what is left of a family until nothing is; gives how many processes
/// were killed.
pub(crate) fn sweep(id: &SupervisorId, patience: Duration) -> Result<usize, OrphanError> {
    let begun = Instant::now();
    let mut killed = Vec::new();
    let mut quiet = 0;
    // A child may be started behind the scan's back while its parent dies: only
    // a second empty look is the end.
    while quiet < 2 {
        let left = remaining(id, Session::Doubted);
        quiet = if left.is_empty() { quiet + 1 } else { 0 };
        // The supervisor last: while it lives it inherits orphans, which keeps
        // them findable.
        let supervisor_is_alone = left.iter().all(|process| is_supervisor(process, id));
        for process in &left {
            let is_turn = supervisor_is_alone || !is_supervisor(process, id);
            if is_turn && signal_process(process, Signal::KILL) {
                let name = (process.pid, process.start_time);
                if !killed.contains(&name) {
                    killed.push(name);
                }
            }
        }
        if begun.elapsed() > patience && !left.is_empty() {
            return Err(still_there(id, begun.elapsed(), &left));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(killed.len())
}

/// Lets everybody of a family go on who was stopped, the supervisor first of all; says whether that
/// (or the first process of its namespace) was.
pub(crate) fn wake(id: &SupervisorId) -> bool {
    let own = i32::try_from(id.pid).unwrap_or(-1);
    let mut leader_was_stopped = false;
    for process in remaining(id, Session::Doubted) {
        leader_was_stopped |= process.is_stopped() && process.session == own;
        signal_process(&process, Signal::CONT);
    }
    leader_was_stopped
}

fn still_there(id: &SupervisorId, waited: Duration, left: &[Process]) -> OrphanError {
    let name = |process: &Process| format!("{} ({})", process.pid, process.name);
    let names: Vec<String> = left.iter().map(name).collect();
    OrphanError::StillThere {
        supervisor: id.pid,
        waited,
        remaining: names.join(", "),
    }
}

fn is_supervisor(process: &Process, id: &SupervisorId) -> bool {
    i64::from(process.pid) == i64::from(id.pid) && process.start_time == id.start_time
}

/// Every living process of a supervisor's family, itself included.
///
/// They are known by descent while the supervisor lives; by its session, which
/// the first process of a namespace never leaves (and which ends only after all
/// the others); by the family's mark.
fn remaining(id: &SupervisorId, session: Session) -> Vec<Process> {
    let all = procfs::scan();
    let own = i32::try_from(id.pid).unwrap_or(-1);
    let holder = all.iter().find(|process| process.pid == own);
    let is_present = holder.is_some_and(|holder| holder.start_time == id.start_time);
    let session_is_ours = match holder {
        // Also where it is dead and its engine hasn't collected it yet.
        Some(_) => is_present,
        None => session == Session::Trusted,
    };
    let mark = format!("{FAMILY_MARK}={}", family_mark(id.pid, id.start_time));
    let mut found: Vec<Process> = Vec::new();
    for process in &all {
        let ours = is_supervisor(process, id)
            || (session_is_ours && process.session == own && process.start_time >= id.start_time)
            || has_mark(process, id, &mark);
        if ours && !process.is_dead() {
            found.push(process.clone());
        }
    }
    let mut roots: Vec<i32> = found.iter().map(|process| process.pid).collect();
    if is_present {
        roots.push(own);
    }
    for root in roots {
        for process in procfs::descendants(&all, root) {
            if !process.is_dead() && !found.iter().any(|known| known.pid == process.pid) {
                found.push(process);
            }
        }
    }
    found
}

fn has_mark(process: &Process, id: &SupervisorId, mark: &str) -> bool {
    // Nobody older can be of the family; reading environments is not free.
    process.start_time >= id.start_time
        && fs::read(format!("/proc/{}/environ", process.pid)).is_ok_and(|environment| {
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
        })
}
