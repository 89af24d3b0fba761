//! Decided trials as lines of a listing, read without decoding more of an event than a line shows:
//! a listing of ten thousand is a matter of milliseconds.

use std::ops::ControlFlow;

use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{Outcome, kind};
use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::metric::Real;
use loopwright_core::time::Micros;
use loopwright_record::{Damage, ReadError, Select, Store};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// A decided trial, as much of it as a line shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialLine {
    /// The event's number, to go on from.
    pub seq: u64,
    /// Its number.
    pub trial: u64,
    /// Its branch.
    pub branch: String,
    /// Where its candidate comes from.
    pub origin: Origin,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, in words.
    pub why: String,
    /// The value that stands for it.
    pub value: Option<Real>,
    /// The segment.
    pub segment: u64,
    /// When it was decided.
    pub decided_at: Micros,
}

#[derive(Deserialize)]
struct Peek {
    scope: PeekScope,
    time: Micros,
    body: PeekBody,
}

#[derive(Deserialize)]
struct PeekScope {
    branch: Option<String>,
    trial: Option<u64>,
}

#[derive(Deserialize)]
struct PeekBody {
    outcome: Outcome,
    why: String,
    origin: Origin,
    segment: u64,
    #[serde(default)]
    value: Option<Real>,
}

/// Shows the decided trials of a run one by one.
pub fn visit_lines(
    store: &Store,
    run: &RunId,
    select: Select,
    mut visit: impl FnMut(TrialLine) -> ControlFlow<()>,
) -> Result<(), EngineError> {
    let mut damage = None;
    store.visit_kind(
        run,
        kind::TRIAL_DECIDED,
        select,
        |raw| match serde_json::from_slice::<Peek>(&raw.bytes) {
            Ok(Peek { scope, time, body }) => visit(TrialLine {
                seq: raw.seq,
                trial: scope.trial.unwrap_or(0),
                branch: scope.branch.unwrap_or_else(|| "main".to_owned()),
                origin: body.origin,
                outcome: body.outcome,
                why: body.why,
                value: body.value,
                segment: body.segment,
                decided_at: time,
            }),
            Err(error) => {
                damage = Some(Damage {
                    run: run.clone(),
                    batch: Some(raw.batch),
                    seq: Some(raw.seq),
                    what: error.to_string(),
                });
                ControlFlow::Break(())
            }
        },
    )?;
    damage.map_or(Ok(()), |damage| Err(ReadError::from(damage).into()))
}

/// The loops that were ever run in a store, in the order of their names.
pub fn loops_of(store: &Store) -> Result<Vec<LoopName>, EngineError> {
    let runs = store.runs()?.into_iter();
    let own = runs.filter(|summary| summary.parent.is_none());
    let mut names: Vec<LoopName> = own.map(|summary| summary.loop_name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}
