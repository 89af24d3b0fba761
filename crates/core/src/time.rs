//! Time as core sees it: a number that somebody else read from a clock.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Microseconds since the Unix epoch (UTC), as an integer so that it can be hashed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Micros(pub i64);

impl Micros {
    /// The moment `duration_us` microseconds after this one; saturates instead of wrapping.
    pub fn plus(self, duration_us: u64) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration_us).unwrap_or(i64::MAX)),
        )
    }

    /// Microseconds from `earlier` to this moment; zero when the clock went backwards.
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
