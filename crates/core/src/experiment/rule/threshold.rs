//! The threshold rule, version 1: labloop's.
//!
//! A candidate is better when its value beats the incumbent's by more than `min_delta`, compared as
//! plain floats, strictly; a tie is not better. With `confirm`, a winner is measured once more and
//! must beat it again; the weaker of the two values then stands for it.

use serde::{Deserialize, Serialize};

use crate::metric::Real;
use crate::spec::Goal;

use super::{Arm, Verdict, Want};

/// The policy's name and version.
pub(super) const POLICY: &str = "threshold/1";

/// The rule's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// What it must beat the incumbent by, in units of the metric; 0 or more.
    pub min_delta: Real,
    /// Whether a winner is measured again.
    pub confirm: bool,
}

/// One candidate's case under the threshold rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThresholdJudge {
    rule: Threshold,
    goal: Goal,
    incumbent: Real,
    values: Vec<Real>,
}

impl Threshold {
    /// Opens a case against `incumbent`.
    pub fn open(self, goal: Goal, incumbent: Real) -> ThresholdJudge {
        ThresholdJudge::new(self, goal, incumbent)
    }
}

impl ThresholdJudge {
    /// A case against `incumbent`.
    pub fn new(rule: Threshold, goal: Goal, incumbent: Real) -> Self {
        Self {
            rule,
            goal,
            incumbent,
            values: Vec::new(),
        }
    }

    fn beats(&self, value: Real) -> bool {
        let (value, bar, delta) = (value.get(), self.incumbent.get(), self.rule.min_delta.get());
        match self.goal {
            Goal::Minimize => value < bar - delta,
            Goal::Maximize => value > bar + delta,
        }
    }

    pub(super) fn want(&self) -> Want {
        match self.values.as_slice() {
            [] => Want::Measure(Arm::Candidate),
            [value] if !self.beats(*value) => self.lost(*value),
            [_] if self.rule.confirm => Want::Measure(Arm::Candidate),
            [value] => self.won(
                *value,
                format!("{} beat {}", value.short(), self.incumbent.short()),
            ),
            [first, second, ..] if !self.beats(*second) => Want::Verdict(Verdict {
                better: false,
                value: *second,
                against: self.incumbent,
                why: format!(
                    "won at {} but measured {} on a second run, against {}",
                    first.short(),
                    second.short(),
                    self.incumbent.short()
                ),
            }),
            [first, second, ..] => {
                let weaker = match self.goal {
                    Goal::Minimize => *first.max(second),
                    Goal::Maximize => *first.min(second),
                };
                let why = format!(
                    "{} and then {} beat {}",
                    first.short(),
                    second.short(),
                    self.incumbent.short()
                );
                self.won(weaker, why)
            }
        }
    }

    pub(super) fn feed(&mut self, arm: Arm, value: Real) {
        if arm == Arm::Candidate {
            self.values.push(value);
        }
    }

    fn lost(&self, value: Real) -> Want {
        let (mine, bar) = (value.short(), self.incumbent.short());
        let direction = match self.goal {
            Goal::Minimize => "lower",
            Goal::Maximize => "higher",
        };
        let better = match self.goal {
            Goal::Minimize => value < self.incumbent,
            Goal::Maximize => value > self.incumbent,
        };
        let why = if value == self.incumbent {
            format!("{mine} ties with {bar}")
        } else if better {
            let gain = Real::new((value.get() - self.incumbent.get()).abs())
                .map_or_else(|_| "too much to count".to_owned(), Real::short);
            format!(
                "{mine} beat {bar} by {gain}, and the least gain is {}",
                self.rule.min_delta.short()
            )
        } else {
            format!("{mine} did not beat {bar} ({direction} is better)")
        };
        Want::Verdict(Verdict {
            better: false,
            value,
            against: self.incumbent,
            why,
        })
    }

    fn won(&self, value: Real, why: String) -> Want {
        Want::Verdict(Verdict {
            better: true,
            value,
            against: self.incumbent,
            why,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(value: f64) -> Real {
        Real::new(value).unwrap()
    }

    fn verdict(
        min_delta: f64,
        confirm: bool,
        goal: Goal,
        bar: f64,
        values: &[f64],
    ) -> Option<(bool, f64, String)> {
        let rule = Threshold {
            min_delta: real(min_delta),
            confirm,
        };
        let mut judge = ThresholdJudge::new(rule, goal, real(bar));
        for value in values {
            assert_eq!(
                judge.want(),
                Want::Measure(Arm::Candidate),
                "asked for too few readings"
            );
            judge.feed(Arm::Candidate, real(*value));
        }
        match judge.want() {
            Want::Measure(_) => None,
            Want::Verdict(verdict) => Some((verdict.better, verdict.value.get(), verdict.why)),
        }
    }

    /// Least gain, whether to confirm, goal, readings; whether it is better and with what value, or
    /// nothing where another reading is wanted.
    type Row = (f64, bool, Goal, &'static [f64], Option<(bool, f64)>);

    #[test]
    fn decides_as_labloop_does() {
        let table: &[Row] = &[
            (0.0, false, Goal::Minimize, &[9.0], Some((true, 9.0))),
            (0.0, false, Goal::Minimize, &[10.0], Some((false, 10.0))),
            (0.0, false, Goal::Minimize, &[11.0], Some((false, 11.0))),
            (0.0, false, Goal::Maximize, &[11.0], Some((true, 11.0))),
            (1.0, false, Goal::Minimize, &[9.0], Some((false, 9.0))),
            (1.0, false, Goal::Minimize, &[8.9], Some((true, 8.9))),
            (0.0, true, Goal::Minimize, &[9.0], None),
            (0.0, true, Goal::Minimize, &[11.0], Some((false, 11.0))),
            (0.0, true, Goal::Minimize, &[5.0, 7.0], Some((true, 7.0))),
            (0.0, true, Goal::Minimize, &[5.0, 10.0], Some((false, 10.0))),
            (0.0, true, Goal::Maximize, &[15.0, 12.0], Some((true, 12.0))),
        ];
        for (min_delta, confirm, goal, values, expected) in table {
            let got = verdict(*min_delta, *confirm, *goal, 10.0, values);
            assert_eq!(
                got.map(|(better, value, _)| (better, value)),
                *expected,
                "{values:?}"
            );
        }
    }

    #[test]
    fn says_why_in_words() {
        let why = |min_delta, values: &[f64]| {
            verdict(min_delta, false, Goal::Minimize, 10.0, values)
                .unwrap()
                .2
        };
        assert_eq!(why(0.0, &[10.0]), "10 ties with 10");
        assert_eq!(why(0.0, &[11.0]), "11 did not beat 10 (lower is better)");
        assert_eq!(why(2.0, &[9.0]), "9 beat 10 by 1, and the least gain is 2");
        assert_eq!(why(0.0, &[9.0]), "9 beat 10");
    }
}
