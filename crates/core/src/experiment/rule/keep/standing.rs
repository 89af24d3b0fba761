//! What is known of one branch in one segment: where its incumbent stands, how noisy and how coarse
//! the metric is. It outlives trials and invocations; a new harness forgets it, a fork takes a copy
//! of what says how noisy the metric is.

use serde::{Deserialize, Serialize};

use super::grain::Grain;
use super::noise::Noise;
use super::reference::{Reference, Spread, Standpoint};
use super::scale::Scale;
use super::settings::{Keep, KnownNoise};

/// What is known of an incumbent and its metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// What all of it is measured in.
    scale: Scale,
    pub(super) reference: Reference,
    pub(super) noise: Noise,
    grain: Grain,
    /// Whether a repeat ever differed.
    is_noisy: bool,
    /// How many repeats were identical before that.
    identical: u32,
    /// How often the incumbent's own runs failed.
    failures: u32,
}

impl Standing {
    /// Of a line of which nothing is known yet.
    pub fn new(rule: &Keep, scale: Scale) -> Self {
        let mut standing = Self {
            scale,
            reference: Reference::default(),
            noise: Noise::default(),
            grain: Grain::default(),
            is_noisy: false,
            identical: 0,
            failures: 0,
        };
        if let KnownNoise::Readings {
            count,
            squares,
            differ,
        } = rule.noise
        {
            let more = count.saturating_sub(1);
            standing.noise.seed(squares.get(), f64::from(more));
            standing.is_noisy = differ;
            standing.identical = if differ { 0 } else { more };
        }
        standing
    }

    /// Of a line that begins at the same tree under the same harness: the metric is as noisy there,
    /// and the incumbent is read anew.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            reference: Reference::default(),
            ..*self
        }
    }

    /// The scale it is measured in.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Whether repeats of the metric differ.
    pub fn is_noisy(&self) -> bool {
        self.is_noisy
    }

    /// The standard deviation of one run on the scale of judging; none while nothing is known.
    pub fn deviation(&self) -> Option<f64> {
        self.noise.deviation(&self.grain)
    }

    /// The degrees of freedom behind it.
    pub fn freedom(&self) -> f64 {
        self.noise.freedom()
    }

    /// Where the incumbent's readings lie on the scale of judging, and how many stand behind that;
    /// none before the first.
    pub fn stands_at(&self) -> Option<(f64, f64)> {
        let known = self.reference.is_known();
        known.then(|| (self.reference.value(), self.reference.weight()))
    }

    /// A reading of the incumbent outside of any trial: the baseline, or one more of it.
    pub fn baseline(&mut self, reading: f64) {
        self.incumbent(reading);
    }

    /// Whether the incumbent is to be run before the next candidate.
    pub(super) fn wants_incumbent(&self) -> bool {
        !self.reference.is_known() || self.is_noisy && self.reference.is_stale()
    }

    /// The noise, where it can be reckoned with.
    pub(super) fn known_deviation(&self) -> Option<f64> {
        let deviation = self.deviation().filter(|deviation| *deviation > 0.0);
        deviation.filter(|_| self.is_noisy)
    }

    /// One more reading of the incumbent; where it stood before.
    pub(super) fn incumbent(&mut self, reading: f64) -> f64 {
        self.grain.see(reading);
        let stood = self.reference.value();
        let spread = Spread {
            deviation: self.deviation(),
            is_enough: self.noise.is_enough(),
        };
        self.reference.read(reading, spread);
        stood
    }

    /// One more reading of a candidate.
    pub(super) fn candidate(&mut self, reading: f64) {
        self.grain.see(reading);
        self.reference.passed();
    }

    /// A repeat of a metric that was never seen to vary.
    pub(super) fn repeated(&mut self, same: bool) {
        if same {
            self.identical = self.identical.saturating_add(1);
        } else {
            self.is_noisy = true;
        }
    }

    /// Whether the metric was seen to repeat exactly so often.
    pub(super) fn repeats(&self, times: u32) -> bool {
        !self.is_noisy && self.identical >= times
    }

    /// A run of the incumbent failed.
    pub(super) fn incumbent_failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Whether runs of the incumbent fail too.
    pub(super) fn fails_sometimes(&self) -> bool {
        self.failures > 0
    }

    /// A candidate took the incumbent's place.
    pub(super) fn replaced(&mut self, at: Standpoint) {
        self.reference.replaced(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Real;
    use crate::spec::Goal;

    const SCALE: Scale = Scale {
        goal: Goal::Minimize,
        ratio: false,
    };

    fn seeded(readings: &[f64]) -> Standing {
        let readings: Vec<Real> = readings
            .iter()
            .map(|one| Real::new(*one).unwrap())
            .collect();
        let rule = Keep {
            noise: KnownNoise::of(&readings, SCALE).unwrap(),
            ..Keep::default()
        };
        Standing::new(&rule, SCALE)
    }

    #[test]
    fn readings_taken_beforehand_say_how_noisy_it_is() {
        let standing = seeded(&[9.0, 10.0, 11.0]);
        assert!(standing.is_noisy());
        assert_eq!(standing.freedom(), 2.0);
        let deviation = standing.deviation().unwrap();
        assert!((deviation - 1.0 / 0.975_580_f64.sqrt()).abs() < 1e-6);
        assert_eq!(
            standing.stands_at(),
            None,
            "they say nothing of the incumbent"
        );
    }

    #[test]
    fn identical_readings_taken_beforehand_count_as_repeats() {
        let standing = seeded(&[7.0, 7.0, 7.0]);
        assert!(standing.repeats(2) && !standing.repeats(3) && !standing.is_noisy());
    }

    #[test]
    fn a_fork_knows_the_noise_and_not_the_incumbent() {
        let mut standing = seeded(&[9.0, 10.0, 11.0]);
        standing.baseline(50.0);
        let fork = standing.fork();
        assert_eq!(fork.stands_at(), None);
        assert_eq!(fork.deviation(), standing.deviation());
        assert!(fork.wants_incumbent());
    }
}
