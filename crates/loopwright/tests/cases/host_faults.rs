//! What keeps the host from performing anything is no result of the trial it was met in.

use crate::rig::{Rig, words_of};

/// More than the system takes for one argument of a command.
const TOO_LONG_BYTES: usize = 200_000;

#[test]
fn commands_that_cannot_be_started_count_against_no_trial() {
    let rig = Rig::new();
    let file = |propose: &str| {
        format!(
            "[loop.default]\nrun = \"sh run.sh\"\npropose = \"{propose}\"\nmetric = \"m\"\ngoal = \"min\"\n\
             trials = 1\ngive_up_after = 1\n"
        )
    };
    let long = format!("echo 5 > x # {}", "a".repeat(TOO_LONG_BYTES));
    rig.write("loopwright.toml", &file(&long));
    let words = words_of(&rig.try_loopwright(&["run"]), 1);
    assert!(words.contains("no command can be started here"), "{words}");
    assert!(words.contains("loopwright resume"), "{words}");
    let status = rig.loopwright(&["status"]);
    assert!(!status.contains("failed="), "{status}");
    let resumed = rig.try_loopwright(&["resume", "--propose", "echo 5 > x"]);
    words_of(&resumed, 0);
    let outcomes: Vec<_> = rig.log().iter().map(|row| row["outcome"].clone()).collect();
    assert_eq!(outcomes, ["kept", "kept"]);
    rig.loopwright(&["verify"]);
    rig.loopwright(&["replay"]);
}

/// A script that the system won't start is what the trial made of it.
#[test]
fn a_measuring_script_that_cannot_be_started_is_a_failed_trial() {
    for first in ["#!/bin/sh\\r", "#!/no/such/interpreter", "#!./bench.sh"] {
        let rig = Rig::with("", &[("bench.sh", "#!/bin/sh\necho m=$(cat x)\n")]);
        rig.shell("chmod +x bench.sh && git commit -qam executable");
        let run = |propose: &str| {
            let arguments = [
                "run",
                "--run",
                "./bench.sh",
                "--metric",
                "m",
                "--goal",
                "min",
            ];
            let rest = ["--trials", "1", "--propose", propose];
            words_of(&rig.try_loopwright(&[&arguments[..], &rest].concat()), 0);
            rig.log().pop().unwrap()
        };
        let propose = format!("printf '{first}\\necho m=1\\n' > bench.sh");
        let trial = run(&propose);
        assert_eq!(trial["outcome"], "failed", "{first}: {trial}");
        assert_eq!(run("echo 5 > x")["outcome"], "kept", "{first}");
    }
}
