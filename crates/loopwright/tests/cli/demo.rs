//! `demo`.

use rustix::process::Signal;

use crate::common::await_that;
use crate::support::{Rig, send};

#[test]
fn every_trial_of_the_demo_ends_as_it_was_meant_to() {
    let rig = Rig::bare();
    let outcome = rig.run(&["demo", "--dir", "here"]);
    let report = outcome.stdout.clone();
    assert!(
        report.contains("sound: nothing is wrong") && report.contains("1016 → 700"),
        "{report}"
    );
    let _ = outcome.success();
    let log = rig.run(&["-C", "here/route", "log", "--json"]).success();
    let ended: Vec<String> = log
        .lines()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let value = |name: &str| {
                let value = row["values"][name].as_f64();
                value.map_or_else(|| "-".to_owned(), |value| value.to_string())
            };
            let outcome = row["outcome"].as_str().unwrap();
            format!(
                "{}\t{outcome}\t{}\t{}",
                row["trial"],
                value("length"),
                value("late")
            )
        })
        .collect();
    let expected = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/expected.tsv");
    let expected = std::fs::read_to_string(expected).unwrap();
    let expected: Vec<&str> = expected
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(ended, expected);
}

#[test]
fn unpacked_only_it_says_how_to_go_on() {
    let rig = Rig::bare();
    let outcome = rig.run(&["demo", "--dir", "here", "--no-run"]);
    insta::assert_snapshot!(outcome.normal());
    assert!(rig.project().join("here/route/loopwright.toml").is_file());
    assert!(
        rig.run(&["demo", "--dir", "here"])
            .failure(2)
            .contains("is there already")
    );
}

#[test]
fn an_interrupted_demo_leaves_an_interrupted_run() {
    let rig = Rig::bare();
    let child = rig.start(&["demo", "--dir", "here"]);
    // Trial 5 hangs until its limit, so there is time to come in between.
    await_that("the fifth trial is measured", || {
        let status = rig.run(&["-C", "here/route", "status", "--json"]);
        status.stdout.contains("t5/measure")
    });
    send(&child, Signal::INT);
    let stderr = rig.finish(child).failure(130);
    assert!(stderr.contains("interrupted by SIGINT"), "{stderr}");
    let status = rig.run(&["-C", "here/route", "status"]).success();
    assert!(status.contains("idle: interrupted by SIGINT"), "{status}");
}
