//! Tests of the machines through the same door the engine uses: turns over a run, results from a
//! script instead of the world. No clock, no process, no file but the stored histories.

mod admission;
mod booking;
mod clock;
mod coverage;
mod draining;
mod endings;
mod foreign;
mod guards;
mod histories;
mod interruptions;
mod keep_closing;
mod keep_rule;
mod kernel;
mod limits;
mod memory;
mod outcomes;
mod properties;
mod questions;
mod scenario;
mod support;
mod switching;
mod table;
mod targets;
mod toy;
mod world;
