//! Opening stores: versions, folders, readers, full disks.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use common::{Driver, KEYS, lease, open, run_id, tree_of};
use loopwright_core::event::Event;
use loopwright_core::ids::LoopName;
use loopwright_record::{
    AppendError, JOURNAL_FILE, Journal, Key, KeySource, OpenError, OpenMode, Select, StorageError,
    Store,
};
use rusqlite::Connection;

fn database(folder: &Path) -> Connection {
    Connection::open(folder.join(JOURNAL_FILE)).unwrap()
}

#[test]
fn a_store_is_private_and_made_only_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/store");
    for mode in [OpenMode::Read, OpenMode::Write] {
        let refused = Store::open(&path, mode).unwrap_err();
        assert!(matches!(refused, OpenError::Missing(_)), "{refused}");
    }
    assert!(!path.exists());
    open(&path).close().unwrap();
    for name in ["", "blobs", "locks", "running"] {
        let mode = fs::metadata(path.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name}");
    }
    let left: Vec<_> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(JOURNAL_FILE))
        .collect();
    assert_eq!(left, [JOURNAL_FILE], "the log is gone after closing");
    Store::open(&path, OpenMode::Write).unwrap();
    Store::open(&path, OpenMode::Read).unwrap();
}

#[test]
fn a_store_can_be_moved_to_another_thread() {
    fn sent<T: Send>() {}
    sent::<Store>();
    sent::<loopwright_record::Blobs>();
}

#[test]
fn a_newer_store_is_refused_and_newer_indexes_are_not() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).close().unwrap();
    let raw = database(folder.path());
    raw.execute_batch("UPDATE meta SET value = '99' WHERE name = 'index_version'")
        .unwrap();
    open(folder.path()).close().unwrap();
    raw.pragma_update(None, "user_version", 3).unwrap();
    for mode in [OpenMode::Create, OpenMode::Write, OpenMode::Read] {
        let refused = Store::open(folder.path(), mode).unwrap_err().to_string();
        assert!(
            refused.starts_with(
                "this store was written by a newer loopwright (store version 3; this one knows 1)"
            ),
            "{refused}"
        );
    }
}

#[test]
fn indexes_that_an_older_release_did_not_make_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    store.append(&driver.start(3)).unwrap();
    store.append(&driver.settle_plain()).unwrap();
    store.close().unwrap();
    let raw = database(folder.path());
    raw.execute_batch("DROP INDEX event_kind; DELETE FROM meta")
        .unwrap();
    raw.close().unwrap();
    // A reader goes without.
    let reader = Store::open(folder.path(), OpenMode::Read).unwrap();
    let decided = |store: &Store| {
        store
            .events_of_kind(&run, "trial.decided", Select::all())
            .unwrap()
            .len()
    };
    assert_eq!(decided(&reader), 1);
    drop(reader);
    let store = Store::open(folder.path(), OpenMode::Write).unwrap();
    assert_eq!(decided(&store), 1);
    store.close().unwrap();
    let raw = database(folder.path());
    let indexes: i64 = raw
        .query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'event_kind'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(indexes, 1);
}

#[test]
fn other_files_are_told_from_stores() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join(JOURNAL_FILE),
        "not a database, but long enough to be looked at".repeat(9),
    )
    .unwrap();
    let refused = Store::open(folder.path(), OpenMode::Read).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    assert!(
        refused.to_string().contains("file is not a database"),
        "{refused}"
    );

    let folder = tempfile::tempdir().unwrap();
    database(folder.path())
        .execute_batch("CREATE TABLE t (x)")
        .unwrap();
    let before = fs::read(folder.path().join(JOURNAL_FILE)).unwrap();
    for mode in [OpenMode::Create, OpenMode::Read] {
        let refused = Store::open(folder.path(), mode).unwrap_err();
        assert!(matches!(refused, OpenError::Foreign(_)), "{refused}");
    }
    let after = fs::read(folder.path().join(JOURNAL_FILE)).unwrap();
    assert!(before == after, "somebody else's file was changed");

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for path in ["file", "file/store"] {
        let refused = Store::open(&folder.path().join(path), OpenMode::Create).unwrap_err();
        assert!(matches!(refused, OpenError::Unwritable { .. }), "{refused}");
    }
}

#[test]
fn a_store_in_a_folder_that_can_not_be_written_is_refused_to_writers_and_read_by_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let run = run_id("r1");
    let mut store = open(&path);
    let held = lease(&store, &run);
    store
        .append(&Driver::new(&run, held.epoch()).start(3))
        .unwrap();
    store.close().unwrap();
    let set = |mode_folder: u32, mode_file: u32| {
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&path.join(JOURNAL_FILE), mode_file);
        set(&path, mode_folder);
    };
    set(0o500, 0o400);
    if fs::write(path.join("probe"), "").is_ok() {
        set(0o700, 0o600);
        skipped("the superuser writes anywhere");
        return;
    }
    let refused = Store::open(&path, OpenMode::Write).unwrap_err();
    assert!(matches!(refused, OpenError::Unwritable { .. }), "{refused}");
    let reader = Store::open(&path, OpenMode::Read).unwrap();
    assert_eq!(reader.head(&run).unwrap().unwrap().n, 0);
    drop(reader);
    set(0o700, 0o600);
}

#[test]
fn a_reader_writes_nothing_and_sees_what_others_commit() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    let mut reader = Store::open(folder.path(), OpenMode::Read).unwrap();
    assert_eq!(reader.head(&run).unwrap(), None);
    let before = reader.data_version().unwrap();
    assert_eq!(reader.data_version().unwrap(), before);
    let batch = driver.start(3);
    let refused = reader.append(&batch).unwrap_err();
    assert!(matches!(refused, AppendError::ReadOnly(_)), "{refused}");
    store.append(&batch).unwrap();
    assert_ne!(reader.data_version().unwrap(), before);
    let all = reader.events(&run, Select::all()).unwrap();
    assert_eq!(all.len(), batch.events.len());
    let last = all.last().unwrap().sealed.event.seq;
    assert!(reader.events(&run, Select::after(last)).unwrap().is_empty());
    store.append(&driver.settle_plain()).unwrap();
    let news = reader.events(&run, Select::after(last)).unwrap();
    assert_eq!(news[0].sealed.event.seq, last + 1);
}

#[test]
fn many_open_a_new_store_at_once() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let barrier = std::sync::Arc::new(std::sync::Barrier::new(6));
        let threads: Vec<_> = (0..6)
            .map(|number| {
                let (path, barrier) = (folder.path().to_owned(), barrier.clone());
                std::thread::spawn(move || {
                    barrier.wait();
                    let mut store = open(&path);
                    let run = run_id(&format!("r{number}"));
                    let held = lease(&store, &run);
                    let mut driver = Driver::new(&run, held.epoch());
                    store.append(&driver.start(3)).unwrap();
                    for _ in 0..3 {
                        store.append(&driver.settle_plain()).unwrap();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let store = Store::open(folder.path(), OpenMode::Read).unwrap();
        let runs = store.runs().unwrap();
        assert_eq!(runs.len(), 6);
        assert!(
            runs.iter()
                .all(|run| run.head.n == 3 && run.ended.is_some())
        );
    }
}

#[test]
fn runs_are_found_by_loop_prefix_and_id() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    for name in ["aa1", "aa2", "bb1"] {
        let run = run_id(name);
        let held = lease(&store, &run);
        store
            .append(&Driver::new(&run, held.epoch()).start(3))
            .unwrap();
    }
    let ids = |runs: Vec<loopwright_record::RunSummary>| -> Vec<String> {
        runs.iter().map(|run| run.run.to_string()).collect()
    };
    assert_eq!(ids(store.runs().unwrap()), ["aa1", "aa2", "bb1"]);
    let speed = LoopName::new("speed").unwrap();
    assert_eq!(
        store.latest_run(&speed).unwrap().unwrap().run,
        run_id("bb1")
    );
    assert_eq!(
        store.latest_run(&LoopName::new("size").unwrap()).unwrap(),
        None
    );
    assert_eq!(store.run(&run_id("cc")).unwrap(), None);
    let summary = store.run(&run_id("aa1")).unwrap().unwrap();
    assert_eq!(
        (summary.kind.as_str(), summary.invocation),
        ("experiment", Some(1))
    );
}

#[test]
fn the_index_of_keys_is_made_anew_for_another_version_of_them() {
    fn doubled(event: &Event) -> Vec<Key> {
        let mut keys = common::keys_of(event);
        for key in &mut keys {
            key.value = format!("{0}{0}", key.value);
        }
        keys
    }
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    store.append(&driver.start(3)).unwrap();
    store.append(&driver.settle_plain()).unwrap();
    let found = |store: &Store, value: &str| store.all_with_key(&run, "tree", value).unwrap();
    assert_eq!(found(&store, &tree_of(1)), [0; 0]);
    store.index_keys(KEYS).unwrap();
    assert_eq!(found(&store, &tree_of(1)).len(), 1);
    store
        .index_keys(KeySource {
            version: 2,
            keys_of: doubled,
        })
        .unwrap();
    assert_eq!(found(&store, &tree_of(1)), [0; 0]);
    assert!(found(&store, &tree_of(1).repeat(2)).len() == 1);

    // A writer that knows no keys doesn't leave an index with gaps behind.
    let mut other = open(folder.path());
    other.append(&driver.settle_plain()).unwrap();
    assert_eq!(found(&store, &tree_of(2).repeat(2)), [0; 0]);
    store.append(&driver.settle_plain()).unwrap();
    for trial in 1..=3 {
        assert!(
            found(&store, &tree_of(trial).repeat(2)).len() == 1,
            "{trial}"
        );
    }
}

#[test]
fn a_full_disk_stops_an_append_cleanly_and_it_works_after() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    let first = driver.start(5000);
    store.append(&first).unwrap();
    store.limit_pages_for_tests(60).unwrap();
    let mut appended = 1;
    let refused = loop {
        let batch = driver.settle_plain();
        match store.append(&batch) {
            Ok(()) => appended += 1,
            Err(error) => break (error, batch),
        }
        assert!(appended < 4000);
    };
    assert!(matches!(refused.0, AppendError::Full), "{}", refused.0);
    assert_eq!(
        store
            .batches(&run, 0)
            .unwrap()
            .filter_map(Result::ok)
            .count(),
        appended
    );
    store.limit_pages_for_tests(100_000).unwrap();
    store.append(&refused.1).unwrap();
    store.append(&driver.settle_plain()).unwrap();
    assert_eq!(store.head(&run).unwrap().unwrap().n, appended as u64 + 1);
}

/// Works on a real, tiny file system of its own, where the tests may mount one.
fn on_a_tiny_file_system(work: impl FnOnce(&Path) + std::panic::UnwindSafe) {
    let folder = tempfile::tempdir().unwrap();
    if !mount(folder.path(), "size=1m") {
        skipped("nothing may be mounted");
        return;
    }
    let outcome = std::panic::catch_unwind(|| work(folder.path()));
    Command::new("umount")
        .arg("-l")
        .arg(folder.path())
        .status()
        .unwrap();
    outcome.unwrap();
}

/// A test that checks nothing must not be silent about it.
#[allow(clippy::print_stderr)]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

fn mount(folder: &Path, options: &str) -> bool {
    Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "tmpfs"])
        .arg(folder)
        .output()
        .is_ok_and(|output| output.status.success())
}

#[test]
fn a_full_file_system_stops_appends_and_blobs_cleanly() {
    on_a_tiny_file_system(fill);
}

#[test]
fn a_read_only_file_system_is_refused_to_writers_and_read_by_readers() {
    on_a_tiny_file_system(|folder| {
        let path = folder.join("store");
        let run = run_id("r1");
        let mut store = open(&path);
        let held = lease(&store, &run);
        let mut driver = Driver::new(&run, held.epoch());
        store.append(&driver.start(3)).unwrap();
        drop(held);
        store.close().unwrap();
        assert!(mount(folder, "remount,ro"));
        let refused = Store::open(&path, OpenMode::Write).unwrap_err();
        assert!(matches!(refused, OpenError::Unwritable { .. }), "{refused}");
        let reader = Store::open(&path, OpenMode::Read).unwrap();
        assert_eq!(reader.head(&run).unwrap().unwrap().n, 0);
        drop(reader);

        // With a log that a writer left when it died.
        assert!(mount(folder, "remount,rw"));
        let mut store = Store::open(&path, OpenMode::Write).unwrap();
        store.append(&driver.settle_plain()).unwrap();
        let log = |end: &str| path.join(format!("{JOURNAL_FILE}{end}"));
        fs::copy(log("-wal"), folder.join("log")).unwrap();
        fs::copy(log(""), folder.join("db")).unwrap();
        store.close().unwrap();
        fs::copy(folder.join("log"), log("-wal")).unwrap();
        fs::copy(folder.join("db"), log("")).unwrap();
        assert!(mount(folder, "remount,ro"));
        let refused = Store::open(&path, OpenMode::Read).unwrap_err().to_string();
        assert!(
            refused.contains("a log that was never finished"),
            "{refused}"
        );
        assert!(mount(folder, "remount,rw"));
        let reader = Store::open(&path, OpenMode::Read).unwrap();
        assert_eq!(reader.head(&run).unwrap().unwrap().n, 1);
    });
}

fn fill(folder: &Path) {
    let run = run_id("r1");
    let mut store = open(&folder.join("store"));
    let held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    store.append(&driver.start(100_000)).unwrap();
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![7; 500_000]).unwrap();
    let mut appended = 1;
    let (error, batch) = loop {
        let batch = driver.settle_plain();
        match store.append(&batch) {
            Ok(()) => appended += 1,
            Err(error) => break (error, batch),
        }
        assert!(appended < 4000);
    };
    assert!(matches!(error, AppendError::Full), "{error}");
    let noise: Vec<u8> = (0..400_000_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let refused = store.blobs().put_bytes(&noise).unwrap_err();
    assert!(
        matches!(
            refused,
            loopwright_record::BlobError::Storage(StorageError::Full)
        ),
        "{refused}"
    );
    assert_eq!(
        fs::read_dir(folder.join("store/blobs/incoming"))
            .unwrap()
            .count(),
        0,
        "nothing is left"
    );
    assert_eq!(
        store
            .batches(&run, 0)
            .unwrap()
            .filter_map(Result::ok)
            .count(),
        appended
    );
    fs::remove_file(&ballast).unwrap();
    store.append(&batch).unwrap();
    // The log's own room is used again, so that a few more are not the end of it.
    for _ in 0..60 {
        store.append(&driver.settle_plain()).unwrap();
    }
    appended += 60;
    store.append(&driver.settle_plain()).unwrap();
    let digest = store.blobs().put_bytes(b"small").unwrap();
    assert_eq!(store.blobs().get(&digest).unwrap(), b"small");
    drop(held);
    store.close().unwrap();
    let store = Store::open(&folder.join("store"), OpenMode::Read).unwrap();
    assert_eq!(
        store
            .batches(&run, 0)
            .unwrap()
            .filter_map(Result::ok)
            .count(),
        appended + 2
    );
}

#[test]
fn a_store_that_many_make_at_once_is_one_store() {
    for _ in 0..20 {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("store");
        let begin = std::sync::Barrier::new(6);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    begin.wait();
                    Store::open(&folder, OpenMode::Create).unwrap();
                });
            }
        });
    }
}
