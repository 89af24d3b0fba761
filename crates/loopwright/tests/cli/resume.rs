//! `resume`.

use crate::support::{LOOP, Rig};

#[test]
fn a_killed_run_does_the_trials_it_had_left() {
    let rig = Rig::after_six_trials();
    let mut child = rig.start(&["run", "--trials", "2"]);
    rig.wait_for_proposal(7);
    child.kill().unwrap();
    let _ = rig.finish(child);
    rig.let_go();
    let outcome = rig.run(&["resume"]);
    assert!(
        outcome.stdout.contains("trial   7") && outcome.stdout.contains("trial   8"),
        "{outcome:?}"
    );
    assert!(!outcome.stdout.contains("trial   9"), "{outcome:?}");
    let shown = rig.run(&["show", "7"]).success();
    assert!(
        shown.contains("attempt 1 of t7/propose was cut off when its host died"),
        "{shown}"
    );
    let _ = outcome.success();
}

#[test]
fn a_run_that_came_to_its_end_has_nothing_left() {
    let rig = Rig::new();
    let _ = rig.run(&["run", "--trials", "2"]).success();
    let before = rig.run(&["log", "--json"]).success();
    let outcome = rig.run(&["resume"]);
    assert!(
        outcome
            .stderr
            .contains("nothing is left to do: 2 trials done")
            && outcome.stderr.contains("loopwright resume --trials N"),
        "{outcome:?}"
    );
    assert_eq!(outcome.success(), "");
    assert_eq!(rig.run(&["log", "--json"]).success(), before);
    let stdout = rig.run(&["resume", "--trials", "1"]).success();
    assert!(stdout.contains("trial   3"), "{stdout}");
}

#[test]
fn the_run_goes_on_with_what_it_pinned() {
    let rig = Rig::new();
    let _ = rig.run(&["run"]).success();
    rig.write("loopwright.toml", "[loop.speed]\nrun = \"false\"\n");
    rig.write("n", "50\n");
    rig.commit_all();
    let stdout = rig.run(&["resume", "--trials", "1"]).success();
    assert!(stdout.contains("[-] trial   2           9.5"), "{stdout}");
}

#[test]
fn another_metric_is_another_loop() {
    let rig = Rig::new();
    let _ = rig.run(&["run"]).success();
    insta::assert_snapshot!(rig.run(&["resume", "--metric", "other"]).normal());
}

#[test]
fn nothing_to_go_on_with_is_refused() {
    let rig = Rig::new();
    insta::assert_snapshot!(rig.run(&["resume"]).normal());
}

/// A loop that asks about proposals whose outcome is unknown, killed in the seventh.
fn killed_and_asking() -> Rig {
    let rig = Rig::after_six_trials();
    rig.write(
        "loopwright.toml",
        &format!("{LOOP}on_unknown = {{ proposer = \"ask\" }}\n"),
    );
    rig.commit_all();
    let mut child = rig.start(&["run", "--trials", "2"]);
    rig.wait_for_proposal(7);
    child.kill().unwrap();
    let _ = rig.finish(child);
    rig.let_go();
    rig
}

#[test]
fn a_run_that_asks_waits_for_an_answer_and_goes_on_with_it() {
    let rig = killed_and_asking();
    for _ in 0..2 {
        let asked = rig.run(&["resume"]).failure(8);
        assert!(
            asked.contains("it waits for you: the outcome of t7/propose is unknown: do it again")
                && asked.contains("next: loopwright resume --unknown retry")
                && asked.contains("--unknown fail"),
            "{asked}"
        );
    }
    let outcome = rig.run(&["resume", "--unknown", "retry"]);
    assert!(
        outcome.stdout.contains("trial   7") && outcome.stdout.contains("trial   8"),
        "{outcome:?}"
    );
    assert!(!outcome.stdout.contains("trial   9"), "{outcome:?}");
    let _ = outcome.success();
    let words = rig.run(&["resume", "--unknown", "retry"]).failure(2);
    assert!(words.contains("nothing waits for an answer"), "{words}");
    let _ = rig.run(&["replay"]).success();
}

/// The answer may also come with the first resume after the crash.
#[test]
fn an_answer_may_count_the_trial_as_failed() {
    let rig = killed_and_asking();
    let outcome = rig.run(&["resume", "--unknown", "fail"]);
    assert!(outcome.stdout.contains("trial   8"), "{outcome:?}");
    assert!(!outcome.stdout.contains("trial   9"), "{outcome:?}");
    let _ = outcome.success();
    let shown = rig.run(&["show", "7"]).success();
    assert!(
        shown.contains("the outcome of t7/propose is unknown"),
        "{shown}"
    );
    let _ = rig.run(&["replay"]).success();
}
