//! A little agent loop: plan, act, evaluate, decide; with a question to a person, retries after a
//! pause, limits that people raise, and iterations that are loops of their own.
//!
//! It proves that the kernel fits agent loops: [`machine`] is the door, [`state`] what folds,
//! [`policy`] the decision, [`script`] the roles.

mod fold;
mod machine;
mod policy;
mod script;
mod state;

pub use machine::Agent;
pub use script::AgentScenario;
pub use state::{AgentSettings, AgentState};
