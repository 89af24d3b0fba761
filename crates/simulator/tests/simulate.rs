//! Seeds: known failures first, then fresh ones, in memory and on real stores.
//!
//! `SEED=17 cargo test -p loopwright-simulator replay_seed` repeats one seed, and `PLAN='{…}'` in
//! its place a plan as a failing test prints it. `SEEDS=100000` runs more seeds than by default.

mod support;

use std::collections::BTreeSet;

use loopwright_simulator::{Kind, LifeEnd, Medium, Plan};
use support::{run, seeds};

#[test]
fn replay_seed() {
    for name in ["SEED", "PLAN"] {
        if let Ok(line) = std::env::var(name) {
            run(&Plan::of_line(&line).expect("a seed or a plan"));
        }
    }
}

#[test]
fn known_failures() {
    let text = include_str!("../bugs.txt");
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim());
    for line in lines.filter(|line| !line.is_empty()) {
        run(&Plan::of_line(line).expect("a seed or a plan"));
    }
}

/// Many seeds, and together they go everywhere: every crash point, every way a life ends, every
/// reason a run ends for, every outcome of a trial.
#[test]
fn fresh_seeds_in_memory() {
    let mut seen = BTreeSet::new();
    for seed in 0..seeds(320) {
        let plan = Plan::of_seed(seed);
        let report = run(&plan);
        seen.insert(format!("{:?} {}", plan.kind, report.reason).to_lowercase());
        for end in &report.ends {
            seen.insert(match end {
                LifeEnd::Crashed(point) => format!("crash {point}"),
                LifeEnd::Failed => "failed".to_owned(),
                LifeEnd::Done => "done".to_owned(),
                LifeEnd::Nothing => "nothing".to_owned(),
            });
        }
        seen.extend(report.marks.iter().map(|mark| (*mark).to_owned()));
        let outcomes = report.decisions.iter().map(|(_, _, body)| &body["outcome"]);
        seen.extend(outcomes.filter_map(|outcome| Some(format!("trial {}", outcome.as_str()?))));
    }
    let wanted = [
        "crash append.begin",
        "crash append.inserted",
        "crash append.committed",
        "crash lease.locked",
        "crash lease.committed",
        "crash turn.before_commit",
        "crash turn.after_commit",
        "crash hands.announced",
        "crash hands.begun",
        "crash hands.wait",
        "crash hands.performed",
        "failed",
        "experiment finished",
        "experiment gave_up",
        "experiment wall_clock",
        "experiment target_reached",
        "experiment budget",
        "agent succeeded",
        "agent stopped_no_progress",
        "agent stopped_max_iterations",
        "agent stopped_infra_failure",
        "agent stopped_by_human",
        "agent budget",
        "agent time",
        "a child went on",
        "a question ended with its run",
        "a question was withdrawn",
        "a word came too late",
        "an answer came at rest",
        "an answer came while it was driven",
        "limits were set",
        "the clock ran out",
        "search finished",
        "search failed",
        "search budget",
        "trial kept",
        "trial reverted",
        "trial undecided",
        "trial unstable",
        "trial failed",
        "trial timed_out",
        "trial no_metric",
        "trial not_finite",
        "trial ambiguous",
        "trial no_change",
        "trial duplicate",
        "trial harness_changed",
        "trial guard_failed",
        "trial conflict",
    ];
    let missing: Vec<_> = wanted
        .iter()
        .filter(|name| !seen.contains(**name))
        .collect();
    assert!(
        missing.is_empty(),
        "never seen: {missing:?}\nseen: {seen:?}"
    );
}

/// On a store the same happens as in memory, byte for byte, and power may fail.
#[test]
fn fresh_seeds_on_stores() {
    for seed in 0..seeds(320) / 8 {
        let in_memory = Plan::of_seed(1_000_000 + seed);
        let on_store = run(&in_memory.clone().on(Medium::Store));
        if !in_memory.loses_power() {
            assert_eq!(run(&in_memory), on_store, "seed {}", in_memory.seed);
        }
    }
}

/// The kinds are about equally likely, so that no machine is forgotten.
#[test]
fn every_kind_has_its_share_of_seeds() {
    for kind in [Kind::Experiment, Kind::Agent, Kind::Search] {
        let share = (0..300)
            .filter(|seed| Plan::of_seed(*seed).kind == kind)
            .count();
        assert!(share > 60, "{kind:?}: {share} of 300");
    }
}
