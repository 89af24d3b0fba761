//! C16, a to c: hooks and commit trouble, in place, beside the checkout and at an adoption.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use loopwright_core::ids::LoopName;
use loopwright_record::{OpenMode, Select, Store};
use serde_json::Value;

use crate::rig::Rig;

fn hook(rig: &Rig, name: &str, text: &str) {
    let path = rig.repository().join(".git/hooks").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn beside_the_checkout_no_hook_runs() {
    let rig = Rig::new();
    for name in ["pre-commit", "post-checkout", "reference-transaction"] {
        hook(&rig, name, "touch \"$OUTSIDE/ran\"; exit 1");
    }
    let before = rig.users();
    let kept = rig.trial("echo 5 > x", &[]);
    assert_eq!(kept["outcome"], "kept", "{kept}");
    assert!(!rig.path("ran").exists(), "a hook ran");
    before.expect_same(&rig.users(), "the user's");
}

#[test]
fn in_place_a_rewritten_commit_is_not_kept_as_measured() {
    let rig = Rig::new();
    hook(&rig, "pre-commit", "echo 77 > x; git add x");
    let trial = rig.trial("echo 5 > x", &["--in-place"]);
    assert_ne!(trial["outcome"], "kept", "{trial}");
    // What was proposed and what the hook made of it were both measured.
    let readings: Vec<_> = trial["readings"].as_array().unwrap().iter().collect();
    let values: Vec<_> = readings.iter().map(|taken| &taken["value"]).collect();
    assert_eq!(values, [5.0, 5.0, 77.0], "{trial}");
    assert_eq!(rig.git(&["show", "main:x"]), "10\n");
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
}

#[test]
fn in_place_a_refused_commit_loses_nothing() {
    for refused_by_hook in [true, false] {
        let rig = Rig::new();
        if refused_by_hook {
            hook(&rig, "pre-commit", "echo not today >&2; exit 1");
        } else {
            rig.git(&["config", "commit.gpgsign", "true"]);
            rig.git(&["config", "gpg.program", "false"]);
        }
        let trial = rig.trial("echo 5 > x", &["--in-place"]);
        assert_ne!(trial["outcome"], "kept", "{trial}");
        assert!(rig.loopwright(&["diff", "1"]).contains("+5"));
        assert_eq!(rig.git(&["show", "main:x"]), "10\n");
        assert_eq!(rig.git(&["status", "--porcelain"]), "");
        let why = trial["why"].as_str().unwrap();
        assert!(why.contains("the commit was refused"), "{trial}");
        // Once the trouble is gone, the improvement can still be had.
        if refused_by_hook {
            fs::remove_file(rig.repository().join(".git/hooks/pre-commit")).unwrap();
        } else {
            rig.git(&["config", "--unset", "commit.gpgsign"]);
        }
        rig.loopwright(&["adopt", "1"]);
        assert_eq!(rig.git(&["show", "main:x"]), "5\n");
    }
}

/// What the record says came of the newest adoption.
fn came(rig: &Rig) -> Value {
    let store = Store::open(&rig.repository().join(".git/loopwright"), OpenMode::Read).unwrap();
    let name = LoopName::new("default").unwrap();
    let run = store.latest_run(&name).unwrap().unwrap().run;
    let newest = store.events_of_kind(&run, "operator.act", Select::newest(1));
    let act = newest.unwrap().remove(0).sealed.event;
    assert_eq!(act.body["act"], "result.adopted", "{act:?}");
    act.body["arguments"].clone()
}

/// Nobody measured what the hook makes of it.
#[test]
fn at_an_adoption_a_rewritten_commit_is_taken_back_and_both_trees_are_recorded() {
    for script in ["echo 77 > x; git add x", "echo 1 > new; git add new"] {
        let rig = Rig::new();
        assert_eq!(rig.trial("echo 5 > x", &[])["outcome"], "kept");
        hook(&rig, "pre-commit", script);
        let stands = || rig.git(&["rev-parse", "HEAD"]) + &rig.git(&["status", "--porcelain"]);
        let before = stands();
        let words = rig.refusal(2, &["adopt", "1"]);
        assert!(
            words.contains("a hook changed what was to be committed"),
            "{words}"
        );
        assert_eq!(stands(), before);
        let came = came(&rig);
        assert_eq!(came["result"], "not_adopted", "{came}");
        let kept = rig.git(&["rev-parse", "loopwright/default/main^{tree}"]);
        assert_eq!(came["expected_tree_id"], kept.trim(), "{came}");
        assert_ne!(came["tree_id"], came["expected_tree_id"], "{came}");
        fs::remove_file(rig.repository().join(".git/hooks/pre-commit")).unwrap();
        rig.loopwright(&["adopt", "1"]);
        assert_eq!(rig.git(&["show", "main:x"]), "5\n");
        rig.loopwright(&["verify"]);
    }
}

#[test]
fn at_an_adoption_a_refused_commit_loses_nothing() {
    for (refused_by_hook, reason) in [(true, "not today"), (false, "sign")] {
        let rig = Rig::new();
        assert_eq!(rig.trial("echo 5 > x", &[])["outcome"], "kept");
        if refused_by_hook {
            hook(&rig, "pre-commit", "echo not today >&2; exit 1");
        } else {
            rig.git(&["config", "commit.gpgsign", "true"]);
            rig.git(&["config", "gpg.program", "false"]);
        }
        let before = rig.users();
        let done = rig.tool(&["adopt", "1"]).output().unwrap();
        let words = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{words}");
        assert!(words.contains(reason), "{words}");
        let now = rig.users();
        let mut changed = before.differing(&now);
        // It was written and put back: at another time, with the same content (the status is empty).
        changed.retain(|entry| !["x", ".git/index"].contains(entry));
        assert!(changed.is_empty(), "touched: {changed:?}");
        assert_eq!(rig.git(&["status", "--porcelain"]), "");
        let came = came(&rig);
        assert_eq!(came["result"], "not_adopted", "{came}");
        assert!(came["why"].as_str().unwrap().contains(reason), "{came}");
        // Once the trouble is gone, it can be had.
        if refused_by_hook {
            fs::remove_file(rig.repository().join(".git/hooks/pre-commit")).unwrap();
        } else {
            rig.git(&["config", "--unset", "commit.gpgsign"]);
        }
        rig.loopwright(&["adopt", "1"]);
        assert_eq!(rig.git(&["show", "main:x"]), "5\n");
    }
}
