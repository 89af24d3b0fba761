//! One guard as it is specified: a metric and the rules it has to keep.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::tolerance::{Tolerance, ToleranceError};
use crate::metric::{MetricName, NameError, Real, near_names};

/// The rules' names as they are written.
const RULE_NAMES: [&str; 6] = [
    "max_rise",
    "max_drop",
    "max_rise_from_baseline",
    "max_drop_from_baseline",
    "floor",
    "ceiling",
];

/// What a guarded metric has to keep. At least one rule is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// How far it may rise over the incumbent's value.
    pub max_rise: Option<Tolerance>,
    /// How far it may drop under the incumbent's value.
    pub max_drop: Option<Tolerance>,
    /// How far it may rise over the baseline's value, whatever happened in between.
    pub max_rise_from_baseline: Option<Tolerance>,
    /// How far it may drop under the baseline's value, whatever happened in between.
    pub max_drop_from_baseline: Option<Tolerance>,
    /// The lowest value allowed.
    pub floor: Option<Real>,
    /// The highest value allowed.
    pub ceiling: Option<Real>,
}

/// A secondary metric and its rules. In a specification:
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
#[serde(try_from = "Written", into = "Written")]
pub struct Guard {
    metric: MetricName,
    rules: Rules,
}

/// Why a guard makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GuardError {
    /// No rule is set.
    #[error("the guard on `{0}` has no rule: give it one of {names}", names = RULE_NAMES.join(", "))]
    NoRule(MetricName),
    /// Nothing lies between floor and ceiling.
    #[error(
        "the guard on `{metric}` can never hold: its floor {floor} is over its ceiling {ceiling}"
    )]
    Impossible {
        /// The metric.
        metric: MetricName,
        /// Its floor.
        floor: Real,
        /// Its ceiling.
        ceiling: Real,
    },
    /// The text has no `NAME: rules`.
    #[error("`{0}` is not a guard: write `NAME: RULE=VALUE, …`, for example `size: max_rise=5%`")]
    Unreadable(String),
    /// A rule of an unknown name.
    #[error("`{rule}` is not a guard's rule{hint}; the rules are {names}", names = RULE_NAMES.join(", "))]
    UnknownRule {
        /// The name given.
        rule: String,
        /// A near name in words, or nothing.
        hint: String,
    },
    /// A rule given twice.
    #[error("the rule `{0}` is given twice")]
    RuleTwice(String),
    /// The metric's name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A tolerance cannot be read.
    #[error("`{rule}`: {source}")]
    Tolerance {
        /// The rule.
        rule: String,
        /// What is wrong with it.
        source: ToleranceError,
    },
    /// A floor or ceiling cannot be read.
    #[error("`{rule}`: `{value}` is not a finite decimal number")]
    Limit {
        /// The rule.
        rule: String,
        /// The text given.
        value: String,
    },
}

impl Guard {
    /// Puts a guard together, if it makes sense.
    pub fn new(metric: MetricName, rules: Rules) -> Result<Self, GuardError> {
        if rules == Rules::default() {
            return Err(GuardError::NoRule(metric));
        }
        if let (Some(floor), Some(ceiling)) = (rules.floor, rules.ceiling)
            && floor > ceiling
        {
            return Err(GuardError::Impossible {
                metric,
                floor,
                ceiling,
            });
        }
        Ok(Self { metric, rules })
    }

    /// The metric it watches.
    pub fn metric(&self) -> &MetricName {
        &self.metric
    }

    /// Its rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }
}

impl Rules {
    /// Sets the rule of that name from text.
    fn set(&mut self, rule: &str, value: &str) -> Result<(), GuardError> {
        match rule {
            "max_rise" => set_tolerance(&mut self.max_rise, rule, value),
            "max_drop" => set_tolerance(&mut self.max_drop, rule, value),
            "max_rise_from_baseline" => {
                set_tolerance(&mut self.max_rise_from_baseline, rule, value)
            }
            "max_drop_from_baseline" => {
                set_tolerance(&mut self.max_drop_from_baseline, rule, value)
            }
            "floor" => set_limit(&mut self.floor, rule, value),
            "ceiling" => set_limit(&mut self.ceiling, rule, value),
            _ => {
                let near = near_names(rule, RULE_NAMES);
                let hint = near
                    .first()
                    .map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"));
                Err(GuardError::UnknownRule {
                    rule: rule.to_owned(),
                    hint,
                })
            }
        }
    }

    /// The rules that are set, as they are written.
    fn written(&self) -> impl Iterator<Item = (&'static str, String)> {
        let texts = [
            self.max_rise.map(|tolerance| tolerance.to_string()),
            self.max_drop.map(|tolerance| tolerance.to_string()),
            self.max_rise_from_baseline
                .map(|tolerance| tolerance.to_string()),
            self.max_drop_from_baseline
                .map(|tolerance| tolerance.to_string()),
            self.floor.map(|limit| limit.to_string()),
            self.ceiling.map(|limit| limit.to_string()),
        ];
        RULE_NAMES
            .into_iter()
            .zip(texts)
            .filter_map(|(name, text)| Some((name, text?)))
    }
}

fn set_once<T>(slot: &mut Option<T>, rule: &str, value: T) -> Result<(), GuardError> {
    if slot.replace(value).is_some() {
        Err(GuardError::RuleTwice(rule.to_owned()))
    } else {
        Ok(())
    }
}

fn set_tolerance(slot: &mut Option<Tolerance>, rule: &str, value: &str) -> Result<(), GuardError> {
    let tolerance = value.parse().map_err(|source| GuardError::Tolerance {
        rule: rule.to_owned(),
        source,
    })?;
    set_once(slot, rule, tolerance)
}

fn set_limit(slot: &mut Option<Real>, rule: &str, value: &str) -> Result<(), GuardError> {
    let limit = value.parse().map_err(|_| GuardError::Limit {
        rule: rule.to_owned(),
        value: value.to_owned(),
    })?;
    set_once(slot, rule, limit)
}

impl fmt::Display for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.metric)?;
        for (index, (rule, value)) in self.rules.written().enumerate() {
            write!(
                formatter,
                "{} {rule}={value}",
                if index == 0 { "" } else { "," }
            )?;
        }
        Ok(())
    }
}

impl FromStr for Guard {
    type Err = GuardError;

    /// Reads `NAME: RULE=VALUE, …`. The last colon counts, because a name may hold some.
    fn from_str(text: &str) -> Result<Self, GuardError> {
        let unreadable = || GuardError::Unreadable(text.to_owned());
        let (metric, list) = text.rsplit_once(':').ok_or_else(unreadable)?;
        let mut rules = Rules::default();
        for part in list.split(',').filter(|part| !part.trim().is_empty()) {
            let (rule, value) = part.split_once('=').ok_or_else(unreadable)?;
            rules.set(rule.trim(), value.trim())?;
        }
        Self::new(MetricName::new(metric.trim())?, rules)
    }
}

/// A guard as it stands in a file, not yet checked as a whole.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    metric: MetricName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_rise: Option<Tolerance>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_drop: Option<Tolerance>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_rise_from_baseline: Option<Tolerance>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_drop_from_baseline: Option<Tolerance>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floor: Option<Real>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ceiling: Option<Real>,
}

impl TryFrom<Written> for Guard {
    type Error = GuardError;

    fn try_from(written: Written) -> Result<Self, GuardError> {
        let Written {
            metric,
            max_rise,
            max_drop,
            max_rise_from_baseline,
            max_drop_from_baseline,
            floor,
            ceiling,
        } = written;
        let rules = Rules {
            max_rise,
            max_drop,
            max_rise_from_baseline,
            max_drop_from_baseline,
            floor,
            ceiling,
        };
        Self::new(metric, rules)
    }
}

impl From<Guard> for Written {
    fn from(guard: Guard) -> Self {
        let Guard { metric, rules } = guard;
        let Rules {
            max_rise,
            max_drop,
            max_rise_from_baseline,
            max_drop_from_baseline,
            floor,
            ceiling,
        } = rules;
        Self {
            metric,
            max_rise,
            max_drop,
            max_rise_from_baseline,
            max_drop_from_baseline,
            floor,
            ceiling,
        }
    }
}
