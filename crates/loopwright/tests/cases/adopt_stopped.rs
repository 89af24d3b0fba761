//! An adoption that is stopped, or takes too long, ends what it started and leaves the checkout as
//! it was; what a keep in place takes is booked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use loopwright_core::ids::LoopName;
use loopwright_record::{OpenMode, Select, Store};
use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Rig, words_of};

/// Waits, with a child that would outlive it.
const WAITS: &str = "setsid sleep 600 & touch \"$OUTSIDE/hook\"; sleep 600";

fn hook(rig: &Rig, name: &str, text: &str) {
    let path = rig.repository().join(".git/hooks").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What an adoption would change: branches, checkout, what git has under way.
fn standing(rig: &Rig) -> String {
    let shown = [
        &["for-each-ref"][..],
        &["symbolic-ref", "HEAD"],
        &["status", "--untracked-files=all"],
        &["diff", "HEAD"],
    ];
    let mut text: String = shown.iter().map(|arguments| rig.git(arguments)).collect();
    text += &fs::read_to_string(rig.repository().join("x")).unwrap();
    text
}

/// A kept trial, with a commit of the user's beside it where that is wanted.
fn kept(has_gone_on: bool) -> Rig {
    let rig = Rig::new();
    assert_eq!(
        rig.trial("echo 5 > x; echo new > new", &[])["outcome"],
        "kept"
    );
    if has_gone_on {
        rig.write("y", "mine\n");
        rig.commit_all("mine");
    }
    rig
}

/// Each way of adopting, with the hooks in which it can be met.
const WAYS: [(&str, bool, &[&str]); 5] = [
    ("post-merge", false, &["adopt"]),
    ("pre-merge-commit", true, &["adopt"]),
    ("post-merge", true, &["adopt"]),
    ("pre-commit", true, &["adopt", "1"]),
    ("post-commit", true, &["adopt", "1"]),
];

fn expect_as_before(rig: &Rig, before: &str, name: &str, arguments: &[&str]) {
    rig.await_no_process(name);
    assert_eq!(standing(rig), before, "{name}");
    for left in ["MERGE_HEAD", "MERGE_MSG", "index.lock", "HEAD.lock"] {
        assert!(
            !rig.repository().join(".git").join(left).exists(),
            "{name}: {left}"
        );
    }
    fs::remove_file(rig.repository().join(".git/hooks").join(name)).unwrap();
    rig.loopwright(arguments);
    assert_eq!(rig.git(&["show", "main:x"]), "5\n", "{name}");
    rig.loopwright(&["verify"]);
    rig.loopwright(&["replay"]);
}

#[test]
fn a_signal_ends_an_adoption_and_leaves_everything_as_it_was() {
    let signals = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::QUIT, 131)];
    for ((name, has_gone_on, arguments), (signal, code)) in
        WAYS.into_iter().zip(signals.into_iter().cycle())
    {
        let rig = kept(has_gone_on);
        hook(&rig, name, WAITS);
        let before = standing(&rig);
        let mut adopt = rig.tool(arguments);
        let child = adopt.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().unwrap();
        rig.await_file("hook");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let words = words_of(&child.wait_with_output().unwrap(), code);
        assert!(words.contains("it was stopped"), "{name}: {words}");
        expect_as_before(&rig, &before, name, arguments);
    }
}

#[test]
fn an_adoption_that_takes_too_long_is_ended_and_leaves_everything_as_it_was() {
    for (name, has_gone_on, arguments) in WAYS {
        let rig = kept(has_gone_on);
        // One that can't be asked to go.
        hook(&rig, name, &format!("trap '' TERM; {WAITS}"));
        let before = standing(&rig);
        let limited = [arguments, &["--limit", "300ms"]].concat();
        let words = rig.refusal(2, &limited);
        assert!(
            words.contains("passed its limit of 0.3 s"),
            "{name}: {words}"
        );
        expect_as_before(&rig, &before, name, arguments);
    }
}

#[test]
fn what_the_hooks_of_a_keep_in_place_take_is_booked() {
    let rig = Rig::new();
    hook(
        &rig,
        "pre-commit",
        "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done",
    );
    assert_eq!(rig.trial("echo 5 > x", &["--in-place"])["outcome"], "kept");
    let store = Store::open(&rig.repository().join(".git/loopwright"), OpenMode::Read).unwrap();
    let run = store.latest_run(&LoopName::new("default").unwrap());
    let run = run.unwrap().unwrap().run;
    let settled = store.events_of_kind(&run, "effect.settled", Select::newest(100));
    let (mut total_us, mut keep_us) = (0, 0);
    for entry in settled.unwrap() {
        let event = entry.sealed.event;
        let wall_us = event.body["usage"]["wall_us"].as_u64().unwrap_or(0);
        total_us += wall_us;
        if event
            .effect
            .is_some_and(|effect| effect.as_str() == "t1/keep/1")
        {
            keep_us = wall_us;
        }
    }
    assert!(keep_us > 0);
    let status = rig.loopwright(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["budget"]["spent"]["time_us"], total_us);
}
