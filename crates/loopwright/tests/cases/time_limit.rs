//! C5: a time limit means the whole family, and so does success.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::await_that;
use crate::rig::{Rig, words_of};

const FAMILY: &str = "if [ \"$(cat x)\" != 10 ]; then
  setsid sleep 600 &
  (sh -c 'sleep 600 & exit' &)
  sh -c 'trap \"\" TERM; sleep 600; sleep 600' &
  [ \"$(cat x)\" = 5 ] || sleep 600
fi
echo \"m=$(cat x)\"
";

/// How many processes carry the rig's folder in their environment.
fn family_of(rig: &Rig) -> usize {
    let mark = format!("OUTSIDE={}", rig.path("").display());
    let mark = mark.trim_end_matches('/').as_bytes();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let environments = processes.map(|entry| fs::read(entry.path().join("environ")));
    environments
        .flatten()
        .filter(|text| text.split(|byte| *byte == 0).any(|entry| entry == mark))
        .count()
}

/// A command of a trial as `show` has it.
fn command(rig: &Rig, trial: u64, effect: &str) -> Value {
    let shown = rig.loopwright(&["show", &trial.to_string(), "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let commands = shown["commands"].as_array().unwrap();
    let found = commands.iter().find(|command| command["effect"] == effect);
    found
        .unwrap_or_else(|| panic!("no {effect}: {shown}"))
        .clone()
}

#[test]
fn a_late_proposal_is_named_as_such() {
    let rig = Rig::new();
    let propose = "echo 5 > x; setsid sleep 600 & sleep 600";
    let late = rig.trial(propose, &["--propose-limit", "1s"]);
    assert_eq!(late["outcome"], "timed_out", "{late}");
    let why = late["why"].as_str().unwrap();
    assert_eq!(why, "the proposal passed its limit of 1 s");
    assert_eq!(family_of(&rig), 0);
}

#[test]
fn nothing_outlives_the_limit_or_success() {
    let rig = Rig::with(FAMILY, &[]);
    let mut users = rig.command("sleep", &["600"]).spawn().unwrap();
    let limits = ["--run-limit", "2s"];
    let late = rig.trial("echo 7 > x", &limits);
    assert_eq!(late["outcome"], "timed_out", "{late}");
    // Which step it was, and how long it may take.
    let why = late["why"].as_str().unwrap();
    assert_eq!(why, "the measurement passed its limit of 2 s");
    assert_eq!(family_of(&rig), 1, "only the user's own is left");
    let measured = command(&rig, 1, "t1/measure/candidate/1");
    let wall_us = measured["usage"]["wall_us"].as_u64().unwrap();
    assert!((2_000_000..5_000_000).contains(&wall_us), "{measured}");
    let kept = rig.trial("echo 5 > x", &limits);
    assert_eq!(kept["outcome"], "kept", "{kept}");
    assert_eq!(family_of(&rig), 1, "only the user's own is left");
    // What it left and what became of that is noted.
    let measured = command(&rig, 2, "t2/measure/candidate/1");
    let leftovers = measured["ran"]["leftovers"].as_array().unwrap();
    let sleeping = leftovers
        .iter()
        .filter(|name| name.as_str().unwrap().contains("sleep"));
    assert!(sleeping.count() >= 2, "{measured}");
    let shown = rig.loopwright(&["show", "2"]);
    let note = shown
        .lines()
        .find(|line| line.contains("left behind, and ended: "));
    assert!(note.is_some_and(|line| line.contains("sleep")), "{shown}");
    assert!(users.try_wait().unwrap().is_none(), "the user's was ended");
    users.kill().unwrap();
    users.wait().unwrap();
}

/// The supervisor of the command that runs for an effect, as it is noted in the store.
fn supervisor_of(rig: &Rig, effect: &str) -> String {
    let folder = rig.repository().join(".git/loopwright/running");
    let mut found = None;
    await_that("the supervisor to be noted", || {
        let mut notes = fs::read_dir(&folder).into_iter().flatten().flatten();
        found = notes.find_map(|note| {
            let note: Value = serde_json::from_slice(&fs::read(note.path()).ok()?).ok()?;
            (note["effect"] == effect).then(|| note["pid"].as_u64())?
        });
        found.is_some()
    });
    found.unwrap().to_string()
}

#[test]
fn whoever_stops_the_supervisor_keeps_no_limit_from_coming() {
    let rig = Rig::new();
    let propose = "touch \"$OUTSIDE/begun\"; setsid sleep 600 & echo 5 > x; sleep 600";
    let limits = ["--propose-limit", "1s", "--trials", "1"];
    let child = rig.start(&rig.repository(), "a", propose, &limits);
    rig.await_file("begun");
    let supervisor = supervisor_of(&rig, "t1/propose");
    let children = format!("/proc/{supervisor}/task/{supervisor}/children");
    let children = fs::read_to_string(children).unwrap();
    for pid in children.split_ascii_whitespace().chain([&*supervisor]) {
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
    }
    words_of(&child.wait_with_output().unwrap(), 0);
    let late = rig.log().pop().unwrap();
    assert_eq!(late["outcome"], "timed_out", "{late}");
    assert_eq!(family_of(&rig), 0);
}
