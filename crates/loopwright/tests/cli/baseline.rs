//! `baseline`.

use crate::support::Rig;

#[test]
fn the_baseline_is_measured_alone() {
    let rig = Rig::new();
    insta::assert_snapshot!(rig.run(&["baseline"]).normal());
}

#[test]
fn a_baseline_that_cannot_be_measured_says_so() {
    let rig = Rig::new();
    rig.write("bench.sh", "echo no metric here; exit 0\n");
    rig.commit_all();
    insta::assert_snapshot!(rig.run(&["baseline"]).normal());
}

#[test]
fn no_proposer_is_needed() {
    let rig = Rig::new();
    let flags = [
        "baseline",
        "--loop",
        "x",
        "--run",
        "sh bench.sh",
        "--metric",
        "m",
        "--goal",
        "min",
    ];
    assert!(rig.run(&flags).success().contains("(baseline)"));
}
