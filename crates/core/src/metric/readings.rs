//! What was read for each metric, from the output and from a result file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::name::MetricName;
use super::real::Real;
use super::refusal::Refusal;
use super::scanner::Scanner;

/// What was read for one metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// A number.
    Value(Real),
    /// None, and why.
    Refused(Refusal),
}

impl Reading {
    /// The number, if there is one.
    pub fn value(&self) -> Option<Real> {
        match self {
            Self::Value(value) => Some(*value),
            Self::Refused(_) => None,
        }
    }

    /// The refusal, if there is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Value(_) => None,
            Self::Refused(refusal) => Some(refusal),
        }
    }
}

impl From<Refusal> for Reading {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Real> for Reading {
    fn from(value: Real) -> Self {
        Self::Value(value)
    }
}

/// One reading per metric asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Readings(BTreeMap<MetricName, Reading>);

impl Readings {
    /// The reading of a metric; none if it was not asked for.
    pub fn get(&self, name: &str) -> Option<&Reading> {
        self.0.get(name)
    }

    /// The number of a metric, if it was read.
    pub fn value(&self, name: &str) -> Option<Real> {
        self.get(name).and_then(Reading::value)
    }

    /// All readings, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&MetricName, &Reading)> {
        self.0.iter()
    }

    /// The numbers that were read, by name.
    pub fn values(&self) -> BTreeMap<MetricName, Real> {
        self.0
            .iter()
            .filter_map(|(name, reading)| Some((name.clone(), reading.value()?)))
            .collect()
    }

    /// Sets a reading.
    pub fn insert(&mut self, name: MetricName, reading: impl Into<Reading>) {
        self.0.insert(name, reading.into());
    }

    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(MetricName, Reading)> for Readings {
    fn from_iter<I: IntoIterator<Item = (MetricName, Reading)>>(readings: I) -> Self {
        Self(readings.into_iter().collect())
    }
}

impl IntoIterator for Readings {
    type Item = (MetricName, Reading);
    type IntoIter = std::collections::btree_map::IntoIter<MetricName, Reading>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Reads a result file: a JSON object, or lines as in the output. How large a file may be is for the
/// caller to say before reading it.
pub fn from_result_file(bytes: &[u8], names: &[MetricName], strict: bool) -> Readings {
    let mut scanner = Scanner::for_document(names, strict, bytes.len());
    scanner.feed(bytes);
    scanner.finish()
}

/// Puts the two sources together: where the result file says anything about a metric, even something
/// unusable, the output is not looked at.
pub fn combine(result_file: Option<Readings>, output: Readings) -> Readings {
    let Some(mut combined) = result_file else {
        return output;
    };
    for (name, from_output) in output {
        let silent = matches!(
            combined.get(name.as_str()),
            None | Some(Reading::Refused(Refusal::Missing { .. }))
        );
        if !silent {
            continue;
        }
        let hints_kept =
            is_missing_without_hints(&from_output) && combined.get(name.as_str()).is_some();
        if !hints_kept {
            combined.insert(name, from_output);
        }
    }
    combined
}

/// Whether a reading only says "missing": then the file's own hints are worth more.
fn is_missing_without_hints(reading: &Reading) -> bool {
    matches!(reading, Reading::Refused(Refusal::Missing { near, within: None }) if near.is_empty())
}
