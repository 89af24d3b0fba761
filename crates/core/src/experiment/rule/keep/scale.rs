//! The scale a metric is judged on: less is better there, and with `ratio` equal proportions are
//! equal steps.

use serde::{Deserialize, Serialize};

use crate::guard::Tolerance;
use crate::metric::Real;
use crate::spec::Goal;

use super::settings::Keep;

/// Larger readings are refused: sums of their squares would be no numbers any more.
const LARGEST: f64 = 1e150;
/// Smaller ones are nothing: squares of their differences would be none.
const SMALLEST: f64 = 1e-130;

/// How readings are turned into what is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Which way is better.
    pub goal: Goal,
    /// Whether proportions are judged.
    pub ratio: bool,
}

/// Why a finite number can't be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unjudged {
    /// A proportion of it makes no sense.
    #[error("is not above zero, and `ratio` judges proportions")]
    NotAboveZero,
    /// Its square is no number.
    #[error("is too large to be judged (beyond 1e150)")]
    TooLarge,
}

impl Scale {
    /// The scale that a rule judges on.
    pub fn of(rule: &Keep, goal: Goal) -> Self {
        Self {
            goal,
            ratio: rule.ratio,
        }
    }

    /// A reading as it is judged: less is better.
    pub fn judged(self, reading: Real) -> Result<f64, Unjudged> {
        let value = reading.get();
        let value = if self.ratio {
            if value <= 0.0 {
                return Err(Unjudged::NotAboveZero);
            }
            libm::log(value)
        } else if value.abs() > LARGEST {
            return Err(Unjudged::TooLarge);
        } else if value.abs() < SMALLEST {
            0.0
        } else {
            value
        };
        Ok(self.turned(value))
    }

    /// What is judged, in the metric's own unit.
    pub(super) fn shown(self, judged: f64) -> Real {
        let value = self.turned(judged);
        let value = if self.ratio { libm::exp(value) } else { value };
        // The mean of readings lies between them; only rounding could lead out.
        Real::new(value).unwrap_or(Real::ZERO)
    }

    /// The least improvement over `reference` that counts, as a step on this scale.
    pub(super) fn margin(self, worth: Tolerance, reference: f64) -> f64 {
        match (worth, self.ratio, self.goal) {
            (Tolerance::Percent(percent), true, Goal::Minimize) => {
                -libm::log1p(-percent.get().min(99.999_999) / 100.0)
            }
            (Tolerance::Percent(percent), true, Goal::Maximize) => {
                libm::log1p(percent.get() / 100.0)
            }
            // Refused where the settings are read: an amount is no proportion.
            (Tolerance::Absolute(_), true, _) => 0.0,
            (worth, false, _) => worth.allowance(self.shown(reference)).min(LARGEST),
        }
    }

    fn turned(self, value: f64) -> f64 {
        match self.goal {
            Goal::Minimize => value,
            // Not the negative: zero has no sign.
            Goal::Maximize => 0.0 - value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(value: f64) -> Real {
        Real::new(value).unwrap()
    }

    fn scale(goal: Goal, ratio: bool) -> Scale {
        Scale { goal, ratio }
    }

    #[test]
    fn less_is_better_on_every_scale() {
        for (goal, ratio, better, worse) in [
            (Goal::Minimize, false, -3.0, 5.0),
            (Goal::Minimize, true, 0.5, 2.0),
            (Goal::Maximize, false, 5.0, -3.0),
            (Goal::Maximize, true, 2.0, 0.5),
        ] {
            let judge = |value| scale(goal, ratio).judged(real(value)).unwrap();
            assert!(judge(better) < judge(worse), "{goal:?} {ratio}");
            let shown = scale(goal, ratio).shown(judge(better)).get();
            assert!((shown - better).abs() < 1e-12);
        }
    }

    #[test]
    fn zero_has_no_sign() {
        let zero = scale(Goal::Maximize, false).judged(Real::ZERO).unwrap();
        assert_eq!(zero.to_bits(), 0);
    }

    #[test]
    fn what_has_no_proportion_or_no_square_is_refused() {
        for value in [0.0, -1.0] {
            let refused = scale(Goal::Minimize, true).judged(real(value));
            assert_eq!(refused, Err(Unjudged::NotAboveZero));
        }
        let plain = scale(Goal::Minimize, false);
        assert_eq!(plain.judged(real(-1e200)), Err(Unjudged::TooLarge));
        assert_eq!(plain.judged(real(1e-200)), Ok(0.0));
        assert!(scale(Goal::Minimize, true).judged(real(1e300)).is_ok());
    }

    #[test]
    fn a_percentage_is_the_same_step_from_everywhere_on_a_scale_of_proportions() {
        let ten = Tolerance::Percent(real(10.0));
        for (goal, worth_it) in [(Goal::Minimize, 0.9), (Goal::Maximize, 1.1)] {
            let scale = scale(goal, true);
            let before = scale.judged(real(1234.5)).unwrap();
            let after = scale.judged(real(1234.5 * worth_it)).unwrap();
            let margin = scale.margin(ten, before);
            assert!((before - after - margin).abs() < 1e-12, "{goal:?}");
        }
        let plain = scale(Goal::Maximize, false);
        assert_eq!(plain.margin(ten, -50.0), 5.0);
        let amount = Tolerance::Absolute(real(0.25));
        assert_eq!(plain.margin(amount, -50.0), 0.25);
    }
}
