//! Shrinking: from a plan that fails to a smaller one that fails by the same law.

use crate::plan::{Disturbance, Lost, Medium, Plan};
use crate::simulate::examine;
use crate::violation::{Law, Violation};

/// How many plans are tried at most.
const ATTEMPTS_MAX: u32 = 400;

/// The smallest failing plan found, and how it fails.
pub fn shrink(plan: &Plan, violation: &Violation) -> (Plan, Violation) {
    let (mut best, mut how) = (plan.clone(), violation.clone());
    let mut attempts = 0;
    'again: loop {
        for smaller in smaller_plans(&best) {
            attempts += 1;
            if attempts > ATTEMPTS_MAX {
                return (best, how);
            }
            if let Some(found) = fails_by(&smaller, how.law) {
                (best, how) = (smaller, found);
                continue 'again;
            }
        }
        return (best, how);
    }
}

fn fails_by(plan: &Plan, law: Law) -> Option<Violation> {
    examine(plan).err().filter(|found| found.law == law)
}

/// Plans that are simpler in one respect, the most promising first.
fn smaller_plans(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    if plan.medium == Medium::Store {
        plans.push(plan.clone().on(Medium::Memory));
    }
    for index in 0..plan.disturbances.len() {
        let mut fewer = plan.disturbances.clone();
        fewer.remove(index);
        plans.push(plan.with(fewer));
    }
    let with = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        changed
    };
    plans.push(with(&|plan| plan.tokens = None));
    plans.push(with(&|plan| plan.lost = Lost::Retry));
    plans.push(with(&|plan| plan.order = 0));
    plans.push(with(&|plan| plan.width = 1));
    plans.push(with(&|plan| plan.steps = 1));
    plans.push(with(&|plan| {
        plan.steps = plan.steps.saturating_sub(1).max(1);
    }));
    plans.push(with(&|plan| plan.snapshot_every = 1000));
    for (index, disturbance) in plan.disturbances.iter().enumerate() {
        for earlier in earlier(*disturbance) {
            let mut changed = plan.disturbances.clone();
            changed[index] = earlier;
            plans.push(plan.with(changed));
        }
    }
    plans.retain(|smaller| smaller != plan);
    plans
}

fn earlier(disturbance: Disturbance) -> Vec<Disturbance> {
    let numbers = |at: u32| {
        [at / 2, at.saturating_sub(1)]
            .into_iter()
            .filter(|&at| at > 0)
    };
    match disturbance {
        Disturbance::Crash(at) => numbers(at).map(Disturbance::Crash).collect(),
        Disturbance::PowerLoss { append, tear } => {
            let plain = std::iter::once(Disturbance::Crash(append * 3));
            let earlier = numbers(append).map(|append| Disturbance::PowerLoss { append, tear });
            plain.chain(earlier).collect()
        }
        Disturbance::Interrupt { wait, again } => {
            let once = again.then_some(Disturbance::Interrupt { wait, again: false });
            let earlier = numbers(wait).map(|wait| Disturbance::Interrupt { wait, again });
            once.into_iter().chain(earlier).collect()
        }
        Disturbance::InterruptThenBroken(wait) => numbers(wait)
            .map(Disturbance::InterruptThenBroken)
            .collect(),
        Disturbance::Broken(wait) => numbers(wait).map(Disturbance::Broken).collect(),
        Disturbance::WriteFails { append, reached } => numbers(append)
            .map(|append| Disturbance::WriteFails { append, reached })
            .collect(),
        Disturbance::Usurped(append) => numbers(append).map(Disturbance::Usurped).collect(),
    }
}
