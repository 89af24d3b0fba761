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
