//! A repository with a loop of known outcome, and the commands that drive it.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{await_that, make_hermetic};

/// How many trials the loop has: a keep, a rejection, a failure, a keep, a duplicate.
pub const TRIALS: u64 = 5;

/// A proposal waits while the file that holds it up is there.
/// What it is told is put aside whole, once for each attempt.
const PROPOSE: &str = r#"echo "begin propose $LOOPWRIGHT_TRIAL" >> "$LEDGER"
brief="$LEDGER.brief-$LOOPWRIGHT_TRIAL-$(grep -c "^begin propose $LOOPWRIGHT_TRIAL\$" "$LEDGER")"
cat "$LOOPWRIGHT_BRIEF" "$LOOPWRIGHT_BRIEF_MARKDOWN" > "$brief.new"; mv "$brief.new" "$brief"
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

/// A measurement prints more than the record itself holds, and may have bad luck.
const RUN: &str = r#"echo "begin run $(cat x)" >> "$LEDGER"
if [ -e "$LEDGER.bad-luck" ] && [ "$(cat x)" != 10 ]; then exit 1; fi
printf '%06000d\n' "$(cat x)"
echo "m=$(cat x)"
echo "end run $(cat x)" >> "$LEDGER"
"#;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A fresh repository with everything round it.
pub struct Bench {
    folder: tempfile::TempDir,
    pub mark: String,
    pub before: String,
    pub in_place: bool,
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
        let (home, config) = (self.folder.path(), self.path("gitconfig"));
        make_hermetic(&mut command, home, &config, &self.path("work"))
            .args(arguments)
            .current_dir(self.repository())
            .env("LEDGER", self.path("ledger"))
            .env("MARK", &self.mark)
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
        let calls = "trace=fsync,fdatasync,openat,rename,renameat,renameat2,link,linkat,pwrite64";
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

    /// What a user types after anything: no git command, no repair, no counting what is left.
    pub fn next_command(&self) -> Command {
        if self.has_run() {
            self.loopwright(&["resume"])
        } else {
            self.first_run()
        }
    }

    /// Goes on as a user would, to the end.
    pub fn go_on(&self, plan: &str) {
        let done = self.next_command().output().unwrap();
        assert!(
            done.status.success(),
            "{plan}: going on ended with {}\n{}",
            done.status,
            String::from_utf8_lossy(&done.stderr)
        );
    }

    /// Whether anything was ever recorded.
    pub fn has_run(&self) -> bool {
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
}

pub fn names(folder: &Path) -> Vec<String> {
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
