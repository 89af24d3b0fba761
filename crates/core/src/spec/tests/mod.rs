//! Tests of the specification as a whole: file to pinned form, layers, changes, detection.

mod detection;
mod drift;
mod file;
mod pattern;
mod resolving;
mod round_trip;
mod rules;

use std::collections::BTreeMap;

use super::*;

/// A file's only loop, laid over nothing else.
fn resolved(text: &str) -> Resolved {
    let file = LoopFile::parse("loopwright.toml", text).unwrap();
    let environment = BTreeMap::new();
    let flags = Flags::new();
    let file = Some(file.choose(None).unwrap());
    resolve(&Layers {
        name: None,
        pinned: None,
        file,
        environment: &environment,
        flags: &flags,
    })
    .unwrap()
}

/// The specification pinned for a file.
fn spec(text: &str) -> ExperimentSpec {
    resolved(text).experiment(Purpose::Measure).unwrap()
}

/// The least a loop needs.
const LEAST: &str = "[loop.speed]\nrun = \"sh bench.sh\"\nmetric = \"seconds\"\ngoal = \"min\"\n";
