//! `watch`.

use std::io::{BufRead as _, BufReader, Read as _};

use crate::support::Rig;

#[test]
fn a_run_is_watched_to_its_end() {
    let rig = Rig::after_six_trials();
    let driver = rig.start(&["run", "--trials", "1"]);
    rig.wait_for_proposal(7);
    let mut watcher = rig.start(&["watch"]);
    let mut talk = BufReader::new(watcher.stderr.take().unwrap());
    let mut said = String::new();
    talk.read_line(&mut said).unwrap();
    assert!(said.starts_with("trial 7: proposing, for "), "{said}");
    rig.let_go();
    assert_eq!(rig.finish(driver).code, 0);
    let watched = rig.finish(watcher);
    talk.read_to_string(&mut said).unwrap();
    assert!(
        watched.stdout.starts_with("[-] trial   7            17"),
        "{watched:?}"
    );
    assert!(said.contains("idle: 1 trial done, 0 kept"), "{said}");
    assert!(!said.contains('\x1b'));
    let _ = watched.success();
}

#[test]
fn a_run_that_nobody_drives_ends_the_watch_at_once() {
    let rig = Rig::after_six_trials();
    let watched = rig.run(&["watch"]);
    assert_eq!(watched.stdout, "");
    assert!(
        watched.stderr.contains("idle: 6 trials done, 2 kept"),
        "{watched:?}"
    );
}
