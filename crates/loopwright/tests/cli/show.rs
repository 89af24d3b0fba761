//! `show`.

use crate::support::Rig;

#[test]
fn a_kept_trial_is_shown_whole() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["show", "5"]).normal());
}

#[test]
fn a_failed_trial_is_shown_with_its_output() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["show", "3"]).normal());
}

#[test]
fn as_json_it_is_one_object() {
    let rig = Rig::after_six_trials();
    let stdout = rig.run(&["show", "5", "--json"]).success();
    let row: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(row["value"], 8.0);
    assert_eq!(row["candidate"]["paths"][0], "n");
    assert_eq!(row["commands"][0]["effect"], "t5/propose");
    assert!(
        row["commands"][0]["ran"]["tail"]
            .as_str()
            .unwrap()
            .contains("two less")
    );
}

#[test]
fn a_trial_that_is_not_there_is_refused() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["show", "42"]).normal());
}
