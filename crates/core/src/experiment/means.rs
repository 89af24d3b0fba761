//! Means of all metrics over readings of one arm, kept as sums: a duel may take many readings, and
//! the state stays small.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metric::{MetricName, Real};

/// Sums over readings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Means {
    /// How many readings there were.
    readings: u32,
    sums: BTreeMap<MetricName, Sum>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sum {
    /// None where it left the range of numbers.
    sum: Option<Real>,
    count: u32,
}

impl Means {
    /// Whether there was no reading.
    pub fn is_empty(&self) -> bool {
        self.readings == 0
    }

    /// One more reading.
    pub fn add(&mut self, values: &BTreeMap<MetricName, Real>) {
        self.readings = self.readings.saturating_add(1);
        for (name, value) in values {
            let nothing = Sum {
                sum: Some(Real::ZERO),
                count: 0,
            };
            let sum = self.sums.entry(name.clone()).or_insert(nothing);
            sum.sum = sum
                .sum
                .and_then(|before| Real::new(before.get() + value.get()).ok());
            sum.count = sum.count.saturating_add(1);
        }
    }

    /// Forgets all readings.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The mean of one metric; none where it was never read.
    pub fn of(&self, metric: &MetricName) -> Option<Real> {
        self.sums.get(metric).and_then(|sum| sum.mean())
    }

    /// The mean of each.
    pub fn all(&self) -> BTreeMap<MetricName, Real> {
        self.sums
            .iter()
            .filter_map(|(name, sum)| Some((name.clone(), sum.mean()?)))
            .collect()
    }
}

impl Sum {
    fn mean(self) -> Option<Real> {
        Real::new(self.sum?.get() / f64::from(self.count)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[(&str, f64)]) -> BTreeMap<MetricName, Real> {
        let value = |(name, value): &(&str, f64)| {
            (MetricName::new(*name).unwrap(), Real::new(*value).unwrap())
        };
        of.iter().map(value).collect()
    }

    #[test]
    fn each_metric_has_the_mean_of_the_readings_that_gave_it() {
        let mut means = Means::default();
        assert!(means.is_empty());
        means.add(&values(&[("m", 1.0), ("size", 5.0)]));
        means.add(&values(&[("m", 2.0)]));
        assert_eq!(means.all(), values(&[("m", 1.5), ("size", 5.0)]));
        assert_eq!(
            means.of(&MetricName::new("m").unwrap()),
            Real::new(1.5).ok()
        );
        means.clear();
        assert_eq!((means.is_empty(), means.all().len()), (true, 0));
    }

    #[test]
    fn what_leaves_the_range_of_numbers_has_no_mean() {
        let mut means = Means::default();
        means.add(&values(&[("m", f64::MAX), ("size", 1.0)]));
        means.add(&values(&[("m", f64::MAX), ("size", 1.0)]));
        assert_eq!(means.all(), values(&[("size", 1.0)]));
    }
}
