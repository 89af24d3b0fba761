//! Guards: secondary numbers that have to hold while the metric is improved.
//!
//! A [`Guard`] gives one metric a tolerance to the incumbent, a tolerance to the baseline (so that
//! many small steps do not add up), a floor, a ceiling, or several of these. [`judge`] holds a
//! candidate's readings against them and says every breach in words with its numbers.
//!
//! Whether a guard's numbers are noisy, and how often to measure them, is for the decision policy:
//! it chooses which value to judge (a first draw, or a mean).

mod judge;
mod limits;
mod rule;
mod tolerance;

#[cfg(test)]
mod tests;

pub use judge::{
    Breach, BreachKind, Direction, GuardOutcome, GuardVerdict, MissingValue, Reference, judge,
};
pub use limits::{GUARD_LIMITS, GuardSpec};
pub use rule::{Guard, GuardError};
pub use tolerance::{Tolerance, ToleranceError};
