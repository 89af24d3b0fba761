//! Every way a trial can end, with the decision that is recorded for it.

use loopwright_core::experiment::Named;
use loopwright_core::experiment::results::{Ended, Findings, Kept, Measured, Proposed};
use loopwright_core::metric::{MetricName, Refusal};
use serde_json::{Value, json};

use crate::scenario::scenarios;
use crate::support::{Bench, candidate, measured, proposed, ran};

/// The decision of a trial of the first segment against a baseline of 10.
fn decision(changes: Value) -> Value {
    let mut body = json!({
        "origin": "proposed", "segment": 1, "against": "10", "tree": "b", "policy": "threshold/1",
    });
    let fields = body.as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.remove(key);
        } else {
            fields.insert(key.clone(), value.clone());
        }
    }
    body
}

fn named(names: &[&str]) -> Named {
    names.iter().copied().collect()
}

/// What the user's commit hook made of a change, with nothing to say against it.
fn rewritten(tree: &str) -> Kept {
    Kept::Rewritten {
        candidate: candidate(tree),
        findings: Findings::default(),
    }
}

#[track_caller]
fn decided(bench: &Bench, expected: Value) {
    let bodies = bench.bodies("trial.decided");
    assert_eq!(bodies.last(), Some(&decision(expected)));
}

fn read(values: &[f64]) -> Value {
    let taken = |value: &f64| json!({"arm": "candidate", "value": value.to_string()});
    values.iter().map(taken).collect()
}

/// A trial that ends with its proposal.
fn after_proposal(change: impl FnOnce(&mut Proposed), expected: Value) -> Bench {
    let mut bench = Bench::with_baseline(json!({}));
    let mut result = proposed("b");
    change(&mut result);
    bench.proposed(result);
    decided(&bench, expected);
    bench
}

/// A trial that ends with its first measurement.
fn after_measurement(change: impl FnOnce(&mut Measured), outcome: &str, why: &str) -> Bench {
    let mut bench = Bench::with_baseline(json!({}));
    let mut result = measured(&[("m", 1.0)]);
    change(&mut result);
    bench.propose("b").measured(result);
    decided(
        &bench,
        json!({"outcome": outcome, "why": why, "readings": [{"arm": "candidate"}]}),
    );
    bench
}

fn refused(refusal: Refusal) -> impl FnOnce(&mut Measured) {
    |measured| {
        let name = MetricName::new("m").unwrap();
        measured.readings.insert(name, refusal);
    }
}

scenarios! {
    fn the_baseline_is_the_first_trial() {
        let bench = Bench::with_baseline(json!({}));
        assert_eq!(bench.bodies("trial.decided"), [json!({
            "outcome": "kept", "why": "baseline", "origin": "baseline", "segment": 1, "value": "10",
            "values": {"m": "10"}, "readings": [{"arm": "incumbent", "value": "10"}],
            "tree": "tree-h1", "policy": "threshold/1",
        })]);
        assert_eq!(bench.bodies("segment.started").len(), 1);
        bench
    }

    fn a_change_that_helps_is_kept() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("b").measure(9.0).commit("k1");
        decided(&bench, json!({
            "outcome": "kept", "why": "9 beat 10", "value": "9", "values": {"m": "9"},
            "readings": read(&[9.0]),
        }));
        let incumbent = bench.state().incumbent().unwrap();
        assert_eq!((incumbent.commit.as_str(), incumbent.tree.as_str()), ("k1", "b"));
        assert_eq!(bench.waits_for(), "t2/propose");
        bench
    }

    fn a_note_on_the_commit_stands_in_the_reason() {
        let mut bench = Bench::with_baseline(json!({}));
        let note = Some("the branch was moved".to_owned());
        bench.propose("b").measure(9.0).kept(Kept::Committed { commit: "k1".to_owned(), note });
        decided(&bench, json!({
            "outcome": "kept", "why": "9 beat 10 (the branch was moved)", "value": "9",
            "values": {"m": "9"}, "readings": read(&[9.0]),
        }));
        bench
    }

    fn a_change_that_does_not_help_is_reverted() {
        let mut bench = Bench::with_baseline(json!({}));
        for (value, why) in [
            (10.0, "10 ties with 10"),
            (11.0, "11 did not beat 10 (lower is better)"),
        ] {
            bench.propose("b").measure(value);
            decided(&bench, json!({
                "outcome": "reverted", "why": why, "value": value.to_string(),
                "values": {"m": value.to_string()}, "readings": read(&[value]),
            }));
        }
        assert_eq!(bench.state().incumbent().unwrap().tree, "tree-h1");
        bench
    }

    fn a_gain_under_the_least_is_reverted() {
        let rule = json!({"name": "threshold", "min_delta": "2", "confirm": false});
        let mut bench = Bench::with_baseline(json!({"rule": rule}));
        bench.propose("b").measure(8.0);
        decided(&bench, json!({
            "outcome": "reverted", "why": "8 beat 10 by 2, and the least gain is 2", "value": "8",
            "values": {"m": "8"}, "readings": read(&[8.0]),
        }));
        bench.propose("b").measure(7.5).commit("k1");
        assert_eq!(bench.outcomes(), ["kept", "reverted", "kept"]);
        bench
    }

    fn more_is_better_where_that_is_the_goal() {
        let mut bench = Bench::with_baseline(json!({"goal": "maximize"}));
        bench.propose("a").measure(9.0).propose("b").measure(11.0).commit("k1");
        assert_eq!(bench.outcomes(), ["kept", "reverted", "kept"]);
        bench
    }

    fn a_confirmed_win_counts_with_its_weaker_value() {
        let rule = json!({"name": "threshold", "min_delta": "0", "confirm": true});
        let mut bench = Bench::with_baseline(json!({"rule": rule}));
        bench.propose("b").measure(5.0);
        assert_eq!(bench.waits_for(), "t1/measure/candidate/2");
        bench.measure(7.0).commit("k1");
        decided(&bench, json!({
            "outcome": "kept", "why": "5 and then 7 beat 10", "value": "7", "values": {"m": "6"},
            "readings": read(&[5.0, 7.0]),
        }));
        bench
    }

    fn a_win_that_is_not_confirmed_is_reverted() {
        let rule = json!({"name": "threshold", "min_delta": "0", "confirm": true});
        let mut bench = Bench::with_baseline(json!({"rule": rule}));
        bench.propose("b").measure(5.0).measure(12.0);
        decided(&bench, json!({
            "outcome": "reverted", "value": "12", "values": {"m": "8.5"},
            "why": "won at 5 but measured 12 on a second run, against 10",
            "readings": read(&[5.0, 12.0]),
        }));
        bench
    }

    fn a_confirming_run_that_fails_is_unstable() {
        let rule = json!({"name": "threshold", "min_delta": "0", "confirm": true});
        let mut bench = Bench::with_baseline(json!({"rule": rule}));
        let broken = Measured { ran: ran(Ended::Exited(1)), ..measured(&[]) };
        bench.propose("b").measure(5.0).measured(broken);
        decided(&bench, json!({
            "outcome": "unstable", "why": "measured again, the measurement exited with status 1",
            "values": {"m": "5"},
            "readings": [{"arm": "candidate", "value": "5"}, {"arm": "candidate"}],
        }));
        bench
    }

    fn a_proposal_that_leaves_the_tree_alone_is_no_change() {
        let expected = json!({
            "outcome": "no_change", "why": "the proposal left the tree as it was", "tree": null,
        });
        let bench = after_proposal(|proposed| proposed.candidate = None, expected);
        assert_eq!(bench.announced("measure"), 1, "only the baseline is measured");
        bench
    }

    fn a_proposal_that_comes_back_to_the_same_tree_is_no_change() {
        after_proposal(|proposed| proposed.candidate = Some(candidate("tree-h1")), json!({
            "outcome": "no_change", "why": "the proposal left the tree as it was", "tree": "tree-h1",
        }))
    }

    fn a_tree_that_was_tried_before_is_a_duplicate() {
        after_proposal(|proposed| proposed.duplicate_of = Some(0), json!({
            "outcome": "duplicate", "why": "the same tree was tried in trial 0",
        }))
    }

    fn a_proposal_that_fails_is_failed() {
        let ended = |proposed: &mut Proposed| proposed.ran = ran(Ended::Exited(3));
        after_proposal(ended, json!({
            "outcome": "failed", "why": "the proposal exited with status 3",
        }))
    }

    fn a_proposal_past_its_limit_is_timed_out() {
        let limit_us = 90_000_000;
        let ended = |proposed: &mut Proposed| proposed.ran = ran(Ended::TimedOut { limit_us });
        after_proposal(ended, json!({
            "outcome": "timed_out", "why": "the proposal passed its limit of 90 s",
        }))
    }

    fn a_proposal_that_touches_the_referee_is_named_before_its_crash() {
        let touched = |proposed: &mut Proposed| {
            proposed.ran = ran(Ended::Exited(3));
            proposed.findings.protected = named(&["eval/score.py", "eval/data"]);
        };
        after_proposal(touched, json!({
            "outcome": "harness_changed",
            "why": "the proposal changed what judges it: eval/score.py and 1 more",
        }))
    }

    fn a_proposal_that_shadows_an_import_is_named() {
        let shadowed = |proposed: &mut Proposed| proposed.findings.shadowing = named(&["json.py"]);
        after_proposal(shadowed, json!({
            "outcome": "harness_changed",
            "why": "the proposal added a file that would be imported in place of what judges it: json.py",
        }))
    }

    fn a_proposal_git_can_not_record_is_failed() {
        let refused = |proposed: &mut Proposed| {
            proposed.refused = named(&["pipe: a named pipe"]);
        };
        after_proposal(refused, json!({
            "outcome": "failed", "why": "the proposal left something git can't record: pipe: a named pipe",
        }))
    }

    fn a_change_that_holds_a_secret_is_not_measured() {
        let secret = |proposed: &mut Proposed| proposed.findings.secrets = named(&[".env"]);
        let bench = after_proposal(secret, json!({
            "outcome": "failed", "why": "the change holds what looks like a secret: .env",
        }));
        assert_eq!(bench.announced("measure"), 1);
        bench
    }

    fn a_measurement_that_fails_after_a_good_number_is_failed() {
        after_measurement(
            |measured| measured.ran = ran(Ended::Exited(1)),
            "failed",
            "the measurement exited with status 1",
        )
    }

    fn a_setup_that_fails_is_said_to_be_the_setup() {
        after_measurement(
            |measured| {
                measured.ran = ran(Ended::Signaled(9));
                measured.in_setup = true;
            },
            "failed",
            "the setup was ended by signal 9",
        )
    }

    fn a_command_that_can_not_be_started_is_failed() {
        after_measurement(
            |measured| measured.ran = ran(Ended::Broken { why: "no shell".to_owned() }),
            "failed",
            "the measurement could not be run: no shell",
        )
    }

    fn a_measurement_past_its_limit_is_timed_out() {
        after_measurement(
            |measured| measured.ran = ran(Ended::TimedOut { limit_us: 250_000 }),
            "timed_out",
            "the measurement passed its limit of 0.25 s",
        )
    }

    fn a_measurement_that_touches_the_referee_is_named() {
        after_measurement(
            |measured| measured.touched = Named::from_iter(["eval/score.py"]),
            "harness_changed",
            "the measurement changed what judges it: eval/score.py",
        )
    }

    fn no_number_at_all_is_no_metric() {
        after_measurement(
            |measured| *measured = crate::support::measured(&[]),
            "no_metric",
            "m: no line of the output gives it",
        )
    }

    fn a_malformed_number_is_no_metric() {
        after_measurement(
            refused(Refusal::Malformed { line: "m=12ms".to_owned() }),
            "no_metric",
            "m: `m=12ms` is malformed: a plain decimal number was expected",
        )
    }

    fn a_number_that_is_not_finite_is_told_apart() {
        after_measurement(
            refused(Refusal::NotFinite { line: "m=nan".to_owned() }),
            "not_finite",
            "m: `m=nan` is not a finite number",
        )
    }

    fn contradicting_numbers_are_ambiguous() {
        let (first, second) = ("m=9".to_owned(), "m=7".to_owned());
        after_measurement(
            refused(Refusal::Ambiguous { first, second }),
            "ambiguous",
            "m: ambiguous: `m=9` and `m=7` contradict each other",
        )
    }

    fn a_loop_goes_on_improving_after_failures() {
        let mut bench = Bench::with_baseline(json!({}));
        let failed = Measured { ran: ran(Ended::Exited(1)), ..measured(&[("m", 0.0)]) };
        bench.propose("a").measured(failed).propose("b").measure(9.0).commit("k1");
        bench.propose("c").measure(9.5).propose("d").measure(8.0).commit("k2");
        assert_eq!(bench.outcomes(), ["kept", "failed", "kept", "reverted", "kept"]);
        decided(&bench, json!({
            "outcome": "kept", "why": "8 beat 9", "against": "9", "value": "8", "tree": "d",
            "values": {"m": "8"}, "readings": read(&[8.0]),
        }));
        bench
    }

    fn a_commit_that_is_refused_leaves_the_incumbent() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("b").measure(9.0).kept(Kept::Refused { words: "hook said no".to_owned() });
        decided(&bench, json!({
            "outcome": "failed", "why": "it helps, but the commit was refused: hook said no",
            "value": "9", "values": {"m": "9"}, "readings": read(&[9.0]),
        }));
        assert_eq!(bench.state().incumbent().unwrap().tree, "tree-h1");
        bench
    }

    fn a_checkout_that_holds_something_else_is_not_kept() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("b").measure(9.0).kept(Kept::Mismatch { found_tree: "z".to_owned() });
        decided(&bench, json!({
            "outcome": "failed", "value": "9", "values": {"m": "9"}, "readings": read(&[9.0]),
            "why": "the checkout no longer held what was measured (tree z)",
        }));
        bench
    }

    fn what_a_commit_hook_rewrote_is_measured_and_kept() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("b").measure(5.0).kept(rewritten("c"));
        assert_eq!(bench.waits_for(), "t1/measure/candidate/2");
        bench.measure(9.0);
        assert_eq!(bench.waits_for(), "t1/keep/2");
        bench.commit("k1");
        decided(&bench, json!({
            "outcome": "kept", "why": "9 beat 10", "value": "9", "values": {"m": "9"}, "tree": "c",
            "readings": read(&[5.0, 9.0]),
        }));
        bench
    }

    fn what_a_commit_hook_made_worse_is_reverted() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("b").measure(5.0).kept(rewritten("c"));
        bench.measure(77.0);
        decided(&bench, json!({
            "outcome": "reverted", "why": "77 did not beat 10 (lower is better)", "value": "77",
            "values": {"m": "77"}, "tree": "c", "readings": read(&[5.0, 77.0]),
        }));
        bench
    }

    /// The first reading of a rewritten tree is no repetition.
    fn what_a_commit_hook_broke_is_failed() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("b").measure(5.0).kept(rewritten("c"));
        bench.measured(Measured { ran: ran(Ended::Exited(1)), ..measured(&[]) });
        decided(&bench, json!({
            "outcome": "failed", "why": "the measurement exited with status 1", "tree": "c",
            "readings": [{"arm": "candidate", "value": "5"}, {"arm": "candidate"}],
        }));
        bench
    }

    fn a_hook_that_never_rests_is_not_kept() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("b").measure(5.0).kept(rewritten("c"));
        bench.measure(6.0).kept(rewritten("d"));
        decided(&bench, json!({
            "outcome": "failed", "value": "6", "values": {"m": "6"}, "tree": "c",
            "why": "the commit hook rewrote the change again after it was measured",
            "readings": read(&[5.0, 6.0]),
        }));
        bench
    }

    /// What it made of the change goes through the same examination as a proposal.
    fn a_commit_hook_that_touches_the_referee_is_named() {
        let mut bench = Bench::with_baseline(json!({}));
        let findings = Findings {
            protected: Named::from_iter(["eval/score.py"]),
            ..Findings::default()
        };
        bench.propose("b").measure(5.0);
        bench.kept(Kept::Rewritten { candidate: candidate("c"), findings });
        decided(&bench, json!({
            "outcome": "harness_changed", "tree": "c", "readings": read(&[5.0]),
            "why": "the commit hook changed what judges it: eval/score.py",
        }));
        bench
    }

    fn the_value_of_a_refused_commit_is_the_rules() {
        let rule = json!({"name": "threshold", "min_delta": "0", "confirm": true});
        let mut bench = Bench::with_baseline(json!({"rule": rule}));
        bench.propose("b").measure(7.0).measure(5.0);
        bench.kept(Kept::Refused { words: "no key".to_owned() });
        decided(&bench, json!({
            "outcome": "failed", "why": "it helps, but the commit was refused: no key", "value": "7",
            "values": {"m": "6"}, "readings": read(&[7.0, 5.0]),
        }));
        bench
    }
}
