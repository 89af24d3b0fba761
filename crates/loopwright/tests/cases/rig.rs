//! A fresh repository in which `x` holds 10 and the measurement says so, in an environment of its
//! own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::common::{await_no_process_with, await_that, make_hermetic};
use crate::users::Users;

/// The repository, and all that stands round it.
pub struct Rig {
    folder: tempfile::TempDir,
    /// The checkout.
    top: PathBuf,
    /// Where in it commands run.
    below: PathBuf,
    /// The repository is on a little disk of its own.
    on_disk: bool,
    /// Commands are run by a user who may not do everything.
    as_nobody: bool,
}

/// How commands are run by somebody who is not root.
const AS_NOBODY: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// A little disk, where the system lets one be mounted.
fn mount(folder: &Path, size: &str) -> bool {
    let options = format!("size={size}");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]);
    let done = mount.arg(folder).output();
    done.is_ok_and(|done| done.status.success())
}

impl Rig {
    pub fn new() -> Self {
        Self::with("echo \"m=$(cat x)\"\n", &[])
    }

    /// One with another measurement and more files.
    pub fn with(run: &str, files: &[(&str, &str)]) -> Self {
        let rig = Self::empty();
        fs::create_dir(rig.repository()).unwrap();
        rig.furnish(run, files);
        rig
    }

    /// One whose repository, the store with it, is on a little disk; none where nothing can be mounted.
    pub fn on_a_disk(size: &str, run: &str) -> Option<Self> {
        let mut rig = Self::empty();
        fs::create_dir(rig.repository()).unwrap();
        rig.on_disk = mount(&rig.repository(), size);
        rig.on_disk.then(|| {
            rig.furnish(run, &[]);
            rig
        })
    }

    /// One whose commands are not run by root; none where that can't be had.
    pub fn of_nobody() -> Option<Self> {
        let mut rig = Self::new();
        if !rustix::process::geteuid().is_root() {
            return Some(rig);
        }
        let mut given = Command::new("chown");
        given.arg("-R").arg("65534:65534").arg(rig.folder.path());
        let is_given = given.status().is_ok_and(|status| status.success());
        let mut runs = Command::new(AS_NOBODY[0]);
        runs.args(&AS_NOBODY[1..]);
        runs.args(["test", "-x", env!("CARGO_BIN_EXE_loopwright")]);
        rig.as_nobody = is_given && runs.status().is_ok_and(|status| status.success());
        rig.as_nobody.then_some(rig)
    }

    fn furnish(&self, run: &str, files: &[(&str, &str)]) {
        self.write("x", "10\n");
        self.write("run.sh", run);
        for (name, text) in files {
            self.write(name, text);
        }
        self.init(&[]);
        self.commit_all("start");
    }

    /// Fills the disk of the repository but for so many bytes.
    pub fn fill_disk(&self, left_bytes: u64) {
        let disk = rustix::fs::statvfs(self.repository()).unwrap();
        let bytes = (disk.f_bavail * disk.f_frsize).saturating_sub(left_bytes);
        let filler = vec![7; usize::try_from(bytes).unwrap()];
        fs::write(self.filler(), filler).unwrap();
    }

    /// Makes room on it again.
    pub fn free_disk(&self) {
        // The run may have come to its end before anything filled it.
        let _ = fs::remove_file(self.filler());
    }

    /// The file that fills the disk; no work tree shows it.
    fn filler(&self) -> PathBuf {
        self.repository().join(".git/filler")
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
            on_disk: false,
            as_nobody: false,
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
        let mut command = Command::new(if self.as_nobody {
            AS_NOBODY[0]
        } else {
            program
        });
        if self.as_nobody {
            command.args(&AS_NOBODY[1..]).arg(program);
        }
        let (home, config) = (self.folder.path(), self.path("gitconfig"));
        make_hermetic(&mut command, home, &config, &self.path("work"))
            .args(arguments)
            .current_dir(self.working_directory())
            .env("OUTSIDE", home)
            .env("DISK", self.repository());
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
        self.tool(arguments).output().unwrap()
    }

    /// The refusal it must end with, by this exit code.
    pub fn refusal(&self, code: i32, arguments: &[&str]) -> String {
        let done = self.try_loopwright(arguments);
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(code), "{arguments:?}: {words}");
        words
    }

    /// The command that makes so many trials with this proposal.
    pub fn run(&self, propose: &str, trials: &str, more: &[&str]) -> Command {
        let mut command = self.tool(&["run", "--run", "sh run.sh", "--metric", "m"]);
        command.args(["--goal", "min", "--propose", propose, "--trials", trials]);
        command.args(more);
        command
    }

    /// The binary under test.
    pub fn tool(&self, arguments: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_loopwright"), arguments)
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
        self.await_no_process("killed");
    }

    /// Waits until no process of its commands is left.
    pub fn await_no_process(&self, when: &str) {
        let mark = format!("OUTSIDE={}", self.folder.path().display());
        await_no_process_with(&mark, when);
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

impl Drop for Rig {
    fn drop(&mut self) {
        if self.on_disk {
            let _ = Command::new("umount")
                .arg("-l")
                .arg(self.repository())
                .status();
        }
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
