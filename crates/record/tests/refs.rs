//! Refs and the notes of running commands.

mod common;

use common::{Driver, effect, lease, open, run_id};
use loopwright_core::digest::Digest;
use loopwright_core::time::Micros;
use loopwright_record::{Journal, RefAct, RefError, RefTarget, RunningCommand, check_ref_name};

fn act(who: &str, at: i64) -> RefAct {
    RefAct {
        who: who.to_owned(),
        at: Micros(at),
        why: "because".to_owned(),
    }
}

#[test]
fn refs_move_by_compare_and_swap_and_every_move_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let held = lease(&store, &run);
    let batch = Driver::new(&run, held.epoch()).start(3);
    store.append(&batch).unwrap();
    let target = |index: usize| RefTarget {
        run: run.clone(),
        seq: index as u64,
        event: batch.events[index].id,
    };
    let (first, second) = (target(0), target(1));
    let name = "tags/first";
    store
        .move_ref(name, None, Some(&first), &act("ada", 1))
        .unwrap();
    let refused = store
        .move_ref(name, None, Some(&second), &act("ben", 2))
        .unwrap_err();
    assert!(
        matches!(refused, RefError::Moved { found: Some(found), .. } if found == first.event),
        "{refused}"
    );
    store
        .move_ref(name, Some(first.event), Some(&second), &act("cyd", 3))
        .unwrap();
    assert_eq!(store.find_ref(name).unwrap(), Some(second.clone()));
    store
        .move_ref("experiments/best", None, Some(&first), &act("ada", 4))
        .unwrap();
    let names = |prefix: &str| -> Vec<String> {
        let refs = store.refs(prefix).unwrap();
        refs.into_iter().map(|found| found.name).collect()
    };
    assert_eq!(names(""), ["experiments/best", name]);
    assert_eq!(names("tags/"), [name]);
    store
        .move_ref(name, Some(second.event), None, &act("dan", 5))
        .unwrap();
    assert_eq!(store.find_ref(name).unwrap(), None);
    let log: Vec<_> = store
        .reflog(name)
        .unwrap()
        .into_iter()
        .map(|moved| (moved.act.who, moved.old, moved.new))
        .collect();
    let (one, two) = (Some(first.event), Some(second.event));
    assert_eq!(
        log,
        [
            ("dan".to_owned(), two, None),
            ("cyd".to_owned(), one, two),
            ("ada".to_owned(), None, one)
        ]
    );
    let nowhere = RefTarget {
        event: Digest::of_content(b"nothing"),
        ..first
    };
    let refused = store
        .move_ref(name, None, Some(&nowhere), &act("eve", 6))
        .unwrap_err();
    assert!(matches!(refused, RefError::NoSuchEvent { .. }), "{refused}");
    assert_eq!(store.reflog(name).unwrap().len(), 3);
}

#[test]
fn names_are_of_a_known_family_and_plain() {
    for good in ["tags/a", "experiments/speed/2", "promotions/v1.0"] {
        check_ref_name(good).unwrap();
    }
    for bad in [
        "",
        "tags",
        "tags/",
        "tags//a",
        "heads/a",
        "tags/../a",
        "tags/a b",
        "/tags/a",
        "tags/a/",
    ] {
        assert!(check_ref_name(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn running_commands_are_listed_until_they_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let command = |run: &str, name: &str, attempt| RunningCommand {
        run: run_id(run),
        effect: effect(name),
        attempt,
        pid: 4_000_000,
        start_time: 12,
        boot_id: "boot".to_owned(),
    };
    let (first, second) = (
        command("r1", "t1/measure/../x", 1),
        command("r1", "t1/measure/../x", 2),
    );
    for command in [&second, &first, &first, &command("r2", "t1", 1)] {
        store.running().add(command).unwrap();
    }
    std::fs::write(folder.path().join("running/r1.999999998.7.json"), "{").unwrap();
    let listed = store.running().list(&first.run).unwrap();
    assert_eq!(listed, [first.clone(), second.clone()]);
    for _ in 0..2 {
        store
            .running()
            .remove(&first.run, &first.effect, 1)
            .unwrap();
    }
    let listed = store.running().list(&first.run).unwrap();
    assert_eq!(listed, std::slice::from_ref(&second));
    // A note of another process, which is dead: found by whoever comes after, and taken away by it.
    let third = command("r1", "t2", 1);
    let text = serde_json::to_vec(&third).unwrap();
    std::fs::write(folder.path().join("running/r1.999999999.0.json"), text).unwrap();
    let other = open(folder.path());
    let both = [second.clone(), third.clone()];
    assert_eq!(other.running().list(&first.run).unwrap(), both);
    // Clearing takes away what names nobody, and nothing else.
    other.running().clear(&first.run).unwrap();
    assert_eq!(other.running().list(&first.run).unwrap(), both);
    assert!(!folder.path().join("running/r1.999999998.7.json").exists());
    // What can't be read may name somebody.
    let unreadable = folder.path().join("running/r1.999999997.0.json");
    std::fs::create_dir(&unreadable).unwrap();
    assert!(store.running().list(&first.run).is_err());
    assert!(store.running().clear(&first.run).is_err());
    std::fs::remove_dir(&unreadable).unwrap();
    // One of a process that lives (every system's first) may be about to be written.
    let alive = folder.path().join("running/r1.1.0.json");
    std::fs::write(&alive, "").unwrap();
    other.running().clear(&first.run).unwrap();
    assert!(alive.exists());
    other
        .running()
        .remove(&third.run, &third.effect, 1)
        .unwrap();
    assert_eq!(store.running().list(&first.run).unwrap(), [second]);
}
