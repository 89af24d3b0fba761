//! Signals, deaths and lost effects, in every phase of a trial.

use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::Kept;
use serde_json::{Value, json};

use crate::scenario::scenarios;
use crate::support::{Bench, measured, proposed, question, specification};

/// The phases of a trial that is kept, of one more whose target is confirmed.
const PHASES: [&str; 5] = [
    "t0/measure/incumbent/1",
    "t1/propose",
    "t1/measure/candidate/1",
    "t1/keep/1",
    "t1/target/1",
];

/// What the world answers to the effect in flight, always the same.
fn answer(bench: &Bench) -> Value {
    match bench.waits_for().as_str() {
        "t0/measure/incumbent/1" => settlement_of(&measured(&[("m", 10.0)])),
        "t1/propose" => settlement_of(&proposed("a")),
        "t1/measure/candidate/1" | "t1/target/1" => settlement_of(&measured(&[("m", 1.0)])),
        "t1/keep/1" => settlement_of(&Kept::Committed {
            commit: "k1".to_owned(),
            note: None,
        }),
        other => panic!("nobody expected {other:?}"),
    }
}

fn settle(bench: &mut Bench) {
    let answer = answer(bench);
    let waits_for = bench.waits_for();
    bench.settle(waits_for.split('/').nth(1).unwrap(), answer);
}

fn undisturbed(can_ask: bool, on_unknown: &str) -> Bench {
    let mut specification = specification();
    specification["target"] = json!("1");
    specification["on_unknown"] =
        json!({"proposer": on_unknown, "experiment": on_unknown, "setup": "retry"});
    let mut bench = Bench::new(specification);
    bench.can_ask = can_ask;
    bench.begin(|_| {});
    bench
}

fn to_the_end(bench: &mut Bench) {
    while bench.run.kernel.invocation.is_some() {
        settle(bench);
    }
    bench.ended("target_reached");
}

/// Disturbs the run once in every phase; the decisions must not differ from an undisturbed run's.
fn disturbed_everywhere(mut disturb: impl FnMut(&mut Bench)) -> Bench {
    let mut plain = undisturbed(true, "retry");
    to_the_end(&mut plain);
    let mut bench = undisturbed(true, "retry");
    for phase in PHASES {
        assert_eq!(bench.waits_for(), phase);
        disturb(&mut bench);
        if bench.run.kernel.invocation.is_none() {
            bench.begin(|_| {});
        }
        if bench.waits_for() == phase {
            settle(&mut bench);
        }
    }
    bench.ended("target_reached");
    assert_eq!(bench.run.kernel.decisions, plain.run.kernel.decisions);
    bench
}

scenarios! {
    fn a_signal_in_every_phase_changes_no_decision() {
        let bench = disturbed_everywhere(|bench| {
            bench.interrupt().ended("interrupted");
            bench.begin(|_| {});
            assert_eq!(bench.in_flight().unwrap().1, 2);
        });
        assert_eq!(bench.bodies("effect.abandoned").len(), PHASES.len());
        bench
    }

    fn a_death_in_every_phase_changes_no_decision() {
        disturbed_everywhere(|bench| {
            *bench = bench.reloaded(bench.batches.len());
            bench.begin(|_| {});
            assert_eq!(bench.endings().last().unwrap(), "host_died");
            assert_eq!(bench.in_flight().unwrap().1, 2);
        })
    }

    fn many_deaths_in_one_phase_are_attempts_of_one_trial() {
        disturbed_everywhere(|bench| {
            for attempt in 2..6 {
                bench.begin(|_| {});
                assert_eq!(bench.in_flight().unwrap().1, attempt);
            }
        })
    }

    /// Its budgets left and its clock are those of the first attempt, whatever the later invocation's
    /// caps are.
    fn a_further_attempt_of_a_proposal_is_asked_the_same() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.interrupt();
        let mut asked = Vec::new();
        for (trials, minutes) in [(6, 60), (1, 5)] {
            let announced = bench.begin_announcing(|caps| {
                caps.trials = Some(trials);
                caps.wall_clock_us = Some(minutes * 60_000_000);
            });
            assert_eq!(announced[0].effect.as_str(), "t1/propose");
            asked.push((announced[0].request.clone(), announced[0].asked_at));
            bench.interrupt();
        }
        assert_eq!(asked[0], asked[1]);
        bench
    }

    /// The end of the invocation comes first, the result that was faster after it.
    fn a_result_that_arrives_with_the_signal_is_not_lost() {
        let bench = disturbed_everywhere(|bench| {
            let answer = answer(bench);
            bench.interrupt_while_settling(answer).ended("interrupted");
            assert!(bench.in_flight().is_none(), "something was announced after the end");
        });
        assert_eq!(bench.bodies("effect.abandoned").len(), 0);
        assert_eq!(bench.announced("measure"), 2);
        bench
    }

    fn a_lost_proposal_counts_as_failed_where_that_is_asked_for() {
        let mut bench = undisturbed(true, "fail");
        settle(&mut bench);
        bench.begin(|caps| caps.trials = Some(1));
        let body = bench.bodies("trial.decided").pop().unwrap();
        assert_eq!(body["outcome"], "failed");
        assert_eq!(body["why"], "the outcome of t1/propose is unknown");
        assert_eq!(bench.waits_for(), "t2/propose", "the lost trial is no trial of this invocation");
        bench
    }

    fn a_lost_measurement_counts_as_failed_where_that_is_asked_for() {
        let mut bench = undisturbed(true, "fail");
        settle(&mut bench);
        settle(&mut bench);
        bench.begin(|_| {});
        let body = bench.bodies("trial.decided").pop().unwrap();
        assert_eq!((&body["outcome"], &body["tree"]), (&json!("failed"), &json!("a")));
        bench
    }

    fn a_lost_baseline_is_taken_again() {
        let mut bench = undisturbed(true, "fail");
        bench.begin(|_| {});
        assert_eq!(bench.outcomes(), ["failed"]);
        assert_eq!(bench.waits_for(), "t1/measure/incumbent/1");
        bench.measure(10.0);
        bench
    }

    fn a_lost_confirming_run_confirms_nothing() {
        let mut bench = undisturbed(true, "fail");
        for _ in 0..4 {
            settle(&mut bench);
        }
        assert_eq!(bench.waits_for(), "t1/target/1");
        bench.begin(|_| {});
        let checked = bench.bodies("target.checked").pop().unwrap();
        assert_eq!(checked["reached"], false);
        assert_eq!(bench.waits_for(), "t2/propose");
        bench
    }

    fn nobody_to_ask_means_failed() {
        let mut bench = undisturbed(false, "ask");
        settle(&mut bench);
        bench.begin(|_| {});
        assert_eq!(bench.outcomes(), ["kept", "failed"]);
        bench
    }

    fn somebody_is_asked_about_a_lost_proposal_and_says_again() {
        let mut bench = undisturbed(true, "ask");
        settle(&mut bench);
        bench.begin(|_| {}).ended("waiting");
        assert!(question(&bench).unwrap().contains("t1/propose"));
        bench.begin(|_| {}).ended("waiting");
        bench.resolve("t1/propose", "retry");
        assert_eq!(question(&bench), None);
        bench.begin(|_| {});
        assert_eq!(bench.in_flight().unwrap().1, 2);
        while bench.run.kernel.invocation.is_some() {
            settle(&mut bench);
        }
        let mut plain = undisturbed(true, "ask");
        to_the_end(&mut plain);
        assert_eq!(bench.run.kernel.decisions, plain.run.kernel.decisions);
        bench
    }

    fn somebody_is_asked_about_a_lost_measurement_and_says_failed() {
        let mut bench = undisturbed(true, "ask");
        settle(&mut bench);
        settle(&mut bench);
        bench.recover().resolve("t1/measure/candidate/1", "fail");
        let body = bench.bodies("trial.decided").pop().unwrap();
        assert_eq!(body["why"], "the outcome of t1/measure/candidate/1 is unknown");
        bench.begin(|_| {});
        assert_eq!(bench.waits_for(), "t2/propose");
        bench
    }

    /// Who takes up a run whose host died knows whom it will ask about before it has asked.
    fn what_will_be_asked_about_is_known_before_it_is_asked() {
        let mut bench = undisturbed(true, "ask");
        settle(&mut bench);
        let asked = |bench: &Bench| -> Vec<String> {
            bench.run.asks_about().iter().map(ToString::to_string).collect()
        };
        assert_eq!(asked(&bench), ["t1/propose"]);
        bench.begin(|_| {}).ended("waiting");
        assert_eq!(asked(&bench), ["t1/propose"]);
        bench.resolve("t1/propose", "fail");
        assert!(asked(&bench).is_empty());
        let mut quiet = undisturbed(true, "retry");
        settle(&mut quiet);
        assert!(asked(&quiet).is_empty());
        bench
    }

    /// Said about the confirming run: it must not be wanted again under the same attempt.
    fn somebody_is_asked_about_a_lost_confirming_run_and_says_failed() {
        let mut bench = undisturbed(true, "ask");
        for _ in 0..4 {
            settle(&mut bench);
        }
        bench.recover().resolve("t1/target/1", "fail");
        assert_eq!(bench.bodies("target.checked").len(), 1);
        bench.begin(|_| {});
        assert_eq!(bench.waits_for(), "t2/propose");
        bench
    }

    /// A question whose trial a new harness cut off holds nothing up, and its late answer touches
    /// no other trial.
    fn a_question_about_a_trial_that_is_over_holds_nothing_up() {
        let mut bench = undisturbed(true, "ask");
        settle(&mut bench);
        bench.recover();
        bench.begin(|caps| {
            caps.harness = crate::support::harness("h2");
            caps.trials = Some(1);
        });
        bench.measure(20.0).propose("b");
        assert_eq!(question(&bench), None);
        bench.interrupt();
        bench.resolve("t1/propose", "fail");
        bench.begin(|caps| {
            caps.harness = crate::support::harness("h2");
            caps.trials = Some(1);
        });
        bench.measure(21.0).ended("finished");
        assert_eq!(bench.outcomes(), ["kept", "conflict", "kept", "reverted"]);
        bench
    }
}
