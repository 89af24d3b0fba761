//! Sweeps: everything that can go wrong, at every place where it can, for one run of each kind.

mod support;

use loopwright_simulator::search::SearchScenario;
use loopwright_simulator::{Disturbance, Kind, LifeEnd, Lost, Medium, Plan, Report, simulate};
use support::run_beside;

/// A short run of that kind, in which something of everything happens.
fn short(kind: Kind) -> Plan {
    let seed = match kind {
        // Three orders, and a target that is reached.
        Kind::Experiment => 24,
        // A child, a question, an answer, a pass.
        Kind::Agent => 105,
        // Branches that are pruned while parts of them are in flight.
        Kind::Search => 25,
    };
    Plan {
        kind,
        seed,
        order: 0,
        steps: 3,
        width: 3,
        lost: Lost::Retry,
        tokens: None,
        snapshot_every: 3,
        medium: Medium::Memory,
        disturbances: Vec::new(),
    }
}

/// Sweeps one disturbance over every place of every life. Returns how many places there were.
fn sweep(plan: &Plan, make: impl Fn(u32) -> Disturbance) -> u32 {
    sweep_every(1, plan, make)
}

/// The same over every `stride`-th place.
fn sweep_every(stride: usize, plan: &Plan, make: impl Fn(u32) -> Disturbance) -> u32 {
    let calm = simulate(&plan.undisturbed()).expect("an undisturbed run");
    let lives = calm.lives as usize;
    let mut places = 0;
    for life in 0..lives {
        for at in (1..).step_by(stride) {
            // The lives before it are left alone.
            let mut disturbances = vec![Disturbance::Crash(0); life];
            disturbances.push(make(at));
            let report = run_beside(&plan.with(disturbances), &calm);
            if report.ends.get(life) == calm.ends.get(life)
                && !interrupts(&make(at), &report, &calm)
            {
                break;
            }
            places += 1;
        }
    }
    places
}

/// An interrupted life ends in good order, and another one is needed.
fn interrupts(disturbance: &Disturbance, report: &Report, calm: &Report) -> bool {
    let is_signal = matches!(
        disturbance,
        Disturbance::Interrupt { .. } | Disturbance::InterruptThenBroken(_)
    );
    is_signal && report.lives > calm.lives
}

fn each(check: impl Fn(&Plan)) {
    for kind in [Kind::Experiment, Kind::Agent, Kind::Search] {
        check(&short(kind));
    }
}

#[test]
fn a_crash_at_every_point() {
    each(|plan| {
        let places = sweep(plan, Disturbance::Crash);
        assert!(places > 60, "{:?}: {places} places", plan.kind);
    });
}

#[test]
fn a_crash_all_over_a_store() {
    let plan = short(Kind::Agent).on(Medium::Store);
    let places = sweep_every(3, &plan, Disturbance::Crash);
    assert!(places > 40, "{places} places");
}

/// A crash, and another one while the next life cleans up after it.
#[test]
fn a_crash_on_the_heels_of_another() {
    each(|plan| {
        let calm = simulate(&plan.undisturbed()).expect("an undisturbed run");
        for first in (3..90).step_by(29) {
            for second in (1..22).step_by(3) {
                let both = vec![
                    Disturbance::Crash(0),
                    Disturbance::Crash(first),
                    Disturbance::Crash(second),
                ];
                run_beside(&plan.with(both), &calm);
            }
        }
    });
}

#[test]
fn a_signal_at_every_wait() {
    each(|plan| {
        for again in [false, true] {
            let places = sweep(plan, |wait| Disturbance::Interrupt { wait, again });
            assert!(places > 5, "{:?}: {places} places", plan.kind);
        }
    });
}

#[test]
fn a_broken_host_at_every_wait() {
    each(|plan| {
        assert!(sweep(plan, Disturbance::Broken) > 5);
        assert!(sweep(plan, Disturbance::InterruptThenBroken) > 5);
    });
}

#[test]
fn a_failing_write_at_every_append() {
    each(|plan| {
        for reached in [false, true] {
            let places = sweep(plan, |append| Disturbance::WriteFails { append, reached });
            assert!(places > 5, "{:?}: {places} places", plan.kind);
        }
    });
}

#[test]
fn a_takeover_before_every_append() {
    each(|plan| assert!(sweep(plan, Disturbance::Usurped) > 5));
    let on_store = short(Kind::Search).on(Medium::Store);
    assert!(sweep(&on_store, Disturbance::Usurped) > 5);
}

/// The log is cut, emptied or garbled behind what was synced: at most the append that was under
/// way is lost, and nothing needs a repair by hand.
#[test]
fn a_power_loss_in_every_append() {
    let plan = short(Kind::Search).on(Medium::Store);
    let places: u32 = (1..=3)
        .map(|tear| {
            sweep(&plan, |append| Disturbance::PowerLoss {
                append,
                tear: append * 3 + tear,
            })
        })
        .sum();
    assert!(places > 40, "{places} places");
}

/// Effects of unknown outcome, with a person to ask and without: the laws hold whatever is said.
#[test]
fn every_answer_about_what_was_lost() {
    for lost in [Lost::AskRetry, Lost::AskFail, Lost::Fail, Lost::NobodyToAsk] {
        each(|plan| {
            let plan = Plan {
                lost,
                ..plan.clone()
            };
            assert!(sweep_every(15, &plan, Disturbance::Crash) > 4);
        });
    }
}

/// The same plan gives the same report, to the byte of the record.
#[test]
fn the_same_plan_twice() {
    each(|plan| {
        for seed in 0..10 {
            let plan = Plan {
                seed,
                ..plan.with(vec![Disturbance::Crash(9), Disturbance::Crash(30)])
            };
            let (once, again) = (simulate(&plan), simulate(&plan));
            assert_eq!(once.expect("a run"), again.expect("a run"));
        }
    });
}

/// A life that is disturbed nowhere ends as one that is not.
#[test]
fn a_disturbance_that_is_never_reached_does_nothing() {
    each(|plan| {
        let calm = simulate(plan).expect("a run");
        let never = simulate(&plan.with(vec![Disturbance::Crash(0); 3])).expect("a run");
        assert_eq!(calm, never);
        assert!(calm.ends.contains(&LifeEnd::Done));
    });
}

/// Steps that finish in any order, under a budget that is too small for all of them: the same ones
/// are made, refused and decided about.
#[test]
fn any_order_of_completion_gives_the_same_search() {
    let (mut searches, mut short_of_money, mut others) = (0, 0, 0);
    for seed in 0..90 {
        let plan = Plan {
            seed,
            width: 4,
            steps: 4,
            tokens: Some(100 + seed * 5),
            ..short(Kind::Search)
        };
        if !SearchScenario::of(&plan).is_patient() {
            continue;
        }
        let first = simulate(&plan).expect("a run");
        searches += 1;
        short_of_money += u32::from(first.reason == "budget");
        for order in 1..=5 {
            let plan = Plan {
                order,
                ..plan.clone()
            };
            let other = simulate(&plan).expect("a run");
            others += u32::from(other.head != first.head);
            let same = |report: &Report| {
                let mut decisions: Vec<_> = report
                    .decisions
                    .iter()
                    .map(|decision| format!("{decision:?}"))
                    .collect();
                decisions.sort();
                (decisions, report.calls, report.reason.clone())
            };
            assert_eq!(same(&first), same(&other), "seed {seed}, order {order}");
        }
    }
    assert!(
        searches > 20 && short_of_money > 10,
        "{searches} searches, {short_of_money} short"
    );
    assert!(others > 60, "{others} went another way");
}

/// A run of hundreds of levels, with signals and deaths all along, keeps as little as a short one:
/// the law of memory holds at every commit.
#[test]
fn a_long_run_keeps_as_little_as_a_short_one() {
    let long = |seed| Plan {
        seed,
        steps: 400,
        ..short(Kind::Search)
    };
    // Most searches break off early: a level fails where all its branches do.
    let is_long = |plan: &Plan| simulate(plan).expect("a run").events > 1_000;
    let plans = (0..).map(long).filter(is_long).take(2);
    for plan in plans {
        let disturbances = (1..40).map(|life| match life % 3 {
            0 => Disturbance::Interrupt {
                wait: 9,
                again: false,
            },
            1 => Disturbance::Crash(50),
            _ => Disturbance::Broken(12),
        });
        let report = simulate(&plan.with(disturbances.collect())).expect("a run");
        assert!(
            report.repeats > 20,
            "{} calls were repeated",
            report.repeats
        );
    }
}
