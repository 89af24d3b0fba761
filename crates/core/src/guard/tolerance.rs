//! How far a guarded number may move.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use crate::metric::Real;

/// Rounding that decides nothing: a number written as exactly the limit must not breach it because
/// the limit was computed in binary.
const ROUNDING: f64 = 1e-12;

/// An amount, in percent of the reference (`5%`) or in the metric's own unit (`3`). Never negative.
///
/// A percentage is taken of the reference's magnitude, so that it also makes sense below zero. Of a
/// reference of zero it allows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tolerance {
    /// Percent of the reference's magnitude.
    Percent(Real),
    /// The metric's own unit.
    Absolute(Real),
}

/// Why a text is no tolerance.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ToleranceError {
    /// Not an amount.
    #[error("`{0}` is not a tolerance: give a percentage such as `5%` or an amount such as `3`")]
    Unreadable(String),
    /// Below zero.
    #[error("the tolerance `{0}` is negative: the rule's name already says the direction")]
    Negative(String),
}

impl Tolerance {
    /// How far a number may move from this reference.
    pub fn allowance(self, reference: Real) -> f64 {
        match self {
            // Multiplied first: 100 × 5 ÷ 100 is exactly 5.
            Self::Percent(percent) => {
                let product = reference.get().abs() * percent.get();
                if product.is_finite() {
                    product / 100.0
                } else {
                    reference.get().abs() / 100.0 * percent.get()
                }
            }
            Self::Absolute(amount) => amount.get(),
        }
    }

    /// Whether a move of `moved` (positive: in the guarded direction) from the reference is within
    /// the tolerance.
    pub(super) fn allows(self, reference: Real, moved: f64) -> bool {
        let allowance = self.allowance(reference);
        let slack = ROUNDING * (reference.get().abs() + allowance);
        moved <= allowance || moved - allowance <= slack
    }

    fn checked(self, text: &str) -> Result<Self, ToleranceError> {
        let (Self::Percent(amount) | Self::Absolute(amount)) = self;
        if amount < Real::ZERO {
            Err(ToleranceError::Negative(text.to_owned()))
        } else {
            Ok(self)
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(formatter, "{percent}%"),
            Self::Absolute(amount) => write!(formatter, "{amount}"),
        }
    }
}

impl FromStr for Tolerance {
    type Err = ToleranceError;

    fn from_str(text: &str) -> Result<Self, ToleranceError> {
        let trimmed = text.trim();
        let unreadable = |_| ToleranceError::Unreadable(text.to_owned());
        let tolerance = match trimmed.strip_suffix('%') {
            Some(percent) => Self::Percent(percent.trim_end().parse().map_err(unreadable)?),
            None => Self::Absolute(trimmed.parse().map_err(unreadable)?),
        };
        tolerance.checked(text)
    }
}

impl Serialize for Tolerance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Tolerance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ToleranceVisitor;

        impl Visitor<'_> for ToleranceVisitor {
            type Value = Tolerance;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a percentage such as \"5%\" or an amount such as 3")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Tolerance, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Tolerance, E> {
                let amount = Real::new(value)
                    .map_err(|_| E::invalid_value(Unexpected::Float(value), &self))?;
                Tolerance::Absolute(amount)
                    .checked(&amount.to_string())
                    .map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Tolerance, E> {
                self.visit_f64(value as f64)
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Tolerance, E> {
                self.visit_f64(value as f64)
            }
        }

        deserializer.deserialize_any(ToleranceVisitor)
    }
}
