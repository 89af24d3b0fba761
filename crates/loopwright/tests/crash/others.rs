//! SIGKILL while something else than a plain run is driven: a baseline, a retry, an adoption.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::bench::{Bench, signal};

const BASELINE: &[&str] = &[
    "baseline",
    "--run",
    "sh run.sh",
    "--metric",
    "m",
    "--goal",
    "min",
    "--propose",
    "sh propose.sh",
];

/// The crash points that a command passes, each with its first and its last pass.
fn plans_of(bench: &Bench, arguments: &[&str]) -> Vec<String> {
    let log = bench.path("points");
    let done = bench
        .loopwright(arguments)
        .env("LOOPWRIGHT_CRASH_LOG", &log)
        .output()
        .unwrap();
    expect_success(&done);
    let mut plans = Vec::new();
    let text = fs::read_to_string(&log).unwrap();
    let mut points: Vec<&str> = text.lines().collect();
    points.sort_unstable();
    for passes in points.chunk_by(|one, other| one == other) {
        plans.push(format!("{}:1:group", passes[0]));
        if passes.len() > 1 {
            plans.push(format!("{}:{}", passes[0], passes.len()));
        }
    }
    assert!(plans.len() >= 5, "{plans:?}");
    plans
}

fn expect_success(done: &Output) {
    let words = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {words}", done.status);
}

fn killed(bench: &Bench, arguments: &[&str], plan: &str) {
    let done = bench
        .loopwright(arguments)
        .env("LOOPWRIGHT_CRASH", plan)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&done.stderr);
    assert_eq!(
        signal(done.status),
        Some(9),
        "{arguments:?} {plan}: {words}"
    );
    bench.await_no_process(plan);
}

/// How often the ledger has a line that begins so.
fn begun(bench: &Bench, what: &str) -> usize {
    let ledger = bench.ledger();
    ledger.lines().filter(|line| line.starts_with(what)).count()
}

#[test]
fn a_baseline_killed_at_any_point_is_measured_and_nothing_more() {
    let calm = Bench::new();
    let plans = plans_of(&calm, BASELINE);
    let expected = calm.decisions();
    for plan in plans {
        let bench = Bench::new();
        killed(&bench, BASELINE, &plan);
        let next = if bench.has_run() {
            &["resume"]
        } else {
            BASELINE
        };
        expect_success(&bench.loopwright(next).output().unwrap());
        assert_eq!(bench.decisions(), expected, "{plan}");
        assert_eq!(bench.trials(), [0], "{plan}");
        assert_eq!(begun(&bench, "begin propose"), 0, "{plan}");
        assert!(
            begun(&bench, "begin run") <= 2,
            "{plan}: {}",
            bench.ledger()
        );
        bench.check_untouched(&plan);
    }
}

/// Two trials that failed by bad luck; the first would reach the target.
fn unlucky() -> Bench {
    let bench = Bench::new();
    fs::write(bench.path("ledger.bad-luck"), "").unwrap();
    let done = bench.run_of(2).args(["--target", "7"]).output().unwrap();
    expect_success(&done);
    fs::remove_file(bench.path("ledger.bad-luck")).unwrap();
    bench
}

#[test]
fn a_retry_killed_at_any_point_is_done_once() {
    let calm = unlucky();
    let before = begun(&calm, "begin");
    let plans = plans_of(&calm, &["retry", "1"]);
    let expected = calm.decisions();
    // The first time, the retried trial with its repeat, and its confirmation.
    assert_eq!(begun(&calm, "begin run 5"), 4, "{}", calm.ledger());
    let once = begun(&calm, "begin") - before;
    for plan in plans {
        let bench = unlucky();
        killed(&bench, &["retry", "1"], &plan);
        let decided_before = bench.trials().len() == 4;
        // Whether it had begun is told by the record; the ends of the two before are the same.
        let begun_before = bench.invocations() == 2;
        let next = if begun_before {
            &["resume"][..]
        } else {
            &["retry", "1"]
        };
        expect_success(&bench.loopwright(next).output().unwrap());
        assert_eq!(bench.decisions(), expected, "{plan}");
        assert_eq!(bench.trials(), [0, 1, 2, 3], "{plan}");
        assert_eq!(begun(&bench, "begin propose"), 2, "{plan}");
        let commands = begun(&bench, "begin") - before;
        assert!(commands <= once + 1, "{plan}: {}", bench.ledger());
        if decided_before {
            // Only what comes after its decision was left.
            let runs = begun(&bench, "begin run 5");
            assert!(runs <= 5, "{plan}: {}", bench.ledger());
        }
        bench.check_untouched(&plan);
    }
}

fn adopted(bench: &Bench, arguments: &[&str], plan: &str) {
    expect_success(&bench.loopwright(arguments).output().unwrap());
    let git = |arguments: &[&str]| {
        let done = bench.command("git", arguments).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    assert_eq!(git(&["show", "main:x"]), "5\n", "{plan}");
    assert_eq!(git(&["status", "--porcelain"]), "", "{plan}");
    assert_eq!(git(&["rev-list", "--count", "main"]), "2\n", "{plan}");
    bench.output(&["verify"]);
    bench.output(&["replay"]);
    bench.await_no_process(plan);
}

#[test]
fn an_adoption_killed_at_any_point_is_done_by_the_next() {
    for arguments in [&["adopt"][..], &["adopt", "1"]] {
        let calm = Bench::new();
        expect_success(&calm.run_of(1).output().unwrap());
        let plans = plans_of(&calm, arguments);
        adopted(&calm, arguments, "undisturbed");
        for plan in plans {
            let bench = Bench::new();
            expect_success(&bench.run_of(1).output().unwrap());
            killed(&bench, arguments, &plan);
            adopted(&bench, arguments, &plan);
        }
    }
}

/// In the middle of git's own commit, while a hook of the user's runs.
#[test]
fn an_adoption_killed_while_git_commits_is_done_by_the_next() {
    let bench = Bench::new();
    expect_success(&bench.run_of(1).output().unwrap());
    let hook = bench.repository().join(".git/hooks/pre-commit");
    let wait = "#!/bin/sh\necho hook >> \"$LEDGER\"; while [ -e \"$LEDGER.hold-9\" ]; do sleep 0.02; done\n";
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, wait).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    bench.hold(9);
    let mut child = bench
        .loopwright(&["adopt", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    bench.await_line("hook", 1);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process_group(pid, Signal::KILL).unwrap();
    child.wait().unwrap();
    bench.let_go(9);
    bench.await_no_process("killed while git commits");
    adopted(&bench, &["adopt", "1"], "killed while git commits");
}
