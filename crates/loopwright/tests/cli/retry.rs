//! `retry`.

use crate::support::Rig;

#[test]
fn an_old_change_is_tried_again_as_a_new_trial() {
    let rig = Rig::new();
    let _ = rig.run(&["run", "--trials", "2"]).success();
    let outcome = rig.run(&["retry", "2"]);
    assert!(
        outcome.stdout.contains("trial   3           9.5"),
        "{outcome:?}"
    );
    assert_eq!(outcome.code, 0);
    let shown = rig.run(&["show", "3"]).success();
    assert!(shown.contains("trial 2, tried again"), "{shown}");
}

#[test]
fn what_left_no_change_cannot_be_tried_again() {
    let rig = Rig::after_six_trials();
    let stderr = rig.run(&["retry", "4"]).failure(2);
    assert!(
        stderr.contains("error: trial 4 left no change that could be tried again"),
        "{stderr}"
    );
    let stderr = rig.run(&["retry", "99"]).failure(2);
    assert!(
        stderr.contains("loop speed has no trial 99\nhint: there are trials 0 to 6"),
        "{stderr}"
    );
    assert!(
        rig.run(&["retry", "0"])
            .failure(2)
            .contains("is a baseline")
    );
}

#[test]
fn what_is_kept_is_not_tried_again() {
    let rig = Rig::after_six_trials();
    let stderr = rig.run(&["retry", "1"]).failure(2);
    assert!(
        stderr.contains("error: trial 1 is kept already"),
        "{stderr}"
    );
    let decided = rig.run(&["log", "--json"]).success();
    assert_eq!(decided.lines().count(), 7, "nothing was tried: {decided}");
}

#[test]
fn what_is_in_the_incumbent_is_not_tried_again_under_another_harness() {
    let rig = Rig::after_six_trials();
    // The setup is a part of what judges: another one begins a segment.
    let _ = rig.run(&["baseline", "--setup", "true"]).success();
    let shown = rig.run(&["status"]).success();
    assert!(
        shown.contains("segment 2") || shown.contains("segment    2"),
        "{shown}"
    );
    let decided = || rig.run(&["log", "--json"]).success().lines().count();
    let before = decided();
    let stderr = rig.run(&["retry", "1"]).failure(2);
    assert!(
        stderr.contains("trial 1 is kept already: its change is in the incumbent"),
        "{stderr}"
    );
    assert_eq!(decided(), before, "nothing was tried");
}

#[test]
fn what_is_not_decided_yet_is_not_tried_again() {
    let rig = Rig::after_six_trials();
    let child = rig.start(&["run", "--trials", "1"]);
    rig.wait_for_proposal(7);
    crate::support::send(&child, rustix::process::Signal::INT);
    let _ = rig.finish(child).failure(130);
    let stderr = rig.run(&["retry", "7"]).failure(2);
    assert!(
        stderr
            .contains("error: trial 7 is not decided yet\nhint: go on with it: loopwright resume"),
        "{stderr}"
    );
    rig.let_go();
}
