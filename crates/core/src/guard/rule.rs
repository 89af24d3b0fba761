//! One guard with which nothing is wrong: a metric's name and the limits it has to keep.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::limits::GuardSpec;
use crate::metric::MetricName;

/// A secondary metric and its limits, checked. In a specification:
///
/// ```toml
/// metric = "size"
/// max_rise = "5%"                # to the incumbent
/// max_rise_from_baseline = "20%"
/// ceiling = 4096
/// ```
///
/// or, on a command line, `size: max_rise=5%, ceiling=4096`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "GuardSpec", into = "GuardSpec")]
pub struct Guard {
    metric: MetricName,
    limits: GuardSpec,
}

/// Why a guard makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .0.join("; "))]
pub struct GuardError(pub Vec<String>);

impl Guard {
    /// The metric it watches.
    pub fn metric(&self) -> &MetricName {
        &self.metric
    }

    /// Its limits.
    pub fn limits(&self) -> &GuardSpec {
        &self.limits
    }
}

impl TryFrom<GuardSpec> for Guard {
    type Error = GuardError;

    fn try_from(limits: GuardSpec) -> Result<Self, GuardError> {
        let metric = MetricName::new(limits.metric.as_str());
        let mut faults = limits.faults();
        match metric {
            Ok(metric) if faults.is_empty() => Ok(Self { metric, limits }),
            metric => {
                faults.extend(metric.err().map(|error| error.to_string()));
                Err(GuardError(faults))
            }
        }
    }
}

impl From<Guard> for GuardSpec {
    fn from(guard: Guard) -> Self {
        guard.limits
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limits.fmt(formatter)
    }
}

impl FromStr for Guard {
    type Err = GuardError;

    fn from_str(text: &str) -> Result<Self, GuardError> {
        let limits: GuardSpec = text.parse().map_err(|fault| GuardError(vec![fault]))?;
        limits.try_into()
    }
}
