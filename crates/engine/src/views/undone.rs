//! What a proposal in place did to the user's repository, from the event that says so.

use loopwright_core::effect::Settlement;
use loopwright_core::event::Event;
use loopwright_core::experiment::results::Proposed;
use loopwright_core::kernel;
use serde::Deserialize as _;

/// What was undone of it and what was left, a line each; nothing for any other event.
pub fn undone_by(event: &Event) -> Vec<String> {
    let Ok(settlement) = kernel::body::<Settlement>(event) else {
        return Vec::new();
    };
    // No other result has its fields.
    let Ok(proposed) = Proposed::deserialize(&settlement.result) else {
        return Vec::new();
    };
    let mut lines = proposed.undone.first().to_vec();
    let more = proposed.undone.count() - lines.len() as u64;
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}
