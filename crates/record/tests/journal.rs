//! Appending and reading back: the chain, its refusals, folding, and the indexes.

mod common;

use common::{Driver, KEYS, Tally, lease, open, run_id, tree_of};
use loopwright_record::{
    Along, AppendError, Journal, OpenMode, Select, Snapshot, Store, load, load_from_scratch,
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
    let seq = store
        .first_with_key(&run, "tree", &tree_of(7))
        .unwrap()
        .unwrap();
    let entry = store.event(&run, seq).unwrap().unwrap();
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
