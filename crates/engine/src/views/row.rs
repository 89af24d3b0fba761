//! The row a decided trial is listed by, as bytes: what a line shows first, in fields that are read
//! without being copied, then the rest of the decision as JSON.
//!
//! The fields stand on one line, separated by tabs, so that a person with `sqlite3` can read them;
//! the last one is the length of the reason, which stands below as it is.

use std::collections::BTreeMap;

use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{Outcome, Taken};
use loopwright_core::metric::{MetricName, Real};
use loopwright_core::time::Micros;
use serde::{Deserialize, Serialize};

/// A decided trial, as much of it as a line shows.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialLine<'a> {
    /// Its number.
    pub trial: u64,
    /// Its branch.
    pub branch: &'a str,
    /// The segment.
    pub segment: u64,
    /// Where its candidate comes from.
    pub origin: Origin,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, in words.
    pub why: &'a str,
    /// The value that stands for it.
    pub value: Option<Real>,
    /// The commit that keeps its candidate, in the record's own objects.
    pub candidate: Option<&'a str>,
    /// The commit on the loop's branch, where it was kept.
    pub commit: Option<&'a str>,
    /// Wall clock of its commands together; none where one of them isn't known.
    pub duration_us: Option<u64>,
    /// When it was decided.
    pub decided_at: Micros,
}

/// The rest of a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct More {
    /// The incumbent's value that it stood against.
    pub against: Option<Real>,
    /// All metrics, the guards' included.
    pub values: BTreeMap<MetricName, Real>,
    /// Every reading, in order.
    pub readings: Vec<Taken>,
    /// The candidate's tree.
    pub tree: Option<String>,
    /// The policy that decided.
    pub policy: String,
    /// The paths its candidate changes, as many as the record names.
    pub paths: Vec<String>,
    /// The end of what its last command printed, where it failed.
    pub output_tail: Option<String>,
}

impl<'a> TrialLine<'a> {
    /// The row of this line and the rest of its decision.
    pub(super) fn encode(&self, more: &More) -> Result<Vec<u8>, String> {
        let origin = match &self.origin {
            Origin::Baseline => "baseline".to_owned(),
            Origin::Proposed => "proposed".to_owned(),
            Origin::Retry { of } => of.to_string(),
        };
        let text = |found: Option<String>| found.unwrap_or_default();
        let fields = [
            self.trial.to_string(),
            self.segment.to_string(),
            origin,
            self.outcome.name().to_owned(),
            text(self.value.map(|value| value.to_string())),
            text(self.duration_us.map(|duration_us| duration_us.to_string())),
            self.decided_at.0.to_string(),
            self.branch.to_owned(),
            text(self.candidate.map(str::to_owned)),
            text(self.commit.map(str::to_owned)),
            self.why.len().to_string(),
        ];
        if fields.iter().any(|field| field.contains(['\t', '\n'])) {
            return Err("a branch or commit has a name that can't be listed".to_owned());
        }
        let more = serde_json::to_string(more).map_err(|error| error.to_string())?;
        Ok(format!("{}\n{}{more}", fields.join("\t"), self.why).into_bytes())
    }

    /// The line of a row, and what [`More::decode`] takes.
    pub(super) fn decode(row: &'a [u8]) -> Result<(Self, &'a str), String> {
        let row = std::str::from_utf8(row).map_err(|error| error.to_string())?;
        Self::parts(row).ok_or_else(|| "its row in the listing has another form".to_owned())
    }

    fn parts(row: &'a str) -> Option<(Self, &'a str)> {
        let mut left = row;
        let mut next = || {
            // Shorter than what a search for a pattern costs, eleven times a row.
            let end = left
                .bytes()
                .position(|byte| matches!(byte, b'\t' | b'\n'))?;
            let field = &left[..end];
            left = &left[end + 1..];
            Some(field)
        };
        let line = Self {
            trial: next()?.parse().ok()?,
            segment: next()?.parse().ok()?,
            origin: match next()? {
                "baseline" => Origin::Baseline,
                "proposed" => Origin::Proposed,
                of => Origin::Retry {
                    of: of.parse().ok()?,
                },
            },
            outcome: Outcome::from_name(next()?)?,
            value: match next()? {
                "" => None,
                value => Some(Real::new(value.parse().ok()?).ok()?),
            },
            duration_us: match next()? {
                "" => None,
                duration_us => Some(duration_us.parse().ok()?),
            },
            decided_at: Micros(next()?.parse().ok()?),
            branch: next()?,
            candidate: Some(next()?).filter(|name| !name.is_empty()),
            commit: Some(next()?).filter(|name| !name.is_empty()),
            why: "",
        };
        let why_len = next()?.parse().ok()?;
        let (why, more) = left.split_at_checked(why_len)?;
        Some((Self { why, ..line }, more))
    }
}

impl More {
    /// What stands in a row behind its line.
    pub(super) fn decode(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back_as_they_were_written() {
        let more = More {
            against: Real::new(0.1).ok(),
            values: BTreeMap::from([(MetricName::new("m").unwrap(), Real::ZERO)]),
            readings: Vec::new(),
            tree: Some("t".to_owned()),
            policy: "threshold/1".to_owned(),
            paths: vec!["a\tb".to_owned()],
            output_tail: Some("two\nlines".to_owned()),
        };
        let full = TrialLine {
            trial: 12,
            branch: "main",
            segment: 2,
            origin: Origin::Retry { of: 3 },
            outcome: Outcome::TimedOut,
            why: "two\nlines,\ta tab and ü {\"",
            value: Real::new(-1.0 / 3.0).ok(),
            candidate: Some("c1"),
            commit: Some("c2"),
            duration_us: Some(0),
            decided_at: Micros(-5),
        };
        let empty = TrialLine {
            origin: Origin::Baseline,
            why: "",
            value: None,
            candidate: None,
            commit: None,
            duration_us: None,
            ..full.clone()
        };
        for line in [full, empty] {
            let row = line.encode(&more).unwrap();
            let (read, rest) = TrialLine::decode(&row).unwrap();
            assert_eq!(read, line);
            assert_eq!(More::decode(rest).unwrap(), more);
            for end in 0..row.len() {
                let cut = TrialLine::decode(&row[..end]).and_then(|(_, rest)| More::decode(rest));
                assert!(cut.is_err(), "{end}");
            }
        }
    }
}
