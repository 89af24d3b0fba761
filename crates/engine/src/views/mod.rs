//! Views: what surfaces show. Everything here is derived from the journal and can be made anew
//! from it at any time; no surface reads events by itself.

mod doing;
mod history;
mod lines;
mod progress;
mod row;
mod status;
mod trials;
mod undone;

pub use doing::effect_words;
pub use history::History;
pub use lines::{LISTING, loops_of, visit_decisions, visit_lines};
pub use progress::progress_of;
pub use row::{More, TrialLine};
pub use status::{LoopStatus, refused_by_budget, status_of};
pub use trials::{CommandRow, TrialRow, trial_row, trial_that_is_there};
pub use undone::undone_by;
