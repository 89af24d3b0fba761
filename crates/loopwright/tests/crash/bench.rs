//! A repository with a loop of known outcome, and what must hold after whatever was done to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loopwright_core::ids::LoopName;
use loopwright_record::{Journal as _, OpenMode, Store};
use serde_json::Value;

/// How many trials the loop has: a keep, a rejection, a failure, a keep, a duplicate.
pub const TRIALS: u64 = 5;

/// A proposal waits while the file that holds it up is there.
const PROPOSE: &str = r#"echo "begin propose $LOOPWRIGHT_TRIAL" >> "$LEDGER"
while [ -e "$LEDGER.hold-$LOOPWRIGHT_TRIAL" ]; do sleep 0.02; done
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
    in_place: bool,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(false)
    }

    /// One whose loop works in the user's own checkout.
    pub fn in_place() -> Self {
        Self::with(true)
    }

    fn with(in_place: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("loopwright-crash-{}-{number}", std::process::id());
        let mut bench = Self {
            folder,
            mark,
            before: String::new(),
            in_place,
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

    pub fn repository(&self) -> PathBuf {
        self.path("repository")
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
            .env("LEDGER", self.path("ledger"))
            .env("MARK", &self.mark)
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    pub fn loopwright(&self, arguments: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_loopwright"), arguments)
    }

    pub fn first_run(&self) -> Command {
        self.run_of(TRIALS)
    }

    /// The command that starts the loop with so many trials.
    pub fn run_of(&self, trials: u64) -> Command {
        let trials = trials.to_string();
        let mut command = self.loopwright(&[
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
        ]);
        if self.in_place {
            command.arg("--in-place");
        }
        command
    }

    /// Holds the proposal of a trial up until [`let_go`](Self::let_go).
    pub fn hold(&self, trial: u64) {
        fs::write(self.path(&format!("ledger.hold-{trial}")), "").unwrap();
    }

    /// Lets the proposal of a trial go on.
    pub fn let_go(&self, trial: u64) {
        fs::remove_file(self.path(&format!("ledger.hold-{trial}"))).unwrap();
    }

    /// What the commands of the loop have written.
    pub fn ledger(&self) -> String {
        fs::read_to_string(self.path("ledger")).unwrap_or_default()
    }

    /// Waits until the ledger has the line so many times.
    pub fn await_line(&self, line: &str, times: usize) {
        await_that(&format!("{line:?} in the ledger"), || {
            self.ledger().lines().filter(|found| *found == line).count() >= times
        });
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

    /// Runs the loop under `strace`, which writes the calls that matter for syncs to `trace`.
    pub fn run_traced(&self, trace: &Path) {
        let binary = env!("CARGO_BIN_EXE_loopwright");
        let calls = "trace=fsync,fdatasync,rename,renameat,renameat2,link,linkat,pwrite64";
        let done = self
            .command(
                "strace",
                &[
                    "-f",
                    "-y",
                    "-s",
                    "8192",
                    "-e",
                    calls,
                    "-o",
                    trace.to_str().unwrap(),
                    binary,
                ],
            )
            .args([
                "run",
                "--run",
                "sh run.sh",
                "--metric",
                "m",
                "--goal",
                "min",
            ])
            .args(["--propose", "sh propose.sh", "--trials", "1"])
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    /// Runs the loop and kills it as soon as its commands have written so many lines.
    pub fn kill_after(&self, lines: usize) {
        let mut command = self.first_run();
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let written = || self.ledger().lines().count();
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
        let ledger = self.ledger();
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
        self.check_attempts(plan);
        let branch = if self.in_place {
            "main"
        } else {
            "loopwright/default/main"
        };
        let kept = self
            .command("git", &["log", "--format=%s", branch])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(kept.stdout).unwrap(),
            "loopwright: m 4 (was 5)\nloopwright: m 5 (was 10)\nstart\n",
            "{plan}: the loop's branch"
        );
        self.await_no_process(plan);
        let running = self.repository().join(".git/loopwright/running");
        let left = fs::read_dir(running).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{plan}: commands are noted as running");
    }

    /// No command began more often than the record has attempts at its effect, and every effect
    /// was settled once at most: what was settled was never done again.
    fn check_attempts(&self, plan: &str) {
        let store = Store::open(&self.repository().join(".git/loopwright"), OpenMode::Read);
        let store = store.unwrap();
        let name = LoopName::new("default").unwrap();
        let run = store.latest_run(&name).unwrap().unwrap().run;
        let mut attempts: BTreeMap<String, u32> = BTreeMap::new();
        let mut settled = BTreeSet::new();
        for batch in store.batches(&run, 0).unwrap() {
            for sealed in batch.unwrap().events {
                let event = sealed.event;
                let Some(effect) = event.effect else {
                    continue;
                };
                let most = attempts.entry(effect.as_str().to_owned()).or_default();
                *most = (*most).max(event.attempt.unwrap_or(1));
                if event.kind == "effect.settled" {
                    assert!(
                        settled.insert(effect.clone()),
                        "{plan}: {effect} settled twice"
                    );
                }
            }
        }
        let ledger = self.ledger();
        for trial in 1..=TRIALS {
            let line = format!("begin propose {trial}");
            let begun = ledger.lines().filter(|found| *found == line).count();
            let most = attempts.get(&format!("t{trial}/propose")).copied();
            assert!(
                begun <= most.unwrap_or(0) as usize,
                "{plan}: {line}: {begun} times, attempts {attempts:?}"
            );
        }
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
            .filter(|line| !self.in_place || !line.starts_with("refs/heads/main "))
            .collect();
        let read = |name: &str| fs::read_to_string(self.repository().join(name)).unwrap();
        let mut hooks: Vec<_> = names(&self.repository().join(".git/hooks"));
        hooks.sort();
        // In place, the loop is there to change it.
        let x = if self.in_place {
            String::new()
        } else {
            read("x")
        };
        format!(
            "{refs:?} {hooks:?} {} {} {x} {:?}",
            read(".git/config"),
            read(".git/HEAD"),
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

pub fn child_ended(child: &mut std::process::Child) -> bool {
    matches!(child.try_wait(), Ok(Some(_)))
}

/// The signal that ended it.
pub fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Waits until something holds.
pub fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
