//! `run`.

use crate::support::Rig;

#[test]
fn trials_are_shown_as_they_are_decided() {
    let rig = Rig::new();
    let outcome = rig.run(&["run", "--trials", "6"]);
    insta::assert_snapshot!(outcome.normal());
    assert_eq!(rig.read("n"), "10\n");
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    assert_eq!(rig.git(&["show", "loopwright/speed/main:n"]), "8\n");
}

#[test]
fn one_line_without_a_file_is_enough() {
    let rig = Rig::new();
    std::fs::remove_file(rig.project().join("loopwright.toml")).unwrap();
    rig.commit_all();
    let flags = [
        "run",
        "--run",
        "sh bench.sh",
        "--metric",
        "m",
        "--goal",
        "min",
    ];
    let more = ["--propose", "sh propose.sh", "--trials", "1"];
    let stdout = rig.run(&[&flags[..], &more[..]].concat()).success();
    assert!(stdout.contains("[+] trial   1             9"), "{stdout}");
    assert_eq!(rig.git(&["show", "loopwright/default/main:n"]), "9\n");
}

#[test]
fn commands_run_beside_the_file_or_where_the_user_stands() {
    let rig = Rig::bare();
    rig.write("sub/n", "10\n");
    rig.write("sub/bench.sh", "echo m=$(cat n)\n");
    rig.commit_all();
    let flags = [
        "run",
        "--run",
        "sh bench.sh",
        "--metric",
        "m",
        "--goal",
        "min",
    ];
    let more = ["--propose", "echo 9 > n", "-C", "sub"];
    let stdout = rig.run(&[&flags[..], &more[..]].concat()).success();
    assert!(stdout.contains("[+] trial   1"), "{stdout}");
}

#[test]
fn a_reader_that_goes_away_ends_no_run() {
    let rig = Rig::new();
    let mut child = rig.start(&["run", "--trials", "3"]);
    drop(child.stdout.take());
    let outcome = rig.finish(child);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let log = rig.run(&["log"]).success();
    assert!(log.contains("trial   3"), "{log}");
}

#[test]
fn the_end_says_itself_in_the_exit_status() {
    let rig = Rig::new();
    let broken = rig.run(&[
        "run",
        "--loop",
        "b",
        "--run",
        "sh bench.sh; exit 1",
        "--metric",
        "m",
        "--goal",
        "min",
        "--propose",
        "true",
    ]);
    let stderr = broken.failure(3);
    assert!(
        stderr.contains("next: loopwright show 0 --loop b"),
        "{stderr}"
    );
    let idle = rig.run(&[
        "run",
        "--loop",
        "i",
        "--run",
        "sh bench.sh",
        "--metric",
        "m",
        "--goal",
        "min",
        "--propose",
        "true",
        "--trials",
        "9",
        "--give-up-after",
        "2",
    ]);
    assert!(idle.failure(4).contains("gave up: 2 trials in a row"));
    let poor = rig.run(&[
        "run",
        "--loop",
        "p",
        "--run",
        "sh bench.sh",
        "--metric",
        "m",
        "--goal",
        "min",
        "--propose",
        "sh propose.sh",
        "--trials",
        "9",
        "--budget-steps",
        "2",
    ]);
    assert!(poor.failure(5).contains("budget"));
    let reached = rig.run(&[
        "run",
        "--loop",
        "t",
        "--run",
        "sh bench.sh",
        "--metric",
        "m",
        "--goal",
        "min",
        "--propose",
        "sh propose.sh",
        "--trials",
        "9",
        "--target",
        "9",
    ]);
    assert!(
        reached.stderr.contains("target reached"),
        "{}",
        reached.stderr
    );
    assert_eq!(reached.code, 0);
}

#[test]
fn what_the_loop_will_not_see_is_said() {
    let rig = Rig::new();
    rig.write("n", "77\n");
    rig.write("notes.txt", "mine\n");
    let outcome = rig.run(&["run"]);
    assert!(
        outcome
            .stderr
            .contains("will not see: edits of n; untracked notes.txt"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.success().contains("[B] trial   0            10"));
    assert_eq!(rig.read("n"), "77\n");
}

/// A budget can be changed at any time: what is said last holds, and the record says it.
#[test]
fn a_used_up_budget_is_raised_by_saying_another() {
    let rig = Rig::new();
    let run = |steps: &str| {
        let (metric, proposer) = (["--metric", "m"], ["--propose", "sh propose.sh"]);
        let mut args = vec![
            "run",
            "--loop",
            "p",
            "--run",
            "sh bench.sh",
            "--goal",
            "min",
        ];
        args.extend(metric.into_iter().chain(proposer));
        args.extend(["--trials", "9", "--budget-steps", steps]);
        rig.run(&args)
    };
    let trials = |stdout: &str| stdout.matches("trial ").count();
    let first = run("2");
    let more = run("5");
    let same = run("5");
    // The baseline is a line of the first.
    assert_eq!(
        [&first, &more, &same].map(|outcome| trials(&outcome.stdout)),
        [3, 3, 0],
        "{first:?}\n{more:?}\n{same:?}"
    );
    assert!(more.failure(5).contains("0 left of 5"));
    let _ = rig.run(&["replay", "--loop", "p"]).success();
}
