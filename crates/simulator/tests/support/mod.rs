//! Running plans, and saying how to repeat one that fails.
#![allow(dead_code, reason = "each test binary uses its part")]

use loopwright_simulator::{Plan, Report, Violation, examine, examine_beside, shrink};

/// Examines a plan; shrinks it and says how to repeat it where it fails.
pub fn run(plan: &Plan) -> Report {
    examine(plan).unwrap_or_else(|violation| say(plan, &violation))
}

/// The same beside the report of the undisturbed run.
pub fn run_beside(plan: &Plan, calm: &Report) -> Report {
    examine_beside(plan, calm).unwrap_or_else(|violation| say(plan, &violation))
}

fn say(plan: &Plan, violation: &Violation) -> ! {
    let (smallest, how) = shrink(plan, violation);
    panic!(
        "seed {} fails: {violation}\n  \
         repeat: PLAN='{}' cargo test -p loopwright-simulator replay_seed\n  \
         (SEED={} repeats it where the seed alone makes the plan)\n  \
         smallest plan: PLAN='{}'\n  \
         fails: {how}",
        plan.seed,
        plan.to_line(),
        plan.seed,
        smallest.to_line()
    )
}

/// How many seeds to run.
pub fn seeds(default: u64) -> u64 {
    let asked = std::env::var("SEEDS").ok();
    asked.map_or(default, |text| text.parse().expect("SEEDS is a number"))
}
