//! The keep rule at the machine's decision point: which arm is measured when, and what becomes of
//! failures, limits, guards, branches and segments.

use loopwright_core::experiment::Mode;
use loopwright_core::experiment::results::{Ended, Findings, Kept, Measured};
use loopwright_core::ids::BranchName;
use serde_json::{Value, json};

use crate::scenario::scenarios;
use crate::support::{Bench, candidate, harness, keep_rule, measured, ran, specification_with};

/// A run under the keep rule whose baseline is 10, with an open invocation.
pub fn judged(rule: Value, changes: Value) -> Bench {
    let mut settings = json!({"rule": keep_rule(rule)});
    for (key, value) in changes.as_object().unwrap() {
        settings[key] = value.clone();
    }
    Bench::with_baseline(settings)
}

/// Measures one after the other, each after its arm: `C 9.5 I 10`.
pub fn play(bench: &mut Bench, runs: &str) {
    let words: Vec<&str> = runs.split_whitespace().collect();
    for pair in words.chunks(2) {
        let path = bench.waits_for();
        let arm = path.split('/').nth(2).unwrap_or_default();
        let letter = if arm == "candidate" { "C" } else { "I" };
        assert_eq!(letter, pair[0], "it waits for {path:?} before {}", pair[1]);
        bench.measure(pair[1].parse().unwrap());
    }
}

/// The first trial: a candidate that is better by 6 and wins its duel against a noise of about 0.3.
pub const WON: &str = "C 3 C 4.25 I 10.75 I 10 C 4 C 4.5 I 10";

/// The same run, with that trial kept and the next one proposed.
fn with_noise(changes: Value) -> Bench {
    let mut bench = judged(json!({}), changes);
    bench.propose("a");
    play(&mut bench, WON);
    bench.commit("k1").propose("b");
    bench
}

fn failed() -> Measured {
    Measured {
        ran: ran(Ended::Exited(1)),
        ..measured(&[])
    }
}

#[track_caller]
fn decided(bench: &Bench, expected: &Value) {
    let last = bench.bodies("trial.decided").pop().unwrap();
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&last[key], value, "{key} of {last}");
    }
}

fn doubt_left(bench: &Bench) -> f64 {
    let last = bench.bodies("trial.decided").pop().unwrap();
    last["doubt_left"].as_str().unwrap().parse().unwrap()
}

scenarios! {
    /// The trace that the rule was designed with, through the machine.
    fn a_noisy_loop_decides_as_the_trace_says() {
        let mut bench = Bench::new(specification_with(json!({"rule": keep_rule(json!({}))})));
        bench.begin(|_| {}).measure(9.99).propose("a");
        play(&mut bench, "C 11.05");
        bench.propose("b");
        play(&mut bench, "C 8.74 C 8.72 I 11.62 I 8.79 C 7.37 C 6.68 I 9.89 I 11.0 C 7.98 C 8.5 I 8.09");
        play(&mut bench, "I 10.15 C 7.09 C 9.78 I 10.89");
        bench.commit("k1");
        assert!((doubt_left(&bench) - 0.196_167).abs() < 1e-6);
        for (tree, value) in [("c", "C 9.95"), ("d", "C 7.94"), ("e", "C 8.61")] {
            bench.propose(tree);
            play(&mut bench, value);
        }
        bench.propose("f");
        play(&mut bench, "C 7.16 C 6.16 I 7.5 I 7.89 C 5.89 C 5.91 I 7.72");
        bench.commit("k2");
        assert!((doubt_left(&bench) - 0.295_179).abs() < 1e-6);
        bench.propose("g");
        play(&mut bench, "C 5.77");
        assert_eq!(bench.outcomes(), [
            "kept", "reverted", "kept", "reverted", "reverted", "reverted", "kept", "reverted",
        ]);
        bench
    }

    fn a_metric_that_repeats_exactly_costs_two_runs_more() {
        let mut bench = judged(json!({}), json!({}));
        for (tree, runs) in [
            ("a", "C 11"), ("b", "C 9.5 C 9.5"), ("c", "C 9.6"), ("d", "C 9 C 9"), ("e", "C 8.9"),
        ] {
            bench.propose(tree);
            play(&mut bench, runs);
            if bench.waits_for().ends_with("keep/1") {
                bench.commit(tree);
            }
        }
        assert_eq!(bench.outcomes(), ["kept", "reverted", "kept", "reverted", "kept", "kept"]);
        decided(&bench, &json!({
            "why": "8.9 beat 9, and the metric repeats exactly", "value": "8.9", "against": "9",
        }));
        bench
    }

    /// What stands in the record: the pairs' mean, never the lucky first draw; each reading with its
    /// arm and what it was for; the doubt that is left.
    fn a_won_duel_is_recorded_with_every_reading() {
        let mut bench = judged(json!({}), json!({}));
        bench.propose("a");
        play(&mut bench, "C 2 C 4.5 I 10.5 I 9.5 C 3.5 C 4 I 10");
        bench.commit("k1");
        let taken = |arm: &str, value: &str, purpose: &str| {
            json!({"arm": arm, "value": value, "purpose": purpose})
        };
        decided(&bench, &json!({
            "outcome": "kept", "value": "4", "against": "10", "values": {"m": "4"},
            "policy": "keep/1",
            "why": "better in 3 of 3 back-to-back pairs, 40.0 noise units (36.3 to 43.7)",
            "readings": [
                taken("candidate", "2", "first"), taken("candidate", "4.5", "duel"),
                taken("incumbent", "10.5", "duel"), taken("incumbent", "9.5", "duel"),
                taken("candidate", "3.5", "duel"), taken("candidate", "4", "duel"),
                taken("incumbent", "10", "duel"),
            ],
        }));
        assert_eq!(bench.state().incumbent().unwrap().value.unwrap().get(), 4.0);
        bench
    }

    fn a_noisy_incumbent_is_looked_at_again_before_a_candidate() {
        let mut bench = with_noise(json!({}));
        for tree in ["c", "d", "e", "f", "g"] {
            play(&mut bench, "C 5");
            bench.propose(tree);
        }
        assert_eq!(bench.waits_for(), "t7/measure/incumbent/1");
        play(&mut bench, "I 4 C 5");
        let last = bench.bodies("trial.decided").pop().unwrap();
        assert_eq!(last["readings"][0], json!({
            "arm": "incumbent", "value": "4", "purpose": "refresh",
        }));
        bench
    }

    // ---- failures ----

    fn a_first_draw_that_fails_is_failed_and_costs_no_doubt() {
        let mut bench = with_noise(json!({}));
        let before = bench.state().purse;
        bench.measured(failed());
        decided(&bench, &json!({
            "outcome": "failed", "why": "the measurement exited with status 1",
        }));
        assert_eq!(bench.state().purse, before);
        bench
    }

    fn a_candidate_that_fails_in_its_duel_is_unstable() {
        let mut bench = with_noise(json!({}));
        play(&mut bench, "C 3.5 C 3.75 I 4 I 4.25");
        bench.measured(failed());
        decided(&bench, &json!({
            "outcome": "unstable", "why": "measured again, the measurement exited with status 1",
        }));
        bench
    }

    fn where_the_incumbent_fails_too_one_failure_of_the_candidate_is_repeated() {
        let mut bench = with_noise(json!({}));
        play(&mut bench, "C 3.5 C 3.75");
        bench.measured(failed());
        assert_eq!(bench.waits_for(), "t2/measure/candidate/4", "the half pair is begun anew");
        bench.measured(failed());
        play(&mut bench, "C 3.75 I 4 I 4.25");
        bench.measured(failed());
        decided(&bench, &json!({"outcome": "unstable"}));
        let last = bench.bodies("trial.decided").pop().unwrap();
        assert_eq!(last["readings"].as_array().unwrap().len(), 8, "each is recorded");
        bench
    }

    /// It is the harness that is broken: nothing is decided about the candidate.
    fn an_incumbent_that_fails_twice_in_a_row_ends_the_invocation_and_the_trial_waits() {
        let mut bench = with_noise(json!({}));
        play(&mut bench, "C 3.5 C 3.75");
        bench.measured(failed());
        play(&mut bench, "C 3.75");
        bench.measured(failed()).ended("baseline_failed");
        let ended = bench.bodies("invocation.ended").pop().unwrap();
        assert!(
            ended["ending"]["words"].as_str().unwrap().contains("can't be measured any more"),
            "{ended}"
        );
        assert!(bench.state().trial.is_some());
        // Later it is better.
        bench.begin(|_| {});
        play(&mut bench, "C 1 I 4.25");
        bench.commit("k2");
        assert_eq!(bench.outcomes(), ["kept", "kept", "kept"]);
        bench
    }

    fn a_reading_that_has_no_proportion_is_no_number_of_the_metric() {
        let mut bench = judged(json!({"ratio": true}), json!({}));
        bench.propose("a").measure(0.0);
        decided(&bench, &json!({
            "outcome": "not_finite",
            "why": "m: 0 is not above zero, and `ratio` judges proportions",
        }));
        bench
    }

    fn what_an_open_case_can_make_nothing_of_ends_its_trial_whatever_the_settings_say() {
        let mut bench = judged(json!({"ratio": true}), json!({}));
        bench.propose("a").interrupt();
        bench.specification["rule"] = json!({"name": "threshold", "min_delta": "0", "confirm": false});
        bench.begin(|_| {}).measure(-1.0);
        decided(&bench, &json!({
            "outcome": "not_finite",
            "why": "m: -1 is not above zero, and `ratio` judges proportions",
        }));
        bench
    }

    fn a_baseline_that_has_no_proportion_ends_the_invocation() {
        let rule = keep_rule(json!({"ratio": true}));
        let mut bench = Bench::new(specification_with(json!({"rule": rule})));
        bench.begin(|_| {}).measure(-1.0).ended("baseline_failed");
        bench
    }

    fn a_measurement_whose_outcome_is_lost_fails_its_trial() {
        let mut bench = with_noise(json!({
            "on_unknown": {"proposer": "retry", "experiment": "fail", "setup": "retry"},
        }));
        play(&mut bench, "C 1 C 1.5");
        let staked = bench.state().purse.unwrap().left();
        bench.begin(|_| {});
        decided(&bench, &json!({
            "outcome": "failed", "why": "the outcome of t2/measure/incumbent/3 is unknown",
        }));
        let income = 0.4 * 0.1 / 60.0;
        assert!((doubt_left(&bench) - staked - income).abs() < 1e-9, "its stake stays spent");
        bench
    }

    // ---- what else decides ----

    fn a_winner_whose_commit_is_refused_earns_nothing() {
        let mut bench = judged(json!({}), json!({}));
        bench.propose("a");
        play(&mut bench, WON);
        bench.kept(Kept::Refused { words: "no".to_owned() });
        decided(&bench, &json!({"outcome": "failed", "value": "4.25"}));
        assert!(doubt_left(&bench) < 0.06, "{}", doubt_left(&bench));
        assert!(bench.state().line().unwrap().standing.unwrap().stands_at().unwrap().0 > 9.0);
        bench
    }

    fn what_a_commit_hook_rewrote_is_another_case() {
        let mut bench = judged(json!({}), json!({}));
        bench.propose("a");
        play(&mut bench, WON);
        bench.kept(Kept::Rewritten {
            candidate: candidate("hooked"),
            findings: Findings::default(),
        });
        assert_eq!(bench.waits_for(), "t1/measure/candidate/8");
        play(&mut bench, "C 11");
        decided(&bench, &json!({"outcome": "reverted", "values": {"m": "11"}}));
        bench
    }

    /// In a duel guards are held once, at its end, against what the incumbent was beside it.
    fn a_noisy_guard_is_held_against_the_incumbents_mean_of_the_duel() {
        let guards = json!([{"metric": "size", "max_rise": "5%"}]);
        let mut bench = Bench::new(specification_with(json!({
            "rule": keep_rule(json!({})), "guards": guards,
        })));
        let reading = |value, size| measured(&[("m", value), ("size", size)]);
        // The baseline happened to be small.
        bench.begin(|_| {}).measured(reading(10.0, 100.0)).propose("a");
        bench.measured(reading(4.0, 104.0));
        for (value, size) in [
            (4.5, 112.0), (10.5, 108.0), (9.5, 110.0), (3.5, 110.0), (4.0, 112.0), (10.0, 110.0),
        ] {
            bench.measured(reading(value, size));
        }
        bench.commit("k1");
        // 5% of 111.3, the mean of what was kept, is 5.6.
        bench.propose("b").measured(reading(3.0, 118.0));
        decided(&bench, &json!({"outcome": "guard_failed"}));
        bench
    }

    fn a_guard_that_the_means_break_reverts_a_winner() {
        let guards = json!([{"metric": "size", "max_rise": "5%"}]);
        let mut bench = Bench::new(specification_with(json!({
            "rule": keep_rule(json!({})), "guards": guards,
        })));
        let reading = |value, size| measured(&[("m", value), ("size", size)]);
        bench.begin(|_| {}).measured(reading(10.0, 100.0)).propose("a");
        bench.measured(reading(4.0, 104.0));
        for value in [4.5, 10.5, 9.5, 3.5, 4.0, 10.0] {
            let size = if value < 9.0 { 107.0 } else { 100.0 };
            bench.measured(reading(value, size));
        }
        decided(&bench, &json!({"outcome": "guard_failed", "value": "4"}));
        assert!(doubt_left(&bench) < 0.06, "it earned nothing");
        bench
    }

    // ---- limits ----

    fn a_duel_that_the_runs_cut_short_is_undecided() {
        let mut bench = judged(json!({}), json!({"max_runs": 8}));
        bench.propose("a");
        play(&mut bench, "C 8 C 9.5 I 9 I 10.5 C 9 C 9.25 I 9.5");
        decided(&bench, &json!({
            "outcome": "undecided", "value": "9.25",
            "why": "the loop's 8 runs did not reach: better in 2 of 3 back-to-back pairs",
        }));
        bench.ended("budget");
        // Running again doesn't help, raising the limit does.
        bench.begin(|_| {}).ended("budget");
        bench.specification["max_runs"] = json!(20);
        bench.begin(|_| {});
        assert_eq!(bench.waits_for(), "t2/propose");
        bench
    }

    fn a_duel_that_can_come_to_nothing_is_not_begun() {
        let mut bench = judged(json!({}), json!({"max_runs": 5}));
        bench.propose("a");
        play(&mut bench, "C 8");
        decided(&bench, &json!({
            "outcome": "undecided",
            "why": "the loop's 5 runs did not reach: it looked promising, and no pair of runs was \
                    left",
        }));
        assert_eq!(bench.waits_for(), "t2/propose", "what doesn't look promising needs one run");
        bench
    }

    /// Also where the limit was lowered while the trial was open.
    fn a_limit_that_was_lowered_ends_the_open_duel() {
        let mut bench = judged(json!({}), json!({"max_runs": 100}));
        bench.propose("a");
        play(&mut bench, "C 8 C 9.5");
        bench.interrupt();
        bench.specification["max_runs"] = json!(2);
        bench.begin(|_| {}).ended("budget");
        decided(&bench, &json!({"outcome": "undecided"}));
        bench
    }

    /// A limit of runs is no matter of the keep rule alone.
    fn the_threshold_rule_keeps_to_the_runs_too() {
        let rule = json!({"name": "threshold", "min_delta": "0", "confirm": true});
        let mut bench = Bench::with_baseline(json!({"rule": rule, "max_runs": 2}));
        bench.propose("a").measure(8.0);
        decided(&bench, &json!({
            "outcome": "undecided", "why": "the loop's 2 runs did not reach: it was not confirmed",
        }));
        bench.ended("budget");
        bench
    }

    // ---- what belongs to whom ----

    fn running_again_refills_no_purse() {
        let mut bench = with_noise(json!({}));
        play(&mut bench, "C 1 C 1.5");
        let before = (bench.state().purse, bench.state().line().unwrap().standing);
        for _ in 0..3 {
            bench.interrupt().begin(|_| {});
            assert_eq!((bench.state().purse, bench.state().line().unwrap().standing), before);
        }
        bench
    }

    fn a_fork_shares_the_purse_and_knows_the_noise() {
        let mut bench = with_noise(json!({}));
        play(&mut bench, "C 5");
        let main = bench.state().line().unwrap().clone();
        let (purse, standing) = (bench.state().purse, main.standing.unwrap());
        bench.propose("c").interrupt();
        let begin_fork = |bench: &mut Bench| {
            let mut start = harness("h1");
            (start.commit, start.tree) = (main.incumbent.commit.clone(), main.incumbent.tree.clone());
            bench.begin(|caps| {
                caps.branch = BranchName::new("other").unwrap();
                caps.harness = start;
            });
        };
        begin_fork(&mut bench);
        // The open trial is finished first, where it belongs.
        play(&mut bench, "C 5.5");
        let there = bench.state().line().unwrap();
        assert_eq!(there.standing.unwrap().deviation(), standing.deviation());
        assert_eq!(there.standing.unwrap().stands_at(), None, "its incumbent is read anew");
        assert_eq!(bench.waits_for(), "t4/measure/incumbent/1");
        bench.measure(4.0).propose("d");
        assert!(bench.state().purse.unwrap().left() >= purse.unwrap().left());
        let before = bench.state().purse.unwrap().left();
        play(&mut bench, "C 1");
        assert!(bench.state().purse.unwrap().left() < before, "one purse for both");
        bench
    }

    fn a_new_harness_forgets_all_but_the_purse() {
        let mut bench = with_noise(json!({}));
        play(&mut bench, "C 1 C 1.5");
        let staked = bench.state().purse.unwrap().left();
        bench.interrupt().begin(|caps| caps.harness = harness("h2"));
        decided(&bench, &json!({"outcome": "conflict"}));
        assert!(bench.state().line().unwrap().standing.is_none());
        assert_eq!(bench.waits_for(), "t3/measure/incumbent/1");
        bench.measure(50.0).propose("c");
        let standing = bench.state().line().unwrap().standing.unwrap();
        assert_eq!((standing.is_noisy(), standing.stands_at()), (false, Some((50.0, 1.0))));
        assert!((bench.state().purse.unwrap().left() - staked).abs() < 0.001);
        bench
    }

    /// The incumbent's remembered value was one lucky draw: it is read anew, the old rule's number
    /// decides nothing.
    fn a_loop_that_comes_from_the_threshold_rule_reads_its_incumbent_first() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("a").measure(7.0).commit("k1").propose("b").interrupt();
        bench.specification["rule"] = keep_rule(json!({}));
        bench.begin(|_| {});
        assert_eq!(bench.waits_for(), "t2/measure/candidate/1", "it was opened under the old rule");
        play(&mut bench, "C 8");
        bench.propose("c");
        assert_eq!(bench.waits_for(), "t3/measure/incumbent/1");
        play(&mut bench, "I 9.5 C 9 C 9.25");
        assert_eq!(bench.waits_for(), "t3/measure/incumbent/4");
        bench
    }

    /// What another rule kept in between is another incumbent.
    fn a_loop_that_comes_back_from_the_threshold_rule_reads_its_incumbent_first() {
        let mut bench = with_noise(json!({}));
        play(&mut bench, "C 5");
        bench.interrupt();
        let rule = bench.specification["rule"].clone();
        bench.specification["rule"] = json!({"name": "threshold", "min_delta": "0", "confirm": false});
        bench.begin(|_| {}).propose("c").measure(3.0).commit("k2").interrupt();
        bench.specification["rule"] = rule;
        bench.begin(|_| {}).propose("d");
        assert_eq!(bench.waits_for(), "t4/measure/incumbent/1");
        let standing = bench.state().line().unwrap().standing.unwrap();
        assert!(standing.is_noisy(), "how noisy the metric is, is known");
        bench
    }

    fn proportions_are_learnt_anew_when_they_are_asked_for() {
        let mut bench = with_noise(json!({}));
        play(&mut bench, "C 5");
        bench.interrupt();
        bench.specification["rule"] = keep_rule(json!({"ratio": true}));
        bench.begin(|_| {}).propose("c");
        assert_eq!(bench.waits_for(), "t3/measure/incumbent/1");
        assert!(!bench.state().line().unwrap().standing.unwrap().is_noisy());
        bench
    }

    fn a_baseline_that_is_measured_again_is_one_more_reading() {
        let mut bench = with_noise(json!({}));
        play(&mut bench, "C 5");
        bench.interrupt().begin(|caps| caps.mode = Mode::Baseline);
        // The open trial comes first.
        bench.propose("c");
        play(&mut bench, "C 5.5");
        bench.measure(4.0).ended("finished");
        let standing = bench.state().line().unwrap().standing.unwrap();
        assert_eq!(standing.stands_at().unwrap().1, 3.0);
        bench
    }
}

/// The most pairs there may be, and a failure in each: the state stays small (the bench looks).
#[test]
fn the_longest_duel_is_held_in_a_small_state() {
    let rule = json!({"max_pairs": 100, "doubt": "0.001"});
    let guards: Vec<Value> = (0..10)
        .map(|n| json!({"metric": format!("guard-number-{n}"), "ceiling": "1000"}))
        .collect();
    let mut bench = Bench::new(specification_with(json!({
        "rule": keep_rule(rule), "guards": guards,
    })));
    let mut reading = 0;
    let mut settle = |bench: &mut Bench| {
        reading += 1;
        let candidate = bench.waits_for().contains("candidate");
        let noise = 0.123_456_789_012 * f64::from(reading % 7);
        let mut values = vec![("m".to_owned(), if candidate { 9.8 } else { 10.0 } + noise)];
        values.extend((0..10).map(|n| (format!("guard-number-{n}"), noise)));
        let values: Vec<(&str, f64)> = values
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        bench.measured(measured(&values));
    };
    settle(bench.begin(|_| {}));
    let mut readings = 0;
    for tree in 0..8 {
        bench.propose(&format!("tree-{tree}"));
        while bench.waits_for().contains("measure") {
            settle(&mut bench);
            let of_trial = bench
                .state()
                .trial
                .as_ref()
                .map_or(0, |trial| trial.readings.len());
            readings = readings.max(of_trial);
        }
        if bench.waits_for().contains("keep") {
            bench.commit("kept");
        }
    }
    assert!(readings > 30, "no duel was long: {readings} readings");
    bench.verify();
}
