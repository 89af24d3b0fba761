//! A fresh repository in which `x` holds 10 and the measurement says so, in an environment of its
//! own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The repository, and all that stands round it.
pub struct Rig {
    folder: tempfile::TempDir,
    /// The repository is on a little disk of its own.
    on_disk: bool,
}

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
        let rig = Self {
            folder: tempfile::tempdir().unwrap(),
            on_disk: false,
        };
        fs::create_dir(rig.repository()).unwrap();
        rig.furnish(run, files);
        rig
    }

    /// One whose repository, the store with it, is on a little disk; none where nothing can be mounted.
    pub fn on_a_disk(size: &str, run: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("repository")).unwrap();
        let on_disk = mount(&folder.path().join("repository"), size);
        let rig = on_disk.then_some(Self { folder, on_disk })?;
        rig.furnish(run, &[]);
        Some(rig)
    }

    fn furnish(&self, run: &str, files: &[(&str, &str)]) {
        let rig = self;
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
            .env("DISK", self.repository())
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
