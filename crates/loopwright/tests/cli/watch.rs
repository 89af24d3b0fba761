//! `watch`.

use crate::support::Rig;

#[test]
fn a_run_is_watched_to_its_end() {
    let rig = Rig::after_six_trials();
    let driver = rig.start(&mut rig.command(&["run", "--trials", "1"]));
    rig.wait_for_proposal(7);
    let watcher = rig.start(&mut rig.command(&["watch"]));
    // It has to look once before the trial ends, or it would have nothing to show.
    std::thread::sleep(std::time::Duration::from_millis(500));
    rig.let_go();
    assert_eq!(rig.finish(driver).code, 0);
    let watched = rig.finish(watcher);
    assert!(
        watched.stdout.starts_with("[-] trial   7            17"),
        "{watched:?}"
    );
    assert!(
        watched.stderr.contains("trial 7: proposing, for "),
        "{watched:?}"
    );
    assert!(
        watched.stderr.contains("idle: 1 trial done, 0 kept"),
        "{watched:?}"
    );
    assert!(!watched.stderr.contains('\x1b'));
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
