//! A little search loop: levels of branches, each judged in parts, several effects in flight.
//!
//! The cheapest branch of a level wins, and the next level stands on it. A branch that already
//! costs more than another one's whole is pruned, and what it has in flight is stopped; whatever
//! the order of results, the same branches win.

mod machine;
mod script;

pub use machine::{Search, SearchSettings, SearchState};
pub use script::SearchScenario;
