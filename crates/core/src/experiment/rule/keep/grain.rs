//! The grain: the smallest step that a metric has been seen to make. Of a rounded or counted metric
//! no less than a part of it can be the noise, however often the same number is read.

use serde::{Deserialize, Serialize};

use super::exact;

/// What is known of a metric's grain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grain {
    /// The smallest difference between a reading and the one before it, if any two differed.
    #[serde(with = "exact")]
    smallest: Option<f64>,
    /// The last reading.
    #[serde(with = "exact")]
    previous: Option<f64>,
}

impl Grain {
    /// One more reading.
    pub(super) fn see(&mut self, reading: f64) {
        let previous = self.previous.replace(reading);
        if let Some(step) = previous
            .map(|previous| (reading - previous).abs())
            .filter(|step| *step > 0.0)
        {
            self.smallest = Some(self.smallest.map_or(step, |smallest| smallest.min(step)));
        }
    }

    /// The least noise that the metric can have.
    pub(super) fn floor(&self) -> f64 {
        self.smallest.map_or(0.0, |smallest| 0.3 * smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_step_between_neighbours_counts() {
        let mut grain = Grain::default();
        for reading in [5.0, 5.0] {
            grain.see(reading);
            assert_eq!(grain.floor(), 0.0);
        }
        for (reading, floor) in [(9.0, 1.2), (8.0, 0.3), (3.0, 0.3), (3.0, 0.3)] {
            grain.see(reading);
            assert_eq!(grain.floor(), floor);
        }
    }
}
