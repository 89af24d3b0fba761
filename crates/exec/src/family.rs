//! The family: the command and every process it ever started.
//!
//! In a PID namespace it is everybody but the first process. Elsewhere it is
//! everything that descends from the supervisor: a subreaper inherits the
//! orphans of its descendants, so that no process can leave.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::procfs::{self, Process};
use crate::sys;

/// Whose family, and how it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// This process is the first one of a PID namespace.
    Namespace,
    /// This process is a subreaper.
    Tree,
}

impl Family {
    /// The living members, as far as `/proc` shows them now.
    pub(crate) fn members(self) -> Vec<Process> {
        let all = procfs::scan();
        let mut members = match self {
            Self::Namespace => all,
            Self::Tree => match own_pid_in_proc() {
                Some(own) => procfs::descendants(&all, own),
                None => Vec::new(),
            },
        };
        let first = match self {
            Self::Namespace => Some(1),
            Self::Tree => None,
        };
        members.retain(|process| !process.is_dead() && Some(process.pid) != first);
        members
    }

    /// Signals every member. In a tree a process that is being started at this
    /// moment may be missed: whoever wants an end repeats it until no child is
    /// left.
    pub(crate) fn signal(self, signal: Signal) {
        match self {
            Self::Namespace => sys::signal_all(signal.as_raw()),
            Self::Tree => {
                for process in self.members() {
                    signal_process(&process, signal);
                }
            }
        }
    }
}

/// Signals exactly the process that was seen: if its id has been used again
/// since, nobody is signalled. Gives whether a signal was sent.
pub(crate) fn signal_process(process: &Process, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(process.pid) else {
        return false;
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        // From here on the descriptor means one process for good: is it ours?
        Ok(fd) => is_still(process) && pidfd_send_signal(&fd, signal).is_ok(),
        // An old kernel: the window between the two is all that is left.
        Err(rustix::io::Errno::NOSYS) => {
            is_still(process) && rustix::process::kill_process(pid, signal).is_ok()
        }
        Err(_) => false,
    }
}

fn is_still(process: &Process) -> bool {
    procfs::read(process.pid).is_some_and(|now| now.start_time == process.start_time)
}

/// This process's id, if the mounted `/proc` counts as this process does. A
/// foreign `/proc` names others by our numbers and must not be acted on.
fn own_pid_in_proc() -> Option<i32> {
    let own = rustix::process::getpid().as_raw_pid();
    (procfs::read_self()?.pid == own).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_was_seen_is_signalled() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let seen = procfs::read(child.id() as i32).unwrap();
        let stranger = Process {
            start_time: seen.start_time + 1,
            ..seen.clone()
        };
        assert!(!signal_process(&stranger, Signal::KILL));
        assert!(child.try_wait().unwrap().is_none(), "the stranger was hit");
        assert!(signal_process(&seen, Signal::KILL));
        child.wait().unwrap();
        assert!(!signal_process(&seen, Signal::KILL), "it is gone");
    }

    #[test]
    fn a_tree_has_no_dead_members() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        while !procfs::read(pid).unwrap().is_dead() {
            std::thread::yield_now();
        }
        assert!(
            !Family::Tree
                .members()
                .iter()
                .any(|process| process.pid == pid)
        );
        child.wait().unwrap();
    }
}
