//! `diff`.

use crate::support::Rig;

#[test]
fn a_rejected_trials_patch_applies_to_what_it_was_made_from() {
    let rig = Rig::after_six_trials();
    let patch = rig.run(&["diff", "2"]).success();
    // Trial 2 was made from what trial 1 had made.
    rig.write("n", "9\n");
    std::fs::write(rig.root().join("trial.patch"), patch).unwrap();
    rig.git(&["apply", "../trial.patch"]);
    assert_eq!(rig.read("n"), "9.5\n");
}

#[test]
fn how_much_changed_is_shown() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["diff", "2", "--stat"]).normal());
}

#[test]
fn a_trial_without_a_change_has_no_patch() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["diff", "4"]).normal());
}
