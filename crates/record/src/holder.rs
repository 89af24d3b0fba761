//! Who holds a lease: a process that can be told apart from a later one with the same number.

use std::fmt;
use std::fs;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A process that drives a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub start_time: u64,
    /// The boot that ticks count from.
    pub boot_id: String,
    /// The machine's name.
    pub host: String,
    /// What it is, for people: `loopwright run`.
    pub what: String,
}

impl Holder {
    /// This process.
    pub fn current(what: &str) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start_time: start_time_of(pid).unwrap_or(0),
            boot_id: boot_id().to_owned(),
            host: host_name(),
            what: what.to_owned(),
        }
    }

    /// Whether it was started on this machine, since it was last booted.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot_id == boot_id()
    }

    /// Whether it ran on this machine, in this boot or an earlier one.
    pub fn is_of_this_host(&self) -> bool {
        self.is_of_this_boot() || self.host == host_name()
    }

    /// Whether it is seen to run: on this machine, the same process and not a later one.
    pub fn is_alive(&self) -> bool {
        self.is_of_this_boot() && start_time_of(self.pid) == Some(self.start_time)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {} on {})", self.what, self.pid, self.host)
    }
}

/// When a process started; none where it is gone, or dead and not yet collected.
pub(crate) fn start_time_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, parentheses included.
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    // Field 22 of proc(5); the state was field 3.
    fields.nth(18)?.parse().ok()
}

fn boot_id() -> &'static str {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| {
        fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|text| text.trim().to_owned())
            .unwrap_or_default()
    })
}

fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_apart_from_a_later_one_of_the_same_number() {
        let own = Holder::current("a test");
        assert!(own.start_time > 0 && own.is_alive() && own.is_of_this_host());
        let later = Holder {
            start_time: own.start_time + 1,
            ..own.clone()
        };
        assert!(!later.is_alive());
        let before_boot = Holder {
            boot_id: "another".to_owned(),
            ..own
        };
        assert!(!before_boot.is_alive() && before_boot.is_of_this_host());
    }

    #[test]
    fn a_dead_process_is_not_alive_before_and_after_it_is_collected() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let holder = Holder {
            pid: child.id(),
            start_time: start_time_of(child.id()).unwrap(),
            ..Holder::current("sleep")
        };
        assert!(holder.is_alive());
        child.kill().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while holder.is_alive() {
            assert!(
                std::time::Instant::now() < deadline,
                "a killed process lives"
            );
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!holder.is_alive());
    }
}
