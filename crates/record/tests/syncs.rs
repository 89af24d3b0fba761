//! How often a commit waits for the disk, counted by tracing a child process. Where nothing can be
//! traced the test says so and passes.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Driver, LISTING, lease, open, run_id};
use loopwright_record::Journal;

const FOLDER_VARIABLE: &str = "LOOPWRIGHT_TEST_STORE";
const COUNT_VARIABLE: &str = "LOOPWRIGHT_TEST_APPENDS";

/// Not a test of its own: the child that is traced.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else {
        return;
    };
    let appends: u64 = std::env::var(COUNT_VARIABLE).unwrap().parse().unwrap();
    let run = run_id("r1");
    let mut store = open(Path::new(&folder));
    store.keep_listing(LISTING).unwrap();
    let lease = lease(&store, &run);
    let mut driver = Driver::new(&run, lease.epoch());
    store.append(&driver.start(10_000)).unwrap();
    for _ in 0..appends {
        store.append(&driver.settle_plain()).unwrap();
    }
    // As a kill would: closing would make the log part of the database.
    std::process::exit(0);
}

/// How many syncs of what the child makes with so many appends: of the log, of anything else.
fn syncs(appends: u64) -> Option<(usize, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let status = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-e",
            "trace=fsync,fdatasync,sync,syncfs,sync_file_range,msync",
            "-o",
        ])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--test-threads=1"])
        .env(FOLDER_VARIABLE, folder.path().join("store"))
        .env(COUNT_VARIABLE, appends.to_string())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return None;
    }
    let trace = std::fs::read_to_string(&trace).unwrap();
    let syncs: Vec<_> = trace
        .lines()
        .filter(|line| line.contains("sync("))
        .collect();
    let log = syncs
        .iter()
        .filter(|line| line.contains("journal.db-wal"))
        .count();
    Some((log, syncs.len() - log))
}

#[test]
#[allow(clippy::print_stderr)] // A test that checks nothing must not be silent about it.
fn each_append_syncs_the_log_once_and_nothing_else() {
    let (Some(none), Some(twenty)) = (syncs(0), syncs(20)) else {
        eprintln!("skipped: strace is not there, or may not trace");
        return;
    };
    assert_eq!(twenty.0 - none.0, 20);
    assert_eq!(twenty.1, none.1);
}
