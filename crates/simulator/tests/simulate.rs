//! The simulator's runs: known failures first, then fresh seeds, in memory and on real stores.
//!
//! `SEED=17 cargo test -p loopwright-simulator replay_seed` repeats one seed;
//! `PLAN='{…}'` in its place repeats a plan as a failing test prints it. `SEEDS=100000` in the
//! environment runs more seeds than by default.

use std::collections::BTreeMap;

use loopwright_simulator::{Medium, Plan, Report, Violation, examine, shrink};

fn report_failure(plan: &Plan, violation: &Violation) -> ! {
    let (smallest, how) = shrink(plan, violation);
    panic!(
        "seed {} fails: {violation}\n  repeat: SEED={} cargo test -p loopwright-simulator replay_seed\n  \
         smallest plan: PLAN='{}'\n  fails: {how}",
        plan.seed,
        plan.seed,
        smallest.to_line()
    )
}

fn run(plan: &Plan) -> Report {
    match examine(plan) {
        Ok(report) => report,
        Err(violation) => report_failure(plan, &violation),
    }
}

fn seeds(default: u64) -> u64 {
    let asked = std::env::var("SEEDS").ok();
    asked.map_or(default, |text| text.parse().expect("SEEDS is a number"))
}

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
        let plan = Plan::of_line(line).expect("a seed or a plan");
        run(&plan);
    }
}

#[test]
fn fresh_seeds_in_memory() {
    let mut reasons: BTreeMap<(String, String), u64> = BTreeMap::new();
    for seed in 0..seeds(2000) {
        let plan = Plan::of_seed(seed);
        let report = run(&plan);
        *reasons
            .entry((format!("{:?}", plan.kind), report.reason))
            .or_default() += 1;
    }
}

#[test]
fn fresh_seeds_on_stores() {
    for seed in 0..seeds(200) / 10 {
        run(&Plan::of_seed(1_000_000 + seed).on(Medium::Store));
    }
}

#[test]
#[ignore]
fn timing() {
    for kind in ["agent", "experiment", "search"] {
        let start = std::time::Instant::now();
        let (mut n, mut events, mut lives) = (0, 0, 0);
        for seed in 0..300 {
            let plan = Plan::of_seed(seed);
            if format!("{:?}", plan.kind).to_lowercase() == kind {
                if let Ok(report) = examine(&plan) { events += report.events; lives += report.lives; }
                n += 1;
            }
        }
        println!("{kind}: {n} plans, {events} events, {lives} lives, {:?}", start.elapsed());
    }
}
