//! Leases: one writer per run, taken over at once after a death, and never by accident.

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Driver, lease, open, run_id, terms};
use loopwright_core::ids::LoopName;
use loopwright_core::time::Micros;
use loopwright_record::{
    AppendError, Holder, Journal, Lease, LeaseError, OpenMode, RunState, StartLock, Store, Terms,
};

fn now() -> Micros {
    Micros(0)
}

#[test]
fn a_second_holder_is_refused_with_the_firsts_name_until_it_gives_up() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let store = open(folder.path());
    let first = lease(&store, &run);
    assert_eq!(first.epoch(), 1);
    let other = open(folder.path());
    let holder = Holder::current("loopwright resume");
    // Long after it expired, too: its process lives.
    for late in [1, 3_600_000_000] {
        let refused = Lease::acquire(&other, &run, &holder, terms(late)).unwrap_err();
        let LeaseError::Held(held) = refused else {
            panic!("{refused}");
        };
        assert_eq!(held.holder.as_ref().unwrap().what, "a test");
        assert_eq!(
            (held.since, held.expires),
            (Some(Micros(0)), Some(Micros(60_000_000)))
        );
        let pid = std::process::id();
        assert!(
            held.to_string()
                .starts_with(&format!("run r1 is driven by a test (process {pid} on "))
        );
    }
    first.release(&store).unwrap();
    let second = Lease::acquire(&other, &run, &holder, terms(2)).unwrap();
    assert_eq!(second.epoch(), 2);
    // Of another run nobody is in the way.
    lease(&store, &run_id("r2"));
}

#[test]
fn a_forced_takeover_shuts_the_old_holder_out() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let mut first = lease(&store, &run);
    let mut driver = Driver::new(&run, first.epoch());
    store.append(&driver.start(5)).unwrap();

    let other = open(folder.path());
    let holder = Holder::current("another");
    let force = Terms {
        force: true,
        ..terms(5)
    };
    let second = Lease::acquire(&other, &run, &holder, force).unwrap();
    assert_eq!(second.epoch(), 2);
    let late = driver.settle_plain();
    let refused = store.append(&late).unwrap_err();
    let AppendError::Fenced {
        epoch: 1,
        newest: 2,
        holder: Some(found),
        ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!(*found, holder);
    let refused = first
        .renew(&store, Micros(6), Duration::from_secs(1))
        .unwrap_err();
    assert!(matches!(refused, LeaseError::Held(_)), "{refused}");
    // The shut-out one neither gives up the new lease nor frees its lock.
    first.release(&store).unwrap();
    let refused = Lease::acquire(&store, &run, &holder, terms(7)).unwrap_err();
    assert!(matches!(refused, LeaseError::Held(_)), "{refused}");
    assert_eq!(store.head(&run).unwrap().unwrap().n, 0);
}

#[test]
fn a_holder_that_expired_goes_on_while_its_epoch_is_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let mut held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    driver.now = 3_600_000_000;
    store.append(&driver.start(5)).unwrap();
    held.renew(&store, Micros(driver.now), Duration::from_secs(60))
        .unwrap();
    assert_eq!(held.expires(), Micros(driver.now + 60_000_000));
    store.append(&driver.settle_plain()).unwrap();
}

#[test]
fn a_holder_of_another_host_has_it_until_it_expires() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let store = open(folder.path());
    let elsewhere = Holder {
        boot_id: "another boot".to_owned(),
        host: "another-host".to_owned(),
        ..Holder::current("elsewhere")
    };
    drop(Lease::acquire(&store, &run, &elsewhere, terms(0)).unwrap());
    let own = Holder::current("here");
    let refused = Lease::acquire(&store, &run, &own, terms(59_999_999)).unwrap_err();
    assert!(refused.to_string().contains("elsewhere"), "{refused}");
    let taken = Lease::acquire(&store, &run, &own, terms(60_000_000)).unwrap();
    assert_eq!(taken.epoch(), 2);
}

#[test]
fn a_row_that_a_dead_process_left_hinders_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let store = open(folder.path());
    // The lock is freed by dying; the row stays.
    drop(lease(&store, &run));
    let again = lease(&store, &run);
    assert_eq!(again.epoch(), 2);
}

#[test]
fn the_state_says_who_drives_a_run_and_never_that_nobody_runs() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let mut store = open(folder.path());
    let held = lease(&store, &run);
    let mut driver = Driver::new(&run, held.epoch());
    store.append(&driver.start(1)).unwrap();
    let state = |store: &Store| {
        let summary = store.run(&run).unwrap().unwrap();
        store.state_of(&summary, now()).unwrap()
    };
    let reader = Store::open(folder.path(), OpenMode::Read).unwrap();
    assert!(matches!(state(&reader), RunState::Driven(lease) if lease.epoch == 1));
    held.release(&store).unwrap();
    assert_eq!(state(&reader), RunState::Interrupted);

    // A holder that is gone: its process id is that of a process that has ended.
    let mut child = Command::new("true").spawn().unwrap();
    let gone = Holder {
        pid: child.id(),
        ..Holder::current("gone")
    };
    child.wait().unwrap();
    let left = Lease::acquire(&store, &run, &gone, terms(0)).unwrap();
    // While the lock is held somebody lives, wherever it runs.
    assert!(matches!(state(&reader), RunState::Driven(_)));
    let epoch = left.epoch();
    drop(left);
    assert_eq!(state(&reader), RunState::Interrupted);

    driver.epoch = epoch;
    store.append(&driver.settle_plain()).unwrap();
    assert!(matches!(state(&reader), RunState::Ended(ending) if ending.reason == "finished"));
}

#[test]
fn of_many_that_start_at_once_one_gets_the_lease() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).close().unwrap();
    let path = folder.path().to_owned();
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let (path, barrier) = (path.clone(), barrier.clone());
            std::thread::spawn(move || {
                let store = open(&path);
                let holder = Holder::current(&format!("thread {number}"));
                barrier.wait();
                let lease = Lease::acquire(&store, &run_id("r1"), &holder, terms(0));
                barrier.wait();
                lease.is_ok()
            })
        })
        .collect();
    let got = threads.into_iter().map(|thread| thread.join().unwrap());
    assert_eq!(got.filter(|got| *got).count(), 1);
}

#[test]
fn a_lease_is_not_inherited_by_commands_and_ends_with_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_id("r1");
    let store = open(folder.path());
    let held = lease(&store, &run);
    // A command started meanwhile outlives the lease without holding it.
    let mut child = Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    drop(held);
    let again = Lease::acquire(&store, &run, &Holder::current("next"), terms(1));
    child.kill().unwrap();
    child.wait().unwrap();
    again.unwrap();
}

#[test]
fn the_start_of_a_loop_is_locked_for_as_long_as_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let name = LoopName::new("speed").unwrap();
    let first = StartLock::acquire(&store, &name, Duration::ZERO).unwrap();
    let refused = StartLock::acquire(&store, &name, Duration::from_millis(20)).unwrap_err();
    assert!(
        refused.to_string().contains("the start of loop speed"),
        "{refused}"
    );
    let path = folder.path().to_owned();
    let waiting = std::thread::spawn(move || {
        let store = open(&path);
        let name = LoopName::new("speed").unwrap();
        StartLock::acquire(&store, &name, Duration::from_secs(30)).map(drop)
    });
    drop(first);
    let begun = Instant::now();
    waiting.join().unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20));
}
