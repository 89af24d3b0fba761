//! What was read for each metric, from the output and from a result file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::name::MetricName;
use super::real::Real;
use super::refusal::Refusal;
use super::scanner::Scanner;
use super::value::is_decimal;

/// A longer run of digits is no number that somebody wrote down.
const LONE_NUMBER_BYTES: usize = 64;

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
    if let Some(number) = lone_number(bytes) {
        let nameless = |name: &MetricName| {
            let line = number.to_owned();
            (name.clone(), Refusal::Nameless { line }.into())
        };
        return names.iter().map(nameless).collect();
    }
    let mut scanner = Scanner::for_document(names, strict, bytes.len());
    scanner.feed(bytes);
    scanner.finish()
}

/// The number that is all there is in a file: of what, it doesn't say.
fn lone_number(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    (text.len() < LONE_NUMBER_BYTES && is_decimal(text)).then_some(text)
}

/// A result file of which nothing can be known, and why.
pub fn unreadable_file(names: &[MetricName], why: &str) -> Readings {
    let refusal = || Refusal::Malformed {
        line: why.to_owned(),
    };
    names
        .iter()
        .map(|name| (name.clone(), refusal().into()))
        .collect()
}

/// Which source counts where the result file and the output say different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// The file, and it alone: it was named as the place of the number.
    File,
    /// The file, unless the output says something else.
    StrictFile,
    /// Neither: two different numbers contradict each other.
    Agreement,
    /// Neither, also where the output's is no usable number.
    Strict,
}

impl Precedence {
    fn is_named_file(self) -> bool {
        matches!(self, Self::File | Self::StrictFile)
    }

    fn is_strict(self) -> bool {
        matches!(self, Self::Strict | Self::StrictFile)
    }
}

/// Puts the two sources together: where only one says anything about a metric, even something
/// unusable, that is it, unless it is the output where a file was named; where both do and differ,
/// `precedence` says what comes of it.
pub fn combine(
    result_file: Option<Readings>,
    output: Readings,
    precedence: Precedence,
) -> Readings {
    let mut combined = match result_file {
        Some(readings) => readings,
        None if precedence.is_named_file() => Readings::default(),
        None => return output,
    };
    for (name, from_output) in output {
        let from_file = combined.get(name.as_str());
        let silent = matches!(
            from_file,
            None | Some(Reading::Refused(Refusal::Missing { .. }))
        );
        if silent && precedence.is_named_file() {
            let refusal = not_in_file(&name, from_file, &from_output);
            combined.insert(name, refusal);
            continue;
        }
        if !silent {
            if let Some(contradiction) =
                from_file.and_then(|file| contradiction(&name, file, &from_output, precedence))
            {
                combined.insert(name, contradiction);
            }
            continue;
        }
        let hints_kept = is_missing_without_hints(&from_output) && from_file.is_some();
        if !hints_kept {
            combined.insert(name, from_output);
        }
    }
    combined
}

/// The refusal where the file that was named says nothing.
fn not_in_file(name: &MetricName, file: Option<&Reading>, output: &Reading) -> Refusal {
    let near = match file {
        Some(Reading::Refused(Refusal::Missing { near, .. })) => near.clone(),
        _ => Vec::new(),
    };
    let output = output.value().map(|value| format!("{name}={value}"));
    Refusal::NotInResultFile { near, output }
}

/// The refusal where what the file says can't stand beside what the output says.
fn contradiction(
    name: &MetricName,
    file: &Reading,
    output: &Reading,
    precedence: Precedence,
) -> Option<Refusal> {
    let said = |reading: &Reading, place: &str| match reading {
        Reading::Value(value) => format!("{name}={value} in the {place}"),
        Reading::Refused(refusal) => format!("{refusal} in the {place}"),
    };
    let differ = match (file, output) {
        // What can't be used stands for itself: no number came of it.
        (Reading::Refused(_), _) | (_, Reading::Refused(Refusal::Missing { .. })) => false,
        (_, Reading::Refused(_)) => precedence.is_strict(),
        (Reading::Value(file), Reading::Value(output)) => {
            precedence != Precedence::File && file != output
        }
    };
    differ.then(|| Refusal::Ambiguous {
        first: said(output, "output"),
        second: said(file, "result file"),
    })
}

/// Whether a reading only says "missing": then the file's own hints are worth more.
fn is_missing_without_hints(reading: &Reading) -> bool {
    matches!(reading, Reading::Refused(Refusal::Missing { near, within: None }) if near.is_empty())
}
