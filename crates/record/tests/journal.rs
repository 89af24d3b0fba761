//! Appending and reading back: the chain, its refusals, folding, and the indexes.

mod common;

use common::{Driver, KEYS, Tally, lease, open, run_id, tree_of};
use loopwright_core::batch::Batch;
use loopwright_core::time::Micros;
use loopwright_record::{
    Along, AppendError, InMemory, Journal, LoadError, OpenMode, Select, Snapshot, Store, load,
    load_from_scratch, load_to_drive,
};

#[test]
fn what_was_appended_reads_back_and_folds_alike_from_scratch_and_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    store.index_keys(KEYS).unwrap();
    let lease = lease(&store, &run);
    let mut driver = Driver::new(&run, lease.epoch());
    let mut written = vec![driver.start(20)];
    store.append(&written[0]).unwrap();
    for trial in 1..=12 {
        let batch = driver.settle_plain();
        let snapshot = Snapshot::of(&driver.run).unwrap();
        let along = if trial % 3 == 0 {
            Along::snapshot(&snapshot)
        } else {
            Along::default()
        };
        store.append_with(&batch, along).unwrap();
        written.push(batch);
    }
    store.close().unwrap();

    let store = Store::open(folder.path(), OpenMode::Read).unwrap();
    let read: Vec<_> = store
        .batches(&run, 0)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(read, written);
    let later: Vec<_> = store
        .batches(&run, 5)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(later, written[5..]);
    let head = store.head(&run).unwrap().unwrap();
    assert_eq!((head.n, head.digest), (12, written[12].digest));
    assert_eq!(
        store.snapshots(&run).unwrap().len(),
        2,
        "the last two are kept"
    );
    let fast = load::<Tally>(&store, &run).unwrap();
    let slow = load_from_scratch::<Tally>(&store, &run).unwrap();
    assert_eq!(fast, slow);
    assert_eq!(fast, driver.run);

    let decided = store
        .events_of_kind(&run, "trial.decided", Select::newest(2))
        .unwrap();
    let trials: Vec<_> = decided
        .iter()
        .map(|entry| entry.sealed.event.scope.trial.unwrap())
        .collect();
    assert_eq!(trials, [12, 11]);
    let found = store.all_with_key(&run, "tree", &tree_of(7)).unwrap();
    let entry = store.event(&run, found[0]).unwrap().unwrap();
    assert_eq!(entry.sealed.event.scope.trial, Some(7));
    let of_trial = store.events_of_trial(&run, 7).unwrap();
    let kinds: Vec<_> = of_trial
        .iter()
        .map(|entry| entry.sealed.event.kind.as_str())
        .collect();
    assert_eq!(
        kinds,
        ["effect.announced", "effect.settled", "trial.decided"]
    );
}

#[test]
fn a_batch_that_exists_or_does_not_follow_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let lease = lease(&store, &run);
    let mut driver = Driver::new(&run, lease.epoch());
    let batches = [
        driver.start(5),
        driver.settle_plain(),
        driver.settle_plain(),
    ];
    let refused = store.append(&batches[1]).unwrap_err();
    assert!(
        matches!(refused, AppendError::NotNext { n: 1, .. }),
        "{refused}"
    );
    store.append(&batches[0]).unwrap();
    store.append(&batches[1]).unwrap();
    let refused = store.append(&batches[1]).unwrap_err();
    assert!(
        matches!(refused, AppendError::Exists { n: 1, .. }),
        "{refused}"
    );
    store.append(&batches[2]).unwrap();
    assert_eq!(store.batches(&run, 0).unwrap().count(), 3);
}

/// The two journals side by side.
fn both(folder: &std::path::Path, run: &loopwright_core::ids::RunId) -> (Store, InMemory, u64) {
    let store = open(folder);
    let mut memory = InMemory::new();
    let held = lease(&store, run);
    assert_eq!(memory.take_over(run), held.epoch());
    let epoch = held.epoch();
    (store, memory, epoch)
}

fn variant(error: &AppendError) -> String {
    let text = format!("{error:?}");
    text.split([' ', '(']).next().unwrap().to_owned()
}

#[test]
fn the_journal_in_memory_refuses_and_reads_as_the_durable_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let (mut store, mut memory, epoch) = both(folder.path(), &run);
    let mut driver = Driver::new(&run, epoch);
    let batches: Vec<_> = std::iter::once(driver.start(6))
        .chain((0..6).map(|_| driver.settle_plain()))
        .collect();
    let fenced = Driver::new(&run, epoch + 1).start(6);
    let mut other_digest = batches[0].clone();
    other_digest.digest = batches[1].digest;
    let mut other_bytes = batches[0].clone();
    other_bytes.events[0].bytes.push(b' ');
    let second = batches[1].header.clone();
    let headless = Batch::new(run.clone(), 0, None, epoch, batches[1].events.clone()).unwrap();
    let twice = Batch::new(
        run.clone(),
        second.n,
        second.previous,
        epoch,
        again(&batches[0]),
    )
    .unwrap();
    let steps = [
        (&fenced, "Fenced"),
        (&batches[1], "NotNext"),
        (&headless, "NotNext"),
        (&other_digest, "Inconsistent"),
        (&other_bytes, "Inconsistent"),
        (&batches[0], ""),
        (&batches[0], "Exists"),
        (&twice, "Duplicate"),
        (&batches[2], "NotNext"),
        (&batches[1], ""),
        (&batches[2], ""),
    ];
    for (index, (batch, wanted)) in steps.into_iter().enumerate() {
        let durable = store.append(batch).map_err(|error| variant(&error));
        let in_memory = memory.append(batch).map_err(|error| variant(&error));
        assert_eq!(durable, in_memory, "step {index}");
        assert_eq!(durable.err().unwrap_or_default(), wanted, "step {index}");
    }
    assert_eq!(store.head(&run).unwrap(), memory.head(&run).unwrap());
    for from in 0..4 {
        let durable: Vec<_> = store
            .batches(&run, from)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let in_memory: Vec<_> = memory
            .batches(&run, from)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(durable, in_memory);
    }
    assert_eq!(
        load::<Tally>(&store, &run).unwrap(),
        load::<Tally>(&memory, &run).unwrap()
    );
    let nobody = run_id("nobody");
    assert!(matches!(
        load::<Tally>(&memory, &nobody),
        Err(LoadError::NoSuchRun(_))
    ));
    assert!(matches!(
        load::<Tally>(&store, &nobody),
        Err(LoadError::NoSuchRun(_))
    ));
}

/// The announcement in `batch` once more, as the next event.
fn again(batch: &Batch) -> Vec<loopwright_core::event::Sealed> {
    let announced = batch
        .events
        .iter()
        .find(|sealed| sealed.event.kind == "effect.announced")
        .unwrap();
    let last = batch.events.last().unwrap();
    let event = loopwright_core::event::Event {
        seq: last.event.seq + 1,
        parents: vec![last.id],
        ..announced.event.clone()
    };
    vec![event.seal().unwrap()]
}

#[test]
fn an_event_never_goes_back_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let (mut store, _, epoch) = both(folder.path(), &run);
    let mut driver = Driver::new(&run, epoch);
    let first = driver.start(3);
    store.append(&first).unwrap();
    let last = first.events.last().unwrap();
    let event = loopwright_core::event::Event {
        seq: last.event.seq + 1,
        parents: vec![last.id],
        time: Micros(last.event.time.0 - 1),
        effect: None,
        attempt: None,
        kind: "operator.act".to_owned(),
        ..last.event.clone()
    };
    let batch = Batch::new(
        run.clone(),
        1,
        Some(first.digest),
        epoch,
        vec![event.seal().unwrap()],
    );
    let refused = store.append(&batch.unwrap()).unwrap_err();
    assert!(matches!(refused, AppendError::NotNext { .. }), "{refused}");
}

#[test]
fn selections_have_bounds_order_and_limit() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let (mut store, _, epoch) = both(folder.path(), &run);
    let mut driver = Driver::new(&run, epoch);
    store.append(&driver.start(9)).unwrap();
    for _ in 0..9 {
        store.append(&driver.settle_plain()).unwrap();
    }
    let seqs = |select| -> Vec<u64> {
        let found = store.events(&run, select).unwrap();
        found.iter().map(|entry| entry.sealed.event.seq).collect()
    };
    assert_eq!(
        seqs(Select {
            limit: Some(3),
            ..Select::all()
        }),
        [0, 1, 2]
    );
    let bounded = Select {
        after_seq: Some(4),
        before_seq: Some(8),
        limit: Some(2),
        newest_first: true,
    };
    assert_eq!(seqs(bounded), [7, 6]);
    assert_eq!(
        seqs(Select {
            before_seq: Some(0),
            ..Select::all()
        }),
        [0; 0]
    );
    let announced = store
        .events_of_kind(&run, "effect.announced", Select::all())
        .unwrap();
    assert_eq!(announced.len(), 9, "kinds with effects are found, too");
}

/// What a newer release recorded is read as it is, and not driven on from.
#[test]
fn a_run_with_events_of_another_release_is_read_and_not_driven() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let (mut store, _, epoch) = both(folder.path(), &run);
    let mut driver = Driver::new(&run, epoch);
    let first = driver.start(3);
    store.append(&first).unwrap();
    load_to_drive::<Tally>(&store, &run).unwrap();
    let last = first.events.last().unwrap();
    let event = loopwright_core::event::Event {
        seq: last.event.seq + 1,
        parents: vec![last.id],
        kind: "keep.undone".to_owned(),
        effect: None,
        attempt: None,
        body: serde_json::json!({}),
        ..last.event.clone()
    };
    let sealed = vec![event.seal().unwrap()];
    let batch = Batch::new(run.clone(), 1, Some(first.digest), epoch, sealed).unwrap();
    store.append(&batch).unwrap();
    let read: loopwright_core::turn::Run<Tally> = load(&store, &run).unwrap();
    assert_eq!(read.kernel.next_seq, last.event.seq + 2);
    let words = load_to_drive::<Tally>(&store, &run)
        .unwrap_err()
        .to_string();
    assert!(
        words.contains("events that this loopwright doesn't know: keep.undone"),
        "{words}"
    );
    let kinds = store.kinds(&run).unwrap();
    let expected = [
        "effect.announced",
        "invocation.begun",
        "keep.undone",
        "run.started",
    ];
    assert_eq!(kinds, expected);
    assert!(store.kinds(&run_id("nobody")).unwrap().is_empty());
}
