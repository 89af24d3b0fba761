//! `verify`.

use crate::support::Rig;

#[test]
fn a_sound_record_is_called_sound_and_what_is_not_proved_is_said() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["verify"]).normal());
}

#[test]
fn a_missing_git_object_is_named() {
    let rig = Rig::after_six_trials();
    let shown = rig.run(&["show", "5", "--json"]).success();
    let row: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let commit = row["candidate"]["commit"].as_str().unwrap();
    let (folder, name) = commit.split_at(2);
    let objects = rig.project().join(".git/loopwright/objects.git/objects");
    std::fs::remove_file(objects.join(folder).join(name)).unwrap();
    let outcome = rig.run(&["verify"]);
    assert_eq!(outcome.code, 7, "{outcome:?}");
    assert!(
        outcome.stdout.contains("WRONG") && outcome.stdout.contains(commit),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_changed_file_of_a_kept_tree_is_found() {
    let rig = Rig::after_six_trials();
    let blob = rig.git(&["rev-parse", "loopwright/speed/main:n"]);
    let (folder, name) = blob.trim().split_at(2);
    let path = rig
        .project()
        .join(".git/loopwright/objects.git/objects")
        .join(folder)
        .join(name);
    let other = rig.git(&["rev-parse", "loopwright/speed/main~1:n"]);
    let (folder, name) = other.trim().split_at(2);
    let other = rig
        .project()
        .join(".git/loopwright/objects.git/objects")
        .join(folder)
        .join(name);
    // A whole object, but of another content.
    std::fs::remove_file(&path).unwrap();
    std::fs::copy(other, path).unwrap();
    assert_eq!(rig.run(&["verify"]).code, 7);
}

#[test]
fn as_json_it_is_one_object() {
    let rig = Rig::after_six_trials();
    let report: serde_json::Value =
        serde_json::from_str(&rig.run(&["verify", "--json"]).success()).unwrap();
    assert_eq!(report["findings"], serde_json::json!([]));
    assert!(report["counts"]["git_objects"].as_u64().unwrap() > 5);
}
