//! `config show`.

use crate::support::{Rig, normal, spawn};

#[test]
fn values_are_shown_with_where_they_come_from() {
    let rig = Rig::new();
    let mut command = rig.command(&["config", "show", "--min-delta", "0.5"]);
    let child = spawn(command.env("LOOPWRIGHT_TRIALS", "7"));
    let shown = rig.finish(child).success();
    insta::assert_snapshot!(normal(&shown, rig.root()));
}

#[test]
fn as_json_there_is_one_object_a_line() {
    let rig = Rig::new();
    let shown = rig.run(&["config", "show", "--json"]).success();
    let rows: Vec<serde_json::Value> = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let metric = rows.iter().find(|row| row["key"] == "metric").unwrap();
    assert_eq!(metric["value"], "m");
    assert_eq!(metric["origin"]["from"], "file");
    assert_eq!(metric["origin"]["line"], 3);
}

#[test]
fn the_file_is_found_from_a_folder_below() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.project().join("a/b")).unwrap();
    let shown = rig.run(&["-C", "a/b", "config", "show"]).success();
    assert!(shown.contains("../../loopwright.toml:3"), "{shown}");
}
