//! What all test binaries of the tool share: an environment of a test's own, and waiting for what
//! has to happen.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up: far longer than it does on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Nothing of whoever runs the tests reaches the command: not their settings, nor their input.
pub fn make_hermetic<'a>(
    command: &'a mut Command,
    home: &Path,
    git_config: &Path,
    work: &Path,
) -> &'a mut Command {
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", git_config)
        .env("LOOPWRIGHT_WORK", work)
        .stdin(Stdio::null())
}

/// Waits until something holds.
#[track_caller]
pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs it to its end, and fails where it does not come.
#[track_caller]
pub fn output_within_patience(command: &mut Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut all = Vec::new();
            from.read_to_end(&mut all).map(|_| all)
        })
    };
    let (stdout, stderr) = (read(Box::new(stdout)), read(Box::new(stderr)));
    let deadline = Instant::now() + PATIENCE / 4;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} waits for ever");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Output {
        status,
        stdout: stdout.join().unwrap().unwrap(),
        stderr: stderr.join().unwrap().unwrap(),
    }
}

/// Waits until no process is left with this `NAME=value` in its environment.
#[track_caller]
pub fn await_no_process_with(variable: &str, when: &str) {
    await_that(&format!("{when}: its processes to be gone"), || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut environments =
            processes.map(|process| fs::read(process.path().join("environ")).unwrap_or_default());
        !environments.any(|environment| {
            let mut entries = environment.split(|byte| *byte == 0);
            entries.any(|entry| entry == variable.as_bytes())
        })
    });
}

/// Says, so that it can be read, that a test tested nothing.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub fn skip(why: &str) {
    println!("SKIPPED: {why}");
}
