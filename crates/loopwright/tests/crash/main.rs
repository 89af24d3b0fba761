//! SIGKILL on the real binary: at every crash point, alone and with its whole process group.
//!
//! A disturbed run is resumed by hand as a user would, and must come out as the undisturbed one:
//! same decisions, nothing settled done again, nothing of the user's touched, no process left.

#[path = "../common/mod.rs"]
mod common;

mod bench;
mod checks;
mod in_place;
mod others;
mod random;
mod syncs;
mod two;

use std::collections::BTreeMap;
use std::sync::Mutex;

use bench::{Bench, TRIALS};

/// Which passes of a point are tried: all of them if asked for, else the first, a middle one and
/// the last.
fn passes(count: u32) -> Vec<u32> {
    if std::env::var_os("LOOPWRIGHT_SWEEP").is_some() {
        return (1..=count).collect();
    }
    let mut some = vec![1, count.div_ceil(2), count];
    some.dedup();
    some
}

#[test]
fn a_run_killed_at_any_point_comes_out_as_the_undisturbed_one() {
    let calm = Bench::new();
    let log = calm.path("points");
    let (done, _) = calm.run(&[("LOOPWRIGHT_CRASH_LOG", log.to_str().unwrap())]);
    assert!(done.success());
    let expected = calm.decisions();
    calm.check("undisturbed", 0);

    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    // No command of this binary moves a ref of the record; its own tests kill there.
    let missed: Vec<_> = loopwright_record::crash::points()
        .iter()
        .filter(|point| !point.starts_with("ref.") && !counts.contains_key(**point))
        .collect();
    assert!(missed.is_empty(), "not passed: {missed:?}");
    let mut plans = Vec::new();
    for (point, count) in &counts {
        let passes = passes(*count);
        plans.extend(passes.iter().map(|pass| format!("{point}:{pass}")));
        plans.push(format!("{point}:{}:group", passes[passes.len() / 2]));
    }
    let plans = Mutex::new(plans);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(plan) = plans.lock().unwrap().pop() else {
                        return;
                    };
                    killed_at(&plan, &expected);
                }
            });
        }
    });
}

fn killed_at(plan: &str, expected: &str) {
    let bench = Bench::new();
    let (status, words) = bench.run(&[("LOOPWRIGHT_CRASH", plan)]);
    assert_eq!(bench::signal(status), Some(9), "{plan}: {status}\n{words}");
    bench.await_no_process(plan);
    bench.go_on(plan);
    assert_eq!(
        bench.decisions(),
        expected,
        "{plan}: other decisions than the undisturbed run"
    );
    bench.check(plan, 1);
}

#[test]
fn a_run_killed_at_any_time_and_again_comes_out_as_the_undisturbed_one() {
    let calm = Bench::new();
    assert!(calm.run(&[]).0.success());
    let expected = calm.decisions();
    // Moments are told by what the commands wrote into their ledger, not by a clock.
    for lines in [1, 3, 4, 7, 10] {
        let bench = Bench::new();
        bench.kill_after(lines);
        bench.go_on(&format!("after {lines} lines"));
        assert_eq!(bench.decisions(), expected, "killed after {lines} lines");
        bench.check(&format!("after {lines} lines"), 1);
    }
}

#[test]
fn a_trial_cut_off_is_a_note_on_that_trial_and_not_another_one() {
    let bench = Bench::new();
    let (status, _) = bench.run(&[("LOOPWRIGHT_CRASH", "measure.ready:4")]);
    assert_eq!(bench::signal(status), Some(9));
    bench.go_on("measure.ready:4");
    let shown = bench.output(&["show", "2"]);
    assert!(shown.contains("attempt 1"), "{shown}");
    let trials: Vec<u64> = bench.trials();
    assert_eq!(trials, (0..=TRIALS).collect::<Vec<_>>());
}
