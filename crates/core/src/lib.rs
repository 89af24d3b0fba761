//! Placeholder.

pub mod spec;
