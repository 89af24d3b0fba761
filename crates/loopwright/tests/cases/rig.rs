//! A fresh repository in which `x` holds 10 and the measurement says so, in an environment of its
//! own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::users::Users;

/// The repository, and all that stands round it.
pub struct Rig {
    folder: tempfile::TempDir,
    /// The checkout.
    top: PathBuf,
    /// Where in it commands run.
    below: PathBuf,
}

impl Rig {
    pub fn new() -> Self {
        Self::with("echo \"m=$(cat x)\"\n", &[])
    }

    /// One with another measurement and more files.
    pub fn with(run: &str, files: &[(&str, &str)]) -> Self {
        let rig = Self::empty();
        fs::create_dir(rig.repository()).unwrap();
        rig.write("x", "10\n");
        rig.write("run.sh", run);
        for (name, text) in files {
            rig.write(name, text);
        }
        rig.init(&[]);
        rig.commit_all("start");
        rig
    }

    /// The surroundings alone, without a repository.
    pub fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("repository");
        fs::write(
            folder.path().join("gitconfig"),
            "[user]\n\tname = A\n\temail = a@example.org\n[protocol \"file\"]\n\tallow = always\n",
        )
        .unwrap();
        Self {
            folder,
            top,
            below: PathBuf::new(),
        }
    }

    pub fn init(&self, options: &[&str]) {
        let arguments = [&["init", "-q", "-b", "main"], options].concat();
        self.git(&arguments);
    }

    pub fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", message]);
    }

    /// From now on the checkout is another one.
    pub fn move_to(&mut self, top: impl AsRef<OsStr>) {
        self.top = self.folder.path().join(top.as_ref());
    }

    /// Where commands run.
    pub fn working_directory(&self) -> PathBuf {
        self.top.join(&self.below)
    }

    /// From now on commands run in this directory of the checkout.
    pub fn go_below(&mut self, directory: &str) {
        self.below = directory.into();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The checkout.
    pub fn repository(&self) -> PathBuf {
        self.top.clone()
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
            .current_dir(self.working_directory())
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

    /// Git in another directory.
    pub fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let mut command = self.command("git", arguments);
        text_of(arguments, &command.current_dir(directory).output().unwrap())
    }

    /// A script of the user's in the checkout.
    pub fn shell(&self, script: &str) -> String {
        let arguments = ["-ec", script];
        text_of(
            &arguments,
            &self.command("sh", &arguments).output().unwrap(),
        )
    }

    pub fn loopwright(&self, arguments: &[&str]) -> String {
        text_of(arguments, &self.try_loopwright(arguments))
    }

    /// The same where it need not succeed.
    pub fn try_loopwright(&self, arguments: &[&str]) -> Output {
        let binary = env!("CARGO_BIN_EXE_loopwright");
        self.command(binary, arguments).output().unwrap()
    }

    /// The refusal it must end with, by this exit code.
    pub fn refusal(&self, code: i32, arguments: &[&str]) -> String {
        let done = self.try_loopwright(arguments);
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(code), "{arguments:?}: {words}");
        words
    }

    /// One trial with this proposal; its line of the log.
    pub fn trial(&self, propose: &str, more: &[&str]) -> Value {
        self.loopwright(&run_arguments(propose, more));
        self.log().pop().unwrap()
    }

    /// All trials, the baseline first.
    pub fn log(&self) -> Vec<Value> {
        let log = self.loopwright(&["log", "--json"]);
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// All that is the user's.
    pub fn users(&self) -> Users {
        Users::of(self)
    }
}

/// What one trial with this proposal is asked for by.
pub fn run_arguments<'a>(propose: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "--run", "sh run.sh", "--metric", "m", "--propose"];
    arguments.push(propose);
    if !more.contains(&"--goal") {
        arguments.extend(["--goal", "min"]);
    }
    arguments.extend(more);
    arguments
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
