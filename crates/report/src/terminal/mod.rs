//! The progress picture in characters.
//!
//! `picture` draws it on a `canvas`; colour is only added, never the only sign.

mod canvas;
mod glyphs;
mod labels;
mod options;
mod picture;
mod surroundings;

pub use options::TerminalOptions;
pub use picture::terminal;
