//! `status`.

use crate::common::await_that;
use crate::support::Rig;

#[test]
fn where_a_loop_stands_is_shown() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["status"]).normal());
}

#[test]
fn as_json_numbers_are_numbers() {
    let rig = Rig::after_six_trials();
    let status = rig.status().unwrap();
    assert_eq!(status["loop"], "speed");
    assert_eq!(status["state"], "idle");
    assert_eq!(status["incumbent"], 8.0);
    assert_eq!(status["baseline"], 10.0);
    assert_eq!(status["counts"]["kept"], 2);
}

#[test]
fn a_run_whose_driver_was_killed_is_interrupted_not_running() {
    let rig = Rig::after_six_trials();
    let mut child = rig.start(&["run", "--trials", "2"]);
    rig.wait_for_proposal(7);
    let shown = rig.run(&["status"]).success();
    assert!(shown.contains("running: "), "{shown}");
    child.kill().unwrap();
    let _ = rig.finish(child);
    await_that("it is interrupted", || {
        rig.status()
            .is_some_and(|status| status["state"] == "interrupted")
    });
    let shown = rig.run(&["status"]).success();
    assert!(
        shown.contains("state      interrupted: ") && shown.contains("was doing  proposing"),
        "{shown}"
    );
    assert!(!shown.contains("running"), "{shown}");
}

#[test]
fn several_loops_are_shown_or_one() {
    let rig = Rig::after_six_trials();
    let flags = [
        "baseline",
        "--loop",
        "other",
        "--run",
        "sh bench.sh",
        "--metric",
        "m",
        "--goal",
        "max",
    ];
    let _ = rig.run(&flags).success();
    let both = rig.run(&["status", "--json"]).success();
    assert_eq!(both.lines().count(), 2);
    let one = rig.run(&["status", "--json", "--loop", "other"]).success();
    assert_eq!(one.lines().count(), 1);
}

#[test]
fn a_refused_start_leaves_nothing_to_show() {
    let rig = Rig::new();
    let before = rig.run(&["status"]);
    let refused = [
        "--loop",
        "other",
        "--protect",
        "nothing/**",
        "--trials",
        "1",
    ];
    rig.run(&[&["run"][..], &refused].concat()).failure(2);
    assert_eq!(rig.run(&["status"]).normal(), before.normal());
}
