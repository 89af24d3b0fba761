//! Holding readings against guards.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::rule::Guard;
use super::tolerance::Tolerance;
use crate::metric::{MetricName, Reading, Readings, Real, Refusal, short_number};

/// Which way a number moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Upwards.
    Rise,
    /// Downwards.
    Drop,
}

/// What it moved from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// The best accepted candidate.
    Incumbent,
    /// The first one.
    Baseline,
}

/// Which rule was breached, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case", deny_unknown_fields)]
pub enum BreachKind {
    /// It moved too far from a reference.
    Moved {
        /// The way it moved.
        direction: Direction,
        /// What it moved from.
        reference: Reference,
        /// The reference's value.
        from: Real,
        /// How far it might have moved.
        allowed: Tolerance,
    },
    /// It is under the floor.
    UnderFloor {
        /// The floor.
        floor: Real,
    },
    /// It is over the ceiling.
    OverCeiling {
        /// The ceiling.
        ceiling: Real,
    },
}

/// One breached rule. Displayed as a sentence with its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// The guarded metric.
    pub metric: MetricName,
    /// The candidate's value.
    pub value: Real,
    /// The rule.
    pub kind: BreachKind,
}

/// A guarded metric without a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingValue {
    /// The guarded metric.
    pub metric: MetricName,
    /// Why it has none.
    pub refusal: Refusal,
}

/// The verdict in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardOutcome {
    /// Every guard holds.
    Held,
    /// A rule is breached.
    Breached,
    /// A guarded metric has no value. Comes before a breach: what was measured is not whole.
    Incomplete,
}

/// What the guards say about a candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardVerdict {
    /// Every breached rule, in the order of the guards.
    pub breaches: Vec<Breach>,
    /// Every guarded metric without a value.
    pub missing: Vec<MissingValue>,
}

impl GuardVerdict {
    /// Whether every guard holds.
    pub fn holds(&self) -> bool {
        self.outcome() == GuardOutcome::Held
    }

    /// The verdict in one word.
    pub fn outcome(&self) -> GuardOutcome {
        if !self.missing.is_empty() {
            GuardOutcome::Incomplete
        } else if self.breaches.is_empty() {
            GuardOutcome::Held
        } else {
            GuardOutcome::Breached
        }
    }
}

/// Holds a candidate's readings against the guards. A reference without a value (no incumbent yet)
/// judges nothing: only floor and ceiling apply then.
pub fn judge(
    guards: &[Guard],
    readings: &Readings,
    incumbent: &BTreeMap<MetricName, Real>,
    baseline: &BTreeMap<MetricName, Real>,
) -> GuardVerdict {
    let mut verdict = GuardVerdict::default();
    for guard in guards {
        let metric = guard.metric();
        match readings.get(metric.as_str()) {
            Some(Reading::Value(value)) => {
                let kinds = breached(
                    guard,
                    *value,
                    incumbent.get(metric).copied(),
                    baseline.get(metric).copied(),
                );
                verdict.breaches.extend(kinds.map(|kind| Breach {
                    metric: metric.clone(),
                    value: *value,
                    kind,
                }));
            }
            other => {
                let refusal = other
                    .and_then(Reading::refusal)
                    .cloned()
                    .unwrap_or_else(Refusal::missing);
                // Two guards on one metric miss it once.
                if verdict
                    .missing
                    .iter()
                    .all(|missing| &missing.metric != metric)
                {
                    verdict.missing.push(MissingValue {
                        metric: metric.clone(),
                        refusal,
                    });
                }
            }
        }
    }
    verdict
}

fn breached(
    guard: &Guard,
    value: Real,
    incumbent: Option<Real>,
    baseline: Option<Real>,
) -> impl Iterator<Item = BreachKind> {
    let rules = guard.limits();
    let moves = [
        (
            Direction::Rise,
            Reference::Incumbent,
            incumbent,
            rules.max_rise,
        ),
        (
            Direction::Drop,
            Reference::Incumbent,
            incumbent,
            rules.max_drop,
        ),
        (
            Direction::Rise,
            Reference::Baseline,
            baseline,
            rules.max_rise_from_baseline,
        ),
        (
            Direction::Drop,
            Reference::Baseline,
            baseline,
            rules.max_drop_from_baseline,
        ),
    ];
    let moved = moves
        .into_iter()
        .filter_map(move |(direction, reference, from, allowed)| {
            let (from, allowed) = (from?, allowed?);
            let breach = BreachKind::Moved {
                direction,
                reference,
                from,
                allowed,
            };
            (!allowed.allows(from, distance(direction, from, value))).then_some(breach)
        });
    let floor = rules
        .floor
        .filter(|floor| value < *floor)
        .map(|floor| BreachKind::UnderFloor { floor });
    let ceiling = rules
        .ceiling
        .filter(|ceiling| value > *ceiling)
        .map(|ceiling| BreachKind::OverCeiling { ceiling });
    moved.chain(floor).chain(ceiling)
}

/// How far the value is from the reference in that direction; negative on the other side.
fn distance(direction: Direction, from: Real, value: Real) -> f64 {
    match direction {
        Direction::Rise => value.get() - from.get(),
        Direction::Drop => from.get() - value.get(),
    }
}

/// The move in percent of the reference's magnitude, also where the move itself is too large for a
/// number.
fn percent_moved(moved: f64, from: Real, value: Real) -> f64 {
    let magnitude = from.get().abs();
    let share = if moved.is_finite() {
        moved / magnitude
    } else {
        (value.get() / magnitude - from.get() / magnitude).abs()
    };
    share * 100.0
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            metric,
            value,
            kind,
        } = self;
        match kind {
            BreachKind::UnderFloor { floor } => {
                write!(formatter, "{metric} {value} is under the floor {floor}")
            }
            BreachKind::OverCeiling { ceiling } => {
                write!(formatter, "{metric} {value} is over the ceiling {ceiling}")
            }
            BreachKind::Moved {
                direction,
                reference,
                from,
                allowed,
            } => {
                let side = match direction {
                    Direction::Rise => "over",
                    Direction::Drop => "under",
                };
                let whose = match reference {
                    Reference::Incumbent => "incumbent",
                    Reference::Baseline => "baseline",
                };
                let moved = distance(*direction, *from, *value);
                match allowed {
                    Tolerance::Absolute(amount) => write!(
                        formatter,
                        "{metric} {value} is {} {side} the {whose}'s {from}; at most {amount} allowed",
                        short_number(moved)
                    ),
                    Tolerance::Percent(_) if *from == Real::ZERO => write!(
                        formatter,
                        "{metric} {value} is {side} the {whose}'s 0, of which no percentage allows a move; \
                         give an amount instead"
                    ),
                    Tolerance::Percent(percent) => write!(
                        formatter,
                        "{metric} {value} is {} % {side} the {whose}'s {from}; at most {percent} % allowed",
                        short_number(percent_moved(moved, *from, *value))
                    ),
                }
            }
        }
    }
}

impl fmt::Display for MissingValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} has no value: {}", self.metric, self.refusal)
    }
}

impl fmt::Display for GuardVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.holds() {
            return formatter.write_str("every guard holds");
        }
        let missing = self.missing.iter().map(ToString::to_string);
        let sentences: Vec<String> = missing
            .chain(self.breaches.iter().map(ToString::to_string))
            .collect();
        formatter.write_str(&sentences.join("; "))
    }
}
