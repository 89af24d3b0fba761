//! Views: what surfaces show. Everything here is derived from the journal and can be made anew
//! from it at any time; no surface reads events by itself.

mod history;
mod status;
mod trials;

pub use history::History;
pub use status::{LoopStatus, status_of};
pub use trials::{TrialRow, decided_rows, trial_row};
