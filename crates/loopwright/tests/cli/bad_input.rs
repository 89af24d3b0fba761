//! Bad input is answered before anything is spent, with what to do about it.

use std::fs;

use crate::support::Rig;

#[test]
fn not_a_repository() {
    insta::assert_snapshot!(Rig::bare().run(&["run"]).normal());
}

#[test]
fn no_commit_yet() {
    let rig = Rig::bare();
    rig.git(&["init", "--quiet"]);
    insta::assert_snapshot!(rig.run(&["run"]).normal());
}

#[test]
fn no_identity() {
    let rig = Rig::new();
    rig.git(&["config", "--unset", "user.name"]);
    rig.git(&["config", "--unset", "user.email"]);
    rig.git(&["config", "user.useConfigOnly", "true"]);
    insta::assert_snapshot!(rig.run(&["run"]).normal());
}

#[test]
fn nothing_is_measured() {
    let rig = Rig::new();
    rig.write("loopwright.toml", "[loop.speed]\npropose = \"true\"\n");
    rig.commit_all();
    insta::assert_snapshot!(rig.run(&["run"]).normal());
}

#[test]
fn an_unknown_metric_is_answered_with_near_misses() {
    let rig = Rig::new();
    rig.write("bench.sh", "echo seconds=1.5\n");
    rig.commit_all();
    let stdout = rig.run(&["run", "--metric", "secconds"]);
    insta::assert_snapshot!(stdout.normal());
}

#[test]
fn every_pattern_that_protects_nothing_is_named() {
    let rig = Rig::new();
    let flags = [
        "run",
        "--protect",
        "bensh.sh",
        "--protect",
        "tests/**",
        "--protect",
        "n",
    ];
    insta::assert_snapshot!(rig.run(&flags).normal());
}

#[test]
fn a_file_that_only_the_checkout_has_is_named() {
    let rig = Rig::new();
    rig.write("mine.sh", "echo m=1\n");
    insta::assert_snapshot!(rig.run(&["run", "--run", "sh mine.sh"]).normal());
}

#[test]
fn a_misspelt_setting() {
    let rig = Rig::new();
    rig.write(
        "loopwright.toml",
        "[loop.speed]\nrunn = \"x\"\ngoal = \"mim\"\n",
    );
    rig.commit_all();
    insta::assert_snapshot!(rig.run(&["run"]).normal());
}

#[test]
fn a_store_that_cannot_be_written() {
    let rig = Rig::new();
    // A file in the way stops the superuser, too.
    rig.write("occupied", "");
    let outcome = rig.run(&["run", "--store", "occupied"]);
    assert_eq!(outcome.code, 2);
    insta::assert_snapshot!(outcome.normal());
}

#[test]
fn another_run_holds_the_lease() {
    let rig = Rig::after_six_trials();
    let child = rig.start(&["run"]);
    rig.wait_for_proposal(7);
    let refused = rig.run(&["run"]);
    insta::assert_snapshot!(refused.normal().replace(&host_name(), "[HOST]"));
    assert_eq!(refused.code, 6);
    // Nothing is said about a run that can't be had.
    for arguments in [
        ["run", "--run", "sh bench.sh; true"],
        ["resume", "--run", "sh bench.sh; true"],
    ] {
        let stderr = rig.run(&arguments).failure(6);
        assert!(stderr.starts_with("error: "), "{stderr}");
        assert!(!stderr.contains("segment"), "{stderr}");
    }
    rig.let_go();
    assert_eq!(rig.finish(child).code, 0);
}

fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    format!("on {})", name.trim())
}

#[test]
fn a_damaged_store_names_its_record() {
    let rig = Rig::after_six_trials();
    let path = rig.project().join(".git/loopwright/journal.db");
    let mut bytes = fs::read(&path).unwrap();
    // A decision of trial 5 says something else now.
    let needle = b"\"why\":\"8 beat 9";
    let at = bytes
        .windows(needle.len())
        .position(|window| window == needle)
        .unwrap();
    bytes[at + needle.len() - 1] = b'7';
    fs::write(&path, bytes).unwrap();
    // The listing has rows of its own; what it counts comes from the events.
    for arguments in [&["show", "5"][..], &["log"]] {
        let stderr = rig.run(arguments).failure(7);
        assert!(
            stderr.contains(" event ") && stderr.contains("is damaged"),
            "{stderr}"
        );
    }
    let verified = rig.run(&["verify"]);
    assert_eq!(verified.code, 7, "{verified:?}");
    assert!(verified.stdout.contains("WRONG"), "{verified:?}");
}

#[test]
fn a_store_that_is_no_store() {
    let rig = Rig::after_six_trials();
    fs::write(
        rig.project().join(".git/loopwright/journal.db"),
        "not a database at all, but text",
    )
    .unwrap();
    let stderr = rig.run(&["status"]).failure(7);
    assert!(stderr.starts_with("error: the store at "), "{stderr}");
    assert!(stderr.contains("hint: "), "{stderr}");
}

#[test]
fn an_emptied_store_is_not_taken_for_a_new_one() {
    let rig = Rig::after_six_trials();
    fs::write(rig.project().join(".git/loopwright/journal.db"), "").unwrap();
    for command in ["log", "verify", "run"] {
        let stderr = rig.run(&[command]).failure(7);
        assert!(
            stderr.contains("emptied or replaced"),
            "{command}: {stderr}"
        );
    }
}

#[test]
fn a_changed_goal_names_the_field() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["run", "--goal", "max"]).normal());
}

#[test]
fn a_loop_that_was_never_run() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["log", "--loop", "sped"]).normal());
}

#[test]
fn nothing_was_run_here() {
    let rig = Rig::new();
    insta::assert_snapshot!(rig.run(&["status"]).normal());
}

#[test]
fn a_directory_that_is_not_there() {
    let rig = Rig::new();
    insta::assert_snapshot!(rig.run(&["-C", "nowhere", "run"]).normal());
}

#[test]
fn a_store_of_a_newer_release() {
    let rig = Rig::after_six_trials();
    let path = rig.project().join(".git/loopwright/journal.db");
    let mut bytes = fs::read(&path).unwrap();
    // SQLite's `user_version`, by which the store says which releases can read it.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&path, bytes).unwrap();
    insta::assert_snapshot!(rig.run(&["run"]).normal());
    assert_eq!(rig.run(&["log"]).code, 2);
}

#[test]
fn a_link_to_what_git_tracks_is_refused_before_anything_runs() {
    let rig = Rig::new();
    rig.write("in/data", "1\n");
    rig.commit_all();
    for link in ["in", "in/data"] {
        let words = rig
            .run(&["run", "--trials", "1", "--link", link])
            .failure(2);
        assert!(words.contains("is tracked by git"), "{words}");
    }
    assert!(rig.status().is_none());
}

#[test]
fn a_store_that_can_be_made_nowhere_is_refused_with_what_to_do() {
    let rig = Rig::new();
    for place in ["/proc/nope", "/etc/passwd/x"] {
        let words = rig
            .run(&["run", "--trials", "1", "--store", place])
            .failure(2);
        assert!(
            words.contains("can't be written") && words.contains("--store"),
            "{words}"
        );
    }
}
