//! Pictures of an experiment run, for a file and for the terminal.
//!
//! The crate knows nothing of journals: whoever has one fills a plain
//! [`Progress`] and gets back text. Everything here is a pure function, and the
//! same view always gives the same bytes, so that pictures can be snapshots in
//! tests and don't change in a repository when nothing happened.
//!
//! - [`svg`] draws the progress picture: every attempt, the kept ones labelled.
//! - [`terminal`] draws the same in characters, with or without colour and Unicode.
//! - [`sparkline`] is one line of it, for a status line.
//! - [`format_number`] writes a value as the pictures do.
//!
//! Inside: `analysis` orders the attempts and follows the running best, `scale`
//! chooses what part of the numbers is shown and where the ticks are, `layout`
//! places labels, `svg` and `terminal` draw.

mod analysis;
mod layout;
mod model;
mod number;
mod ranking;
mod scale;
mod sparkline;
mod svg;
mod terminal;
mod text;
mod words;

pub use model::{Counts, Mark, Point, Progress};
pub use number::format_number;
pub use sparkline::sparkline;
pub use svg::{SvgOptions, Theme, svg};
pub use terminal::{TerminalOptions, terminal};
