//! Decided trials as lines of a listing, read without decoding more of an event than a line shows:
//! a listing of ten thousand is a matter of milliseconds.

use std::ops::ControlFlow;

use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{Decided, Outcome, kind};
use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::metric::Real;
use loopwright_core::time::Micros;
use loopwright_record::{Damage, ReadError, Select, Store};
use serde::de::DeserializeOwned;
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

/// A decided trial with its whole decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The event's number, to go on from.
    pub seq: u64,
    /// The trial's number.
    pub trial: u64,
    /// Its branch.
    pub branch: String,
    /// What was decided.
    pub decided: Decided,
    /// When.
    pub decided_at: Micros,
}

/// As much of an event as is decoded; the body as the caller wants it.
#[derive(Deserialize)]
struct Peek<B> {
    scope: PeekScope,
    time: Micros,
    body: B,
}

#[derive(Deserialize)]
struct PeekScope {
    branch: Option<String>,
    trial: Option<u64>,
}

impl PeekScope {
    fn place(self) -> (u64, String) {
        let branch = self.branch.unwrap_or_else(|| "main".to_owned());
        (self.trial.unwrap_or(0), branch)
    }
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
    visit_peeks(store, run, select, |seq, peek: Peek<PeekBody>| {
        let (trial, branch) = peek.scope.place();
        let body = peek.body;
        visit(TrialLine {
            seq,
            trial,
            branch,
            origin: body.origin,
            outcome: body.outcome,
            why: body.why,
            value: body.value,
            segment: body.segment,
            decided_at: peek.time,
        })
    })
}

/// Shows the decided trials of a run one by one, each with its whole decision.
pub fn visit_decisions(
    store: &Store,
    run: &RunId,
    select: Select,
    mut visit: impl FnMut(Decision) -> ControlFlow<()>,
) -> Result<(), EngineError> {
    visit_peeks(store, run, select, |seq, peek: Peek<Decided>| {
        let (trial, branch) = peek.scope.place();
        visit(Decision {
            seq,
            trial,
            branch,
            decided: peek.body,
            decided_at: peek.time,
        })
    })
}

fn visit_peeks<B: DeserializeOwned>(
    store: &Store,
    run: &RunId,
    select: Select,
    mut visit: impl FnMut(u64, Peek<B>) -> ControlFlow<()>,
) -> Result<(), EngineError> {
    let mut damage = None;
    store.visit_kind(
        run,
        kind::TRIAL_DECIDED,
        select,
        |raw| match serde_json::from_slice::<Peek<B>>(&raw.bytes) {
            Ok(peek) => visit(raw.seq, peek),
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
