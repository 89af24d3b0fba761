//! C12: reaching the target ends the work.

use serde_json::Value;

use crate::rig::{Rig, run_arguments};

#[test]
fn one_confirmation_and_no_further_proposal() {
    let run = "echo run >> \"$OUTSIDE/runs\"\necho \"m=$(cat x)\"\n";
    let rig = Rig::with(run, &[]);
    rig.write("x", "0.5\n");
    rig.git(&["commit", "-qam", "half"]);
    let propose = "echo propose >> \"$OUTSIDE/runs\"; echo 1 > x";
    let more = ["--goal", "max", "--target", "1", "--trials", "9"];
    let done = rig.try_loopwright(&run_arguments(propose, &more));
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{words}");
    assert!(words.contains("target reached"), "{words}");
    // The baseline and the one keep: a confirmation is no trial, kept or rejected.
    let log = rig.log();
    let origins: Vec<_> = log.iter().map(|trial| &trial["origin"]).collect();
    assert_eq!(origins, ["baseline", "proposed"], "{log:?}");
    assert_eq!(log[1]["outcome"], "kept", "{log:?}");
    assert_eq!(log[1]["value"], 1.0, "{log:?}");
    let runs = std::fs::read_to_string(rig.path("runs")).unwrap();
    // The baseline; the change, and again to see that the metric repeats; the confirmation.
    assert_eq!(runs, "run\npropose\nrun\nrun\nrun\n");
    let status = rig.loopwright(&["status", "--json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    let ending = status.to_string();
    assert!(ending.contains("target"), "{status}");
}

#[test]
fn a_target_that_is_not_confirmed_is_not_reached() {
    // The second look at a tree says less than the first.
    let run = "echo run >> \"$OUTSIDE/runs\"
if [ \"$(cat x)\" = 1 ] && [ \"$(wc -l < \"$OUTSIDE/runs\")\" -ge 3 ]; then echo m=0.9; else echo \"m=$(cat x)\"; fi\n";
    let rig = Rig::with(run, &[]);
    rig.write("x", "0.5\n");
    rig.git(&["commit", "-qam", "half"]);
    let more = ["--goal", "max", "--target", "1", "--trials", "2"];
    let propose = "[ $LOOPWRIGHT_TRIAL = 2 ] || echo 1 > x";
    let done = rig.try_loopwright(&run_arguments(propose, &more));
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{words}");
    assert!(!words.contains("target reached"), "{words}");
    assert_eq!(rig.log().len(), 3, "the second trial is made");
}
