//! `resume`.

use crate::support::Rig;

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
