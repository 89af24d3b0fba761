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

#[test]
fn a_used_up_budget_names_the_flag_and_can_be_raised() {
    let rig = Rig::new();
    let poor = rig.run(&["run", "--budget-steps", "1", "--trials", "9"]);
    let words = poor.failure(5);
    assert!(
        words.contains("the budget of steps is used up: nothing is left of 1")
            && words.contains("next: loopwright resume --budget-steps N"),
        "{words}"
    );
    // Said again it is no other.
    let again = rig.run(&["resume"]).failure(5);
    assert!(!again.contains("the loop's budget:"), "{again}");
    let raised = rig.run(&["resume", "--budget-steps", "2"]);
    assert!(raised.stdout.contains("trial   2"), "{raised:?}");
    let words = raised.failure(5);
    assert!(words.contains("the loop's budget: steps 1 -> 2"), "{words}");
    // It holds from then on, and `run` raises it as well.
    let held = rig.run(&["resume"]).failure(5);
    assert!(held.contains("nothing is left of 2"), "{held}");
    let outcome = rig.run(&["run", "--budget-steps", "100", "--trials", "1"]);
    assert!(outcome.stdout.contains("trial   3"), "{outcome:?}");
    assert_eq!(rig.status().unwrap()["budget"]["limits"]["steps"], 100);
    let _ = outcome.success();
    let _ = rig.run(&["replay"]).success();
    let _ = rig.run(&["verify"]).success();
}

#[test]
fn a_setup_that_may_not_fit_the_budget_of_time_is_not_begun() {
    let rig = Rig::new();
    let words = rig
        .run(&[
            "run",
            "--setup",
            "touch made",
            "--setup-limit",
            "2s",
            "--run-limit",
            "1s",
            "--budget-time",
            "2s",
        ])
        .failure(5);
    assert!(
        words.contains(
            "the budget of time has 2s left of 2s, and t0/measure/incumbent/1 may need 3s"
        ) && words.contains("next: loopwright resume --budget-time TIME"),
        "{words}"
    );
}

#[test]
fn limits_that_nobody_could_keep_are_refused_before_anything_is_spent() {
    let rig = Rig::new();
    for (flag, value, key) in [
        ("--budget-tokens", "1", "budget.tokens"),
        ("--budget-money", "0.01 USD", "budget.money"),
    ] {
        for command in ["run", "baseline"] {
            let words = rig.run(&[command, flag, value]).failure(2);
            assert!(
                words.contains(&format!("{key} can't be kept"))
                    && words.contains("--budget-steps N"),
                "{words}"
            );
        }
    }
    assert!(rig.status().is_none());
    let _ = rig.run(&["run"]).success();
    let _ = rig
        .run(&["resume", "--budget-tokens", "1", "--trials", "1"])
        .failure(2);
}

#[test]
fn each_branch_of_a_loop_gets_a_branch_of_git() {
    let rig = Rig::new();
    let run = |branch: &str| {
        let propose = "echo $(($(cat n) - 1)) > n; echo $LOOPWRIGHT_TRIAL > t";
        rig.run(&[
            "run",
            "--branch",
            branch,
            "--propose",
            propose,
            "--trials",
            "1",
        ])
    };
    let of_git = |branch: &str| rig.git(&["show", &format!("loopwright/speed/{branch}:n")]);
    let first = run("main");
    assert!(
        first.stderr.contains("next: loopwright adopt\n"),
        "{first:?}"
    );
    let other = run("other");
    assert!(
        !other.stdout.contains("the branch was not moved"),
        "{other:?}"
    );
    let next = "next: loopwright adopt --branch other\n";
    assert!(other.stderr.contains(next), "{other:?}");
    // It begins where the loop stood, and goes on from its own.
    assert_eq!([of_git("main"), of_git("other")], ["9\n", "8\n"]);
    let _ = run("other").success();
    let _ = run("main").success();
    assert_eq!([of_git("main"), of_git("other")], ["8\n", "7\n"]);
    // With another harness nothing is compared: the loop goes on from where it stands, and `other`
    // begins once more from there, in the branch that is there.
    rig.write("bench.sh", "echo m=$(cat n) # new\n");
    rig.commit_all();
    for (branch, n) in [("main", "7\n"), ("other", "6\n")] {
        let outcome = run(branch);
        assert!(
            !outcome.stdout.contains("the branch was not moved"),
            "{outcome:?}"
        );
        assert_eq!(of_git(branch), n);
    }
    let _ = rig.run(&["adopt", "--branch", "other"]).success();
    assert_eq!(rig.read("n"), "6\n");
}
