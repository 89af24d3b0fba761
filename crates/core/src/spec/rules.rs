//! From resolved settings to a checked rule.

use crate::experiment::rule::keep::Scale;
use crate::guard::Tolerance;
use crate::metric::Real;

use super::build::Builder;
use super::experiment::{Goal, RuleSpec};
use super::keep::{KeepSpec, NoiseSpec};
use super::value::Value;

/// The most pairs that a duel or a closing check may be given: the state holds a line for each.
const PAIRS_MAX: u64 = 100;
/// The most readings taken beforehand.
const READINGS_MAX: usize = 1000;

impl Builder<'_> {
    pub(super) fn rule(&mut self, goal: Goal) -> RuleSpec {
        match self.text("rule").as_deref() {
            Some("keep") => RuleSpec::Keep(self.keep_rule(goal)),
            _ => self.threshold_rule(),
        }
    }

    fn threshold_rule(&mut self) -> RuleSpec {
        let min_delta = self.number("min_delta");
        if min_delta.is_some_and(|number| number.get() < 0.0) {
            self.fault(
                "min_delta",
                "is negative: the least improvement is 0 or more",
            );
        }
        RuleSpec::Threshold {
            min_delta: min_delta.unwrap_or(Real::ZERO),
            confirm: self.switch("confirm"),
        }
    }

    fn keep_rule(&mut self, goal: Goal) -> KeepSpec {
        let keep = KeepSpec {
            doubt: self.number("doubt").unwrap_or(Real::ZERO),
            worth: match self.resolved.value("worth") {
                Some(Value::Amount(amount)) => *amount,
                _ => Tolerance::Absolute(Real::ZERO),
            },
            max_pairs: self.needed("max_pairs"),
            noise: match self.resolved.value("noise") {
                Some(Value::Noise(noise)) => noise.clone(),
                _ => NoiseSpec::Auto,
            },
            ratio: self.switch("ratio"),
            coarse: self.switch("coarse"),
            closing: self.needed("closing"),
        };
        self.check_keep_rule(&keep, goal);
        keep
    }

    fn check_keep_rule(&mut self, keep: &KeepSpec, goal: Goal) {
        let doubt = keep.doubt.get();
        if doubt <= 0.0 || doubt > 1.0 {
            self.fault(
                "doubt",
                "has to be above 0 and at most 1: the false keeps tolerated in 60 proposals that \
                 help nothing",
            );
        }
        if !(1..=PAIRS_MAX).contains(&keep.max_pairs) {
            self.fault("max_pairs", format!("has to be 1 to {PAIRS_MAX}"));
        }
        if keep.closing > PAIRS_MAX {
            self.fault("closing", format!("is at most {PAIRS_MAX}"));
        }
        match keep.worth {
            Tolerance::Absolute(amount) if keep.ratio && amount > Real::ZERO => self.fault(
                "worth",
                "is an amount, and `ratio` judges proportions: write it in percent",
            ),
            Tolerance::Percent(percent)
                if keep.ratio && goal == Goal::Minimize && percent.get() >= 100.0 =>
            {
                self.fault(
                    "worth",
                    "asks for all of the metric to go: nothing falls by 100%",
                );
            }
            _ => {}
        }
        self.check_noise(keep, goal);
    }

    fn check_noise(&mut self, keep: &KeepSpec, goal: Goal) {
        let NoiseSpec::Readings(readings) = &keep.noise else {
            return;
        };
        if !(2..=READINGS_MAX).contains(&readings.len()) {
            self.fault(
                "noise",
                format!("takes 2 to {READINGS_MAX} readings of one tree"),
            );
        }
        let scale = Scale {
            goal,
            ratio: keep.ratio,
        };
        for reading in readings {
            if let Err(why) = scale.judged(*reading) {
                self.fault("noise", format!("holds {reading}, which {why}"));
            }
        }
    }
}
