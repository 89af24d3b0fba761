//! Reaching the target ends the work: one confirming run, and no more proposals.

use loopwright_core::experiment::Mode;
use loopwright_core::experiment::RetryOf;
use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::{Ended, Findings, Measured, Reapplied};
use serde_json::{Value, json};

use crate::scenario::scenarios;
use crate::support::{Bench, candidate, measured, ran, specification_with};

fn upwards(changes: Value) -> Bench {
    let mut settings = json!({"goal": "maximize", "target": "1"});
    for (key, value) in changes.as_object().unwrap() {
        settings[key] = value.clone();
    }
    let mut bench = Bench::new(specification_with(settings));
    bench.begin(|caps| caps.trials = Some(5)).measure(0.5);
    bench
}

scenarios! {
    fn a_target_that_is_confirmed_ends_the_work() {
        let mut bench = upwards(json!({}));
        bench.propose("a").measure(1.0).commit("k1");
        assert_eq!(bench.waits_for(), "t1/target/1");
        bench.confirm(1.0).ended("target_reached");
        assert_eq!(bench.bodies("target.checked"), [json!({
            "trial": 1, "value": "1", "reached": true, "why": "target reached: m 1 confirmed",
        })]);
        assert_eq!(bench.outcomes(), ["kept", "kept"], "no row for the confirmation");
        // Running again proposes nothing and measures nothing.
        bench.begin(|_| {}).ended("target_reached");
        assert_eq!((bench.announced("propose"), bench.announced("target")), (1, 1));
        bench
    }

    fn a_target_that_is_not_confirmed_lets_the_work_go_on() {
        let mut bench = upwards(json!({}));
        bench.propose("a").measure(1.0).commit("k1").confirm(0.9);
        let checked = bench.bodies("target.checked").pop().unwrap();
        assert_eq!(checked["why"], "target not confirmed: m was 0.9");
        assert_eq!(bench.waits_for(), "t2/propose");
        // Once is enough for one incumbent, also in a later invocation.
        bench.propose("b").measure(0.7).interrupt().begin(|_| {});
        assert_eq!(bench.waits_for(), "t3/propose");
        bench.propose("c").measure(1.1).commit("k2").confirm(1.2).ended("target_reached");
        assert_eq!(bench.announced("target"), 2);
        bench
    }

    fn a_confirming_run_that_fails_confirms_nothing() {
        let mut bench = upwards(json!({}));
        bench.propose("a").measure(1.0).commit("k1");
        let broken = Measured { ran: ran(Ended::Exited(1)), ..measured(&[("m", 1.0)]) };
        bench.settle("target", settlement_of(&broken));
        assert_eq!(bench.bodies("target.checked"), [json!({
            "trial": 1, "reached": false,
            "why": "target not confirmed: measured again, the measurement exited with status 1",
        })]);
        bench
    }

    fn the_last_trial_allowed_is_confirmed_too() {
        let mut bench = Bench::new(specification_with(json!({"target": "5"})));
        bench.begin(|caps| caps.trials = Some(1)).measure(10.0);
        bench.propose("a").measure(4.0).commit("k1").confirm(6.0).ended("finished");
        bench
    }

    fn a_baseline_that_reaches_the_target_leaves_nothing_to_do() {
        let mut bench = Bench::new(specification_with(json!({"target": "10"})));
        bench.begin(|_| {}).measure(10.0);
        assert_eq!(bench.waits_for(), "t0/target/1");
        bench.confirm(9.0).ended("target_reached");
        assert_eq!(bench.announced("propose"), 0);
        bench
    }

    fn a_baseline_command_leaves_the_confirming_run_to_the_next() {
        let mut bench = Bench::new(specification_with(json!({"target": "10"})));
        bench.begin(|caps| caps.mode = Mode::Baseline).measure(10.0).ended("finished");
        bench.begin(|_| {}).confirm(10.0).ended("target_reached");
        assert_eq!(bench.announced("propose"), 0);
        // Asked for by name it is measured all the same.
        bench.begin(|caps| caps.mode = Mode::Baseline).measure(11.0).ended("finished");
        bench
    }

    fn a_target_with_the_confirming_rule() {
        let rule = json!({"name": "threshold", "min_delta": "0", "confirm": true});
        let mut bench = upwards(json!({"rule": rule}));
        bench.propose("a").measure(1.0).measure(1.5).commit("k1");
        assert_eq!(bench.waits_for(), "t1/target/1");
        bench.confirm(1.0).ended("target_reached");
        bench
    }

    fn a_confirming_run_that_was_stopped_is_made_up_for() {
        let mut bench = upwards(json!({}));
        bench.propose("a").measure(1.0).commit("k1").interrupt().begin(|_| {});
        assert_eq!(bench.in_flight().unwrap().1, 2);
        bench.confirm(1.0).ended("target_reached");
        bench
    }

    fn a_target_moved_later_is_held_against_the_incumbent_again() {
        let mut bench = upwards(json!({}));
        bench.propose("a").measure(1.0).commit("k1").confirm(1.0).ended("target_reached");
        bench.specification["target"] = json!("2");
        bench.begin(|_| {});
        assert_eq!(bench.waits_for(), "t2/propose", "a higher target is not reached");
        bench.interrupt();
        bench.specification["target"] = json!("0.8");
        bench.begin(|_| {}).propose("b").measure(0.4);
        assert_eq!(bench.waits_for(), "t1/target/2", "after the open trial");
        bench.confirm(0.9).ended("target_reached");
        bench
    }

    fn a_trial_tried_again_may_reach_the_target() {
        let mut bench = upwards(json!({}));
        bench.propose("a").measure(0.4).interrupt();
        let retry = RetryOf { trial: 1, commit: "commit-of-a".to_owned() };
        bench.begin(|caps| caps.mode = Mode::Retry(retry)).propose("b").measure(0.3);
        bench.reapplied(Reapplied::Applied {
            candidate: candidate("a2"),
            findings: Findings::default(),
        });
        bench.measure(1.0).commit("k1").confirm(1.0).ended("target_reached");
        assert_eq!(bench.outcomes(), ["kept", "reverted", "reverted", "kept"]);
        bench
    }
}
