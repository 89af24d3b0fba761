//! The closing check: start against finish at the end of an invocation that kept something.

use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::{Ended, Measured};
use serde_json::{Value, json};

use crate::keep_rule::{WON, judged, play};
use crate::scenario::scenarios;
use crate::support::{Bench, measured, ran};

/// A run that kept one change and has come to the end of its one trial.
fn at_its_end(rule: Value, changes: Value) -> Bench {
    let mut bench = judged(rule, changes);
    bench
        .interrupt()
        .begin(|caps| caps.trials = Some(1))
        .propose("a");
    play(&mut bench, WON);
    bench.commit("k1");
    bench
}

fn words(bench: &Bench) -> String {
    let ended = bench.bodies("invocation.ended").pop().unwrap();
    ended["ending"]["words"].as_str().unwrap().to_owned()
}

fn fail(bench: &mut Bench) {
    let broken = Measured {
        ran: ran(Ended::Exited(1)),
        ..measured(&[])
    };
    bench.settle("closing", settlement_of(&broken));
}

scenarios! {
    fn what_was_gained_is_measured_before_the_end() {
        let mut bench = at_its_end(json!({"closing": 3}), json!({}));
        let mut order = Vec::new();
        let of = |reading: u64| [10.0, 4.0, 4.5, 10.5, 9.0, 4.0][reading as usize - 1];
        for reading in 1..=6 {
            assert_eq!(bench.waits_for(), format!("t1/closing/1/{reading}"));
            let (_, flight) = bench.run.kernel.in_flight.first_key_value().unwrap();
            let request = &flight.announcement.request;
            order.push((request["arm"].clone(), request["tree"].clone()));
            bench.close_with(of(reading));
        }
        let (start, finish) = (
            (json!("candidate"), json!("tree-h1")), (json!("incumbent"), json!("a")),
        );
        assert_eq!(order, [
            start.clone(), finish.clone(), finish.clone(), start.clone(), start, finish,
        ]);
        bench.ended("finished");
        let checked = bench.bodies("closing.checked").pop().unwrap();
        assert_eq!((&checked["trial"], &checked["claim"]["pairs"]), (&json!(1), &json!(3)));
        assert_eq!(checked["claim"]["gain"].as_str().unwrap()[..5], *"5.666");
        assert_eq!(
            words(&bench),
            "1 trial done, 1 kept; doubt left: 0.20 false keeps; measured again, start against \
             finish: 5.7 better (4.4 to 7.0), 57.6%"
        );
        // Nothing new was kept since.
        bench.begin(|caps| caps.trials = Some(1)).propose("b");
        play(&mut bench, "C 7");
        bench.ended("finished");
        assert_eq!(bench.announced("closing"), 6);
        bench
    }

    fn a_loop_that_kept_nothing_claims_nothing_and_takes_no_run() {
        let mut bench = judged(json!({}), json!({}));
        bench.interrupt().begin(|caps| caps.trials = Some(1)).propose("a");
        play(&mut bench, "C 11");
        bench.ended("finished");
        assert_eq!((bench.announced("closing"), words(&bench)), (0, "1 trial done, 0 kept".to_owned()));
        bench
    }

    fn a_metric_that_repeats_exactly_needs_no_closing_check() {
        let mut bench = judged(json!({}), json!({}));
        bench.interrupt().begin(|caps| caps.trials = Some(1)).propose("a");
        play(&mut bench, "C 9 C 9");
        bench.commit("k1").ended("finished");
        assert_eq!(bench.announced("closing"), 0);
        bench
    }

    fn none_is_taken_where_none_is_asked_for() {
        let mut bench = at_its_end(json!({"closing": 0}), json!({}));
        bench.ended("finished");
        assert_eq!(bench.announced("closing"), 0);
        bench
    }

    fn an_interrupt_takes_no_closing_check() {
        let mut bench = judged(json!({}), json!({}));
        bench.propose("a");
        play(&mut bench, WON);
        bench.commit("k1").interrupt();
        assert_eq!(bench.announced("closing"), 0);
        bench
    }

    /// The half of a pair too: what was read stays read.
    fn a_closing_check_that_was_cut_off_is_carried_on_first() {
        let mut bench = at_its_end(json!({"closing": 2}), json!({}));
        bench.close_with(10.0).interrupt();
        bench.begin(|caps| caps.trials = Some(1));
        assert_eq!(bench.waits_for(), "t1/closing/1/2");
        bench.close_with(4.0).close_with(4.0);
        bench.interrupt_while_settling(settlement_of(&measured(&[("m", 10.0)])));
        assert_eq!(bench.bodies("closing.checked").len(), 1, "it was the last reading");
        bench.begin(|caps| caps.trials = Some(1));
        assert_eq!(bench.waits_for(), "t2/propose");
        bench
    }

    fn a_failed_run_of_it_is_repeated_and_two_in_a_row_claim_nothing() {
        let mut bench = at_its_end(json!({"closing": 2}), json!({}));
        bench.close_with(10.0);
        fail(&mut bench);
        bench.close_with(10.0).close_with(4.0);
        fail(&mut bench);
        fail(&mut bench);
        bench.ended("finished");
        assert!(words(&bench).ends_with(
            "start and finish could not be measured against each other: the measurement exited with \
             status 1"
        ));
        assert_eq!(bench.bodies("closing.checked")[0].get("claim"), None);
        bench
    }

    fn a_lost_run_of_it_is_a_failed_one() {
        let mut bench = at_its_end(json!({"closing": 1}), json!({
            "on_unknown": {"proposer": "retry", "experiment": "fail", "setup": "retry"},
        }));
        bench.close_with(10.0).begin(|caps| caps.trials = Some(0));
        assert_eq!(bench.waits_for(), "t1/closing/1/3");
        bench.close_with(10.0).close_with(4.0).ended("finished");
        bench
    }

    fn the_wall_clock_cuts_it_off_and_the_next_invocation_carries_it_on() {
        let mut bench = judged(json!({"closing": 1}), json!({}));
        bench.interrupt().begin(|caps| {
            caps.trials = Some(1);
            caps.wall_clock_us = Some(60_000_000);
        });
        bench.propose("a");
        play(&mut bench, WON);
        bench.commit("k1").close_with(10.0);
        let at = bench.run.deadline().unwrap();
        bench.wake(at).stopped();
        bench.ended("finished");
        assert!(words(&bench).contains("not measured against each other yet"), "{}", words(&bench));
        bench.begin(|caps| caps.trials = Some(0)).close_with(4.0).ended("finished");
        assert!(words(&bench).contains("measured again, start against finish"));
        bench
    }

    /// Twelve runs are kept back from the limit of a loop that kept something.
    fn its_runs_are_kept_back_from_the_limit() {
        let mut bench = judged(json!({"closing": 2}), json!({"max_runs": 14}));
        bench.propose("a");
        play(&mut bench, WON);
        bench.commit("k1").propose("b");
        // Eight are used, four kept back: there are two left, of which a duel needs four.
        play(&mut bench, "C 1");
        let last = bench.bodies("trial.decided").pop().unwrap();
        assert_eq!(last["outcome"], "undecided");
        bench.propose("c");
        play(&mut bench, "C 7");
        assert_eq!(bench.waits_for(), "t1/closing/1/1");
        bench.close_with(10.0).close_with(4.0).close_with(4.0).close_with(10.0).ended("budget");
        assert!(words(&bench).contains("start against finish: 6.0 better"), "{}", words(&bench));
        bench.begin(|_| {}).ended("budget");
        bench
    }

    fn it_is_no_part_of_a_rule_that_knows_no_noise() {
        let mut bench = at_its_end(json!({"closing": 2}), json!({}));
        bench.close_with(10.0).interrupt();
        bench.specification["rule"] = json!({"name": "threshold", "min_delta": "0", "confirm": false});
        bench.begin(|caps| caps.trials = Some(1));
        assert_eq!(bench.waits_for(), "t2/propose");
        bench
    }
}
