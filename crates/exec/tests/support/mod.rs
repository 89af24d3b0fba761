//! What the tests share: the supervisor to use, and finding processes by a mark
//! in their command line, since a PID namespace hides their numbers.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::path::Path;
use std::time::{Duration, Instant};

use loopwright_exec::{Command, Containment, Finished, Isolation, Running, Supervisor, start};

/// The helper binary: supervisor, and an engine to kill.
pub const HELPER: &str = env!("CARGO_BIN_EXE_loopwright-supervise-test");

/// Every way a family can be fenced in.
pub const ISOLATIONS: [Isolation; 3] = [
    Isolation::Auto,
    Isolation::WithoutNamespace,
    Isolation::SubreaperOnly,
];

/// Long enough for anything on a busy machine, short enough to wait for.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn supervisor() -> Supervisor {
    Supervisor::program(HELPER)
}

/// A shell line in the root directory.
pub fn shell(line: &str) -> Command {
    Command::shell(line, "/")
}

pub fn shell_in(line: &str, isolation: Isolation) -> Command {
    let mut command = shell(line);
    command.isolation = isolation;
    command
}

pub fn begin(command: Command) -> Running {
    start(command, None, &supervisor()).expect("the supervisor starts")
}

pub fn run(command: Command) -> Finished {
    begin(command).wait()
}

/// The output as text, without the last line's end.
pub fn said(finished: &Finished) -> String {
    finished.output.text().trim_end().to_owned()
}

/// A number nobody else sleeps for: `sleep 600.MARK` can be found by it.
pub fn mark(name: &str) -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher();
    hasher.write(name.as_bytes());
    format!("{:012}", hasher.finish() % 1_000_000_000_000)
}

/// The living processes with `mark` in their command line, as `pid command`.
pub fn marked(mark: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == own || name.parse::<u32>().is_err() {
            continue;
        }
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&words).replace('\0', " ");
        if line.contains(mark) {
            found.push(format!("{name} {line}"));
        }
    }
    found
}

/// Waits until `count` processes sleep for the mark: past their shells, with
/// their traps set.
pub fn await_sleeping(mark: &str, count: usize) {
    let sleep = format!(" sleep 600.{mark}");
    await_that(&format!("{count} sleepers of {mark}"), || {
        let all = marked(mark);
        let sleepers = all.iter().filter(|line| line.trim_end().ends_with(&sleep));
        sleepers.filter(|line| line.split(' ').count() == 4).count() >= count
    });
}

/// Waits until a condition holds.
pub fn await_that(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for a file to be there, whole.
pub fn await_file(path: &Path) -> String {
    let whole = || {
        std::fs::read_to_string(path)
            .ok()
            .filter(|text| text.ends_with('\n'))
    };
    await_that(&path.display().to_string(), || whole().is_some());
    whole().expect("it was there")
}

/// Waits at most `limit` for the marked processes to be gone.
pub fn assert_gone_within(mark: &str, limit: Duration) {
    let begun = Instant::now();
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < limit, "still there: {left:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether this system offers what `Isolation::Auto` hopes for.
pub fn containment_of(isolation: Isolation) -> Containment {
    let finished = run(shell_in("true", isolation));
    finished.containment.expect("the supervisor said")
}

/// Says, so that it can be read, that a test tested nothing.
pub fn skip(test: &str, why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}
