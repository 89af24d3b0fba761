//! A project, its home and its work folders, and the binary run in it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::normal::normal;
use crate::common::{await_that, make_hermetic};

/// A proposer for six trials: better, worse, broken, idle, better, not a number. From the seventh
/// on it waits for the file `go` in the folder `LET`, and then makes a worse change.
const PROPOSE: &str = "\
case $LOOPWRIGHT_TRIAL in
1) echo 9 > n; echo 'one less' ;;
2) echo 9.5 > n ;;
3) echo oops; exit 3 ;;
4) : ;;
5) echo 8 > n; echo 'two less' ;;
6) echo x > n ;;
*) while [ ! -e \"$LET/go\" ]; do sleep 0.02; done; echo 1$LOOPWRIGHT_TRIAL > n ;;
esac
";

/// The loop of most tests.
pub const LOOP: &str = "\
[loop.speed]
run = \"sh bench.sh\"
metric = \"m\"
goal = \"min\"
propose = \"sh propose.sh\"
protect = [\"bench.sh\"]
";

/// What a command did.
#[must_use = "look at it, or assert that it went well"]
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    root: PathBuf,
}

impl Outcome {
    /// Asserts that it went well; gives stdout.
    #[track_caller]
    pub fn success(self) -> String {
        assert_eq!(self.code, 0, "stderr: {}", self.stderr);
        self.stdout
    }

    /// Asserts how it failed; gives stderr.
    #[track_caller]
    pub fn failure(self, code: i32) -> String {
        assert_eq!(
            self.code, code,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self.stderr
    }

    /// Everything about it, comparable.
    pub fn normal(&self) -> String {
        let text = format!(
            "exit: {}\n--- stdout\n{}--- stderr\n{}",
            self.code, self.stdout, self.stderr
        );
        normal(&text, &self.root)
    }
}

/// A folder with a home, work folders and a project.
pub struct Rig {
    root: TempDir,
}

impl Rig {
    /// An empty project: no repository.
    pub fn bare() -> Self {
        let root = TempDir::new().unwrap();
        for name in ["home", "project", "let"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self { root }
    }

    /// A project with a measuring script, a proposer and a loop, committed.
    pub fn new() -> Self {
        let rig = Self::bare();
        rig.write("n", "10\n");
        rig.write("bench.sh", "echo m=$(cat n)\n");
        rig.write("propose.sh", PROPOSE);
        rig.write("loopwright.toml", LOOP);
        rig.commit_all();
        rig
    }

    /// The same after six trials.
    pub fn after_six_trials() -> Self {
        let rig = Self::new();
        let _ = rig.run(&["run", "--trials", "6"]).success();
        rig
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub fn write(&self, path: &str, content: &str) {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.project().join(path)).unwrap()
    }

    /// Lets the trials from the seventh on go.
    pub fn let_go(&self) {
        std::fs::write(self.root.path().join("let/go"), "").unwrap();
    }

    /// Makes a repository where there is none, and commits everything.
    pub fn commit_all(&self) {
        if !self.project().join(".git").exists() {
            self.git(&["init", "--quiet", "--initial-branch=main"]);
            self.git(&["config", "user.name", "A User"]);
            self.git(&["config", "user.email", "user@example.org"]);
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=a commit"]);
    }

    fn prepared(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let (home, work) = (self.root.path().join("home"), self.root.path().join("work"));
        make_hermetic(&mut command, &home, Path::new("/dev/null"), &work)
            .env("LET", self.root.path().join("let"))
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .current_dir(self.project());
        command
    }

    /// Runs git in the project.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = self
            .prepared(Path::new("git"))
            .args(arguments)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The binary with its environment, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.prepared(Path::new(env!("CARGO_BIN_EXE_loopwright")));
        command.args(arguments);
        command
    }

    /// Runs the binary.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.finish(self.start(arguments))
    }

    /// Starts the binary with pipes on both streams.
    pub fn start(&self, arguments: &[&str]) -> Child {
        spawn(&mut self.command(arguments))
    }

    /// Starts another program in the same surroundings.
    pub fn start_as(&self, program: &str, arguments: &[&str]) -> Child {
        spawn(self.prepared(Path::new(program)).args(arguments))
    }

    /// Waits for a child that was started so.
    pub fn finish(&self, child: Child) -> Outcome {
        let output = child.wait_with_output().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
        Outcome {
            code: output.status.code().unwrap_or_else(|| -signal.unwrap_or(0)),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            root: self.root.path().canonicalize().unwrap(),
        }
    }

    /// The status of the loop as JSON; nothing where there is none yet.
    pub fn status(&self) -> Option<serde_json::Value> {
        let outcome = self.run(&["status", "--json"]);
        serde_json::from_str(outcome.stdout.lines().next()?).ok()
    }

    /// Waits until the loop's proposer of `trial` runs.
    pub fn wait_for_proposal(&self, trial: u64) {
        let effect = format!("t{trial}/propose");
        await_that("the proposal runs", || {
            let status = self.status();
            status.is_some_and(|status| status["in_flight"][0][0] == effect.as_str())
        });
    }
}

/// Starts a command with pipes on both streams.
pub fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Sends a signal to a child.
pub fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}
