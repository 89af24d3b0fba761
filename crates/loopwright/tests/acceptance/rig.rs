//! A fresh, hermetic repository and the binary to run in it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The repository of the cases: `x` is 10, `run.sh` prints it as `m`.
pub struct Rig {
    folder: tempfile::TempDir,
    mark: String,
}

/// How a command went.
pub struct Done(Output);

impl Done {
    pub fn words(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
            + &String::from_utf8_lossy(&self.0.stderr)
    }

    /// Its standard output; it must have succeeded.
    pub fn succeeded(&self) -> String {
        assert!(
            self.0.status.success(),
            "{}: {}",
            self.0.status,
            self.words()
        );
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }
}

impl Rig {
    pub fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("loopwright-case-{}-{number}", std::process::id());
        let rig = Self {
            folder: tempfile::tempdir().unwrap(),
            mark,
        };
        fs::create_dir(rig.repository()).unwrap();
        rig.outside("gitconfig", "[user]\n\tname = A\n\temail = a@example.org\n");
        rig.git(&["init", "-q", "-b", "main"]);
        rig.write("x", "10\n");
        rig.write("run.sh", "echo \"m=$(cat x)\"\n");
        rig.commit("start");
        rig
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn repository(&self) -> PathBuf {
        self.path("repository")
    }

    pub fn outside(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.repository().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.repository().join(name)).unwrap()
    }

    pub fn hook(&self, name: &str, line: &str) {
        let path = self.repository().join(".git/hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.repository())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.folder.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", self.path("gitconfig"))
            .env("LOOPWRIGHT_WORK", self.path("work"))
            .env("MARK", &self.mark)
            .stdin(Stdio::null());
        command
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        let done = self.command("git", arguments).output().unwrap();
        assert!(
            done.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap()
    }

    pub fn loopwright(&self, arguments: &[&str]) -> Done {
        Done(
            self.command(env!("CARGO_BIN_EXE_loopwright"), arguments)
                .output()
                .unwrap(),
        )
    }

    pub fn run_with(&self, propose: &str, trials: usize, more: &[&str], goal: &str) -> Done {
        let trials = trials.to_string();
        let line = [
            "run",
            "--run",
            "sh run.sh",
            "--metric",
            "m",
            "--goal",
            goal,
            "--propose",
            propose,
            "--trials",
            &trials,
        ];
        self.loopwright(&[&line[..], more].concat())
    }

    pub fn run_loop(&self, propose: &str, trials: usize, more: &[&str]) -> Done {
        self.run_with(propose, trials, more, "min")
    }

    /// The decided trials, as `log --json` has them.
    pub fn log(&self) -> Vec<Value> {
        let text = self.loopwright(&["log", "--json"]).succeeded();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// All that is the user's.
    pub fn users(&self) -> String {
        let refs = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let refs: Vec<&str> = refs
            .lines()
            .filter(|line| !line.contains("refs/heads/loopwright/"))
            .collect();
        let read = |name: &str| self.read(name);
        format!(
            "{refs:?} {} {} {} {}",
            read(".git/config"),
            read(".git/HEAD"),
            read("x"),
            self.git(&["status", "--porcelain"])
        )
    }

    /// Waits until no process carries this rig's mark.
    pub fn await_no_process(&self) {
        let mark = format!("MARK={}", self.mark);
        let deadline = Instant::now() + Duration::from_secs(20);
        let alive = || {
            fs::read_dir(Path::new("/proc"))
                .unwrap()
                .flatten()
                .any(|entry| {
                    let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
                    environment
                        .split(|byte| *byte == 0)
                        .any(|part| part == mark.as_bytes())
                })
        };
        while alive() {
            assert!(Instant::now() < deadline, "a process of the loop is left");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
