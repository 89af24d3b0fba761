//! Damage: whatever is changed behind the record's back is named, and nothing wrong is believed.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Driver, KEYS, Tally, lease, open, quick_folder, run_id};
use loopwright_core::batch::Batch;
use loopwright_core::ids::RunId;
use loopwright_record::{
    Along, Checks, FindingKind, Folding, JOURNAL_FILE, Journal, OpenError, OpenMode, ReadError,
    Report, Snapshot, StorageError, Store, VerifyError, load, load_from_scratch, verify,
};
use rusqlite::Connection;
use rusqlite::types::Value;
use serde_json::json;

/// A store with one run of some batches, closed.
fn recorded(folder: &Path, trials: u64) -> (RunId, Vec<Batch>) {
    let run = run_id("r1");
    let mut store = open(folder);
    store.index_keys(KEYS).unwrap();
    let lease = lease(&store, &run);
    let mut driver = Driver::new(&run, lease.epoch());
    let mut batches = vec![driver.start(trials)];
    store.append(&batches[0]).unwrap();
    for trial in 1..=trials {
        let blob = store
            .blobs()
            .put_bytes(format!("output of {trial}").as_bytes())
            .unwrap();
        let batch = driver.settle(json!({"tree": common::tree_of(trial), "log_blob": blob}));
        let snapshot = Snapshot::of(&driver.run).unwrap();
        let along = if trial.is_multiple_of(2) {
            Along::snapshot(&snapshot)
        } else {
            Along::default()
        };
        store.append_with(&batch, along).unwrap();
        batches.push(batch);
    }
    drop(lease);
    store.close().unwrap();
    (run, batches)
}

fn verified(folder: &Path, run: &RunId) -> Result<Report, VerifyError> {
    let mut store = Store::open(folder, OpenMode::Read).unwrap();
    store.index_keys(KEYS).unwrap();
    let mut fold = Folding::<Tally>::new(run);
    let checks = Checks {
        git: None,
        fold: Some(&mut fold),
    };
    verify(&store, run, checks)
}

fn copy_of(from: &Path, to: &Path) -> PathBuf {
    let status = std::process::Command::new("cp")
        .args(["-a", "--"])
        .args([from, to])
        .status()
        .unwrap();
    assert!(status.success());
    to.to_owned()
}

#[test]
fn a_sound_run_verifies_and_says_what_it_does_not_prove() {
    let folder = quick_folder();
    let (run, batches) = recorded(folder.path(), 6);
    let report = verified(folder.path(), &run).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.counts.batches, batches.len() as u64);
    assert_eq!(report.counts.blobs, 6);
    assert_eq!(report.counts.snapshots, 2);
    assert_eq!(report.head, batches.last().unwrap().digest);
    assert_eq!(report.skipped, ["the 6 git objects it names"]);
    assert!(
        report
            .not_proved
            .iter()
            .any(|words| words.contains("signed"))
    );
}

/// The columns that hold something of their own; the generated ones follow `place`.
fn columns(connection: &Connection, table: &str) -> Vec<String> {
    let mut statement = connection
        .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
        .unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

/// Another value of the same type, one byte or one step away.
fn changed(value: &Value, turn: usize) -> Option<Value> {
    let flip = |bytes: &mut Vec<u8>| {
        let at = turn % bytes.len().max(1);
        match bytes.get_mut(at) {
            Some(byte) => *byte ^= 1,
            None => bytes.push(b'1'),
        }
    };
    Some(match value {
        Value::Null | Value::Real(_) => return None,
        Value::Integer(number) => Value::Integer(number ^ 1),
        Value::Text(text) => {
            let mut bytes = text.clone().into_bytes();
            flip(&mut bytes);
            Value::Text(String::from_utf8(bytes).ok()?)
        }
        Value::Blob(bytes) => {
            let mut bytes = bytes.clone();
            flip(&mut bytes);
            Value::Blob(bytes)
        }
    })
}

#[test]
fn a_flipped_byte_in_any_column_of_any_row_is_named() {
    let original = quick_folder();
    let (run, _) = recorded(original.path(), 3);
    let scratch = quick_folder();
    let copy = copy_of(original.path(), &scratch.path().join("store"));
    let database = copy.join(JOURNAL_FILE);
    let (mut turn, mut flipped) = (0, 0);
    for table in ["event", "batch", "run"] {
        let reader = Connection::open(original.path().join(JOURNAL_FILE)).unwrap();
        let key = if table == "run" { "number" } else { "place" };
        let places: Vec<i64> = reader
            .prepare(&format!("SELECT {key} FROM {table}"))
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for place in places {
            for column in columns(&reader, table) {
                let value: Value = reader
                    .query_row(
                        &format!("SELECT {column} FROM {table} WHERE {key} = ?1"),
                        [place],
                        |row| row.get(0),
                    )
                    .unwrap();
                turn += 7;
                let Some(wrong) = changed(&value, turn) else {
                    continue;
                };
                fs::copy(original.path().join(JOURNAL_FILE), &database).unwrap();
                let writer = Connection::open(&database).unwrap();
                writer.pragma_update(None, "foreign_keys", false).unwrap();
                let updated = writer.execute(
                    &format!("UPDATE {table} SET {column} = ?2 WHERE {key} = ?1"),
                    rusqlite::params![place, wrong],
                );
                writer.close().unwrap();
                if updated.is_err() {
                    // Another row has that key: the database itself refuses it.
                    continue;
                }
                let what = format!("{table} {place}: {column} {value:?} -> {wrong:?}");
                assert_named(&copy, &run, table, &column, &what);
                flipped += 1;
            }
        }
    }
    assert!(flipped > 100, "only {flipped} were tried");
}

fn assert_named(copy: &Path, run: &RunId, table: &str, column: &str, what: &str) {
    match verified(copy, run) {
        Ok(report) => assert!(!report.is_sound(), "unseen: {what}"),
        Err(VerifyError::Read(ReadError::Damaged(_))) => {}
        Err(VerifyError::NoSuchRun(_)) if table == "run" && column == "id" => {
            let store = Store::open(copy, OpenMode::Read).unwrap();
            let other = store.runs().unwrap().remove(0).run;
            drop(store);
            assert!(
                !verified(copy, &other).unwrap().is_sound(),
                "unseen: {what}"
            );
        }
        Err(error) => panic!("{what}: {error}"),
    }
    // Neither is anything wrong believed where the run is driven from.
    if table == "run" {
        return;
    }
    let store = Store::open(copy, OpenMode::Read).unwrap();
    match load_from_scratch::<Tally>(&store, run) {
        Err(error) => assert!(error.to_string().contains("damaged"), "{what}: {error}"),
        Ok(_) => panic!("believed: {what}"),
    }
}

#[test]
fn the_place_of_the_damage_is_named() {
    let folder = quick_folder();
    let (run, _) = recorded(folder.path(), 4);
    let database = Connection::open(folder.path().join(JOURNAL_FILE)).unwrap();
    let changed = database
        .execute(
            "UPDATE event SET bytes = CAST(replace(CAST(bytes AS TEXT), 'kept', 'lost') AS BLOB)
             WHERE seq = (SELECT min(seq) FROM event WHERE kind = 'trial.decided')",
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    database.close().unwrap();
    let report = verified(folder.path(), &run).unwrap();
    let finding = &report.findings[0];
    assert_eq!(
        (finding.kind, finding.batch, finding.seq),
        (FindingKind::Chain, Some(1), Some(4))
    );
    assert!(
        finding
            .words
            .starts_with("run r1, batch 1, event 4 is damaged: "),
        "{}",
        finding.words
    );
}

#[test]
fn a_dropped_tail_shows_against_the_recorded_head() {
    let folder = quick_folder();
    let (run, batches) = recorded(folder.path(), 4);
    let database = Connection::open(folder.path().join(JOURNAL_FILE)).unwrap();
    database
        .execute_batch("DELETE FROM batch WHERE n = 4; DELETE FROM snapshot")
        .unwrap();
    database.close().unwrap();
    assert!(!verified(folder.path(), &run).unwrap().is_sound());
    let store = Store::open(folder.path(), OpenMode::Read).unwrap();
    assert!(matches!(store.head(&run), Err(ReadError::Damaged(_))));
    let read: Vec<_> = store.batches(&run, 0).unwrap().collect();
    assert_eq!(
        read.len(),
        batches.len(),
        "all up to the missing one, and an error"
    );
    assert!(read.last().unwrap().is_err());
}

#[test]
fn a_missing_or_damaged_blob_is_named_with_its_event() {
    let folder = quick_folder();
    let (run, batches) = recorded(folder.path(), 2);
    let body = |n: usize| {
        let decided = batches[n]
            .events
            .iter()
            .find(|sealed| sealed.event.kind == "trial.decided");
        decided.unwrap().event.body["log_blob"]
            .as_str()
            .unwrap()
            .replace("sha256:", "")
    };
    let path = |n: usize| folder.path().join("blobs").join(format!("{}.zst", body(n)));
    fs::remove_file(path(1)).unwrap();
    let mut bytes = fs::read(path(2)).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(path(2), bytes).unwrap();
    let report = verified(folder.path(), &run).unwrap();
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.kind, finding.batch))
        .collect();
    assert!(found.contains(&(FindingKind::Blob, Some(1))), "{found:?}");
    assert!(found.contains(&(FindingKind::Blob, Some(2))), "{found:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn a_damaged_or_foreign_snapshot_is_not_used() {
    let folder = quick_folder();
    let (run, _) = recorded(folder.path(), 4);
    let path = folder.path().join(JOURNAL_FILE);
    for harm in [
        "UPDATE snapshot SET bytes = zeroblob(20) WHERE n = 4",
        "UPDATE snapshot SET bytes = zeroblob(20)",
        "UPDATE snapshot SET policies = 'another/2'",
        "UPDATE snapshot SET version = 7",
        "UPDATE snapshot SET batch = zeroblob(32)",
        "UPDATE snapshot SET machine = 'search'",
    ] {
        let database = Connection::open(&path).unwrap();
        database.execute_batch(harm).unwrap();
        database.close().unwrap();
        let store = Store::open(folder.path(), OpenMode::Read).unwrap();
        let loaded = load::<Tally>(&store, &run).unwrap();
        assert_eq!(loaded, load_from_scratch(&store, &run).unwrap(), "{harm}");
        assert_eq!(loaded.kernel.ended.as_ref().unwrap().reason, "finished");
    }
}

/// A cheap generator: the tests must not depend on luck.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

#[test]
fn random_bytes_in_the_database_file_give_typed_errors_or_the_truth() {
    let original = quick_folder();
    let (run, batches) = recorded(original.path(), 30);
    let scratch = quick_folder();
    let copy = copy_of(original.path(), &scratch.path().join("store"));
    let sound = fs::read(original.path().join(JOURNAL_FILE)).unwrap();
    let (mut refused, mut dice) = (0, Dice(7));
    for round in 0..300 {
        let mut bytes = sound.clone();
        let length = [1, 4, 64, 4096][round % 4];
        let at = dice.roll(bytes.len() - length);
        for byte in &mut bytes[at..at + length] {
            *byte = dice.roll(256) as u8;
        }
        fs::write(copy.join(JOURNAL_FILE), &bytes).unwrap();
        let what = format!("round {round}: {length} bytes at {at}");
        match Store::open(&copy, OpenMode::Read) {
            Err(OpenError::Damaged { .. } | OpenError::Foreign(_) | OpenError::Newer { .. }) => {
                refused += 1;
            }
            Err(error) => panic!("{what}: {error}"),
            Ok(store) => {
                if !reads_the_truth(&store, &run, &batches, &what) {
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 100, "only {refused} of 300 were seen");
}

/// Whether all of it was read; what was read before an error must be true either way.
fn reads_the_truth(store: &Store, run: &RunId, batches: &[Batch], what: &str) -> bool {
    let typed = |error: &ReadError| {
        let typed = matches!(
            error,
            ReadError::Damaged(_) | ReadError::Storage(StorageError::Damaged(_))
        );
        assert!(typed, "{what}: {error}");
    };
    match store.head(run) {
        Err(error) => typed(&error),
        Ok(None) => {
            // The run's row can't be found: the run is not there, which verify of the store says.
            let report = store.runs();
            return report.is_ok_and(|runs| runs.len() == 1);
        }
        Ok(Some(head)) => assert_eq!(head.digest, batches.last().unwrap().digest, "{what}"),
    }
    match store.batches(run, 0) {
        Err(error) => {
            typed(&error);
            false
        }
        Ok(read) => {
            for (index, batch) in read.enumerate() {
                match batch {
                    Ok(batch) => assert_eq!(batch, batches[index], "{what}"),
                    Err(error) => {
                        typed(&error);
                        return false;
                    }
                }
            }
            true
        }
    }
}

#[test]
fn a_torn_log_gives_a_prefix_of_whole_batches() {
    let original = quick_folder();
    let run = run_id("r1");
    let mut store = open(original.path());
    let lease = lease(&store, &run);
    let mut driver = Driver::new(&run, lease.epoch());
    let mut batches = vec![driver.start(8)];
    store.append(&batches[0]).unwrap();
    for _ in 0..8 {
        let batch = driver.settle_plain();
        store.append(&batch).unwrap();
        batches.push(batch);
    }
    // While the store is open its log isn't copied into the database, as if it had been killed.
    let file = |folder: &Path, end: &str| folder.join(format!("{JOURNAL_FILE}{end}"));
    let database = fs::read(file(original.path(), "")).unwrap();
    let log = fs::read(file(original.path(), "-wal")).unwrap();
    assert!(log.len() > 40_000);
    let scratch = quick_folder();
    let mut last_length = 0;
    let frame = 4096 + 24;
    let near_a_boundary = |length: &usize| {
        let inside = length.saturating_sub(32) % frame;
        [0, 1, 23, 24, 25, frame - 1].contains(&inside)
    };
    let lengths = (0..=log.len()).filter(|length| near_a_boundary(length) || length % 1999 == 0);
    for length in lengths {
        fs::write(file(scratch.path(), ""), &database).unwrap();
        fs::write(file(scratch.path(), "-wal"), &log[..length]).unwrap();
        let _ = fs::remove_file(file(scratch.path(), "-shm"));
        let store = match Store::open(scratch.path(), OpenMode::Write) {
            Ok(store) => store,
            // The log holds the tables too: cut before them there is no store.
            Err(OpenError::Missing(_)) if last_length == 0 => continue,
            Err(error) => panic!("{length}: {error}"),
        };
        let read: Vec<_> = store
            .batches(&run, 0)
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap_or_else(|error| panic!("{length}: {error}"));
        assert_eq!(read, batches[..read.len()], "{length}");
        assert!(read.len() >= last_length, "{length}");
        last_length = read.len();
    }
    assert_eq!(last_length, batches.len());
}

#[test]
fn a_pipe_in_the_place_of_a_file_of_the_database_holds_nobody() {
    for name in [
        "journal.db",
        "journal.db-wal",
        "journal.db-shm",
        "journal.db-journal",
    ] {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()));
        let path = folder.path().join(name);
        let _ = fs::remove_file(&path);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
        for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Create] {
            let error = Store::open(folder.path(), mode).unwrap_err();
            let words = error.to_string();
            assert!(
                matches!(error, OpenError::Damaged { .. }),
                "{name}: {words}"
            );
            assert!(words.contains(name) && words.contains("a pipe"), "{words}");
        }
    }
}

#[test]
fn a_log_cut_short_beneath_an_open_store_is_damage() {
    let folder = quick_folder();
    let run = run_id("r1");
    let mut store = open(folder.path());
    store.index_keys(KEYS).unwrap();
    let lease = lease(&store, &run);
    let mut driver = Driver::new(&run, lease.epoch());
    let reader = Store::open(folder.path(), OpenMode::Read).unwrap();
    store.append(&driver.start(1)).unwrap();
    let log = folder.path().join(format!("{JOURNAL_FILE}-wal"));
    assert!(fs::metadata(&log).unwrap().len() > 5, "nothing was in it");
    fs::write(&log, "junk\n").unwrap();
    let read = reader.lease_of(&run);
    assert!(matches!(read, Err(StorageError::Damaged(_))), "{read:?}");
}
