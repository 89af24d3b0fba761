//! The real experiment machine with scripted proposals, measurements and keeps.

mod orders;
mod script;

pub use script::ExperimentScenario;
