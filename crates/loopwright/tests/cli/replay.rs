//! `replay`.

use std::path::Path;

use loopwright_core::batch::Batch;
use loopwright_core::event::Event;
use loopwright_record::{Journal as _, OpenMode, Store};

use crate::support::Rig;

#[test]
fn every_decision_comes_out_as_it_was_recorded() {
    let rig = Rig::after_six_trials();
    insta::assert_snapshot!(rig.run(&["replay"]).normal());
    let status = rig.status().unwrap();
    let replayed = rig.run(&["replay", "--json"]).success();
    let replayed: serde_json::Value = serde_json::from_str(&replayed).unwrap();
    assert_eq!(replayed["decisions"], status["decisions"]);
    assert_eq!(replayed["difference"], serde_json::Value::Null);
}

/// What a later release recorded can be looked at, and neither driven on nor decided again.
#[test]
fn a_record_of_a_newer_release_is_read_and_not_driven() {
    let rig = Rig::new();
    let _ = rig.run(&["run", "--trials", "1"]).success();
    add_event(&rig.project().join(".git/loopwright"), "keep.undone");
    for command in ["run", "resume --trials 1", "retry 1", "replay"] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let words = rig.run(&arguments).failure(2);
        assert!(
            words.contains("doesn't know: keep.undone") && words.contains("newer one"),
            "{command}: {words}"
        );
    }
    let log = rig.run(&["log"]).success();
    assert!(log.contains("trial   1"), "{log}");
    for command in ["status", "show 1", "verify"] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let _ = rig.run(&arguments).success();
    }
}

/// Records an event of that kind after everything else, as the release that knew it would have.
fn add_event(store: &Path, kind: &str) {
    let mut store = Store::open(store, OpenMode::Create).unwrap();
    let summary = store.runs().unwrap().remove(0);
    let run = summary.run.clone();
    let newest = store.batches(&run, summary.head.n).unwrap().next();
    let newest = newest.unwrap().unwrap();
    let last = newest.events.last().unwrap();
    let event = Event {
        seq: last.event.seq + 1,
        parents: vec![last.id],
        kind: kind.to_owned(),
        effect: None,
        attempt: None,
        body: serde_json::json!({}),
        ..last.event.clone()
    };
    let (n, previous) = (newest.header.n + 1, Some(newest.digest));
    let events = vec![event.seal().unwrap()];
    let batch = Batch::new(run, n, previous, newest.header.epoch, events).unwrap();
    store.append(&batch).unwrap();
    store.close().unwrap();
}
