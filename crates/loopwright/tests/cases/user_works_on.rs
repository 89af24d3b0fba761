//! C20: the user goes on working while the loop runs.

use std::process::Stdio;

use crate::rig::{Rig, run_arguments};

const BRANCH: &str = "loopwright/default/main";

/// Two trials, during which the user works: they are let go on only after it.
fn while_it_runs(rig: &Rig, work: impl FnOnce()) {
    let propose = "touch \"$OUTSIDE/begun\"; while [ ! -e \"$OUTSIDE/go\" ]; do sleep 0.02; done
                   echo $((10 - LOOPWRIGHT_TRIAL)) > x";
    let arguments = run_arguments(propose, &["--trials", "2"]);
    let mut child = rig
        .command(env!("CARGO_BIN_EXE_loopwright"), &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    rig.await_file("begun");
    work();
    let before = rig.users();
    std::fs::write(rig.path("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    before.expect_same(&rig.users(), "while the loop ran");
    assert_eq!(rig.git(&["show", &format!("{BRANCH}:x")]), "8\n");
}

#[test]
fn the_run_goes_on_with_what_it_pinned() {
    let rig = Rig::new();
    while_it_runs(&rig, || {
        rig.write("mine", "of the user\n");
        rig.write("loopwright.toml", "[loop.other]\nrun = \"false\"\n");
        rig.git(&["add", "-A"]);
        rig.git(&["commit", "-qm", "mine"]);
        rig.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
        rig.git(&["checkout", "-qb", "side"]);
        rig.git(&["reflog", "expire", "--expire=now", "--all"]);
        rig.git(&["gc", "-q", "--prune=now"]);
        rig.git(&["worktree", "prune"]);
        rig.write("unsaved", "too\n");
    });
    std::fs::remove_file(rig.repository().join("unsaved")).unwrap();
    rig.loopwright(&["--loop", "default", "verify"]);
    rig.loopwright(&["--loop", "default", "adopt"]);
    assert_eq!(rig.git(&["show", "HEAD:x"]), "8\n");
    assert_eq!(rig.git(&["show", "HEAD:mine"]), "of the user\n");
}

/// The user's branch with two more commits, one of which is about to be rewritten.
fn with_history() -> Rig {
    let rig = Rig::new();
    rig.write("first", "1\n");
    rig.commit_all("first");
    rig.write("second", "2\n");
    rig.commit_all("second");
    rig
}

/// A true rebase: the two commits the loop started from are made anew on another root's child.
fn rebase(rig: &Rig, also: &str) {
    rig.shell(&format!(
        "git checkout -q -b upstream HEAD~2; echo upstream > up; {also}; git add -A
         git commit -qm upstream; git checkout -q main; git rebase -q upstream
         git reflog expire --expire=now --all; git gc -q --prune=now"
    ));
}

#[test]
fn a_branch_rebased_under_the_loop_can_adopt() {
    let rig = with_history();
    let old = rig.git(&["rev-parse", "main"]);
    while_it_runs(&rig, || rebase(&rig, ":"));
    let rebased = rig.git(&["rev-parse", "main"]);
    assert_ne!(rebased, old);
    rig.loopwright(&["verify"]);
    rig.loopwright(&["adopt"]);
    assert_eq!(rig.git(&["show", "HEAD:x"]), "8\n");
    assert_eq!(rig.git(&["show", "HEAD:up"]), "upstream\n");
    assert_eq!(rig.git(&["rev-parse", "HEAD^1"]), rebased);
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    rig.git(&["fsck", "--full"]);
    // The next run starts a trial from what the user has now.
    assert_eq!(rig.trial("echo 4 > x", &[])["outcome"], "kept");
}

#[test]
fn a_rebased_branch_that_conflicts_is_told_and_left_as_it_is() {
    let rig = with_history();
    while_it_runs(&rig, || rebase(&rig, "echo 20 > x"));
    let before = rig.users();
    for arguments in [&["adopt"][..], &["adopt", "1"]] {
        let words = rig.refusal(2, arguments);
        assert!(
            words.contains("these paths conflict with what the branch holds: x"),
            "{words}"
        );
        before.expect_same(&rig.users(), "not adopted");
    }
    rig.loopwright(&["verify"]);
    // Once the user has solved it, the same adopts.
    rig.shell("echo 10 > x; git commit -qam back");
    rig.loopwright(&["adopt"]);
    assert_eq!(rig.git(&["show", "HEAD:x"]), "8\n");
}

#[test]
fn nothing_is_adopted_into_a_rebase_that_is_under_way() {
    let rig = with_history();
    while_it_runs(&rig, || {
        rig.shell(
            "git checkout -q -b upstream HEAD~2; echo other > first; git add -A
             git commit -qm upstream; git checkout -q main
             git rebase upstream >/dev/null 2>&1 && exit 9; test -d .git/rebase-merge",
        );
    });
    let before = rig.users();
    let words = rig.refusal(2, &["adopt"]);
    assert!(
        words.contains("a rebase is under way") || words.contains("HEAD is detached"),
        "{words}"
    );
    before.expect_same(&rig.users(), "not adopted");
    rig.git(&["rebase", "--abort"]);
    rig.loopwright(&["adopt"]);
    assert_eq!(rig.git(&["show", "HEAD:x"]), "8\n");
}

/// A move of the loop's branch that was missed once is made up for by the next keep, and by `adopt`.
#[test]
fn a_branch_that_was_in_use_or_gone_is_brought_up() {
    let branch = "loopwright/default/main";
    let x_of = |rig: &Rig, name: &str| rig.git(&["show", &format!("{name}:x")]);
    let rig = Rig::new();
    rig.trial("echo 9 > x", &[]);
    rig.git(&["checkout", "-q", branch]);
    let trial = rig.trial("echo 8 > x", &[]);
    let why = trial["why"].as_str().unwrap();
    assert!(why.contains("the branch was not moved"), "{why}");
    // What is in use is not moved under anybody, and nothing is said to be adopted that is not.
    rig.git(&["checkout", "-q", "main"]);
    rig.git(&["worktree", "add", "-q", "../beside", branch]);
    let words = rig.refusal(2, &["adopt"]);
    assert!(words.contains("does not hold what was kept"), "{words}");
    rig.git(&["worktree", "remove", "../beside"]);
    assert_eq!(x_of(&rig, branch), "9\n");
    let trial = rig.trial("echo 7 > x", &[]);
    let why = trial["why"].as_str().unwrap();
    assert!(!why.contains("was not moved"), "{why}");
    assert_eq!(x_of(&rig, branch), "7\n");
    for undone in [
        &["branch", "-q", "-D", branch][..],
        &["branch", "-f", branch, "main"],
    ] {
        rig.git(undone);
        rig.loopwright(&["adopt"]);
        assert_eq!(
            (x_of(&rig, "main"), x_of(&rig, branch)),
            ("7\n".into(), "7\n".into())
        );
        rig.git(&["reset", "-q", "--hard", "main~2"]);
    }
    // A person's own commit there is not moved away from.
    rig.git(&["branch", "-f", branch, "main"]);
    rig.git(&["checkout", "-q", branch]);
    rig.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    rig.git(&["checkout", "-q", "main"]);
    let words = rig.refusal(2, &["adopt"]);
    assert!(words.contains("does not hold what was kept"), "{words}");
}
