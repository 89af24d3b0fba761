//! The closing check: fresh pairs of the tree that a line of work started from and the one it
//! arrived at. Its result is the loop's claim: no reading that helped a change to be kept is in it,
//! so no luck is either.

use serde::{Deserialize, Serialize};

use crate::metric::Real;
use crate::spec::Goal;

use super::exact;
use super::scale::Scale;
use super::settings::Keep;
use super::standing::Standing;
use super::statistics::t_of_95;

/// One of the two trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Where the line of work started.
    Start,
    /// Where it arrived.
    Finish,
}

/// A closing check, between readings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    scale: Scale,
    /// How many pairs it takes.
    wanted: u32,
    pairs: u32,
    /// The open pair's first reading.
    #[serde(with = "exact")]
    half: Option<f64>,
    #[serde(with = "exact")]
    start_sum: f64,
    #[serde(with = "exact")]
    finish_sum: f64,
    /// Runs that failed one after the other.
    failures: u32,
}

/// What a loop may claim to have gained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Pairs behind it.
    pub pairs: u32,
    /// The mean of the start's readings, in the metric's unit.
    pub start: Real,
    /// Of the finish's.
    pub finish: Real,
    /// By how much the finish is better, in the metric's unit; below zero where it is worse. In
    /// percent where proportions are judged.
    pub gain: Real,
    /// The lower end of its interval of 95 %.
    pub low: Real,
    /// The upper end.
    pub high: Real,
    /// Whether these three are percentages.
    pub in_percent: bool,
}

impl Closing {
    /// A check of so many pairs; none where that is none.
    pub fn open(rule: &Keep, goal: Goal, pairs: u32) -> Option<Self> {
        (pairs > 0).then_some(Self {
            scale: Scale::of(rule, goal),
            wanted: pairs,
            pairs: 0,
            half: None,
            start_sum: 0.0,
            finish_sum: 0.0,
            failures: 0,
        })
    }

    /// The tree that is to be run now; none where all pairs are closed or it was given up.
    pub fn want(&self) -> Option<Side> {
        if self.pairs >= self.wanted || self.is_given_up() {
            return None;
        }
        let starts_first = self.pairs.is_multiple_of(2);
        Some(if starts_first == self.half.is_none() {
            Side::Start
        } else {
            Side::Finish
        })
    }

    /// The scale it judges on.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// One more reading of the tree that was wanted, on the scale of judging.
    pub fn feed(&mut self, reading: f64) {
        let Some(side) = self.want() else {
            return;
        };
        let Some(half) = self.half.take() else {
            self.half = Some(reading);
            return;
        };
        let (start, finish) = match side {
            Side::Start => (reading, half),
            Side::Finish => (half, reading),
        };
        self.start_sum += start;
        self.finish_sum += finish;
        self.pairs += 1;
        self.failures = 0;
    }

    /// A run of the tree that was wanted failed: its pair is begun anew, and a second failure before a
    /// pair is closed is the end of it.
    pub fn fail(&mut self) {
        self.half = None;
        self.failures = self.failures.saturating_add(1);
    }

    /// Whether it ended by failures.
    pub fn is_given_up(&self) -> bool {
        self.failures > 1
    }

    /// What it showed; none without a closed pair, or where the noise isn't known.
    pub fn claim(&self, standing: &Standing) -> Option<Claim> {
        let deviation = standing.deviation()?;
        if self.pairs == 0 || self.is_given_up() {
            return None;
        }
        let pairs = f64::from(self.pairs);
        let (start, finish) = (self.start_sum / pairs, self.finish_sum / pairs);
        let ahead = start - finish;
        let reach = t_of_95(standing.freedom()) * deviation * (2.0 / pairs).sqrt();
        let gain = |ahead: f64| Real::new(self.gain(ahead)).ok();
        Some(Claim {
            pairs: self.pairs,
            start: self.scale.shown(start),
            finish: self.scale.shown(finish),
            gain: gain(ahead)?,
            low: gain(ahead - reach)?,
            high: gain(ahead + reach)?,
            in_percent: self.scale.ratio,
        })
    }

    /// A step towards better on the scale of judging, as a gain.
    fn gain(&self, ahead: f64) -> f64 {
        match (self.scale.ratio, self.scale.goal) {
            (false, _) => ahead,
            (true, Goal::Minimize) => -libm::expm1(-ahead) * 100.0,
            (true, Goal::Maximize) => libm::expm1(ahead) * 100.0,
        }
    }
}

impl Claim {
    /// In words, to stand behind "measured again, start against finish".
    pub fn words(&self) -> String {
        let worse = self.gain < Real::ZERO;
        let turned = |one: Real| if worse { 0.0 - one.get() } else { one.get() };
        let (low, high) = if worse {
            (turned(self.high), turned(self.low))
        } else {
            (turned(self.low), turned(self.high))
        };
        let word = if worse { "worse" } else { "better" };
        let amount = turned(self.gain);
        if self.in_percent {
            return format!("{amount:.1}% {word} ({low:.1} to {high:.1})");
        }
        let digits = decimals(high - low);
        let shown = |number: f64| match digits {
            Some(digits) => format!("{number:.digits$}"),
            None => Real::new(number).map_or_else(|_| "?".to_owned(), Real::short),
        };
        let size = self.start.get().abs();
        let percent = if size > 0.0 {
            format!(", {:.1}%", amount / size * 100.0)
        } else {
            String::new()
        };
        let (amount, low, high) = (shown(amount), shown(low), shown(high));
        format!("{amount} {word} ({low} to {high}){percent}")
    }
}

/// How many decimals say something of a number whose interval is that wide; none where plain
/// decimals are no way to write it.
fn decimals(width: f64) -> Option<usize> {
    let magnitude = libm::log10(width);
    let decimals = (1.0 - magnitude.floor()).max(0.0);
    (magnitude.is_finite() && magnitude < 6.0 && decimals <= 9.0).then_some(decimals as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rule::keep::KnownNoise;

    fn rule(ratio: bool) -> Keep {
        Keep {
            ratio,
            // A deviation of one on either scale, well known.
            noise: KnownNoise::Readings {
                count: 1001,
                squares: Real::new(975.580_385_609_822_7).unwrap(),
                differ: true,
            },
            ..Keep::default()
        }
    }

    fn standing(closing: &Closing, ratio: bool) -> Standing {
        Standing::new(&rule(ratio), closing.scale())
    }

    fn checked(goal: Goal, ratio: bool, start: f64, finish: f64) -> Claim {
        let mut closing = Closing::open(&rule(ratio), goal, 6).unwrap();
        while let Some(side) = closing.want() {
            let value = match side {
                Side::Start => start,
                Side::Finish => finish,
            };
            closing.feed(closing.scale().judged(Real::new(value).unwrap()).unwrap());
        }
        closing.claim(&standing(&closing, ratio)).unwrap()
    }

    #[test]
    fn drift_meets_both_trees_alike() {
        let mut closing = Closing::open(&rule(false), Goal::Minimize, 4).unwrap();
        let mut order = String::new();
        let mut drift = 0.0;
        while let Some(side) = closing.want() {
            order.push(if side == Side::Start { 'A' } else { 'B' });
            closing.feed(drift + if side == Side::Start { 10.0 } else { 7.0 });
            drift += 100.0;
        }
        assert_eq!(order, "ABBAABBA");
        let claim = closing.claim(&standing(&closing, false)).unwrap();
        assert_eq!(claim.gain.get(), 3.0);
        assert_eq!(claim.pairs, 4);
    }

    #[test]
    fn a_claim_says_how_much_with_its_interval() {
        // 1.96 · sqrt(2/6) either side.
        let claim = checked(Goal::Minimize, false, 20.0, 15.0);
        assert_eq!(claim.words(), "5.0 better (3.9 to 6.1), 25.0%");
        let claim = checked(Goal::Maximize, false, 20.0, 15.0);
        assert_eq!(claim.words(), "5.0 worse (3.9 to 6.1), 25.0%");
        let claim = checked(Goal::Maximize, false, 0.0, 1.0);
        assert_eq!(claim.words(), "1.0 better (-0.1 to 2.1)");
    }

    #[test]
    fn a_number_has_as_many_decimals_as_its_interval_allows() {
        assert_eq!(decimals(0.03), Some(3));
        assert_eq!(decimals(7.0), Some(1));
        assert_eq!(decimals(40_000.0), Some(0));
        assert_eq!(decimals(1e9), None);
        assert_eq!(decimals(1e-20), None);
        assert_eq!(decimals(0.0), None);
    }

    #[test]
    fn proportions_are_claimed_in_percent() {
        let gain = |goal, start, finish| checked(goal, true, start, finish).gain.get();
        assert!((gain(Goal::Minimize, 20.0, 15.0) - 25.0).abs() < 1e-9);
        assert!((gain(Goal::Maximize, 20.0, 25.0) - 25.0).abs() < 1e-9);
        let claim = checked(Goal::Minimize, true, 20.0, 15.0);
        assert!((claim.start.get() - 20.0).abs() < 1e-9 && claim.in_percent);
        assert!(
            claim.words().starts_with("25.0% better ("),
            "{}",
            claim.words()
        );
    }

    #[test]
    fn a_tree_that_fails_every_time_ends_it() {
        // Whichever of the two it is, and whether it runs first or second in a pair.
        for broken in [Side::Start, Side::Finish] {
            let mut closing = Closing::open(&rule(false), Goal::Minimize, 6).unwrap();
            let mut runs = 0;
            while let Some(side) = closing.want() {
                runs += 1;
                assert!(runs < 100, "it never ends");
                if side == broken {
                    closing.fail();
                } else {
                    closing.feed(10.0);
                }
            }
            assert!(closing.is_given_up());
            assert!(runs <= 4, "{runs}");
        }
    }

    #[test]
    fn a_failure_begins_its_pair_anew_and_two_in_a_row_are_the_end() {
        let mut closing = Closing::open(&rule(false), Goal::Minimize, 2).unwrap();
        closing.feed(10.0);
        closing.fail();
        assert_eq!(closing.want(), Some(Side::Start));
        closing.feed(12.0);
        closing.feed(8.0);
        assert_eq!(closing.want(), Some(Side::Finish));
        closing.fail();
        assert!(!closing.is_given_up());
        closing.fail();
        assert!(closing.is_given_up());
        assert_eq!(
            (closing.want(), closing.claim(&standing(&closing, false))),
            (None, None)
        );
    }

    #[test]
    fn nothing_is_claimed_of_a_metric_of_which_no_noise_is_known() {
        let mut closing = Closing::open(&Keep::default(), Goal::Minimize, 1).unwrap();
        closing.feed(2.0);
        closing.feed(1.0);
        let unknown = Standing::new(&Keep::default(), closing.scale());
        assert_eq!(closing.claim(&unknown), None);
        assert_eq!(Closing::open(&Keep::default(), Goal::Minimize, 0), None);
    }
}
