//! A commit of the user's on the incumbent is never taken for a keep that an invocation did not live to
//! record, however much it looks like one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::rig::{Rig, words_of};

const BRANCH: &str = "loopwright/default/main";
const PROPOSE: &str = "echo 5 > x";

fn keeps_to(point: &str) -> Rig {
    let rig = Rig::new();
    let mut run = rig.run(PROPOSE, "1", &[]);
    let done = run.env("LOOPWRIGHT_CRASH", point).output().unwrap();
    assert!(!done.status.success(), "it was to be killed at {point}");
    rig.await_no_process(point);
    rig
}

/// The user's commit of the same files on the same incumbent, which our own store has too, because
/// another loop starts from it.
fn lookalike(rig: &Rig, message: &str) -> String {
    rig.shell(&format!(
        "git checkout -q --detach main; echo 5 > x; git commit -qam '{message}'"
    ));
    let mine = rig.git(&["rev-parse", "HEAD"]);
    rig.loopwright(&[
        "baseline",
        "--loop",
        "other",
        "--run",
        "sh run.sh",
        "--metric",
        "m",
        "--goal",
        "min",
    ]);
    rig.git(&["checkout", "-q", "main"]);
    mine.trim().to_owned()
}

#[test]
fn a_users_commit_on_the_loops_branch_is_left_there() {
    for message in ["loopwright: of my own", "loopwright: m 5 (was 10)"] {
        let rig = keeps_to("keep.committed:1");
        let mine = lookalike(&rig, message);
        rig.git(&["branch", "-qf", BRANCH, &mine]);
        rig.loopwright(&["resume", "--loop", "default"]);
        let branch = rig.git(&["rev-parse", BRANCH]);
        assert_eq!(branch.trim(), mine, "{message}: it was moved");
        let shown = rig.loopwright(&["--loop", "default", "show", "1"]);
        assert!(shown.contains("the branch was not moved"), "{shown}");
        rig.loopwright(&["--loop", "default", "verify"]);
    }
}

#[test]
fn our_own_is_known_by_whatever_name_it_was_made() {
    let rig = keeps_to("keep.published:1");
    let made = rig.git(&["rev-parse", BRANCH]);
    rig.git(&["config", "user.name", "Another"]);
    rig.loopwright(&["resume"]);
    assert_ne!(rig.git(&["rev-parse", BRANCH]), made);
    assert_eq!(rig.git(&["log", "--format=%an", BRANCH]), "Another\nA\n");
    assert_eq!(rig.log().pop().unwrap()["outcome"], "kept");
}

#[test]
fn a_changed_harness_that_was_not_recorded_is_ours_too() {
    let rig = Rig::new();
    rig.trial(PROPOSE, &["--protect", "run.sh"]);
    rig.write("run.sh", "echo \"m=$(cat x)\" # once more\n");
    rig.commit_all("another harness");
    let mut run = rig.run("echo 4 > x", "1", &["--protect", "run.sh"]);
    let run = run.env("LOOPWRIGHT_CRASH", "turn.before_commit:1");
    assert!(!run.output().unwrap().status.success());
    rig.await_no_process("killed before anything was recorded");
    let left = rig.git(&["rev-parse", BRANCH]);
    // The user has gone on meanwhile, so that it is another commit now.
    rig.write("run.sh", "echo \"m=$(cat x)\" # and again\n");
    rig.commit_all("yet another");
    let trial = rig.trial("echo 4 > x", &["--protect", "run.sh"]);
    assert_eq!(trial["outcome"], "kept", "{trial}");
    assert!(
        !trial["why"].as_str().unwrap().contains("not moved"),
        "{trial}"
    );
    assert_eq!(rig.git(&["show", &format!("{BRANCH}:x")]), "4\n");
    let above = rig.git(&["merge-base", left.trim(), BRANCH]);
    assert_ne!(above, left, "it was built upon");
}

#[test]
fn a_branch_that_the_user_made_under_the_loops_name_is_left_there() {
    let rig = Rig::new();
    rig.trial(PROPOSE, &[]);
    rig.shell("git checkout -q --detach main; echo 7 > x; git commit -qam mine");
    rig.loopwright(&[
        "baseline",
        "--loop",
        "other",
        "--run",
        "sh run.sh",
        "--metric",
        "m",
        "--goal",
        "min",
    ]);
    let side = "loopwright/default/side";
    rig.git(&["branch", "-q", side]);
    rig.git(&["checkout", "-q", "main"]);
    let before = rig.git(&["rev-parse", side]);
    let more = ["--branch", "side", "--loop", "default"];
    let run = rig.run("echo 3 > x", "1", &more).output().unwrap();
    words_of(&run, 0);
    assert_eq!(rig.git(&["rev-parse", side]), before);
}

/// A run in place that was killed while the hook of its first keep ran.
fn killed_in_the_hook() -> Rig {
    let rig = Rig::new();
    let hook = rig.repository().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let text = "touch \"$OUTSIDE/hook\"; while [ ! -e \"$OUTSIDE/go\" ]; do sleep 0.02; done";
    fs::write(&hook, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let child = rig.start(&rig.repository(), "a", PROPOSE, &["--in-place"]);
    rig.await_file("hook");
    rig.kill(child);
    rig.touch("go");
    rig
}

#[test]
fn in_place_a_users_commit_of_the_same_files_is_not_taken_for_the_keep() {
    let rig = killed_in_the_hook();
    rig.shell("rm -f .git/index.lock; echo 5 > x; git commit -qam 'mine, by hand'");
    let mine = rig.git(&["rev-parse", "main"]);
    let resume = rig.loopwright_in(&rig.repository(), &["resume", "--loop", "a"]);
    let words = words_of(&resume, 2);
    assert!(words.contains(mine.trim()), "{words}");
    assert_eq!(rig.git(&["rev-parse", "main"]), mine, "it was moved");
    // Once it is out of the way the loop goes on, and makes its own.
    rig.shell("git branch mine; git reset -q --hard HEAD^");
    let resume = rig.loopwright_in(&rig.repository(), &["resume", "--loop", "a"]);
    words_of(&resume, 0);
    let subject = rig.git(&["log", "-1", "--format=%s", "main"]);
    assert_eq!(subject, "loopwright: m 5 (was 10)\n");
}
