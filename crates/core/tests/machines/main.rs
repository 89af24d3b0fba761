//! Tests of the machines through the same door the engine uses: turns over a run, results from a
//! script instead of the world. No clock, no process, no file but the stored histories.

mod coverage;
mod endings;
mod guards;
mod histories;
mod interruptions;
mod kernel;
mod outcomes;
mod properties;
mod scenario;
mod support;
mod switching;
mod targets;
mod world;
