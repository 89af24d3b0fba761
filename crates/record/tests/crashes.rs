//! Crashes: a child process is killed at every crash point, at each of its passes, and what it
//! left is a whole prefix that the next one goes on from.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use common::{Driver, LISTING, Tally, listings, open, quick_folder, run_id, terms};
use loopwright_core::time::Micros;
use loopwright_record::crash::{CRASH_LOG_VARIABLE, CRASH_VARIABLE, with_hook};
use loopwright_record::{
    Checks, Folding, Holder, Journal, Lease, LoadError, RefAct, RefTarget, Select, load, verify,
};
use serde_json::json;

const FOLDER_VARIABLE: &str = "LOOPWRIGHT_TEST_STORE";
const TRIALS: u64 = 4;

/// What the child does: begins or resumes the run, and brings it to its end. It may be killed
/// anywhere; started again it goes on.
fn work(folder: &Path) {
    let run = run_id("r1");
    let mut store = open(folder);
    store.keep_listing(LISTING).unwrap();
    let lease = Lease::acquire(&store, &run, &Holder::current("a child"), terms(0)).unwrap();
    let mut driver = match load::<Tally>(&store, &run) {
        Ok(loaded) => Driver::over(loaded, lease.epoch()),
        Err(LoadError::NoSuchRun(_)) => {
            let mut driver = Driver::new(&run, lease.epoch());
            store.append(&driver.start(TRIALS)).unwrap();
            driver
        }
        Err(error) => panic!("{error}"),
    };
    while driver.run.kernel.ended.is_none() {
        let trial = driver.run.state.as_ref().unwrap().trials + 1;
        let mut blobs = store.blobs().batch();
        let blob = blobs
            .add_bytes(format!("output {trial}").as_bytes())
            .unwrap();
        blobs.finish().unwrap();
        let settled = json!({"tree": common::tree_of(trial), "log_blob": blob.digest});
        store.append(&driver.settle(settled)).unwrap();
        mark(&store, &driver);
    }
    lease.release(&store).unwrap();
    store.close().unwrap();
}

/// Moves a ref to the newest event, from wherever it is.
fn mark(store: &loopwright_record::Store, driver: &Driver) {
    let name = "tags/newest";
    let before = store.find_ref(name).unwrap().map(|found| found.event);
    let target = RefTarget {
        run: driver.run.kernel.run.clone(),
        seq: driver.run.kernel.next_seq - 1,
        event: driver.run.kernel.last_event.unwrap(),
    };
    let act = RefAct {
        who: "a child".to_owned(),
        at: Micros(driver.now),
        why: "it is the newest".to_owned(),
    };
    store.move_ref(name, before, Some(&target), &act).unwrap();
}

/// Not a test of its own: the child that the others start and kill.
#[test]
fn child() {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        work(Path::new(&folder));
    }
}

fn start_child(folder: &Path, variable: &str, value: &str) -> std::process::ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--test-threads=1"])
        .env(FOLDER_VARIABLE, folder)
        .env(variable, value)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap()
}

/// The log of decisions without times: what must be the same however often it was killed.
fn decisions(folder: &Path) -> (String, u64) {
    let run = run_id("r1");
    let mut store = open(folder);
    store.keep_listing(LISTING).unwrap();
    let loaded = load::<Tally>(&store, &run).unwrap();
    let mut fold = Folding::<Tally>::new(&run);
    let checks = Checks {
        git: None,
        fold: Some(&mut fold),
    };
    let report = verify(&store, &run, checks).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let [rows, journal] = listings(&store, &run, Select::all()).map(Result::unwrap);
    assert_eq!(rows, journal);
    assert_eq!(rows.len() as u64, TRIALS);
    (
        loaded.kernel.decisions.to_string(),
        loaded.state.unwrap().trials,
    )
}

#[test]
fn killed_at_any_point_it_goes_on_to_the_same_end() {
    let undisturbed = quick_folder();
    let log = undisturbed.path().join("points");
    let store = undisturbed.path().join("store");
    assert!(start_child(&store, CRASH_LOG_VARIABLE, log.to_str().unwrap()).success());
    let wanted = decisions(&store);
    assert_eq!(wanted.1, TRIALS);

    let mut passes = BTreeMap::<String, u64>::new();
    for point in fs::read_to_string(&log).unwrap().lines() {
        *passes.entry(point.to_owned()).or_default() += 1;
    }
    let own = ["append.", "lease.", "blob.", "ref."];
    for point in loopwright_record::crash::points() {
        if own.iter().any(|own| point.starts_with(own)) {
            assert!(passes.contains_key(*point), "{point} was never passed");
        }
    }
    for (point, count) in passes {
        for pass in 1..=count {
            let folder = quick_folder();
            let store = folder.path().join("store");
            let at = format!("{point}:{pass}");
            let status = start_child(&store, CRASH_VARIABLE, &at);
            assert_eq!(status.signal(), Some(9), "{at}");
            assert!(start_child(&store, "UNUSED", "").success(), "{at}");
            assert_eq!(decisions(&store), wanted, "{at}");
        }
    }
}

#[test]
fn a_whole_group_is_killed_where_that_is_asked_for() {
    use std::os::unix::process::CommandExt as _;
    let folder = quick_folder();
    // The shell is of the group too, and can't say any more that its child was killed.
    let script = "\"$0\" --exact child --test-threads=1 >/dev/null; echo survived >\"$1\"";
    let survived = folder.path().join("survived");
    let status = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(&survived)
        .env(FOLDER_VARIABLE, folder.path().join("store"))
        .env(CRASH_VARIABLE, "append.committed:2:group")
        .process_group(0)
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(9));
    assert!(!survived.exists());
}

#[test]
fn unwinding_out_of_an_append_records_nothing_of_it() {
    let folder = quick_folder();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let lease = common::lease(&store, &run);
    let mut driver = Driver::new(&run, lease.epoch());
    store.append(&driver.start(3)).unwrap();
    let batch = driver.settle_plain();
    let crash = |name| assert!(name != "append.inserted", "crash");
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        with_hook(crash, || store.append(&batch))
    }));
    assert!(unwound.is_err());
    assert_eq!(store.head(&run).unwrap().unwrap().n, 0);
    // The same connection goes on.
    store.append(&batch).unwrap();
    assert_eq!(store.head(&run).unwrap().unwrap().n, 1);
}
