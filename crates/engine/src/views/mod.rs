//! Views: what surfaces show. Everything here is derived from the journal and can be made anew
//! from it at any time; no surface reads events by itself.

mod doing;
mod history;
mod lines;
mod progress;
mod status;
mod trials;

pub use doing::effect_words;
pub use history::History;
pub use lines::{Decision, TrialLine, loops_of, visit_decisions, visit_lines};
pub use progress::progress_of;
pub use status::{LoopStatus, refused_by_budget, status_of};
pub use trials::{CommandRow, TrialRow, decided_rows, trial_row};
