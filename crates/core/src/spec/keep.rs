//! The settings of the keep rule as they are pinned, and the noise that somebody knows beforehand.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::guard::Tolerance;
use crate::metric::Real;

/// How candidates are judged under the keep rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepSpec {
    /// How many false keeps are tolerated in 60 trials of which none helps.
    pub doubt: Real,
    /// The least improvement that is worth keeping.
    pub worth: Tolerance,
    /// The most pairs of runs that one candidate gets.
    pub max_pairs: u64,
    /// What is known of the metric's noise beforehand.
    pub noise: NoiseSpec,
    /// Whether proportions are judged and not differences.
    pub ratio: bool,
    /// Whether the metric takes few values.
    pub coarse: bool,
    /// How many pairs the closing check takes.
    pub closing: u64,
}

/// Why the keep rule finds little with so many pairs a candidate, and what would find more; none
/// where it finds enough. (The numbers are simulated: `docs/decisions/0014-keep-rule.md`.)
pub(super) fn weakness(pairs: u64, doubt: Real, noise: &NoiseSpec) -> Option<String> {
    let readings = match noise {
        NoiseSpec::None => return None,
        NoiseSpec::Auto => 0,
        NoiseSpec::Readings(readings) => readings.len(),
    };
    if doubt.get() >= 0.4 && readings >= 8 && pairs > 1 {
        return None;
    }
    let finds = match pairs {
        1 | 2 => "hardly ever prove anything",
        3 | 4 => {
            "find about half of what improves by two noise units, and little of what is smaller"
        }
        _ => return None,
    };
    let noun = if pairs == 1 { "pair" } else { "pairs" };
    Some(format!(
        "{pairs} {noun} of runs a candidate {finds} at a doubt of {doubt}: 16 or more find small \
         improvements too, 8 noise readings and `doubt = \"quick\"` help, and `rule = \
         \"threshold\"` with `confirm` asks for less and keeps more that helps nothing"
    ))
}

/// What is known of a metric's noise before its first run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NoiseSpec {
    /// Nothing: the loop finds out.
    Auto,
    /// There is none.
    None,
    /// Readings of one tree.
    Readings(Vec<Real>),
}

impl fmt::Display for NoiseSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::None => f.write_str("none"),
            Self::Readings(readings) => {
                let texts: Vec<String> = readings.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(", "))
            }
        }
    }
}

impl FromStr for NoiseSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "auto" => return Ok(Self::Auto),
            "none" => return Ok(Self::None),
            _ => {}
        }
        let readings: Result<Vec<Real>, _> =
            text.split(',').map(|one| one.trim().parse()).collect();
        readings.map(Self::Readings).map_err(|error| {
            format!(
                "{error}: write `auto`, `none`, or readings of one tree such as `9.9, 10.2, 10`"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_reads_back_as_it_is_shown() {
        for text in ["auto", "none", "9.9, 10.2, 10"] {
            let noise: NoiseSpec = text.parse().unwrap();
            assert_eq!(noise.to_string(), text);
        }
        let refused = "9.9,loud".parse::<NoiseSpec>().unwrap_err();
        assert!(
            refused.contains("`loud`") && refused.contains("`auto`"),
            "{refused}"
        );
        assert!("".parse::<NoiseSpec>().is_err());
    }

    #[test]
    fn settings_that_find_little_say_what_would_find_more() {
        let with = |pairs, doubt: f64, readings: usize| {
            let noise = match readings {
                0 => NoiseSpec::Auto,
                count => NoiseSpec::Readings(vec![Real::ZERO; count]),
            };
            weakness(pairs, Real::new(doubt).unwrap(), &noise)
        };
        for (weakness, says) in [
            (with(1, 0.1, 0), "1 pair of runs a candidate hardly ever"),
            (with(2, 0.1, 8), "2 pairs of runs a candidate hardly ever"),
            (
                with(4, 0.1, 8),
                "4 pairs of runs a candidate find about half",
            ),
        ] {
            let words = weakness.unwrap();
            assert!(
                words.starts_with(says) && words.contains("16 or more"),
                "{words}"
            );
        }
        assert_eq!(with(4, 0.4, 8), None);
        assert_eq!(with(8, 0.1, 0), None);
        assert_eq!(weakness(1, Real::ZERO, &NoiseSpec::None), None);
    }
}
