//! Placeholder.

pub mod guard;
pub mod metric;
pub mod scrub;
