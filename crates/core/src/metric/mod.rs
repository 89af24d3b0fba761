//! Metrics: what a measuring command says in numbers, and every way it can fail to say it.
//!
//! A measurement prints its numbers, or writes them to a result file. This module reads both without
//! I/O of its own: [`Scanner`] is fed the merged output chunk by chunk and keeps only the current
//! line; [`from_result_file`] reads a file's bytes; [`combine`] puts both together. What comes out is
//! one [`Reading`] per [`MetricName`]: a [`Real`] or a typed [`Refusal`] that quotes the lines it is
//! about. Nothing here guesses: prose that happens to hold the name is no match, and a value that is
//! not a plain number is refused rather than cut down to one.
//!
//! Readings are taken from the output *as it was printed*. The lines that refusals quote therefore
//! have to go through [`crate::scrub`] before they are recorded.

mod json;
mod line;
mod name;
mod readings;
mod real;
mod refusal;
mod scanner;
mod tally;
mod value;

#[cfg(test)]
mod tests;

pub use name::{MetricName, NameError};
pub use readings::{Precedence, Reading, Readings, combine, from_result_file, unreadable_file};
pub use real::{Real, RealError};
pub use refusal::Refusal;
pub use scanner::Scanner;

pub(crate) use real::short_number;
