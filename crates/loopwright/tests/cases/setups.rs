//! What a setup used and printed is in the record, beside the measurement that it was for.

use serde_json::Value;

use crate::rig::{Rig, words_of};

/// Prints more than stands in the record itself, and takes a while.
const SETUP: &str =
    "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; seq 2000; echo \"built from $(cat x)\"";

fn commands(rig: &Rig, trial: &str) -> Vec<Value> {
    let row: Value = serde_json::from_str(&rig.loopwright(&["show", trial, "--json"])).unwrap();
    row["commands"].as_array().unwrap().clone()
}

fn wall_us(command: &Value) -> u64 {
    command["usage"]["wall_us"].as_u64().unwrap()
}

#[test]
fn a_setup_that_went_well_is_booked_and_shown_with_its_output() {
    let rig = Rig::new();
    rig.trial("echo 5 > x", &["--setup", SETUP]);
    let (mut total_us, mut setups) = (0, 0);
    for trial in ["0", "1"] {
        for command in commands(&rig, trial) {
            total_us += wall_us(&command);
            let is_setup = command["is_setup"] == true;
            setups += u64::from(is_setup);
            assert_eq!(
                is_setup,
                command["ran"]["tail"].to_string().contains("built from"),
                "{command}"
            );
            assert_eq!(is_setup, !command["ran"]["output_blob"].is_null());
        }
    }
    // One for each tree that was measured.
    assert_eq!(setups, 2);
    let status: Value = serde_json::from_str(&rig.loopwright(&["status", "--json"])).unwrap();
    assert_eq!(status["budget"]["spent"]["time_us"], total_us, "{status}");
    let shown = rig.loopwright(&["show", "0"]);
    assert!(shown.contains(", setup: exited with status 0"), "{shown}");
    assert!(shown.contains("| built from 10"), "{shown}");
    rig.loopwright(&["verify"]);
    rig.loopwright(&["replay"]);
}

#[test]
fn a_setup_that_fails_is_shown_with_the_end_of_its_output() {
    let rig = Rig::new();
    let setup = format!("{SETUP}; [ \"$(cat x)\" = 10 ] || {{ echo broken pipe dream; exit 3; }}");
    let run = rig
        .run("echo 5 > x", "1", &["--setup", &setup])
        .output()
        .unwrap();
    words_of(&run, 0);
    let trial = rig.log().pop().unwrap();
    assert_eq!(trial["outcome"], "failed");
    assert_eq!(trial["why"], "the setup exited with status 3");
    let last = commands(&rig, "1").pop().unwrap();
    assert_eq!(last["is_setup"], true, "{last}");
    assert!(wall_us(&last) > 0);
    let shown = rig.loopwright(&["show", "1"]);
    assert!(shown.contains(", setup: exited with status 3"), "{shown}");
    assert!(shown.contains("| broken pipe dream"), "{shown}");
}

/// Each rule, with and without the user's checkout.
const WAYS: [&[&str]; 4] = [
    &["--rule", "keep"],
    &["--rule", "threshold"],
    &["--rule", "keep", "--in-place"],
    &["--rule", "threshold", "--in-place"],
];

#[test]
fn without_inputs_of_its_own_it_runs_after_every_change_of_the_tree() {
    for way in WAYS {
        let rig = Rig::with("echo \"m=$(cat built)\"\n", &[(".gitignore", "built\n")]);
        let more = [way, &["--setup", "cp x built", "--cache", "built"]].concat();
        for value in [9.0, 8.0, 12.0, 7.0] {
            let trial = rig.trial(&format!("echo {value:.0} > x"), &more);
            assert_eq!(trial["value"], value, "{way:?}: {trial}");
        }
    }
}

#[test]
fn it_runs_again_when_its_command_or_environment_changed() {
    for way in WAYS {
        let rig = Rig::with(
            "echo \"m=$(( $(cat x) + $(cat built) ))\"\n",
            &[(".gitignore", "built\n"), ("dep", "1\n")],
        );
        let setups: [(&[&str], f64); 4] = [
            (&["--setup", "cp dep built"], 10.0),
            (&["--setup", "echo 100 > built"], 108.0),
            (&["--setup", "echo $N > built", "--env", "N=50"], 57.0),
            (&["--setup", "echo $N > built", "--env", "N=30"], 36.0),
        ];
        for (index, (setup, value)) in setups.into_iter().enumerate() {
            let more = [way, setup, &["--setup-input", "dep", "--cache", "built"]].concat();
            let trial = rig.trial(&format!("echo {} > x", 9 - index), &more);
            assert_eq!(trial["outcome"], "kept", "{way:?} {setup:?}: {trial}");
            assert_eq!(trial["value"], value, "{way:?} {setup:?}: {trial}");
        }
    }
}
