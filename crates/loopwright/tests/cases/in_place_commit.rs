//! In place, the commit with the user's hooks is a command like any other: it ends with the engine,
//! it can be stopped, and it obeys nothing that a proposal configured anywhere.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Rig, words_of};

/// A hook that waits to be let go.
const HELD: &str = "touch \"$OUTSIDE/hook\"; while [ ! -e \"$OUTSIDE/go\" ]; do sleep 0.02; done";

fn hook(folder: &Path, text: &str) {
    let path = folder.join("pre-commit");
    fs::create_dir_all(folder).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A run that is in the middle of the commit of its first keep.
fn committing() -> (Rig, Child) {
    let rig = Rig::new();
    hook(&rig.repository().join(".git/hooks"), HELD);
    let child = rig.start(&rig.repository(), "a", "echo 5 > x", &["--in-place"]);
    rig.await_file("hook");
    (rig, child)
}

fn goes_on(rig: &Rig) {
    assert_eq!(rig.git(&["rev-list", "--count", "main"]), "1\n");
    rig.touch("go");
    let resume = rig.loopwright_in(&rig.repository(), &["resume", "--loop", "a"]);
    words_of(&resume, 0);
    assert_eq!(rig.git(&["rev-list", "--count", "main"]), "2\n");
    assert_eq!(rig.git(&["show", "main:x"]), "5\n");
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
}

#[test]
fn it_ends_when_the_engine_is_killed() {
    let (rig, child) = committing();
    rig.kill(child);
    goes_on(&rig);
}

#[test]
fn it_can_be_stopped() {
    let (rig, child) = committing();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    words_of(&child.wait_with_output().unwrap(), 143);
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    goes_on(&rig);
}

#[test]
fn a_hook_that_the_proposal_set_up_for_all_repositories_does_not_run() {
    let rig = Rig::new();
    hook(&rig.path("hooks"), "touch \"$OUTSIDE/ran\"");
    let propose = "git config --global core.hooksPath \"$OUTSIDE/hooks\"; echo 5 > x";
    let trial = rig.trial(propose, &["--in-place"]);
    assert!(!rig.path("ran").exists(), "the hook ran");
    assert_ne!(trial["outcome"], "kept", "{trial}");
    let why = trial["why"].as_str().unwrap();
    assert!(why.contains("gitconfig changed since"), "{trial}");
    assert_eq!(rig.git(&["show", "main:x"]), "10\n");
    // It does run where git obeys that setting: the test above would notice.
    rig.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    assert!(rig.path("ran").exists());
}

/// A run whose first proposal sets up a hook for all repositories and is killed, with its engine, at
/// once or while its candidate is measured.
fn killed_after_setting_up_a_hook(in_measurement: bool) -> Rig {
    let waits = "touch \"$OUTSIDE/begun\"; while [ ! -e \"$OUTSIDE/go\" ]; do sleep 0.02; done";
    let run = format!("[ \"$(cat x)\" = 10 ] || {{ {waits}; }}; echo \"m=$(cat x)\"\n");
    let rig = Rig::with(
        if in_measurement {
            &run
        } else {
            "echo \"m=$(cat x)\"\n"
        },
        &[],
    );
    hook(&rig.path("hooks"), "touch \"$OUTSIDE/ran\"");
    let waits = if in_measurement { ":" } else { waits };
    let propose = format!(
        "[ -e \"$OUTSIDE/go\" ] || git config --global core.hooksPath \"$OUTSIDE/hooks\"; {waits}
         echo $(($(cat x) - 1)) > x"
    );
    let child = rig.start(&rig.repository(), "a", &propose, &["--in-place"]);
    rig.await_file("begun");
    rig.kill(child);
    rig.touch("go");
    rig
}

#[test]
fn settings_that_a_killed_proposal_changed_are_not_obeyed_until_a_person_starts_again() {
    for in_measurement in [false, true] {
        let rig = killed_after_setting_up_a_hook(in_measurement);
        let rig = &rig;
        let done = rig.loopwright_in(&rig.repository(), &["resume", "--loop", "a"]);
        let words = words_of(&done, 0);
        let changed = "gitconfig changed since this run was started";
        assert!(words.contains(changed), "{words}");
        assert!(!rig.path("ran").exists(), "the hook ran");
        let shown = rig.loopwright(&["show", "1", "--loop", "a"]);
        assert!(shown.contains(changed), "{shown}");
        assert_eq!(rig.git(&["show", "main:x"]), "10\n");
        // Who goes on with that run goes on so.
        let done = rig.loopwright_in(
            &rig.repository(),
            &["resume", "--loop", "a", "--trials", "1"],
        );
        assert!(words_of(&done, 0).contains(changed));
        assert!(!rig.path("ran").exists(), "the hook ran");
        // Who starts one is told, and has it so.
        let child = rig.start(&rig.repository(), "a", "echo 4 > x", &["--in-place"]);
        let words = words_of(&child.wait_with_output().unwrap(), 0);
        assert!(
            words.contains("gitconfig changed since a run was started here last"),
            "{words}"
        );
        assert_eq!(rig.git(&["show", "main:x"]), "4\n");
        assert!(rig.path("ran").exists());
    }
}
