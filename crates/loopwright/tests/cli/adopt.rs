//! `adopt`.

use crate::common::await_that;
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
fn a_result_is_adopted_while_the_loop_goes_on() {
    let rig = Rig::after_six_trials();
    let driver = rig.start(&["run", "--trials", "2"]);
    rig.wait_for_proposal(7);
    let adopted = rig.run(&["adopt"]);
    assert!(
        adopted.stderr.contains("the loop is being driven"),
        "{adopted:?}"
    );
    assert_eq!(adopted.code, 0);
    assert_eq!(rig.read("n"), "8\n");
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    rig.let_go();
    assert_eq!(rig.finish(driver).code, 0);
    let _ = rig.run(&["verify"]).success();
    let _ = rig.run(&["replay"]).success();
}

#[test]
fn nothing_is_adopted_while_somebody_works_in_the_checkout() {
    let rig = Rig::after_six_trials();
    let driver = rig.start(&[
        "run",
        "--loop",
        "other",
        "--in-place",
        "--run",
        "sh bench.sh",
        "--metric",
        "m",
        "--goal",
        "min",
        "--propose",
        "while [ ! -e \"$LET/go\" ]; do sleep 0.02; done",
    ]);
    await_that("the checkout is taken", || {
        let status = rig.run(&["status", "--json", "--loop", "other"]).stdout;
        status.contains("t1/propose")
    });
    let stderr = rig.run(&["adopt", "--loop", "speed"]).failure(6);
    assert!(stderr.contains("this checkout"), "{stderr}");
    assert_eq!(rig.read("n"), "10\n");
    rig.let_go();
    assert_eq!(rig.finish(driver).code, 0);
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
