//! Reading `/proc`: who runs, since when, whose child.
//!
//! A process is named by its id *and* its start time: ids are used again. All
//! of it is a snapshot that may be stale at once; whoever acts on it opens the
//! process first and compares again (see `family`).

use std::fs;
use std::io::Read as _;
use std::sync::OnceLock;

/// One process as `/proc/PID/stat` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) name: String,
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    /// Clock ticks since boot.
    pub(crate) start_time: u64,
}

impl Process {
    /// Dead, and perhaps not yet collected by its parent.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Stopped by a signal, or by a tracer.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }
}

/// Reads one process; `None` if there is none with that id.
pub(crate) fn read(pid: i32) -> Option<Process> {
    read_stat(&format!("/proc/{pid}/stat"))
}

/// Reads this process, by the id this `/proc` knows it by.
pub(crate) fn read_self() -> Option<Process> {
    read_stat("/proc/self/stat")
}

/// The kernel gives such a file whole at the first read; there are many of them.
fn read_stat(path: &str) -> Option<Process> {
    let mut text = [0; 2048];
    let length = fs::File::open(path).ok()?.read(&mut text).ok()?;
    parse_stat(&text[..length])
}

/// Every process this `/proc` shows.
pub(crate) fn scan() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(read)
        .collect()
}

/// Those of `all` that descend from `root`, without `root` itself.
pub(crate) fn descendants(all: &[Process], root: i32) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            if process.pid != root && !found.iter().any(|known| known.pid == process.pid) {
                parents.push(process.pid);
                found.push(process.clone());
            }
        }
    }
    found
}

fn parse_stat(stat: &[u8]) -> Option<Process> {
    // The name stands in parentheses and may hold anything, parentheses too.
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(&stat[..open])
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let name = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The fields after the name begin with number 3 of proc_pid_stat(5).
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Process {
        pid,
        name,
        state: *field(3)?.as_bytes().first()?,
        parent: field(4)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        start_time: field(22)?.parse().ok()?,
    })
}

/// When a process started, in clock ticks since boot; `None` if there is none
/// with that id (a dead one that its parent hasn't collected still counts).
pub fn start_time_of(pid: u32) -> Option<u64> {
    read(i32::try_from(pid).ok()?).map(|process| process.start_time)
}

/// Whether the process of that id *and* start time still runs. A dead one that
/// waits to be collected doesn't run.
pub fn process_alive(pid: u32, start_time: u64) -> bool {
    i32::try_from(pid)
        .ok()
        .and_then(read)
        .is_some_and(|process| process.start_time == start_time && !process.is_dead())
}

/// The identity of this boot of the system: process ids and start times of
/// another boot mean nothing here. Empty where the system doesn't say.
pub fn boot_id() -> &'static str {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| {
        fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|id| id.trim().to_owned())
            .unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_and_spaces_are_read() {
        let stat = b"42 (a) b (c) S 7 42 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3\n";
        let process = parse_stat(stat).unwrap();
        assert_eq!(process.name, "a) b (c");
        assert_eq!(
            (process.pid, process.state, process.parent, process.session),
            (42, b'S', 7, 40)
        );
        assert_eq!(process.start_time, 987_654);
    }

    #[test]
    fn damaged_stats_are_none() {
        for stat in ["", "1", "1 (x", "1 (x)", "1 (x) S 1 1", ") (", "x (y) S 1"] {
            assert_eq!(parse_stat(stat.as_bytes()), None, "{stat:?}");
        }
    }

    #[test]
    fn this_process_is_alive_and_another_of_its_id_is_not() {
        let pid = std::process::id();
        let start_time = start_time_of(pid).unwrap();
        assert!(process_alive(pid, start_time));
        assert!(!process_alive(pid, start_time + 1));
        assert_eq!(
            read_self(),
            read(pid as i32).map(|process| Process {
                state: read_self().unwrap().state,
                ..process
            })
        );
    }

    #[test]
    fn a_process_that_waits_to_be_collected_is_not_alive() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        let start_time = start_time_of(pid).unwrap();
        while process_alive(pid, start_time) {
            std::thread::yield_now();
        }
        assert_eq!(start_time_of(pid), Some(start_time), "uncollected");
        child.wait().unwrap();
        assert_eq!(start_time_of(pid), None, "collected");
    }

    #[test]
    fn descendants_are_found_through_generations_and_cycles_end() {
        let process = |pid, parent| Process {
            pid,
            name: String::new(),
            state: b'S',
            parent,
            session: 0,
            start_time: 0,
        };
        let all = [
            process(2, 1),
            process(3, 2),
            process(4, 3),
            process(5, 9),
            process(1, 4),
        ];
        let mut pids: Vec<i32> = descendants(&all, 1)
            .iter()
            .map(|process| process.pid)
            .collect();
        pids.sort_unstable();
        assert_eq!(pids, [2, 3, 4]);
    }

    #[test]
    fn the_boot_has_an_identity() {
        assert_eq!(boot_id().len(), 36, "{:?}", boot_id());
    }
}
