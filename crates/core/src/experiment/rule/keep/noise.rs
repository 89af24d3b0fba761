//! The noise pool: how much one run's number varies, learned from how pairs of a duel scatter.
//!
//! Each residual adds a degree of freedom. Outliers are cut off, and evidence fades, so that a
//! metric that grew noisier or calmer is believed after a while.

use serde::{Deserialize, Serialize};

use super::exact;
use super::grain::Grain;
use super::statistics::{CLIP, CLIP_VARIANCE};

/// From so many degrees of freedom on, the spread is known well enough to cut off by it.
pub(super) const ENOUGH: f64 = 3.0;

/// Older evidence fades so that about so many degrees of freedom stay.
const MEMORY: f64 = 40.0;

/// Squared residuals of single runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Noise {
    /// Their sum.
    #[serde(with = "exact")]
    squares: f64,
    /// How many there are, less what faded.
    #[serde(with = "exact")]
    freedom: f64,
}

impl Noise {
    /// Takes in readings of one tree that were taken beforehand.
    pub(super) fn seed(&mut self, squares: f64, freedom: f64) {
        self.squares += squares;
        self.freedom += freedom;
    }

    /// The degrees of freedom.
    pub(super) fn freedom(&self) -> f64 {
        self.freedom
    }

    /// Whether outliers can be told.
    pub(super) fn is_enough(&self) -> bool {
        self.freedom >= ENOUGH
    }

    /// The standard deviation of one run; none while nothing is known.
    pub(super) fn deviation(&self, grain: &Grain) -> Option<f64> {
        if self.freedom <= 0.0 {
            return None;
        }
        let seen = (self.squares / self.freedom.max(1.0) / CLIP_VARIANCE).sqrt();
        Some(seen.max(grain.floor()))
    }

    /// One more squared residual; `deviation` is what was known before it.
    pub(super) fn add(&mut self, square: f64, deviation: Option<f64>) {
        let square = match deviation {
            Some(deviation) if self.is_enough() => {
                let most = CLIP * deviation;
                square.min(most * most)
            }
            _ => square,
        };
        let kept = if self.freedom >= MEMORY {
            (MEMORY - 1.0) / MEMORY
        } else {
            1.0
        };
        self.squares = self.squares * kept + square;
        self.freedom = self.freedom * kept + 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_of_nothing_and_the_grain_is_the_least() {
        let mut noise = Noise::default();
        let mut grain = Grain::default();
        assert_eq!(noise.deviation(&grain), None);
        grain.see(1.0);
        grain.see(11.0);
        noise.add(0.0, None);
        assert_eq!(noise.deviation(&grain), Some(3.0));
    }

    #[test]
    fn an_outlier_counts_in_full_only_while_nothing_can_be_told() {
        let grain = Grain::default();
        let mut noise = Noise::default();
        for _ in 0..3 {
            noise.add(1.0, noise.deviation(&grain));
        }
        let before = noise.deviation(&grain).unwrap();
        noise.add(1e12, noise.deviation(&grain));
        let after = noise.deviation(&grain).unwrap();
        assert!(after > before && after < 2.0 * before, "{after}");
    }

    #[test]
    fn what_is_old_fades() {
        let grain = Grain::default();
        let mut noise = Noise::default();
        for _ in 0..500 {
            noise.add(100.0, noise.deviation(&grain));
        }
        assert!(noise.freedom() < 41.0, "{}", noise.freedom());
        for _ in 0..300 {
            noise.add(1.0, noise.deviation(&grain));
        }
        assert!(noise.deviation(&grain).unwrap() < 1.1);
    }
}
