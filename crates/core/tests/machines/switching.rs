//! What changes between invocations: the harness, the branch, what an invocation is for.

use loopwright_core::experiment::results::{Findings, Reapplied};
use loopwright_core::experiment::{Caps, Mode, Named, RetryOf};
use loopwright_core::ids::BranchName;
use serde_json::json;

use crate::scenario::scenarios;
use crate::support::{Bench, candidate, harness, specification};

fn other_harness(caps: &mut Caps) {
    caps.harness = harness("h2");
}

fn other_branch(caps: &mut Caps) {
    caps.branch = BranchName::new("other").unwrap();
    "commit-other".clone_into(&mut caps.harness.commit);
    "tree-other".clone_into(&mut caps.harness.tree);
}

fn again(trial: u64) -> Mode {
    Mode::Retry(RetryOf {
        trial,
        commit: format!("commit-{trial}"),
    })
}

/// Trial 1 reverted, none open.
fn with_a_rejected_trial() -> Bench {
    let mut bench = Bench::new(specification());
    bench
        .begin(|caps| caps.trials = Some(1))
        .measure(10.0)
        .propose("a")
        .measure(11.0);
    bench
}

fn applied(tree: &str) -> Reapplied {
    Reapplied::Applied {
        candidate: candidate(tree),
        findings: Findings::default(),
    }
}

/// An old change that applies, but against which something speaks.
fn tried_again(findings: Findings, outcome: &str, why: &str) -> Bench {
    let mut bench = with_a_rejected_trial();
    let candidate = candidate("a2");
    bench.begin(|caps| caps.mode = again(1));
    bench
        .reapplied(Reapplied::Applied {
            candidate,
            findings,
        })
        .ended("finished");
    let body = bench.bodies("trial.decided").pop().unwrap();
    assert_eq!(
        (&body["outcome"], &body["why"]),
        (&json!(outcome), &json!(why))
    );
    assert_eq!(bench.announced("measure"), 2, "it was measured");
    bench
}

scenarios! {
    fn a_new_harness_starts_a_segment_with_a_baseline_of_its_own() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("a").measure(5.0).commit("k1").propose("b").measure(6.0).interrupt();
        // The open trial 3 is cut off; a cap of one trial is not used up by that.
        bench.begin(|caps| {
            other_harness(caps);
            caps.trials = Some(1);
            caps.give_up_after = 1;
        });
        assert_eq!(bench.bodies("segment.started")[1], json!({
            "segment": 2, "harness": harness("h2").digest, "tree": "tree-h2",
            "why": "the harness changed",
        }));
        assert_eq!(bench.waits_for(), "t4/measure/incumbent/1");
        bench.measure(100.0).propose("c").measure(90.0).commit("k2").ended("finished");
        assert_eq!(bench.outcomes(), ["kept", "kept", "reverted", "conflict", "kept", "kept"]);
        let decisions = bench.decisions();
        assert_eq!((decisions[3].1.segment, decisions[5].1.segment), (1, 2));
        assert_eq!(decisions[5].1.against.unwrap().get(), 100.0);
        bench
    }

    /// A baseline cut off by a new harness has not failed.
    fn a_new_harness_while_the_baseline_is_open() {
        let mut bench = Bench::new(specification());
        bench.begin(|_| {}).interrupt().begin(other_harness);
        assert_eq!(bench.waits_for(), "t1/measure/incumbent/1");
        bench.measure(7.0).propose("a");
        assert_eq!(bench.outcomes(), ["conflict", "kept"]);
        bench
    }

    fn a_new_harness_forgets_that_the_target_was_reached() {
        let mut bench = Bench::with_baseline(json!({"target": "5"}));
        bench.propose("a").measure(5.0).commit("k1").confirm(5.0).ended("target_reached");
        bench.begin(other_harness).measure(10.0);
        assert_eq!(bench.waits_for(), "t3/propose");
        bench
    }

    fn a_new_harness_forgets_a_confirming_run_that_was_due() {
        let mut bench = Bench::with_baseline(json!({"target": "5"}));
        bench.propose("a").measure(5.0).commit("k1").interrupt();
        bench.begin(other_harness);
        assert_eq!(bench.waits_for(), "t2/measure/incumbent/1");
        bench
    }

    fn another_branch_has_a_line_of_its_own() {
        let mut bench = with_a_rejected_trial();
        bench.begin(|caps| {
            other_branch(caps);
            caps.trials = Some(1);
        });
        assert_eq!(bench.waits_for(), "t2/measure/incumbent/1", "a baseline of its own");
        let started = bench.bodies("segment.started").pop().unwrap();
        assert_eq!((&started["segment"], &started["why"]), (&json!(1), &json!("the branch's first")));
        bench.measure(50.0).propose("b").measure(40.0).commit("k1").ended("finished");
        // The first branch stands where it was, and needs no new baseline.
        bench.begin(|_| {}).propose("c").measure(9.0).commit("k2");
        let decisions = bench.decisions();
        assert_eq!(decisions[4].1.against.unwrap().get(), 10.0);
        assert_eq!(decisions[4].1.segment, 1);
        bench
    }

    fn an_open_trial_is_finished_on_its_branch_first() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("a").interrupt().begin(other_branch);
        assert_eq!(bench.waits_for(), "t1/measure/candidate/1");
        bench.measure(9.0).commit("k1");
        assert_eq!(bench.waits_for(), "t2/measure/incumbent/1");
        assert_eq!(bench.state().branch.as_str(), "other");
        bench.measure(50.0).propose("b").measure(49.0).commit("k2");
        let on: Vec<String> = bench
            .events()
            .filter(|event| event.kind == "trial.decided")
            .map(|event| event.scope.branch.as_ref().unwrap().to_string())
            .collect();
        assert_eq!(on, ["main", "main", "other", "other"]);
        bench
    }

    fn a_new_harness_ends_the_lines_of_all_branches() {
        let mut bench = with_a_rejected_trial();
        bench.begin(other_branch).measure(50.0).interrupt();
        bench.begin(other_harness).measure(1.0).interrupt();
        bench.begin(|caps| {
            other_branch(caps);
            caps.harness = harness("h2");
        });
        // Cut off is nothing here: the open trial is of the same harness, and comes first.
        bench.propose("b").measure(2.0);
        assert_eq!(bench.waits_for(), "t6/measure/incumbent/1", "nothing is known of it any more");
        bench
    }

    fn a_trial_is_tried_again_on_the_incumbent() {
        let mut bench = with_a_rejected_trial();
        bench.begin(|caps| caps.mode = again(1));
        assert_eq!(bench.waits_for(), "t2/reapply");
        bench.reapplied(applied("a2")).measure(9.0);
        bench.commit("k1").ended("finished");
        let body = bench.bodies("trial.decided").pop().unwrap();
        assert_eq!(body["origin"], json!({"retry": {"of": 1}}));
        bench
    }

    fn a_trial_that_no_longer_applies_is_a_conflict() {
        let mut bench = with_a_rejected_trial();
        let paths = Named::from_iter(["x", "y"]);
        bench.begin(|caps| caps.mode = again(1)).reapplied(Reapplied::Conflict { paths });
        bench.ended("finished");
        let body = bench.bodies("trial.decided").pop().unwrap();
        assert_eq!(body["outcome"], "conflict");
        assert_eq!(body["why"], "it no longer applies to the incumbent: x, y");
        bench
    }

    /// Trying again is no way round the examination.
    fn an_old_change_that_touches_the_referee_is_not_measured() {
        let findings = Findings {
            protected: Named::from_iter(["run.sh"]),
            ..Findings::default()
        };
        tried_again(findings, "harness_changed", "the change tried again changed what judges it: run.sh")
    }

    fn an_old_change_that_shadows_an_import_is_not_measured() {
        let findings = Findings {
            shadowing: Named::from_iter(["json.py"]),
            ..Findings::default()
        };
        let why = "the change tried again added a file that would be imported in place of what judges it: json.py";
        tried_again(findings, "harness_changed", why)
    }

    fn an_old_change_that_holds_a_secret_is_not_measured() {
        let findings = Findings {
            secrets: Named::from_iter([".env"]),
            ..Findings::default()
        };
        tried_again(findings, "failed", "the change holds what looks like a secret: .env")
    }

    fn a_trial_whose_change_is_in_already_is_no_change() {
        let mut bench = with_a_rejected_trial();
        bench.begin(|caps| caps.mode = again(1)).reapplied(Reapplied::NoChange).ended("finished");
        assert_eq!(bench.outcomes(), ["kept", "reverted", "no_change"]);
        bench
    }

    /// The open trial is finished first, and is not taken for the one to be tried again.
    fn trying_again_comes_after_the_open_trial() {
        let mut bench = Bench::with_baseline(json!({}));
        bench.propose("a").measure(11.0).propose("b").interrupt();
        bench.begin(|caps| caps.mode = again(1)).measure(12.0);
        assert_eq!(bench.waits_for(), "t3/reapply");
        bench.interrupt();
        // Resumed in run mode it is finished as what it is.
        bench.begin(|caps| caps.trials = Some(1));
        assert_eq!(bench.in_flight().unwrap().1, 2);
        bench.reapplied(applied("a2")).measure(12.0);
        bench.ended("finished");
        bench
    }

    fn trying_again_without_a_baseline_takes_one_first() {
        let mut bench = with_a_rejected_trial();
        bench.begin(|caps| {
            other_harness(caps);
            caps.mode = again(1);
        });
        bench.measure(10.0).reapplied(Reapplied::NoChange).ended("finished");
        bench
    }
}
