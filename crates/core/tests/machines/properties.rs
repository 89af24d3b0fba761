//! What holds whatever happens: random results, signals, deaths, clocks, caps, harnesses.

use loopwright_core::experiment::{Mode, RetryOf};
use loopwright_core::ids::BranchName;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Bench, harness, keep_rule, specification, specification_with};
use crate::world::{Dice, answer};

fn settings() -> impl Strategy<Value = Value> {
    let on_unknown = prop::sample::select(vec!["retry", "ask", "fail"]);
    (any::<[bool; 5]>(), 0u32..3, on_unknown).prop_map(|(flags, min_delta, on_unknown)| {
        let [confirm, guarded, upwards, targeted, duelled] = flags;
        let rule = if duelled {
            keep_rule(json!({
                "doubt": "0.4", "max_pairs": 4 + 4 * min_delta, "closing": min_delta,
                "coarse": confirm, "worth": if confirm { "1" } else { "0" },
            }))
        } else {
            json!({"name": "threshold", "min_delta": min_delta.to_string(), "confirm": confirm})
        };
        let mut changes = json!({
            "rule": rule,
            "on_unknown": {"proposer": on_unknown, "experiment": on_unknown, "setup": "retry"},
            "goal": if upwards { "maximize" } else { "minimize" },
        });
        if guarded {
            let guard = json!([{
                "metric": "size", "max_rise": "5%", "max_rise_from_baseline": "8%",
            }]);
            changes["guards"] = guard;
        }
        if duelled && confirm {
            changes["max_runs"] = json!(60);
        }
        if targeted {
            changes["target"] = json!(if upwards { "11" } else { "0" });
        }
        changes
    })
}

/// Begins an invocation for something, under some caps.
fn begin_somehow(bench: &mut Bench, dice: &mut Dice, may_refuse: bool) {
    let (mode, trials) = (dice.throw(8), dice.throw(6));
    let (clock, give_up, which) = (dice.throw(4), dice.throw(4), dice.throw(8));
    let decided = bench.state().next_trial;
    if dice.throw(10) == 0 {
        let target = json!(dice.throw(12).to_string());
        bench.specification["target"] = target;
    }
    let branch = if dice.throw(6) == 0 { "other" } else { "main" };
    bench.begin(|caps| {
        caps.branch = BranchName::new(branch).unwrap();
        caps.mode = match mode {
            0 => Mode::Baseline,
            1 if decided > 1 => Mode::Retry(RetryOf {
                trial: decided - 1,
                commit: "commit".to_owned(),
            }),
            _ => Mode::Run,
        };
        caps.trials = trials.checked_sub(1);
        caps.wall_clock_us = (clock == 0).then_some(5_000_000);
        caps.give_up_after = give_up;
        if which == 0 && may_refuse {
            caps.harness = harness("h2");
        }
    });
}

/// One thing happens.
fn happen(bench: &mut Bench, dice: &mut Dice) {
    let Some(path) = Some(bench.waits_for()).filter(|path| !path.is_empty()) else {
        let unknown = bench.run.kernel.unknown.first().cloned();
        match unknown {
            Some(effect) if dice.throw(3) > 0 => {
                let how = if dice.throw(2) == 0 { "fail" } else { "retry" };
                bench.resolve(effect.as_str(), how);
            }
            _ => begin_somehow(bench, dice, true),
        }
        return;
    };
    match dice.throw(16) {
        0 => drop(bench.interrupt()),
        1 => {
            let result = answer(dice, &path);
            bench.interrupt_while_settling(result);
        }
        2 => {
            bench.can_ask = dice.throw(2) == 0;
            *bench = bench.reloaded(bench.batches.len());
            bench.recover();
        }
        3 => {
            let at = bench.now.plus(dice.throw(10_000_000));
            bench.wake(at);
        }
        4 if bench.run.kernel.invocation.is_some() && bench.run.deadline().is_none() => {
            bench.stopped();
        }
        _ => {
            let result = answer(dice, &path);
            bench.settle(path.split('/').nth(1).unwrap(), result);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever happens, the machine never panics and always wants something, waits or rests (the
    /// bench looks after every turn); what it recorded is sound and replays to the same.
    #[test]
    fn whatever_happens_the_history_is_sound(
        settings in settings(),
        throws in prop::collection::vec(any::<u64>(), 1..100),
        steps in prop::option::of(0u64..12),
    ) {
        let mut specification = specification_with(settings);
        specification["budget"]["steps"] = json!(steps);
        let mut bench = Bench::new(specification);
        for throw in throws {
            happen(&mut bench, &mut Dice::of(throw, "what happens"));
        }
        bench.recover();
        bench.verify();
    }

    /// A run resumed after a death behind any batch decides what the undisturbed run decided.
    #[test]
    fn a_death_behind_any_batch_changes_no_decision(
        settings in settings(),
        seed in any::<u64>(),
        trials in 1u64..8,
    ) {
        let mut specification = specification_with(settings);
        specification["on_unknown"] = json!({"proposer": "retry", "experiment": "retry", "setup": "retry"});
        let mut plain = Bench::new(specification);
        plain.begin(|caps| caps.trials = Some(trials));
        drive(&mut plain, seed);
        plain.verify();
        for died_after in 2..plain.batches.len() {
            let mut bench = plain.reloaded(died_after);
            let decided: u64 = bench.state().counts.values().sum();
            bench.begin(|caps| caps.trials = Some(trials - decided));
            drive(&mut bench, seed);
            prop_assert_eq!(bench.run.kernel.decisions, plain.run.kernel.decisions);
            prop_assert_eq!(&bench.state().counts, &plain.state().counts);
            prop_assert_eq!(&bench.state().lines, &plain.state().lines);
        }
    }
}

/// Answers everything until the invocation ends. Equal effects get equal answers.
fn drive(bench: &mut Bench, seed: u64) {
    while bench.run.kernel.invocation.is_some() {
        let path = bench.waits_for();
        let result = answer(&mut Dice::of(seed, &path), &path);
        bench.settle(path.split('/').nth(1).unwrap(), result);
    }
}

/// The cost of trial n does not depend on n.
#[test]
fn the_state_stays_as_small_as_it_is() {
    let mut bench = Bench::new(specification());
    bench.begin(|_| {});
    bench.hasty = true;
    bench.measure(20_000.0);
    let mut sizes = Vec::new();
    for trial in 1..=10_000u32 {
        // Every fourth is measured, the others end with their proposal.
        if trial % 4 > 0 {
            let tree = bench.state().incumbent().unwrap().tree.clone();
            bench.propose(&tree);
        } else {
            let tree = format!("tree-{}", trial % 32);
            bench
                .propose(&tree)
                .measure(20_000.0 - f64::from(trial / 16));
        }
        if bench.waits_for().contains("keep") {
            bench.commit("commit");
        }
        if [100, 1_000, 10_000].contains(&trial) {
            let run = (bench.state(), &bench.run.kernel);
            sizes.push(serde_json::to_string(&run).unwrap().len());
        }
    }
    let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
    assert!(most - least < 100, "it grows: {sizes:?}");
    assert!(*most < 16 * 1024, "it is large: {sizes:?}");
}
