//! `replay`.

use crate::support::Rig;

#[test]
fn every_decision_comes_out_as_it_was_recorded() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["replay"]).normal());
    let status = rig.status().unwrap();
    let replayed = rig.run(&["replay", "--json"]).success();
    let replayed: serde_json::Value = serde_json::from_str(&replayed).unwrap();
    assert_eq!(replayed["decisions"], status["decisions"]);
    assert_eq!(replayed["difference"], serde_json::Value::Null);
}
