//! The listing says what the journal says: with its rows, without them, and whatever became of them.

mod common;

use std::path::Path;

use common::{Driver, KEYS, LISTING, Rows, Tally, lease, listings, open, quick_folder, run_id};
use loopwright_core::ids::RunId;
use loopwright_record::{
    Checks, FindingKind, Folding, INDEX_VERSION, JOURNAL_FILE, Journal, ListingSource, OpenMode,
    Select, Store, verify,
};
use rusqlite::Connection;

const TRIALS: u64 = 8;

/// A closed store with one run of some trials.
fn recorded(folder: &Path) -> RunId {
    let run = run_id("r1");
    let mut store = open(folder);
    store.index_keys(KEYS).unwrap();
    store.keep_listing(LISTING).unwrap();
    let held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    store.append(&driver.start(1000)).unwrap();
    for _ in 0..TRIALS {
        store.append(&driver.settle_plain()).unwrap();
    }
    drop(held);
    store.close().unwrap();
    run
}

fn harm(folder: &Path, sql: &str) {
    let raw = Connection::open(folder.join(JOURNAL_FILE)).unwrap();
    raw.execute_batch(sql).unwrap();
}

fn number(folder: &Path, sql: &str) -> i64 {
    let raw = Connection::open(folder.join(JOURNAL_FILE)).unwrap();
    raw.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// What a reader lists, after it was found equal to what the journal gives.
#[track_caller]
fn listed(folder: &Path, run: &RunId) -> Rows {
    let store = Store::open(folder, OpenMode::Read).unwrap();
    let [rows, journal] = listings(&store, run, Select::all()).map(Result::unwrap);
    assert_eq!(rows, journal);
    rows
}

#[test]
fn rows_are_read_where_they_are_whole_and_made_where_they_are_not() {
    let sound = quick_folder();
    let run = recorded(sound.path());
    let wanted = listed(sound.path(), &run);
    assert_eq!(wanted.len() as u64, TRIALS);
    let rows = number(sound.path(), "SELECT count(*) FROM listing");
    assert_eq!(rows as u64, TRIALS);
    for sql in [
        "UPDATE listing SET bytes = x'00' WHERE place % 2 = 0",
        "UPDATE listing SET bytes = (SELECT bytes FROM listing ORDER BY place LIMIT 1)",
        "UPDATE listing SET checksum = 7",
        "DELETE FROM listing WHERE place IN (SELECT place FROM listing LIMIT 3)",
        "DELETE FROM listing",
        "INSERT INTO listing (place, checksum, bytes) SELECT place + 1, checksum, bytes FROM listing",
        "DELETE FROM meta WHERE name = 'listing_version'",
        "UPDATE meta SET value = '0' WHERE name = 'listing_version'",
    ] {
        let folder = quick_folder();
        let run = recorded(folder.path());
        harm(folder.path(), sql);
        assert_eq!(listed(folder.path(), &run), wanted, "{sql}");
    }
}

#[test]
fn an_older_store_is_listed_without_rows_and_gets_them_from_the_next_writer() {
    let folder = quick_folder();
    let run = recorded(folder.path());
    let wanted = listed(folder.path(), &run);
    harm(
        folder.path(),
        "DROP TABLE listing;
         DELETE FROM meta WHERE name = 'listing_version';
         UPDATE meta SET value = '1' WHERE name = 'index_version'",
    );
    assert_eq!(listed(folder.path(), &run), wanted);
    let mut store = Store::open(folder.path(), OpenMode::Write).unwrap();
    store.keep_listing(LISTING).unwrap();
    store.close().unwrap();
    assert_eq!(listed(folder.path(), &run), wanted);
    let rows = number(folder.path(), "SELECT count(*) FROM listing");
    assert_eq!(rows as u64, TRIALS);
    let sql = "SELECT value FROM meta WHERE name = 'index_version'";
    let raw = Connection::open(folder.path().join(JOURNAL_FILE)).unwrap();
    let version: String = raw.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(version, INDEX_VERSION.to_string());
}

#[test]
fn what_a_writer_without_the_source_recorded_is_listed_and_made_up_for() {
    let folder = quick_folder();
    let run = run_id("r1");
    let mut store = open(folder.path());
    store.keep_listing(LISTING).unwrap();
    let held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    store.append(&driver.start(9)).unwrap();
    store.append(&driver.settle_plain()).unwrap();
    let mut other = open(folder.path());
    other.append(&driver.settle_plain()).unwrap();
    other.append(&driver.settle_plain()).unwrap();
    assert_eq!(listed(folder.path(), &run).len(), 3);
    let count = || number(folder.path(), "SELECT count(*) FROM listing");
    assert_eq!(count(), 1);
    store.append(&driver.settle_plain()).unwrap();
    assert_eq!(listed(folder.path(), &run).len(), 4);
    assert_eq!(count(), 4);
}

#[test]
fn rows_of_another_version_are_made_anew() {
    fn other(events: &[loopwright_core::event::Event]) -> Result<Vec<u8>, String> {
        let first = events.first().ok_or("nothing")?;
        Ok(format!("{} from {}", events.len(), first.kind).into_bytes())
    }
    let folder = quick_folder();
    let run = recorded(folder.path());
    let source = ListingSource {
        version: LISTING.version + 1,
        row_of: other,
        ..LISTING
    };
    let mut store = open(folder.path());
    store.keep_listing(source).unwrap();
    let mut seen = Vec::new();
    store
        .visit_listing(&source, &run, Select::newest(1), |row| {
            seen.push(String::from_utf8(row.bytes.to_vec()).unwrap());
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(seen, ["3 from effect.announced"]);
    let sql = "SELECT count(*) FROM listing WHERE bytes = CAST('3 from effect.announced' AS BLOB)";
    assert_eq!(number(folder.path(), sql) as u64, TRIALS);
    // The release that knows the first version reads on.
    assert_eq!(listed(folder.path(), &run).len() as u64, TRIALS);
}

#[test]
fn a_listing_can_be_read_in_parts_and_backwards() {
    let folder = quick_folder();
    let run = recorded(folder.path());
    harm(folder.path(), "DELETE FROM listing WHERE place % 3 = 0");
    let store = Store::open(folder.path(), OpenMode::Read).unwrap();
    let all = listed(folder.path(), &run);
    let [part, same] = listings(&store, &run, Select::after(all[2].0)).map(Result::unwrap);
    assert_eq!(part, all[3..]);
    assert_eq!(part, same);
    let [newest, same] = listings(&store, &run, Select::newest(3)).map(Result::unwrap);
    let backwards: Rows = all.iter().rev().take(3).cloned().collect();
    assert_eq!(newest, backwards);
    assert_eq!(newest, same);
}

#[test]
fn a_damaged_page_of_rows_hides_nothing() {
    let folder = quick_folder();
    let run = recorded(folder.path());
    let wanted = listed(folder.path(), &run);
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'listing'";
    let page = number(folder.path(), sql);
    let size = number(folder.path(), "PRAGMA page_size");
    let path = folder.path().join(JOURNAL_FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = usize::try_from((page - 1) * size).unwrap();
    bytes[at..at + usize::try_from(size).unwrap()].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(listed(folder.path(), &run), wanted);
}

#[test]
fn verifying_names_a_row_that_says_something_else() {
    let folder = quick_folder();
    let run = recorded(folder.path());
    let findings = || {
        let mut store = Store::open(folder.path(), OpenMode::Read).unwrap();
        store.index_keys(KEYS).unwrap();
        store.keep_listing(LISTING).unwrap();
        let mut fold = Folding::<Tally>::new(&run);
        let checks = Checks {
            git: None,
            fold: Some(&mut fold),
        };
        let report = verify(&store, &run, checks).unwrap();
        let about = |finding: &loopwright_record::Finding| (finding.kind, finding.words.clone());
        report.findings.iter().map(about).collect::<Vec<_>>()
    };
    assert_eq!(findings(), []);
    harm(
        folder.path(),
        "DELETE FROM listing WHERE seq = (SELECT max(seq) FROM listing)",
    );
    assert_eq!(findings(), [], "a missing row is made as it is read");
    harm(
        folder.path(),
        "UPDATE listing SET bytes = x'00' WHERE seq = (SELECT min(seq) FROM listing)",
    );
    let found = findings();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, FindingKind::Index);
    assert!(found[0].1.contains("its row in the listing"), "{found:?}");
}

#[test]
fn damage_to_the_events_is_named_where_the_row_has_to_be_made() {
    let folder = quick_folder();
    let run = recorded(folder.path());
    let wanted = listed(folder.path(), &run);
    harm(
        folder.path(),
        "UPDATE event SET bytes = x'00' WHERE kind = 'trial.decided' AND part = 3",
    );
    let store = Store::open(folder.path(), OpenMode::Read).unwrap();
    let [rows, journal] = listings(&store, &run, Select::all());
    assert_eq!(rows.unwrap(), wanted);
    assert!(journal.unwrap_err().to_string().contains("is damaged"));
    // Made anew over the damage, the row stays to be made by whoever reads it, and names it.
    drop(store);
    harm(
        folder.path(),
        "DELETE FROM meta WHERE name = 'listing_version'",
    );
    let mut store = open(folder.path());
    store.keep_listing(LISTING).unwrap();
    let [rows, _] = listings(&store, &run, Select::all());
    assert!(rows.unwrap_err().to_string().contains("is damaged"));
}
