//! A fresh repository in which `x` holds 10 and the measurement says so, in an environment of its
//! own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The repository, and all that stands round it.
pub struct Rig {
    folder: tempfile::TempDir,
}

impl Rig {
    pub fn new() -> Self {
        Self::with("echo \"m=$(cat x)\"\n", &[])
    }

    /// One with another measurement and more files.
    pub fn with(run: &str, files: &[(&str, &str)]) -> Self {
        let rig = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(rig.repository()).unwrap();
        fs::write(
            rig.path("gitconfig"),
            "[user]\n\tname = A\n\temail = a@example.org\n[protocol \"file\"]\n\tallow = always\n",
        )
        .unwrap();
        rig.write("x", "10\n");
        rig.write("run.sh", run);
        for (name, text) in files {
            rig.write(name, text);
        }
        rig.git(&["init", "-q", "-b", "main"]);
        rig.git(&["add", "-A"]);
        rig.git(&["commit", "-qm", "start"]);
        rig
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn repository(&self) -> PathBuf {
        self.path("repository")
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.repository().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
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
            .env("OUTSIDE", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        text_of(arguments, &self.command("git", arguments).output().unwrap())
    }

    pub fn loopwright(&self, arguments: &[&str]) -> String {
        let binary = env!("CARGO_BIN_EXE_loopwright");
        text_of(
            arguments,
            &self.command(binary, arguments).output().unwrap(),
        )
    }

    /// Runs the binary in some folder, however it ends.
    pub fn loopwright_in(&self, folder: &Path, arguments: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_loopwright"), arguments);
        command.current_dir(folder).output().unwrap()
    }

    /// Starts the loop `name` with one proposal, in some folder, with all it says kept.
    pub fn start(&self, folder: &Path, name: &str, propose: &str, more: &[&str]) -> Child {
        let binary = env!("CARGO_BIN_EXE_loopwright");
        self.command(binary, &["run", "--run", "sh run.sh", "--metric", "m"])
            .args(["--goal", "min", "--loop", name, "--propose", propose])
            .args(more)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits until a command of the loop has made this file beside the repository.
    pub fn await_file(&self, name: &str) {
        await_that(name, || self.path(name).exists());
    }

    /// Makes a file beside the repository, which a command waits for.
    pub fn touch(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    /// Kills it, and waits until nothing that it started runs any more.
    pub fn kill(&self, mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
        let mark = format!("OUTSIDE={}", self.folder.path().display());
        await_that("its processes to be gone", || {
            let processes = fs::read_dir("/proc").unwrap().flatten();
            !processes
                .map(|process| fs::read(process.path().join("environ")).unwrap_or_default())
                .any(|environment| {
                    environment
                        .split(|byte| *byte == 0)
                        .any(|entry| entry == mark.as_bytes())
                })
        });
    }

    /// One trial with this proposal; its line of the log.
    pub fn trial(&self, propose: &str, more: &[&str]) -> Value {
        let mut arguments = vec!["run", "--run", "sh run.sh", "--metric", "m", "--propose"];
        arguments.push(propose);
        if !more.contains(&"--goal") {
            arguments.extend(["--goal", "min"]);
        }
        arguments.extend(more);
        self.loopwright(&arguments);
        self.log().pop().unwrap()
    }

    /// All trials, the baseline first.
    pub fn log(&self) -> Vec<Value> {
        let log = self.loopwright(&["log", "--json"]);
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// All that is the user's: refs but the loop's, HEAD, configuration, hooks, status, `x`.
    pub fn users(&self) -> String {
        let refs = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let refs: Vec<&str> = refs
            .lines()
            .filter(|line| !line.starts_with("refs/heads/loopwright/"))
            .collect();
        let read = |name: &str| fs::read_to_string(self.repository().join(name)).unwrap();
        let hooks = fs::read_dir(self.repository().join(".git/hooks"));
        let mut hooks: Vec<_> = hooks
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        hooks.sort();
        let status = self.git(&["status", "--porcelain", "--ignored"]);
        let (head, config, x) = (read(".git/HEAD"), read(".git/config"), read("x"));
        format!("{refs:?} {head} {config} {hooks:?} {status} {x}")
    }
}

/// Waits until something holds.
pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What it said on stderr; it must have ended like that.
pub fn words_of(done: &Output, code: i32) -> String {
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(code), "{words}");
    words
}

/// What it printed; it must have succeeded.
fn text_of(arguments: &[&str], done: &Output) -> String {
    assert!(
        done.status.success(),
        "{arguments:?}: {}\n{}{}",
        done.status,
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8_lossy(&done.stdout).into_owned()
}
