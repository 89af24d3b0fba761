//! A repository with a loop of known outcome, and what must hold after whatever was done to it.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How many trials the loop has: a keep, a rejection, a failure, a keep, a duplicate.
pub const TRIALS: u64 = 5;

const PROPOSE: &str = r#"echo "begin propose $LOOPWRIGHT_TRIAL" >> "$LEDGER"
case $LOOPWRIGHT_TRIAL in
1) echo 5 > x ;;
2) echo 7 > x ;;
3) echo "end propose 3" >> "$LEDGER"; exit 3 ;;
4) echo 4 > x ;;
5) echo 7 > x ;;
esac
echo "end propose $LOOPWRIGHT_TRIAL" >> "$LEDGER"
"#;

const RUN: &str = r#"echo "begin run $(cat x)" >> "$LEDGER"
echo "m=$(cat x)"
echo "end run $(cat x)" >> "$LEDGER"
"#;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A fresh repository with everything round it.
pub struct Bench {
    folder: tempfile::TempDir,
    mark: String,
    before: String,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("loopwright-crash-{}-{number}", std::process::id());
        let mut bench = Self {
            folder,
            mark,
            before: String::new(),
        };
        fs::create_dir(bench.repository()).unwrap();
        fs::write(
            bench.path("gitconfig"),
            "[user]\n\tname = A\n\temail = a@example.org\n",
        )
        .unwrap();
        for (name, text) in [("x", "10\n"), ("run.sh", RUN), ("propose.sh", PROPOSE)] {
            fs::write(bench.repository().join(name), text).unwrap();
        }
        for arguments in [
            &["init", "-q", "-b", "main"][..],
            &["add", "-A"],
            &["commit", "-qm", "start"],
        ] {
            assert!(bench.command("git", arguments).status().unwrap().success());
        }
        bench.before = bench.users();
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn repository(&self) -> PathBuf {
        self.path("repository")
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
            .env("LEDGER", self.path("ledger"))
            .env("MARK", &self.mark)
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    fn loopwright(&self, arguments: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_loopwright"), arguments)
    }

    fn first_run(&self) -> Command {
        let trials = TRIALS.to_string();
        self.loopwright(&[
            "run",
            "--run",
            "sh run.sh",
            "--metric",
            "m",
            "--goal",
            "min",
            "--propose",
            "sh propose.sh",
            "--trials",
            &trials,
        ])
    }

    /// Runs the loop with more environment; how it ended, and what it said.
    pub fn run(&self, environment: &[(&str, &str)]) -> (ExitStatus, String) {
        let done = self
            .first_run()
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&done.stdout).into_owned()
            + &String::from_utf8_lossy(&done.stderr);
        (done.status, words)
    }

    /// Runs the loop and kills it as soon as its commands have written so many lines.
    pub fn kill_after(&self, lines: usize) {
        let mut command = self.first_run();
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let written = || {
            fs::read_to_string(self.path("ledger"))
                .unwrap_or_default()
                .lines()
                .count()
        };
        await_that("the commands to come that far", || {
            written() >= lines || child_ended(&mut child)
        });
        let _ = child.kill();
        child.wait().unwrap();
        self.await_no_process("killed");
    }

    /// Goes on as a user would, until all trials are decided: no git command, no repair.
    pub fn go_on(&self, plan: &str) {
        let left = TRIALS
            .saturating_sub(self.trials().into_iter().filter(|trial| *trial > 0).count() as u64);
        let done = if self.has_run() {
            if left == 0 {
                return;
            }
            self.loopwright(&["resume", "--trials", &left.to_string()])
                .output()
                .unwrap()
        } else {
            self.first_run().output().unwrap()
        };
        assert!(
            done.status.success(),
            "{plan}: going on ended with {}\n{}",
            done.status,
            String::from_utf8_lossy(&done.stderr)
        );
    }

    fn has_run(&self) -> bool {
        let done = self.loopwright(&["status", "--json"]).output().unwrap();
        done.status.success() && !done.stdout.trim_ascii().is_empty()
    }

    pub fn output(&self, arguments: &[&str]) -> String {
        let done = self.loopwright(arguments).output().unwrap();
        assert!(
            done.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap()
    }

    /// The digest of all decisions.
    pub fn decisions(&self) -> String {
        let status: Value =
            serde_json::from_str(self.output(&["status", "--json"]).lines().next().unwrap())
                .unwrap();
        status["decisions"].as_str().unwrap().to_owned()
    }

    /// The numbers of the decided trials.
    pub fn trials(&self) -> Vec<u64> {
        let done = self.loopwright(&["log", "--json"]).output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        let number = |line: &str| serde_json::from_str::<Value>(line).ok()?["trial"].as_u64();
        text.lines().filter_map(number).collect()
    }

    /// What must hold at the end; at most `repeats` commands were begun again.
    pub fn check(&self, plan: &str, repeats: usize) {
        assert_eq!(
            self.trials(),
            (0..=TRIALS).collect::<Vec<_>>(),
            "{plan}: trials"
        );
        assert_eq!(
            self.users(),
            self.before,
            "{plan}: something of the user's was touched"
        );
        self.output(&["verify"]);
        self.output(&["replay"]);
        let ledger = fs::read_to_string(self.path("ledger")).unwrap();
        let begun: Vec<&str> = ledger
            .lines()
            .filter(|line| line.starts_with("begin"))
            .collect();
        // Baseline and three measurements, five proposals.
        let once = 4 + TRIALS as usize;
        assert!(
            begun.len() >= once && begun.len() <= once + repeats,
            "{plan}: {begun:?}"
        );
        let kept = self
            .command("git", &["log", "--format=%s", "loopwright/default/main"])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(kept.stdout).unwrap(),
            "loopwright: m 4 (was 5)\nloopwright: m 5 (was 10)\nstart\n",
            "{plan}: the loop's branch"
        );
        self.await_no_process(plan);
        let running = self.repository().join(".git/loopwright/running");
        let left = fs::read_dir(running).map(Iterator::count).unwrap_or(0);
        assert_eq!(left, 0, "{plan}: commands are noted as running");
    }

    /// All that is the user's: configuration, hooks, refs but the loop's, HEAD, files.
    fn users(&self) -> String {
        let git = |arguments: &[&str]| {
            let done = self.command("git", arguments).output().unwrap();
            String::from_utf8(done.stdout).unwrap()
        };
        let refs = git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let refs: Vec<&str> = refs
            .lines()
            .filter(|line| !line.starts_with("refs/heads/loopwright/"))
            .collect();
        let read = |name: &str| fs::read_to_string(self.repository().join(name)).unwrap();
        let mut hooks: Vec<_> = names(&self.repository().join(".git/hooks"));
        hooks.sort();
        format!(
            "{refs:?} {hooks:?} {} {} {} {:?}",
            read(".git/config"),
            read(".git/HEAD"),
            read("x"),
            git(&["status", "--porcelain", "--ignored"])
        )
    }

    /// Waits until no process carries this bench's mark.
    pub fn await_no_process(&self, plan: &str) {
        let mark = format!("MARK={}", self.mark);
        await_that(&format!("{plan}: its processes to be gone"), || {
            names(Path::new("/proc")).iter().all(|name| {
                let environment = fs::read(format!("/proc/{name}/environ")).unwrap_or_default();
                !environment
                    .split(|byte| *byte == 0)
                    .any(|entry| entry == mark.as_bytes())
            })
        });
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn child_ended(child: &mut std::process::Child) -> bool {
    matches!(child.try_wait(), Ok(Some(_)))
}

/// The signal that ended it.
pub fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
