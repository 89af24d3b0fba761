//! The same in the user's own checkout, killed twice, and with only a supervisor killed.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::bench::{Bench, TRIALS, signal};
use crate::common::await_that;

/// Points that a run in place passes, where the checkout is between two states.
const PLANS: &[&str] = &[
    "propose.ready:1",
    "propose.snapshot:1:group",
    "command.running:2",
    // The commit of the first keep, with the user's hooks.
    "command.running:4",
    "command.ended:4",
    "command.ended:4:group",
    "candidate.chained:2",
    "measure.ready:2:group",
    "keep.published:1",
    "keep.published:2:group",
    "turn.before_commit:7",
    "turn.after_commit:6",
];

#[test]
fn a_run_in_place_killed_at_any_point_comes_out_as_the_undisturbed_one() {
    let calm = Bench::in_place();
    let (done, words) = calm.run(&[]);
    assert!(done.success(), "{words}");
    let expected = calm.decisions();
    calm.check("undisturbed", 0);
    for plan in PLANS {
        let bench = Bench::in_place();
        let (status, words) = bench.run(&[("LOOPWRIGHT_CRASH", plan)]);
        assert_eq!(signal(status), Some(9), "{plan}: {status}\n{words}");
        bench.await_no_process(plan);
        bench.go_on(plan);
        assert_eq!(bench.decisions(), expected, "{plan}");
        bench.check(plan, 1);
    }
}

#[test]
fn a_resume_that_is_killed_too_is_resumed() {
    let calm = Bench::new();
    assert!(calm.run(&[]).0.success());
    let expected = calm.decisions();
    for (first, second) in [
        ("measure.ready:2", "append.begin:2"),
        ("keep.committed:1", "keep.committed:1:group"),
        ("keep.published:1", "lease.committed:1"),
        ("propose.snapshot:2:group", "command.running:1:group"),
        ("turn.after_commit:3", "turn.before_commit:1"),
        ("command.running:1", "candidate.chained:1"),
        ("command.ended:2", "lease.locked:1"),
    ] {
        let plan = format!("{first}, then {second}");
        let bench = Bench::new();
        let (status, words) = bench.run(&[("LOOPWRIGHT_CRASH", first)]);
        assert_eq!(signal(status), Some(9), "{plan}: {status}\n{words}");
        let again = bench
            .loopwright(&["resume"])
            .env("LOOPWRIGHT_CRASH", second)
            .output()
            .unwrap();
        assert_eq!(signal(again.status), Some(9), "{plan}: {again:?}");
        bench.await_no_process(&plan);
        bench.go_on(&plan);
        assert_eq!(bench.decisions(), expected, "{plan}");
        bench.check(&plan, 2);
    }
}

#[test]
fn a_supervisor_that_is_killed_costs_its_trial_and_leaves_nothing() {
    let bench = Bench::new();
    bench.hold(2);
    let child = bench
        .first_run()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    bench.await_line("begin propose 2", 1);
    let folder = bench.repository().join(".git/loopwright/running");
    let mut supervisor = None;
    await_that("the supervisor to be noted", || {
        let mut notes = std::fs::read_dir(&folder).unwrap().flatten();
        supervisor = notes.find_map(|note| {
            let note: Value = serde_json::from_slice(&std::fs::read(note.path()).ok()?).ok()?;
            (note["effect"] == "t2/propose").then(|| note["pid"].as_i64())?
        });
        supervisor.is_some()
    });
    let pid = i32::try_from(supervisor.unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(bench.trials(), (0..=TRIALS).collect::<Vec<_>>());
    assert!(
        !bench.ledger().contains("end propose 2"),
        "its proposer went on"
    );
    bench.await_no_process("supervisor killed");
    let shown = bench.output(&["show", "2"]);
    assert!(shown.contains("supervisor"), "{shown}");
    bench.output(&["verify"]);
    bench.output(&["replay"]);
}
