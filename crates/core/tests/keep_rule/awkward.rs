//! What the peer leaves out: failures of either arm, a least gain, proportions, forks, incumbents
//! that were changed by hand, keeps that came to nothing.

use loopwright_core::experiment::rule::Arm;
use loopwright_core::experiment::rule::keep::{Case, Failed, Keep, KnownNoise, Scale, Standing};
use loopwright_core::guard::Tolerance;
use loopwright_core::spec::Goal;
use proptest::prelude::*;

use crate::bench::{Bench, real};
use crate::streams::{Dice, Stream};

/// A loop whose noise is known, with an incumbent at 10 and a candidate in its duel.
fn in_duel() -> Bench {
    let mut bench = Bench::new(Keep::default());
    // The first duel is the calibration; this candidate is no better.
    bench.feed_all(&[10.0, 8.5, 10.5, 9.5, 11.0, 10.0, 9.0, 11.5, 10.5, 9.5]);
    while bench.stands()[3] < 3.0 || !bench.case.as_ref().unwrap().is_before_duel() {
        let at = match bench.want() {
            Arm::Incumbent => 10.0,
            Arm::Candidate if bench.stands()[3] >= 3.0 => 7.0,
            Arm::Candidate => 9.5,
        };
        bench.feed(at);
    }
    bench
}

#[test]
fn a_failed_first_draw_is_the_candidates_fault_and_costs_no_doubt() {
    let mut bench = Bench::new(Keep::default());
    bench.feed(10.0);
    let before = (bench.purse, bench.standing);
    assert_eq!(bench.want(), Arm::Candidate);
    assert_eq!(bench.fail(), Failed::Candidate);
    bench.close(false);
    assert_eq!((bench.purse, bench.standing), before, "nothing was judged");
}

#[test]
fn a_candidate_that_fails_in_its_duel_is_not_drawn_again() {
    let mut bench = in_duel();
    let staked = bench.purse.left();
    assert_eq!(bench.want(), Arm::Candidate);
    assert_eq!(bench.fail(), Failed::Candidate);
    bench.close(false);
    let income = 0.4 * 0.1 / 60.0;
    assert!(
        (bench.purse.left() - staked - income).abs() < 1e-12,
        "its stake stays spent"
    );
}

#[test]
fn where_the_incumbent_fails_too_a_candidate_may_fail_once_in_a_duel() {
    let mut bench = in_duel();
    bench.feed(7.0);
    assert_eq!(bench.want(), Arm::Incumbent);
    assert_eq!(bench.fail(), Failed::Again);
    assert_eq!(bench.want(), Arm::Candidate, "the half pair is begun anew");
    assert_eq!(bench.fail(), Failed::Again);
    assert_eq!(bench.want(), Arm::Candidate);
    let mut repeated = bench.clone();
    assert_eq!(bench.fail(), Failed::Candidate, "once in a duel");
    while repeated
        .case
        .as_ref()
        .is_some_and(|case| case.so_far().contains("pair"))
    {
        let at = if repeated.want() == Arm::Candidate {
            7.0
        } else {
            10.0
        };
        if repeated.feed(at).is_some() {
            break;
        }
    }
    assert!(
        repeated.why().contains("a failed run of it repeated"),
        "{}",
        repeated.why()
    );
}

#[test]
fn an_incumbent_that_fails_twice_in_a_row_means_that_the_harness_is_broken() {
    let mut bench = in_duel();
    bench.feed(7.0);
    assert_eq!(bench.fail(), Failed::Again);
    bench.feed(7.0);
    assert_eq!(bench.want(), Arm::Incumbent);
    assert_eq!(bench.fail(), Failed::Harness);
    // A later invocation carries the case on: one more failure is still too many, a success not.
    assert_eq!(bench.want(), Arm::Candidate);
    let mut broken = bench.clone();
    broken.feed(7.0);
    assert_eq!(broken.fail(), Failed::Harness);
    bench.feed_all(&[7.0, 10.0]);
    assert_eq!(bench.fail(), Failed::Again, "the first in a row again");
}

/// The halves of a pair follow each other: what a failure came between is not compared.
#[test]
fn a_half_pair_that_a_failure_cut_off_proves_nothing() {
    let mut bench = in_duel();
    // Had it stood, this reading would have made the first pair.
    bench.feed(-1e6);
    assert_eq!(bench.fail(), Failed::Again);
    let mut verdict = None;
    while verdict.is_none() {
        let at = if bench.want() == Arm::Candidate {
            9.9
        } else {
            9.8
        };
        verdict = bench.feed(at);
    }
    assert_eq!(verdict, Some(false), "{}", bench.why());
}

#[test]
fn a_refresh_that_fails_is_repeated_before_the_candidate_is_run() {
    let mut bench = in_duel();
    let mut trials = 0;
    while bench.want() != Arm::Incumbent || trials < 3 {
        trials += usize::from(bench.feed(if trials < 2 { 12.0 } else { 11.0 }).is_some());
    }
    assert_eq!(bench.fail(), Failed::Again);
    assert_eq!(bench.want(), Arm::Incumbent);
    bench.feed(10.0);
    assert_eq!(bench.want(), Arm::Candidate);
}

/// A guard was broken, or the commit was refused: it won, and yet it isn't the incumbent.
#[test]
fn a_winner_that_was_not_kept_earns_nothing_and_replaces_nothing() {
    let mut won = in_duel();
    let (staked, stood) = (won.purse.left(), won.standing.stands_at().unwrap());
    let mut case = won.case.take().unwrap();
    let mut at = 0;
    while let loopwright_core::experiment::rule::Want::Measure(arm) = case.want() {
        let value = if arm == Arm::Candidate { 4.0 } else { 10.0 };
        case.feed(arm, value, &mut won.purse, &mut won.standing);
        at += 1;
    }
    assert!(at <= 8, "it took {at} readings to see six units");
    let (mut kept, mut lost) = (won.clone(), won.clone());
    case.close(false, &mut lost.purse, &mut lost.standing);
    case.close(true, &mut kept.purse, &mut kept.standing);
    assert!(lost.purse.left() - staked < 0.001);
    assert!(
        kept.purse.left() - lost.purse.left() > 0.149,
        "a keep earns one and a half doubts"
    );
    assert!(lost.standing.stands_at().unwrap().0 > stood.0 - 1.0);
    assert!(kept.standing.stands_at().unwrap().0 < 5.0);
}

// ---- a least gain ----

fn worth(worth: &str, ratio: bool) -> Keep {
    Keep {
        worth: worth.parse::<Tolerance>().unwrap(),
        ratio,
        ..Keep::default()
    }
}

#[test]
fn a_gain_of_exactly_what_is_asked_for_is_not_enough_and_more_is() {
    for (rule, goal, less, more) in [
        (worth("2", false), Goal::Minimize, 8.0, 7.75),
        (worth("2", false), Goal::Maximize, 12.0, 12.25),
        (worth("25%", false), Goal::Minimize, 7.5, 7.25),
        (worth("25%", true), Goal::Minimize, 7.75, 7.25),
        (worth("25%", true), Goal::Maximize, 12.25, 12.75),
    ] {
        let mut bench = Bench::towards(goal, rule);
        bench.feed(10.0);
        assert_eq!(bench.feed(less), Some(false), "{goal:?} {less}");
        assert!(
            bench.why().ends_with("less than what is worth keeping"),
            "{}",
            bench.why()
        );
        assert_eq!(bench.feed_all(&[more, more]), Some(true), "{goal:?} {more}");
    }
}

/// How often a candidate of that effect is kept in its own loop with noise of 1, of 200.
fn kept_of_200(rule: Keep, effect: f64) -> usize {
    let one = |seed| {
        let mut dice = Dice::new(seed);
        let mut bench = Bench::new(rule);
        bench.careful = false;
        bench.feed(100.0 + dice.normal());
        // Three that help nothing teach it the noise.
        let mut trials = 0;
        while trials < 4 {
            let effect = if trials == 3 { effect } else { 0.0 };
            let at = if bench.want() == Arm::Candidate {
                100.0 - effect
            } else {
                100.0
            };
            let verdict = bench.feed(at + dice.normal());
            trials += usize::from(verdict.is_some());
            if trials == 4 {
                return verdict == Some(true);
            }
        }
        false
    };
    (0..200).filter(|seed| one(*seed)).count()
}

#[test]
fn what_is_clearly_better_but_not_worth_it_is_not_kept() {
    let (plain, picky) = (Keep::default(), worth("4", false));
    assert!(kept_of_200(plain, 4.0) > 190);
    assert!(kept_of_200(picky, 4.0) < 20, "{}", kept_of_200(picky, 4.0));
    assert!(kept_of_200(picky, 8.0) > 190, "{}", kept_of_200(picky, 8.0));
}

// ---- proportions ----

/// Noise that is a part of the number stays known when the number falls to a third.
#[test]
fn proportions_survive_a_speed_up() {
    let rule = Keep {
        ratio: true,
        ..Keep::default()
    };
    let mut bench = Bench::new(rule);
    bench.careful = false;
    let (mut dice, mut level, mut trials, mut kept) = (Dice::new(7), 90.0, 0, Vec::new());
    bench.feed(level);
    while trials < 30 {
        let factor = if trials % 10 == 5 { 0.6 } else { 1.0 };
        let at = if bench.want() == Arm::Candidate {
            level * factor
        } else {
            level
        };
        if let Some(better) = bench.feed(at * (1.0 + 0.1 * dice.normal())) {
            if better {
                kept.push(trials);
                level *= factor;
            }
            trials += 1;
        }
    }
    assert_eq!(kept, [5, 15, 25]);
    let deviation = bench.standing.deviation().unwrap();
    assert!(
        (0.07..0.18).contains(&deviation),
        "{deviation} of the number"
    );
}

// ---- metrics without noise ----

#[test]
fn a_metric_said_to_repeat_exactly_costs_no_run_more() {
    let rule = Keep {
        noise: KnownNoise::None,
        ..Keep::default()
    };
    let mut bench = Bench::new(rule);
    let verdicts: Vec<_> = [10.0, 11.0, 9.5, 9.5, 9.0, 8.0]
        .map(|value| bench.feed(value))
        .into();
    let kept = Some(true);
    let reverted = Some(false);
    assert_eq!(verdicts, [None, reverted, kept, reverted, kept, kept]);
}

/// So many runs more than trials does a metric without noise cost in a whole loop.
#[test]
fn a_metric_that_repeats_exactly_costs_as_many_runs_more_as_repeats_are_asked_for() {
    for (coarse, most) in [(false, 2), (true, 4)] {
        let rule = Keep {
            coarse,
            ..Keep::default()
        };
        let mut bench = Bench::new(rule);
        let (mut level, mut trials) = (1000.0, 0);
        bench.feed(level);
        while trials < 60 {
            let candidate = if trials % 3 == 0 {
                level - 1.0
            } else {
                level + 1.0
            };
            let at = if bench.want() == Arm::Candidate {
                candidate
            } else {
                level
            };
            if let Some(kept) = bench.feed(at) {
                assert_eq!(kept, trials % 3 == 0);
                trials += 1;
                level = if kept { candidate } else { level };
            }
        }
        assert_eq!(bench.runs, 61 + most, "coarse: {coarse}");
    }
}

/// A tie never wins, whatever repeats say.
#[test]
fn equal_readings_of_a_coarse_metric_are_no_gain() {
    let rule = Keep {
        coarse: true,
        ..Keep::default()
    };
    let mut bench = Bench::new(rule);
    bench.feed(3.0);
    for _ in 0..40 {
        assert_eq!(bench.feed(3.0), Some(false));
    }
    assert_eq!(bench.runs, 41);
}

// ---- what belongs to whom ----

#[test]
fn forks_draw_on_one_purse_and_know_the_noise() {
    let main = in_duel();
    let fork = Standing::fork(&main.standing);
    assert_eq!(fork.deviation(), main.standing.deviation());
    let mut other = Bench {
        standing: fork,
        case: None,
        ..main.clone()
    };
    other.feed(20.0);
    let before = other.purse.left();
    assert_eq!(
        before,
        main.purse.left(),
        "a fork brings no doubt of its own"
    );
    other.feed(15.0);
    assert!(other.purse.left() < before);
}

/// A harness, machine or incumbent that changed: nothing is known any more, but what was spent is.
#[test]
fn an_incumbent_that_changed_is_read_anew_with_what_is_left_of_the_purse() {
    let main = in_duel();
    let scale = main.standing.scale();
    let mut anew = Bench {
        standing: Standing::new(&main.rule, scale),
        ..main.clone()
    };
    anew.case = Some(Case::open(anew.rule, anew.goal, &anew.standing));
    assert_eq!(
        anew.want(),
        Arm::Incumbent,
        "there is nothing to hold a candidate against"
    );
    anew.feed(50.0);
    assert_eq!(anew.stands(), [50.0, 1.0, 0.0, 0.0, main.purse.left()]);
    assert_eq!(anew.feed(60.0), Some(false));
}

#[test]
fn a_case_is_judged_by_the_settings_it_was_opened_with() {
    let mut bench = in_duel();
    let case = bench.case.clone().unwrap();
    bench.rule = Keep {
        doubt: real(1.0),
        max_pairs: 1,
        ..bench.rule
    };
    bench.feed_all(&[7.0, 10.0]);
    let mut same = in_duel();
    same.case = Some(case);
    same.feed_all(&[7.0, 10.0]);
    assert_eq!(bench.case, same.case);
}

// ---- limits ----

#[test]
fn one_pair_is_never_proof_while_the_noise_is_unknown() {
    let rule = Keep {
        max_pairs: 1,
        ..Keep::default()
    };
    let mut bench = Bench::new(rule);
    bench.feed(10.0);
    for trial in 0..50 {
        let mut verdict = None;
        while verdict.is_none() {
            let nudge = f64::from((trial * 7 + bench.runs as i32) % 5) / 10.0;
            let at = if bench.want() == Arm::Candidate {
                1.0
            } else {
                10.0
            };
            verdict = bench.feed(at + nudge);
        }
        assert_eq!(verdict, Some(false));
    }
}

#[test]
fn all_pairs_spent_is_said() {
    let rule = Keep {
        max_pairs: 3,
        doubt: real(0.001),
        ..Keep::default()
    };
    let mut bench = Bench::new(rule);
    bench.feed_all(&[10.0, 8.0, 8.5, 10.5, 9.5, 8.0, 8.25, 10.0]);
    assert_eq!(
        bench.verdict.as_ref().map(|verdict| verdict.better),
        Some(false)
    );
    assert_eq!(
        bench.why(),
        "better in 3 of 3 back-to-back pairs, 9.8 noise units (6.1 to 13.4): not clear enough after \
         the most pairs it gets"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is read and whatever fails: the purse is never overdrawn, a case ends after a bounded
    /// number of readings, and what is written down reads back (the bench looks).
    #[test]
    fn whatever_happens_the_books_are_sound(
        number in 0u64..1_000_000,
        fails in prop::collection::vec(0u8..12, 60..200),
        huge in any::<bool>(),
    ) {
        let stream = Stream::of(number);
        let rule = stream.rule();
        let mut bench = Bench::new(rule);
        let mut dice = Dice::new(number);
        bench.feed(stream.level);
        let (mut readings, mut trials) = (0, 0_u32);
        for fail in fails {
            readings += 1;
            if fail == 0 {
                if bench.fail() == Failed::Candidate {
                    bench.close(false);
                    (readings, trials) = (0, trials + 1);
                }
                continue;
            }
            let noise = if huge { 1e150 * (dice.unit() - 0.5) } else { dice.normal() };
            let kept = bench.feed(stream.level + noise);
            if kept.is_some() {
                let most = 2 * rule.max_pairs + 2;
                prop_assert!(readings <= most + 40, "{readings} readings of one candidate");
                (readings, trials) = (0, trials + 1);
            }
            let most = 0.6 * stream.doubt + 0.5 * f64::from(trials + 1);
            prop_assert!((0.0..=most).contains(&bench.purse.left()));
        }
    }

    /// A metric in other units is the same metric: powers of two change no bit of a decision.
    #[test]
    fn units_decide_nothing(number in 0u64..1_000_000, power in -30i32..30) {
        let stream = Stream::of(number);
        let factor = 2.0_f64.powi(power);
        let scaled = |values: &[f64]| values.iter().map(|value| value * factor).collect();
        let other = Stream {
            noise: scaled(&stream.noise),
            level: stream.level * factor,
            quantum: stream.quantum * factor,
            effects: scaled(&stream.effects),
            runs: scaled(&stream.runs),
            ..stream.clone()
        };
        let (plain, _) = stream.trace(Bench::new(stream.rule()));
        let (scaled, _) = other.trace(Bench::new(other.rule()));
        prop_assert_eq!(plain, scaled);
    }

    /// Without a least gain, asking for one of nothing changes nothing; in percent neither.
    #[test]
    fn a_least_gain_of_nothing_is_none(number in 0u64..1_000_000) {
        let stream = Stream::of(number);
        let rule = Keep { worth: "0%".parse().unwrap(), ..stream.rule() };
        prop_assert_eq!(stream.trace(Bench::new(stream.rule())), stream.trace(Bench::new(rule)));
    }
}

#[test]
fn a_scale_is_part_of_what_is_known() {
    let scale = Scale {
        goal: Goal::Maximize,
        ratio: true,
    };
    assert_eq!(Standing::new(&Keep::default(), scale).scale(), scale);
}
