//! Verifying what a run names outside of itself: git objects, the run it was forked from, refs.

mod common;

use std::cell::RefCell;

use common::{Driver, KEYS, Tally, lease, open, run_id, tree_of};
use loopwright_core::batch::Batch;
use loopwright_core::event::{EVENT_SCHEMA, Event, Scope, Scrub};
use loopwright_core::ids::RunId;
use loopwright_core::kernel::{Basis, RunStarted, kind};
use loopwright_core::time::Micros;
use loopwright_core::turn::Given;
use loopwright_record::{
    Checks, FindingKind, Folding, GitCheck, JOURNAL_FILE, Journal, OpenMode, RefAct, RefTarget,
    Store, VerifyError, verify,
};
use rusqlite::Connection;
use serde_json::json;

struct Objects {
    faults: Vec<String>,
    missing: Vec<String>,
    asked: RefCell<Vec<String>>,
}

impl GitCheck for Objects {
    fn faults(&self) -> Vec<String> {
        self.faults.clone()
    }

    fn missing(&self, oids: &[String]) -> Vec<String> {
        self.asked.borrow_mut().extend_from_slice(oids);
        let missing = oids.iter().filter(|oid| self.missing.contains(oid));
        missing.cloned().collect()
    }
}

fn started(store: &mut Store, run: &RunId, settled: u64) -> (Driver, Vec<Batch>) {
    let held = lease(store, run);
    let mut driver = Driver::new(run, held.epoch());
    let mut batches = vec![driver.start(9)];
    for _ in 0..settled {
        batches.push(driver.settle_plain());
    }
    for batch in &batches {
        store.append(batch).unwrap();
    }
    held.release(store).unwrap();
    (driver, batches)
}

#[test]
fn git_objects_that_are_missing_are_named_with_the_event_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    started(&mut store, &run, 3);
    let objects = Objects {
        faults: Vec::new(),
        missing: vec![tree_of(2)],
        asked: RefCell::default(),
    };
    let checks = Checks {
        git: Some(&objects),
        fold: None,
    };
    let report = verify(&store, &run, checks).unwrap();
    assert_eq!(
        *objects.asked.borrow(),
        [tree_of(1), tree_of(2), tree_of(3)]
    );
    assert_eq!(report.counts.git_objects, 3);
    let [finding] = &report.findings[..] else {
        panic!("{:?}", report.findings);
    };
    assert_eq!((finding.kind, finding.batch), (FindingKind::Git, Some(2)));
    assert!(finding.words.contains(&tree_of(2)), "{}", finding.words);
    assert_eq!(report.skipped, ["whether the machine accepts the events"]);
    assert!(report.not_proved[0].contains("cut off its end"));
    let nobody = verify(&store, &run_id("nobody"), Checks::default());
    assert!(matches!(nobody, Err(VerifyError::NoSuchRun(_))));
}

/// A run that stands on an event of another.
fn fork(store: &mut Store, basis: &Basis) -> RunId {
    let run = run_id("fork");
    let held = lease(store, &run);
    let body = RunStarted {
        loop_name: loopwright_core::ids::LoopName::new("speed").unwrap(),
        kind: "experiment".to_owned(),
        machine: 1,
        policies: Vec::new(),
        release: "0.0.0".to_owned(),
        limits: loopwright_core::budget::Limits::default(),
        parent: None,
        basis: Some(basis.clone()),
        specification: json!({"trials": 1}),
    };
    let event = Event {
        schema: EVENT_SCHEMA,
        run: run.clone(),
        seq: 0,
        parents: vec![basis.event],
        kind: kind::RUN_STARTED.to_owned(),
        scope: Scope::run(),
        effect: None,
        attempt: None,
        time: Micros(1_000_000),
        scrub: Scrub {
            rules: 0,
            values: 0,
        },
        body: Given::new(kind::RUN_STARTED, &body).body,
    };
    let events = vec![event.seal().unwrap()];
    store
        .append(&Batch::new(run.clone(), 0, None, held.epoch(), events).unwrap())
        .unwrap();
    run
}

#[test]
fn a_fork_stands_on_an_event_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let (_, batches) = started(&mut store, &run, 2);
    let shared = &batches[1].events[0];
    let basis = Basis {
        run: run.clone(),
        event: shared.id,
        seq: shared.event.seq,
    };
    let forked = fork(&mut store, &basis);
    assert_eq!(store.run(&forked).unwrap().unwrap().basis, Some(basis));
    let report = verify(&store, &forked, Checks::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    store.close().unwrap();

    let raw = Connection::open(folder.path().join(JOURNAL_FILE)).unwrap();
    raw.execute_batch("UPDATE event SET id = zeroblob(32) WHERE run = 1 AND batch = 1")
        .unwrap();
    let store = Store::open(folder.path(), OpenMode::Read).unwrap();
    let report = verify(&store, &forked, Checks::default()).unwrap();
    assert!(
        report.findings[0]
            .words
            .contains("from which it was forked")
    );

    let elsewhere = tempfile::tempdir().unwrap();
    let mut other = open(elsewhere.path());
    let basis = Basis {
        run,
        event: shared.id,
        seq: shared.event.seq,
    };
    let forked = fork(&mut other, &basis);
    let report = verify(&other, &forked, Checks::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert!(
        report
            .skipped
            .iter()
            .any(|words| words.contains("isn't in this store"))
    );
}

#[test]
fn what_only_copies_the_record_is_compared_with_it() {
    let harms = [
        ("DELETE FROM key WHERE seq > 5", FindingKind::Index),
        (
            "UPDATE key SET value = 'x' WHERE seq > 5",
            FindingKind::Index,
        ),
        (
            "INSERT INTO key (run, name, value, seq) VALUES (1, 'tree', 'y', 1)",
            FindingKind::Index,
        ),
        ("UPDATE ref SET seq = 1", FindingKind::Ref),
        ("UPDATE ref SET event = zeroblob(32)", FindingKind::Ref),
        ("UPDATE lease SET epoch = 0", FindingKind::Chain),
        (
            "UPDATE run SET ended_reason = 'finished'",
            FindingKind::Index,
        ),
        ("UPDATE run SET invocation = NULL", FindingKind::Index),
        (
            "INSERT INTO event SELECT place + 9, batch, kind, part, NULL, NULL, id, bytes FROM event WHERE seq = 8",
            FindingKind::Chain,
        ),
    ];
    for (harm, kind) in harms {
        let folder = tempfile::tempdir().unwrap();
        let run = run_id("r1");
        let mut store = open(folder.path());
        store.index_keys(KEYS).unwrap();
        let (_, batches) = started(&mut store, &run, 3);
        let event = &batches[2].events[0];
        let target = RefTarget {
            run: run.clone(),
            seq: event.event.seq,
            event: event.id,
        };
        let act = RefAct {
            who: "ada".to_owned(),
            at: Micros(1),
            why: String::new(),
        };
        store
            .move_ref("tags/one", None, Some(&target), &act)
            .unwrap();
        let check = |store: &Store| {
            let mut fold = Folding::<Tally>::new(&run);
            let checks = Checks {
                git: None,
                fold: Some(&mut fold),
            };
            verify(store, &run, checks).unwrap()
        };
        let sound = check(&store);
        assert!(sound.is_sound(), "{:?}", sound.findings);
        assert_eq!(sound.counts.refs, 1);
        let raw = Connection::open(folder.path().join(JOURNAL_FILE)).unwrap();
        let columns = if harm.contains("SELECT place") {
            harm.replace(
                "INSERT INTO event",
                "INSERT INTO event (place, batch, kind, part, effect, attempt, id, bytes)",
            )
        } else {
            harm.to_owned()
        };
        raw.execute_batch(&columns).unwrap();
        let report = check(&store);
        let kinds: Vec<_> = report.findings.iter().map(|finding| finding.kind).collect();
        assert!(kinds.contains(&kind), "{harm}: {:?}", report.findings);
    }
}

#[test]
fn a_report_serialises_for_machines() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    started(&mut store, &run, 1);
    let report = verify(&store, &run, Checks::default()).unwrap();
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!(value["run"], json!("r1"));
    assert_eq!(value["counts"]["batches"], json!(2));
    assert_eq!(value["findings"], json!([]));
}

#[test]
fn a_reader_beside_a_writer_sees_whole_batches_only() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    store.append(&driver.start(60)).unwrap();
    let path = folder.path().to_owned();
    let reader = std::thread::spawn(move || {
        let run = run_id("r1");
        let mut seen = 0;
        while seen < 60 {
            let store = Store::open(&path, OpenMode::Read).unwrap();
            let report = verify(&store, &run, Checks::default()).unwrap();
            assert!(report.is_sound(), "{:?}", report.findings);
            assert!(report.counts.batches > seen, "it never goes back");
            seen = report.counts.batches - 1;
        }
    });
    for _ in 0..60 {
        store.append(&driver.settle_plain()).unwrap();
    }
    reader.join().unwrap();
}
