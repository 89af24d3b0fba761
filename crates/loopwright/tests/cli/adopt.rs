//! `adopt`.

use crate::support::Rig;

#[test]
fn the_loops_branch_comes_to_the_users() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["adopt"]).normal());
    assert_eq!(rig.read("n"), "8\n");
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    let again = rig.run(&["adopt"]).success();
    assert_eq!(again, "main has loopwright/speed/main already\n");
    // Both acts are in the record, and it holds.
    let _ = rig.run(&["verify"]).success();
    let _ = rig.run(&["replay"]).success();
}

#[test]
fn one_trial_becomes_one_commit() {
    let rig = Rig::new();
    let _ = rig.run(&["run"]).success();
    let before = rig.git(&["rev-list", "--count", "HEAD"]);
    let said = rig.run(&["adopt", "1"]).success();
    assert!(
        said.starts_with("main has trial 1 now, as commit "),
        "{said}"
    );
    assert_eq!(rig.read("n"), "9\n");
    let after = rig.git(&["rev-list", "--count", "HEAD"]);
    let number = |text: &str| text.trim().parse::<u64>().unwrap();
    assert_eq!(number(&after), number(&before) + 1);
}

#[test]
fn what_conflicts_changes_nothing() {
    let rig = Rig::after_six_trials();
    rig.write("n", "12\n");
    rig.commit_all();
    let head = rig.git(&["rev-parse", "HEAD"]);
    insta::assert_snapshot!(rig.run(&["adopt"]).normal());
    assert_eq!(rig.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
}

#[test]
fn nothing_is_adopted_of_a_trial_without_a_change() {
    let rig = Rig::after_six_trials();
    assert!(
        rig.run(&["adopt", "4"])
            .failure(2)
            .contains("trial 4 left no change to adopt")
    );
}
