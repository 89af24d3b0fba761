//! The rule's settings, as a loop pins them, and what follows from them.

use serde::{Deserialize, Serialize};

use crate::guard::Tolerance;
use crate::metric::Real;

use super::scale::{Scale, Unjudged};

/// The tolerated false keeps of a loop that nobody set.
const DOUBT: f64 = 0.1;
/// From so much doubt on a first draw has to promise more, to save runs.
const QUICK: f64 = 0.4;

/// The rule with its settings. A case that is open keeps those it was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// How many false keeps are tolerated in 60 trials of which none helps; above 0, at most 1.
    pub doubt: Real,
    /// The least improvement that is worth keeping.
    pub worth: Tolerance,
    /// The most pairs of runs that one candidate gets; 1 or more.
    pub max_pairs: u32,
    /// What is known of the metric's noise beforehand.
    pub noise: KnownNoise,
    /// Whether proportions are judged and not differences.
    pub ratio: bool,
    /// Whether the metric takes few values, so that equal readings say little.
    pub coarse: bool,
    /// How many pairs the closing check takes; 0 for none.
    pub closing: u32,
}

impl Keep {
    /// The most pairs of a candidate that nobody set.
    pub const MAX_PAIRS: u32 = 24;
    /// The pairs of a closing check that nobody set.
    pub const CLOSING: u32 = 6;

    /// The noise units by which a first draw must beat the incumbent to be looked at again.
    pub(super) fn first_bar(&self) -> f64 {
        if self.doubt.get() >= QUICK { 0.8 } else { 0.5 }
    }

    /// The share of the stake that is spent at each look.
    pub(super) fn look(&self) -> f64 {
        (1.0 / f64::from(self.max_pairs).sqrt()).max(0.25)
    }

    /// How many repeats have to be identical before the metric is believed to repeat exactly.
    pub(super) fn identical(&self) -> u32 {
        if self.coarse { 4 } else { 2 }
    }
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            doubt: Real::new(DOUBT).unwrap_or(Real::ZERO),
            worth: Tolerance::Absolute(Real::ZERO),
            max_pairs: Self::MAX_PAIRS,
            noise: KnownNoise::Auto,
            ratio: false,
            coarse: false,
            closing: Self::CLOSING,
        }
    }
}

/// What is known of a metric's noise before the first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KnownNoise {
    /// Nothing.
    Auto,
    /// There is none: one reading says it all.
    None,
    /// Readings of one tree, as the rule judges them.
    Readings {
        /// How many.
        count: u32,
        /// The sum of their squared distances from their mean.
        squares: Real,
        /// Whether any two differ.
        differ: bool,
    },
}

impl KnownNoise {
    /// What readings of one tree say.
    pub fn of(readings: &[Real], scale: Scale) -> Result<Self, Unjudged> {
        let judged: Result<Vec<f64>, _> = readings
            .iter()
            .map(|reading| scale.judged(*reading))
            .collect();
        let judged = judged?;
        let Some(first) = judged.first() else {
            return Ok(Self::Auto);
        };
        let mean = judged.iter().sum::<f64>() / judged.len() as f64;
        let squares = judged
            .iter()
            .map(|one| (one - mean) * (one - mean))
            .sum::<f64>();
        Ok(Self::Readings {
            count: judged.len() as u32,
            squares: Real::new(squares).map_err(|_| Unjudged::TooLarge)?,
            differ: judged.iter().any(|one| one != first),
        })
    }
}
