//! What one more trial costs doesn't depend on how many lie behind it.

mod common;

use std::fs;
use std::path::Path;

use common::{Driver, KEYS, LISTING, Tally, lease, open, quick_folder, run_id, tree_of};
use loopwright_record::{Along, JOURNAL_FILE, Journal, Select, Snapshot, Store, load};
use rusqlite::Connection;

/// Few enough that the log isn't copied into the database while they are counted.
const COUNTED: u64 = 100;
const FEW: u64 = 200;
const MANY: u64 = 2_000;

fn settle(store: &mut Store, driver: &mut Driver, trials: u64) {
    for _ in 0..trials {
        let batch = driver.settle_plain();
        let snapshot = batch
            .header
            .n
            .is_multiple_of(64)
            .then(|| Snapshot::of(&driver.run).unwrap());
        let along = Along {
            snapshot: snapshot.as_ref(),
        };
        store.append_with(&batch, along).unwrap();
    }
}

/// Bytes written to the log by the next trials.
fn log_bytes(store: &mut Store, driver: &mut Driver, folder: &Path) -> u64 {
    let database = Connection::open(folder.join(JOURNAL_FILE)).unwrap();
    database
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    settle(store, driver, COUNTED);
    let log = folder.join(format!("{JOURNAL_FILE}-wal"));
    fs::metadata(log).unwrap().len()
}

#[test]
fn a_trial_writes_as_much_after_thousands_as_after_hundreds() {
    let folder = quick_folder();
    let run = run_id("r1");
    let mut store = open(folder.path());
    store.index_keys(KEYS).unwrap();
    store.keep_listing(LISTING).unwrap();
    let held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    store.append(&driver.start(u64::MAX >> 12)).unwrap();
    settle(&mut store, &mut driver, FEW);
    let early = log_bytes(&mut store, &mut driver, folder.path());
    settle(&mut store, &mut driver, MANY - FEW - COUNTED);
    let late = log_bytes(&mut store, &mut driver, folder.path());
    assert!(
        late * 100 <= early * 110,
        "{early} bytes for {COUNTED} trials after {FEW}, {late} after {MANY}"
    );

    // What is looked up is still found.
    assert_eq!(load::<Tally>(&store, &run).unwrap(), driver.run);
    let tree = tree_of(MANY / 2);
    let found = store.all_with_key(&run, "tree", &tree).unwrap();
    let entry = store.event(&run, found[0]).unwrap().unwrap();
    assert_eq!(entry.sealed.event.scope.trial, Some(MANY / 2));
    let decided = store.events_of_kind(&run, "trial.decided", Select::all());
    assert_eq!(decided.unwrap().len() as u64, MANY + COUNTED);
}
