//! Guards as they are written: a secondary metric and how far it may go.
//!
//! Read piece by piece, so that all that is wrong with one can be said at once; a [`Guard`] is one
//! with which nothing is.
//!
//! [`Guard`]: super::Guard

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::tolerance::Tolerance;
use crate::metric::Real;
use crate::near::{did_you_mean, near_misses};

/// The limits a guard may have, by the names they are written under.
pub const GUARD_LIMITS: [&str; 6] = [
    "max_rise",
    "max_drop",
    "max_rise_from_baseline",
    "max_drop_from_baseline",
    "floor",
    "ceiling",
];

/// A secondary metric that must hold. At least one limit is set, and every one that is must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardSpec {
    /// The metric's name, as the measuring command prints it.
    pub metric: String,
    /// How far above the incumbent it may be.
    pub max_rise: Option<Tolerance>,
    /// How far below the incumbent it may be.
    pub max_drop: Option<Tolerance>,
    /// How far above the baseline it may be, however many keeps lie between.
    pub max_rise_from_baseline: Option<Tolerance>,
    /// How far below the baseline it may be, however many keeps lie between.
    pub max_drop_from_baseline: Option<Tolerance>,
    /// The least it may be.
    pub floor: Option<Real>,
    /// The most it may be.
    pub ceiling: Option<Real>,
}

impl GuardSpec {
    /// A guard of that metric without any limit yet.
    pub fn new(metric: impl Into<String>) -> Self {
        Self {
            metric: metric.into(),
            max_rise: None,
            max_drop: None,
            max_rise_from_baseline: None,
            max_drop_from_baseline: None,
            floor: None,
            ceiling: None,
        }
    }

    /// Sets the limit of that name from its text, once.
    pub fn set(&mut self, limit: &str, text: &str) -> Result<(), String> {
        match limit {
            "max_rise" => set_once(&mut self.max_rise, limit, text),
            "max_drop" => set_once(&mut self.max_drop, limit, text),
            "max_rise_from_baseline" => set_once(&mut self.max_rise_from_baseline, limit, text),
            "max_drop_from_baseline" => set_once(&mut self.max_drop_from_baseline, limit, text),
            "floor" => set_once(&mut self.floor, limit, text),
            "ceiling" => set_once(&mut self.ceiling, limit, text),
            other => {
                let help = did_you_mean(&near_misses(other, GUARD_LIMITS))
                    .unwrap_or_else(|| format!("a guard's limits are {}", GUARD_LIMITS.join(", ")));
                Err(format!("unknown limit `{other}` of a guard; {help}"))
            }
        }
    }

    /// The limits that are set, by name.
    pub fn limits(&self) -> Vec<(&'static str, String)> {
        let texts = [
            self.max_rise.map(|limit| limit.to_string()),
            self.max_drop.map(|limit| limit.to_string()),
            self.max_rise_from_baseline.map(|limit| limit.to_string()),
            self.max_drop_from_baseline.map(|limit| limit.to_string()),
            self.floor.map(|limit| limit.to_string()),
            self.ceiling.map(|limit| limit.to_string()),
        ];
        GUARD_LIMITS
            .into_iter()
            .zip(texts)
            .filter_map(|(name, text)| Some((name, text?)))
            .collect()
    }

    /// What is wrong with the limits taken together.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.limits().is_empty() {
            faults.push(format!(
                "the guard of `{}` has no limit: give one of {}",
                self.metric,
                GUARD_LIMITS.join(", ")
            ));
        }
        if let (Some(floor), Some(ceiling)) = (self.floor, self.ceiling)
            && floor > ceiling
        {
            faults.push(format!(
                "the guard of `{}` has its floor {floor} above its ceiling {ceiling}",
                self.metric
            ));
        }
        faults
    }
}

fn set_once<T: FromStr<Err: fmt::Display>>(
    slot: &mut Option<T>,
    limit: &str,
    text: &str,
) -> Result<(), String> {
    let value = text
        .trim()
        .parse::<T>()
        .map_err(|error| error.to_string())?;
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("the limit `{limit}` is given twice")),
    }
}

/// The form of `--guard`: `size: max_rise=5%, ceiling=100`.
impl fmt::Display for GuardSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits: Vec<String> = self
            .limits()
            .iter()
            .map(|(name, text)| format!("{name}={text}"))
            .collect();
        write!(f, "{}: {}", self.metric, limits.join(", "))
    }
}

/// Reads the form of `--guard`; spaces may stand for the colon and the commas where the metric's
/// name has none itself.
impl FromStr for GuardSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write a guard as `METRIC: limit=value, …`, `size: max_rise=5%, ceiling=100`";
        let text = text.trim();
        let (metric, limits) = match text.rsplit_once(": ").or_else(|| text.split_once(':')) {
            Some(parts) => parts,
            None => text.split_once(char::is_whitespace).unwrap_or((text, "")),
        };
        let metric = metric.trim_end_matches(':').trim();
        if metric.is_empty() || metric.contains('=') && limits.is_empty() {
            return Err(form.to_owned());
        }
        let mut guard = Self::new(metric);
        let words = limits.split(|c: char| c == ',' || c.is_whitespace());
        for word in words.filter(|word| !word.is_empty()) {
            let (limit, value) = word
                .split_once('=')
                .ok_or_else(|| format!("`{word}` has no `=`: {form}"))?;
            guard.set(limit, value)?;
        }
        Ok(guard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_form_reads_back() {
        let text = "size: max_rise=5%, max_drop_from_baseline=0.5, floor=0, ceiling=100";
        let guard: GuardSpec = text.parse().unwrap();
        assert_eq!(guard.to_string(), text);
        assert!(guard.faults().is_empty());
        for loose in [
            "size floor=0 ceiling=1",
            "size:floor=0,ceiling=1",
            "size:  floor=0 ceiling=1",
        ] {
            assert_eq!(
                loose.parse::<GuardSpec>().unwrap().to_string(),
                "size: floor=0, ceiling=1"
            );
        }
        for metric in ["val loss", "a:b", "a: b", "acc%"] {
            let text = format!("{metric}: floor=0");
            let guard: GuardSpec = text.parse().unwrap();
            assert_eq!((guard.metric.as_str(), guard.to_string()), (metric, text));
        }
        let json = serde_json::to_string(&guard).unwrap();
        assert_eq!(serde_json::from_str::<GuardSpec>(&json).unwrap(), guard);
    }

    #[test]
    fn slips_are_named() {
        let slip = "size max_raise=5%".parse::<GuardSpec>().unwrap_err();
        assert!(slip.contains("did you mean `max_rise`"), "{slip}");
        assert!("size max_rise".parse::<GuardSpec>().is_err());
        assert!("max_rise=5%".parse::<GuardSpec>().is_err());
        assert!("".parse::<GuardSpec>().is_err());
        assert!("size max_rise=lots".parse::<GuardSpec>().is_err());
        assert_eq!("size".parse::<GuardSpec>().unwrap().faults().len(), 1);
        let crossed: GuardSpec = "size floor=2 ceiling=1".parse().unwrap();
        assert_eq!(crossed.faults().len(), 1);
        let negative = "size max_drop=-3%".parse::<GuardSpec>().unwrap_err();
        assert!(
            negative.starts_with("the tolerance `-3%` is negative"),
            "{negative}"
        );
        let twice = "size floor=2 floor=3".parse::<GuardSpec>().unwrap_err();
        assert_eq!(twice, "the limit `floor` is given twice");
    }
}
