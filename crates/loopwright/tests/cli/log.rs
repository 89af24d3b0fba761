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
fn what_a_trial_took_and_left_is_told_as_when_it_was_decided() {
    let rig = Rig::new();
    let live = rig.run(&["run", "--trials", "6"]).success();
    let log = rig.run(&["log"]).success();
    // What failed had the end of its output below its line.
    let live: Vec<&str> = live.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(log.lines().take(7).collect::<Vec<_>>(), live);
    let rows = rig.run(&["log", "--json"]).success();
    for (row, trial) in rows.lines().zip(0..) {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        let shown = rig.run(&["show", &trial.to_string(), "--json"]).success();
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(row["candidate"], shown["candidate"]["commit"], "{trial}");
        assert_eq!(row["commit"], shown["commit"], "{trial}");
        assert_eq!(row["why"], shown["why"], "{trial}");
        let commands = shown["commands"].as_array().unwrap();
        let took = commands
            .iter()
            .map(|command| command["usage"]["wall_us"].as_u64().unwrap());
        assert_eq!(row["duration_us"], took.sum::<u64>(), "{trial}");
    }
}

#[test]
fn the_listing_says_the_same_without_its_rows() {
    let rig = Rig::after_six_trials();
    let both = || {
        [
            rig.run(&["log"]).success(),
            rig.run(&["log", "--json"]).success(),
        ]
    };
    let with_rows = both();
    let path = rig.project().join(".git/loopwright/journal.db");
    // Every row is of another release.
    let mut bytes = std::fs::read(&path).unwrap();
    let needle = b"listing_version2";
    let at = bytes
        .windows(needle.len())
        .position(|window| window == needle)
        .unwrap();
    bytes[at + needle.len() - 1] = b'0';
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(both(), with_rows);
    // The next writer makes them anew.
    let _ = rig.run(&["baseline"]).success();
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.windows(needle.len()).any(|window| window == needle));
    let verified = rig.run(&["verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
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
