//! `doctor`.

use crate::support::Rig;

fn findings(rig: &Rig, code: i32) -> Vec<serde_json::Value> {
    let outcome = rig.run(&["doctor", "--json"]);
    assert_eq!(outcome.code, code, "{outcome:?}");
    outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_sound_project_is_called_so_and_nothing_is_written() {
    let rig = Rig::new();
    let found = findings(&rig, 0);
    assert!(
        found.iter().all(|finding| finding["level"] != "refused"),
        "{found:?}"
    );
    for about in [
        "repository",
        "git",
        "identity",
        "store",
        "work folder",
        "containment",
        "protect",
        "commands",
        "checkout",
    ] {
        assert!(
            found.iter().any(|finding| finding["about"] == about),
            "{about}: {found:?}"
        );
    }
    assert!(!rig.project().join(".git/loopwright").exists());
    assert!(!rig.root().join("work").exists());
}

#[test]
fn what_a_run_would_be_refused_for_is_found() {
    let rig = Rig::new();
    rig.write("loopwright.toml", "[loop.speed]\nrun = \"sh mine.sh\"\nmetric = \"m\"\ngoal = \"min\"\nprotect = [\"bensh.sh\"]\n");
    rig.commit_all();
    rig.write("mine.sh", "echo m=1\n");
    let found = findings(&rig, 2);
    let of = |about: &str| {
        found
            .iter()
            .find(|finding| finding["about"] == about)
            .unwrap()
    };
    assert_eq!(of("protect")["level"], "refused");
    assert!(
        of("protect")["hints"][0]
            .as_str()
            .unwrap()
            .contains("bench.sh")
    );
    assert_eq!(of("commands")["level"], "refused");
    assert_eq!(of("checkout")["level"], "note");
}

#[test]
fn a_project_without_a_loop_is_sent_to_init() {
    let rig = Rig::new();
    std::fs::remove_file(rig.project().join("loopwright.toml")).unwrap();
    let outcome = rig.run(&["doctor"]);
    assert!(outcome.stdout.contains("repository"), "{outcome:?}");
    assert!(
        outcome
            .failure(2)
            .contains("hint: or begin with a file: loopwright init")
    );
}
