//! A little search loop: levels of branches, each judged in parts, several effects in flight.
//!
//! The cheapest branch of a level wins, and the next level stands on it. A branch that already
//! costs more than another one's whole is pruned, and what it has in flight is stopped or may finish;
//! whatever the order of results, the same branches win. A person may say something meanwhile.

mod machine;
mod script;
mod state;

pub use machine::Search;
pub use script::SearchScenario;
pub use state::{Pruning, SearchSettings, SearchState};
