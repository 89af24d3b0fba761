//! Ending a run from outside.

use rustix::process::Signal;

use crate::common::await_that;
use crate::support::{Rig, send};

fn ends_by(signal: Signal, name: &str, code: i32) {
    let rig = Rig::after_six_trials();
    let child = rig.start(&["run", "--trials", "2"]);
    rig.wait_for_proposal(7);
    send(&child, signal);
    let stderr = rig.finish(child).failure(code);
    assert!(
        stderr.contains(&format!("\ninterrupted by {name}")),
        "{stderr}"
    );
    assert!(stderr.contains("next: loopwright resume"), "{stderr}");
    let status = rig.status().unwrap();
    assert_eq!(status["last_ending"]["reason"], "interrupted");
    assert_eq!(status["open_trial"], 7);
    rig.let_go();
    let stdout = rig.run(&["resume"]).success();
    assert!(
        stdout.contains("trial   7") && stdout.contains("trial   8"),
        "{stdout}"
    );
}

#[test]
fn ctrl_c_ends_it_cleanly() {
    ends_by(Signal::INT, "SIGINT", 130);
}

#[test]
fn a_polite_kill_ends_it_cleanly() {
    ends_by(Signal::TERM, "SIGTERM", 143);
}

#[test]
fn a_quit_ends_it_as_cleanly() {
    ends_by(Signal::QUIT, "SIGQUIT", 131);
}

#[test]
fn a_terminal_that_goes_away_ends_it_cleanly() {
    let rig = Rig::after_six_trials();
    let mut child = rig.start(&["run", "--trials", "2"]);
    rig.wait_for_proposal(7);
    // As when a terminal is closed: nothing can be written any more.
    drop(child.stdout.take());
    drop(child.stderr.take());
    send(&child, Signal::HUP);
    assert_eq!(rig.finish(child).code, 129);
    assert_eq!(
        rig.status().unwrap()["last_ending"]["words"],
        "interrupted by SIGHUP"
    );
}

#[test]
fn a_second_signal_hurries() {
    let rig = Rig::after_six_trials();
    // A proposer that doesn't go when asked to, and a grace that no test waits for.
    rig.write("propose.sh", "trap '' TERM; while :; do sleep 0.05; done\n");
    rig.commit_all();
    let child = rig.start(&["run", "--grace", "10m"]);
    rig.wait_for_proposal(7);
    send(&child, Signal::INT);
    await_that("it is being asked", || {
        send(&child, Signal::INT);
        rig.status()
            .is_some_and(|status| status["state"] != "running")
    });
    assert_eq!(rig.finish(child).code, 130);
}

#[test]
fn under_nohup_a_terminal_that_goes_away_ends_nothing() {
    let rig = Rig::after_six_trials();
    let binary = env!("CARGO_BIN_EXE_loopwright");
    let child = rig.start_as("nohup", &[binary, "run", "--trials", "2"]);
    rig.wait_for_proposal(7);
    send(&child, Signal::HUP);
    rig.let_go();
    let stdout = rig.finish(child).success();
    assert!(stdout.contains("trial   8"), "{stdout}");
}
