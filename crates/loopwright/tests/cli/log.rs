//! `log`.

use crate::support::{Rig, spawn};

#[test]
fn trials_are_listed_with_counts_and_the_best() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["log"]).normal());
}

#[test]
fn listings_can_be_narrowed() {
    let rig = Rig::after_six_trials();
    let trials = |arguments: &[&str]| -> Vec<u64> {
        let stdout = rig.run(&[&["log", "--json"], arguments].concat()).success();
        let number = |line: &str| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            row["trial"].as_u64().unwrap()
        };
        stdout.lines().map(number).collect()
    };
    assert_eq!(trials(&[]), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(trials(&["--outcome", "kept"]), [0, 1, 5]);
    assert_eq!(
        trials(&["--outcome", "failed", "--outcome", "no_metric"]),
        [3, 6]
    );
    assert_eq!(trials(&["--since-trial", "4"]), [4, 5, 6]);
    assert_eq!(trials(&["-n", "2"]), [5, 6]);
    assert_eq!(trials(&["--branch", "other"]), Vec::<u64>::new());
}

#[test]
fn as_json_every_decision_has_its_reading() {
    let rig = Rig::after_six_trials();
    let stdout = rig
        .run(&["log", "--json", "--outcome", "reverted"])
        .success();
    let row: serde_json::Value = serde_json::from_str(stdout.trim()).unwrap();
    assert_eq!(row["value"], 9.5);
    assert_eq!(row["against"], 9.0);
    assert_eq!(row["values"]["m"], 9.5);
    assert_eq!(row["readings"][0]["value"], 9.5);
    assert_eq!(row["outcome"], "reverted");
}

#[test]
fn an_unknown_outcome_is_refused() {
    let rig = Rig::after_six_trials();
    let stderr = rig.run(&["log", "--outcome", "keep"]).failure(2);
    assert!(stderr.contains("kept"), "{stderr}");
}

#[test]
fn a_run_is_followed_to_its_end() {
    let rig = Rig::after_six_trials();
    let driver = rig.start(&["run", "--trials", "2"]);
    rig.wait_for_proposal(7);
    let follower = rig.start(&["log", "--follow", "--since-trial", "6"]);
    rig.let_go();
    assert_eq!(rig.finish(driver).code, 0);
    let followed = rig.finish(follower).success();
    for trial in [6, 7, 8] {
        assert!(followed.contains(&format!("trial   {trial}")), "{followed}");
    }
    assert!(followed.ends_with("best m: 8 (trial 5)\n"), "{followed}");
}

#[test]
fn a_reader_that_goes_away_is_a_success() {
    let rig = Rig::after_six_trials();
    let mut child = rig.start(&["log"]);
    drop(child.stdout.take());
    let outcome = rig.finish(child);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
}

#[test]
fn colour_is_shown_only_where_it_is_wanted() {
    let rig = Rig::after_six_trials();
    let coloured = |variables: &[(&str, &str)]| {
        let mut command = rig.command(&["log"]);
        command.envs(variables.iter().copied());
        rig.finish(spawn(&mut command)).success().contains('\x1b')
    };
    assert!(!coloured(&[]), "a pipe gets no colour");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}
