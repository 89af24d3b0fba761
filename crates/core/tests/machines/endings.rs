//! How an invocation ends: caps, budgets, failures, and what the next one finds.

use loopwright_core::budget::Limits;
use loopwright_core::experiment::Mode;
use loopwright_core::experiment::results::{Ended, Measured};
use loopwright_core::kernel::{LimitsSet, kind as kernel_kind};
use loopwright_core::turn::Given;
use serde_json::json;

use crate::scenario::scenarios;
use crate::support::{Bench, measured, ran, specification, specification_with};

fn broken() -> Measured {
    Measured {
        ran: ran(Ended::Exited(1)),
        ..measured(&[])
    }
}

scenarios! {
    fn a_cap_on_trials_does_not_count_the_baseline() {
        let mut bench = Bench::new(specification());
        bench.begin(|caps| caps.trials = Some(2)).measure(10.0);
        bench.propose("a").measure(11.0).propose("b").measure(9.0).commit("k1").ended("finished");
        let ended = bench.bodies("invocation.ended").pop().unwrap();
        assert_eq!(ended["ending"]["words"], "2 trials done, 1 kept");
        assert_eq!(ended["by"], "machine");
        // The cap is each invocation's own.
        bench.begin(|caps| caps.trials = Some(1)).propose("c").measure(12.0).ended("finished");
        let ended = bench.bodies("invocation.ended").pop().unwrap();
        assert_eq!(ended["ending"]["words"], "1 trial done, 0 kept");
        bench
    }

    fn a_cap_of_no_trials_measures_the_baseline_only() {
        let mut bench = Bench::new(specification());
        bench.begin(|caps| caps.trials = Some(0)).ended("finished");
        assert_eq!(bench.bodies("segment.started").len(), 1);
        bench.begin(|caps| caps.mode = Mode::Baseline).measure(10.0).ended("finished");
        bench.begin(|caps| caps.trials = Some(0)).ended("finished");
        bench
    }

    fn resuming_with_one_trial_finishes_the_open_one_and_counts_it() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("a").interrupt().ended("interrupted");
        assert_eq!(bench.state().trial.as_ref().unwrap().number, 1);
        bench.begin(|caps| caps.trials = Some(1));
        assert_eq!(bench.in_flight().unwrap().1, 2, "the second attempt");
        bench.measure(9.0).commit("k1").ended("finished");
        assert_eq!(bench.outcomes(), ["kept", "kept"]);
        bench
    }

    fn a_baseline_that_fails_ends_the_invocation_and_is_taken_again() {
        let mut bench = Bench::new(specification());
        bench.begin(|_| {}).measured(broken()).ended("baseline_failed");
        bench.begin(|_| {}).measured(measured(&[])).ended("baseline_failed");
        bench.begin(|_| {}).measure(10.0).propose("a").measure(9.0).commit("k1");
        assert_eq!(bench.outcomes(), ["failed", "no_metric", "kept", "kept"]);
        bench
    }

    fn a_baseline_measured_again_never_moves_the_bar() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("a").measure(8.0).commit("k1").interrupt();
        bench.begin(|caps| caps.mode = Mode::Baseline);
        bench.propose("b").measure(9.0);
        assert_eq!(bench.waits_for(), "t3/measure/incumbent/1");
        bench.measure(3.0).ended("finished");
        let incumbent = bench.state().incumbent().unwrap();
        assert_eq!(incumbent.value.unwrap().get(), 8.0);
        bench.begin(|caps| caps.mode = Mode::Baseline).measured(broken()).ended("baseline_failed");
        bench
    }

    fn a_wall_clock_passing_leaves_the_trial_open() {
        let mut bench = Bench::new(specification());
        bench.begin(|caps| caps.wall_clock_us = Some(60_000_000)).measure(10.0).propose("a");
        let deadline = bench.run.deadline().unwrap();
        bench.wake(deadline);
        assert!(bench.run.kernel.invocation.is_some(), "it waits for what is to be stopped");
        assert_eq!(bench.run.deadline(), None);
        bench.stopped().ended("wall_clock");
        // The next invocation has a clock of its own.
        bench.begin(|caps| caps.wall_clock_us = Some(60_000_000));
        assert!(bench.run.deadline().unwrap() > deadline);
        assert_eq!(bench.waits_for(), "t1/measure/candidate/1");
        bench.measure(9.0).commit("k1");
        bench
    }

    fn a_result_faster_than_the_wall_clocks_stopping_counts() {
        let mut bench = Bench::new(specification());
        bench.begin(|caps| caps.wall_clock_us = Some(60_000_000)).measure(10.0).propose("a");
        let deadline = bench.run.deadline().unwrap();
        bench.wake(deadline).measure(11.0).ended("wall_clock");
        assert_eq!(bench.outcomes(), ["kept", "reverted"]);
        // A winner is not committed any more; the next invocation does that first.
        bench.begin(|caps| caps.wall_clock_us = Some(60_000_000)).propose("b");
        let deadline = bench.run.deadline().unwrap();
        bench.wake(deadline).measure(9.0).ended("wall_clock");
        bench.begin(|caps| caps.trials = Some(1));
        assert_eq!(bench.waits_for(), "t2/keep/1");
        bench.commit("k1").ended("finished");
        bench
    }

    fn a_clock_that_comes_early_or_unasked_changes_nothing() {
        let mut bench = Bench::new(specification());
        bench.begin(|caps| caps.wall_clock_us = Some(60_000_000)).measure(10.0);
        let now = bench.now;
        bench.wake(now);
        assert_eq!(bench.waits_for(), "t1/propose");
        bench.interrupt().wake(now).begin(|_| {}).wake(now);
        assert_eq!(bench.waits_for(), "t1/propose");
        bench
    }

    fn giving_up_needs_a_row_of_trials_without_a_judgement() {
        let mut bench = Bench::new(specification());
        bench.begin(|caps| caps.give_up_after = 2).measure(10.0);
        bench.propose("tree-h1").propose("a").measure(11.0);
        bench.propose("tree-h1").propose("b").measured(broken()).ended("gave_up");
        assert_eq!(bench.outcomes(), ["kept", "no_change", "reverted", "no_change", "failed"]);
        // Another invocation counts anew.
        bench.begin(|caps| caps.give_up_after = 2).propose("tree-h1");
        assert_eq!(bench.waits_for(), "t6/propose");
        bench
    }

    fn a_budget_of_steps_refuses_the_proposal_and_opens_no_trial() {
        let budget = json!({"steps": 1, "time_us": null, "tokens": null, "money": null});
        let mut bench = Bench::new(specification_with(json!({"budget": budget})));
        bench.begin(|_| {}).measure(10.0).propose("a").measure(11.0).ended("budget");
        assert!(bench.state().trial.is_none());
        let refused = bench.bodies("effect.refused").pop().unwrap();
        let over = json!({"dimension": "steps", "needed": 1, "left": 0, "limit": 1});
        assert_eq!(refused["over"], over);
        bench.begin(|_| {}).ended("budget");
        assert_eq!(bench.outcomes(), ["kept", "reverted"]);
        bench
    }

    fn a_budget_of_time_refuses_a_measurement_and_leaves_the_trial_open() {
        // The baseline uses 1 s, the proposal 1 s; then 60 s don't fit into what is left.
        let budget = json!({"steps": null, "time_us": 61_500_000, "tokens": null, "money": null});
        let changes = json!({"budget": budget, "propose_limit_us": 10_000_000});
        let mut bench = Bench::new(specification_with(changes));
        bench.begin(|_| {}).measure(10.0).propose("a").ended("budget");
        assert_eq!(bench.state().trial.as_ref().unwrap().number, 1);
        bench
    }

    /// A measurement may need as long as its setup and its command together.
    fn a_setup_counts_into_the_worst_case_of_a_measurement() {
        let budget = json!({"steps": null, "time_us": 120_000_000, "tokens": null, "money": null});
        let changes = |setup_limit_us: u64| json!({
            "budget": budget, "setup": "sh setup.sh", "setup_limit_us": setup_limit_us,
        });
        let mut fits = Bench::new(specification_with(changes(60_000_000)));
        fits.begin(|_| {});
        assert_eq!(fits.bodies("effect.announced")[0]["ceiling"]["time_us"], 120_000_000);
        let mut bench = Bench::new(specification_with(changes(60_000_001)));
        bench.begin(|_| {}).ended("budget");
        let words = bench.bodies("invocation.ended").pop().unwrap();
        let words = words["ending"]["words"].as_str().unwrap();
        assert!(words.contains("has 2m left of 2m, and t0/measure/incumbent/1 may need"), "{words}");
        bench
    }

    /// A later invocation may raise what an earlier one used up.
    fn a_raised_budget_goes_on() {
        let budget = |steps: u64| json!({"steps": steps, "time_us": null, "tokens": null, "money": null});
        let mut bench = Bench::new(specification_with(json!({"budget": budget(1)})));
        bench.begin(|_| {}).measure(10.0).propose("a").measure(11.0).ended("budget");
        let limits = LimitsSet { limits: Limits { steps: Some(2), ..Limits::default() } };
        bench.turn(vec![Given::new(kernel_kind::LIMITS_SET, &limits)]);
        bench.begin(|_| {}).propose("b").measure(9.0).commit("k1").ended("budget");
        assert_eq!(bench.outcomes(), ["kept", "reverted", "kept"]);
        bench
    }

    /// What a proposal used is unknown here, so a limit of tokens can't be said to hold after one.
    fn an_unknown_amount_of_tokens_refuses_the_next_proposal() {
        let budget = json!({"steps": null, "time_us": null, "tokens": 1_000_000, "money": null});
        let mut bench = Bench::new(specification_with(json!({"budget": budget})));
        bench.begin(|_| {}).measure(10.0).propose("a").measure(11.0).ended("budget");
        assert_eq!(bench.bodies("effect.refused").pop().unwrap()["over"]["unknown"], 1);
        assert_eq!(bench.outcomes(), ["kept", "reverted"]);
        bench
    }

    fn a_proposal_stopped_by_a_signal_does_not_use_up_its_step() {
        let budget = json!({"steps": 1, "time_us": null, "tokens": null, "money": null});
        let mut bench = Bench::new(specification_with(json!({"budget": budget})));
        bench.begin(|_| {}).measure(10.0).interrupt().begin(|_| {});
        assert_eq!(bench.in_flight().unwrap().1, 2);
        bench.propose("a").measure(9.0).commit("k1").ended("budget");
        bench
    }
}
