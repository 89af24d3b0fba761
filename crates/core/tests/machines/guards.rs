//! Guards in the machine: held at every keep against the incumbent and the baseline.

use loopwright_core::experiment::results::{Findings, Kept};
use loopwright_core::metric::{MetricName, Refusal};
use serde_json::{Value, json};

use crate::scenario::scenarios;
use crate::support::{Bench, candidate, measured, specification_with};

fn guarded(guards: Value, rule: Value, baseline: &[(&str, f64)]) -> Bench {
    let mut bench = Bench::new(specification_with(json!({"guards": guards, "rule": rule})));
    bench.begin(|_| {}).measured(measured(baseline));
    bench
}

fn threshold(confirm: bool) -> Value {
    json!({"name": "threshold", "min_delta": "0", "confirm": confirm})
}

fn size_and_accuracy() -> Value {
    json!([{"metric": "acc", "floor": "0.9"}, {"metric": "size", "max_rise": "5%"}])
}

#[track_caller]
fn decided(bench: &Bench, outcome: &str, part: &str) -> Value {
    let body = bench.bodies("trial.decided").pop().unwrap();
    assert_eq!(body["outcome"], outcome, "{body}");
    assert!(body["why"].as_str().unwrap().contains(part), "{body}");
    body
}

scenarios! {
    fn guards_are_named_with_their_numbers() {
        let baseline = [("m", 10.0), ("size", 100.0), ("acc", 0.95)];
        let mut bench = guarded(size_and_accuracy(), threshold(false), &baseline);
        bench.propose("a").measured(measured(&[("m", 9.0), ("size", 104.0), ("acc", 0.95)]));
        bench.commit("k1");
        let body = decided(&bench, "kept", "9 beat 10");
        assert_eq!(body["values"], json!({"m": "9", "size": "104", "acc": "0.95"}));
        bench.propose("b").measured(measured(&[("m", 8.0), ("size", 112.0), ("acc", 0.95)]));
        let body = decided(&bench, "guard_failed", "size 112");
        assert_eq!((&body["value"], &body["values"]["size"]), (&json!("8"), &json!("112")));
        bench.propose("c").measured(measured(&[("m", 7.0), ("size", 104.0), ("acc", 0.89)]));
        decided(&bench, "guard_failed", "acc 0.89 is under the floor 0.9");
        bench.propose("d").measured(measured(&[("m", 8.5), ("size", 103.0)]));
        decided(&bench, "guard_failed", "acc has no value");
        assert_eq!(bench.waits_for(), "t5/propose");
        bench
    }

    /// A guarded number that is there but no number says so.
    fn a_guard_without_a_number_says_why() {
        let baseline = [("m", 10.0), ("size", 100.0), ("acc", 0.95)];
        let mut bench = guarded(size_and_accuracy(), threshold(false), &baseline);
        let mut result = measured(&[("m", 9.0), ("size", 100.0)]);
        let line = "acc=nan".to_owned();
        result.readings.insert(MetricName::new("acc").unwrap(), Refusal::NotFinite { line });
        bench.propose("a").measured(result);
        decided(&bench, "guard_failed", "acc has no value: `acc=nan` is not a finite number");
        bench
    }

    fn many_small_rises_do_not_slip_past_the_baseline() {
        let guards = json!([{
            "metric": "size", "max_rise": "5%", "max_rise_from_baseline": "20%",
        }]);
        let mut bench = guarded(guards, threshold(false), &[("m", 100.0), ("size", 100.0)]);
        let mut size = 100.0;
        for step in 1..=10 {
            size *= 1.04;
            let value = 100.0 - f64::from(step);
            bench.propose(&format!("tree-{step}")).measured(measured(&[("m", value), ("size", size)]));
            if bench.waits_for().contains("keep") {
                bench.commit("k");
            } else {
                size /= 1.04;
            }
        }
        // 1.04^4 is under 1.2, 1.04^5 is not.
        let kept = bench.outcomes().iter().filter(|outcome| **outcome == "kept").count();
        assert_eq!(kept, 1 + 4);
        decided(&bench, "guard_failed", "the baseline's 100");
        bench
    }

    /// The first draw rejects a clear breach before the metric is measured again.
    fn a_breach_at_the_first_reading_needs_no_second_one() {
        let baseline = [("m", 10.0), ("size", 100.0), ("acc", 0.95)];
        let mut bench = guarded(size_and_accuracy(), threshold(true), &baseline);
        bench.propose("a").measured(measured(&[("m", 5.0), ("size", 120.0), ("acc", 0.95)]));
        let body = decided(&bench, "guard_failed", "size 120");
        assert_eq!(body["readings"].as_array().unwrap().len(), 1);
        bench
    }

    fn the_mean_of_all_readings_is_held_against_the_guards() {
        let baseline = [("m", 10.0), ("size", 100.0), ("acc", 0.95)];
        let mut bench = guarded(size_and_accuracy(), threshold(true), &baseline);
        bench.propose("a").measured(measured(&[("m", 5.0), ("size", 100.0), ("acc", 0.95)]));
        bench.measured(measured(&[("m", 6.0), ("size", 120.0), ("acc", 0.95)]));
        let body = decided(&bench, "guard_failed", "size 110");
        assert_eq!(body["value"], "6");
        bench
    }

    /// A number that is missing in one of two readings is unknown, not the other one's.
    fn a_guard_missing_once_is_missing() {
        let baseline = [("m", 10.0), ("size", 100.0), ("acc", 0.95)];
        let mut bench = guarded(size_and_accuracy(), threshold(true), &baseline);
        bench.propose("a").measured(measured(&[("m", 5.0), ("size", 100.0), ("acc", 0.95)]));
        bench.measured(measured(&[("m", 6.0), ("size", 100.0)]));
        decided(&bench, "guard_failed", "acc has no value");
        bench
    }

    /// What a commit hook made of a change is measured before guards say anything about it.
    fn a_rewritten_change_is_measured_before_it_is_guarded() {
        let baseline = [("m", 10.0), ("size", 100.0), ("acc", 0.95)];
        let mut bench = guarded(size_and_accuracy(), threshold(false), &baseline);
        bench.propose("a").measured(measured(&[("m", 5.0), ("size", 100.0), ("acc", 0.95)]));
        bench.kept(Kept::Rewritten {
            candidate: candidate("c"),
            findings: Findings::default(),
        });
        assert_eq!(bench.waits_for(), "t1/measure/candidate/2");
        bench.measured(measured(&[("m", 6.0), ("size", 104.0), ("acc", 0.95)])).commit("k1");
        let body = decided(&bench, "kept", "6 beat 10");
        assert_eq!(body["values"]["size"], "104");
        bench
    }
}
