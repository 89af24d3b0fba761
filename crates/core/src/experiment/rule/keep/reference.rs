//! The remembered incumbent: about where its readings lie. It decides what is worth a duel, what is
//! dropped early and when the incumbent is looked at again, and never what is kept.

use serde::{Deserialize, Serialize};

use super::exact;

/// Over how many readings it averages.
const WINDOW: u32 = 12;
/// After how many runs of candidates the incumbent is looked at again.
const EVERY: u32 = 12;

/// Where the incumbent's readings lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reference {
    #[serde(with = "exact")]
    value: f64,
    /// How many readings stand behind it; 0 before the first.
    readings: u32,
    #[serde(with = "exact")]
    last: [f64; 3],
    /// Runs of candidates since the incumbent's last one.
    since: u32,
    /// Judged trials since the last keep.
    era: u32,
}

/// What is known of the noise when the incumbent is read.
#[derive(Clone, Copy)]
pub(super) struct Spread {
    /// The standard deviation of one run, if anything is known of it.
    pub(super) deviation: Option<f64>,
    /// Whether outliers can be told.
    pub(super) is_enough: bool,
}

impl Reference {
    /// Where it stands.
    pub(super) fn value(&self) -> f64 {
        self.value
    }

    /// Whether it stands anywhere yet.
    pub(super) fn is_known(&self) -> bool {
        self.readings > 0
    }

    /// How many readings of its own worth it is.
    pub(super) fn weight(&self) -> f64 {
        f64::from(self.readings.min(WINDOW))
    }

    /// Whether a noisy incumbent is to be read once more before the next candidate.
    pub(super) fn is_stale(&self) -> bool {
        let wanted = (1.0 + 0.5 * f64::from(self.era).sqrt()).min(f64::from(WINDOW));
        f64::from(self.readings) < wanted || self.since >= EVERY
    }

    /// One more reading of the incumbent.
    pub(super) fn read(&mut self, reading: f64, spread: Spread) {
        let deviation = spread.deviation.filter(|_| spread.is_enough);
        let mut step = reading - self.value;
        if let Some(deviation) = deviation.filter(|_| self.readings >= 3) {
            step = step.min(3.0 * deviation).max(-3.0 * deviation);
        }
        self.last = [self.last[1], self.last[2], self.value + step];
        self.value += step / f64::from((self.readings + 1).min(WINDOW));
        self.readings = self.readings.saturating_add(1);
        self.since = 0;
        let recent = (self.last[0] + self.last[1] + self.last[2]) / 3.0;
        if let Some(deviation) = deviation.filter(|_| self.readings >= 5) {
            let most = 2.0 * deviation * (1.0 / 3.0 + 1.0 / self.weight()).sqrt();
            if (recent - self.value).abs() > most {
                // The machine moved: the old level is forgotten.
                self.value = recent;
                self.readings = 3;
            }
        }
    }

    /// A candidate was run.
    pub(super) fn passed(&mut self) {
        self.since = self.since.saturating_add(1);
    }

    /// A judged trial was not kept.
    pub(super) fn outlived(&mut self) {
        self.era = self.era.saturating_add(1);
    }

    /// Another incumbent stands now.
    pub(super) fn replaced(&mut self, at: Standpoint) {
        self.value = at.value;
        self.readings = at.readings;
        self.last = [at.value; 3];
        self.era = 0;
    }
}

/// Where a kept candidate is believed to stand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Standpoint {
    /// Where.
    #[serde(with = "exact")]
    pub(super) value: f64,
    /// How many readings that is worth.
    pub(super) readings: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Spread = Spread {
        deviation: Some(1.0),
        is_enough: true,
    };

    #[test]
    fn it_is_the_mean_of_the_first_readings() {
        let mut reference = Reference::default();
        assert!(!reference.is_known());
        for reading in [4.0, 6.0, 8.0] {
            let unknown = Spread {
                deviation: None,
                is_enough: false,
            };
            reference.read(reading, unknown);
        }
        assert_eq!((reference.value(), reference.weight()), (6.0, 3.0));
    }

    #[test]
    fn one_outlier_moves_it_little_and_a_step_is_followed() {
        let mut reference = Reference::default();
        for _ in 0..20 {
            reference.read(10.0, KNOWN);
        }
        reference.read(1000.0, KNOWN);
        assert!((reference.value() - 10.25).abs() < 1e-9);
        for _ in 0..3 {
            reference.read(13.0, KNOWN);
        }
        // A mean over twelve readings would stand at 11 by now.
        assert!(reference.value() > 12.0, "{}", reference.value());
    }

    #[test]
    fn it_is_refreshed_the_more_often_the_longer_nothing_was_kept() {
        let mut reference = Reference::default();
        reference.replaced(Standpoint {
            value: 5.0,
            readings: 2,
        });
        assert!(!reference.is_stale());
        for _ in 0..3 {
            reference.outlived();
        }
        assert!(!reference.is_stale());
        for _ in 0..2 {
            reference.outlived();
        }
        assert!(reference.is_stale(), "two readings after five trials");
        for _ in 0..30 {
            reference.read(5.0, KNOWN);
        }
        assert!(!reference.is_stale());
        for _ in 0..EVERY {
            reference.passed();
        }
        assert!(reference.is_stale(), "twelve runs without a look");
    }
}
