//! Decided trials as lines of a listing. Each has a row of its own in the record, written with its
//! decision, so that a listing of ten thousand reads neither the decisions nor what they follow from:
//! a matter of milliseconds. The row is a cache; where it is missing it is made from the journal.

use std::ops::ControlFlow;

use loopwright_core::event::Event;
use loopwright_core::experiment::brief::output_tail;
use loopwright_core::experiment::{Decided, kind};
use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::kernel;
use loopwright_record::{Damage, ListingSource, ReadError, Select, Store};

use crate::error::EngineError;

use super::row::{More, TrialLine};
use super::trials::TrialRow;

/// How an experiment run's decided trials are listed.
pub const LISTING: ListingSource = ListingSource {
    version: 2,
    kind: kind::TRIAL_DECIDED,
    row_of,
};

/// The row of a decision, from the events of its trial up to it.
fn row_of(events: &[Event]) -> Result<Vec<u8>, String> {
    let last = events.last().ok_or("it has no events")?;
    let decided: Decided = kernel::body(last).map_err(|misfit| misfit.to_string())?;
    let branch = last.scope.branch.as_ref();
    let branch = branch.map_or("main", |branch| branch.as_str());
    let mut row = TrialRow::new(last.scope.trial.unwrap_or(0), branch);
    for event in events {
        row.apply(event);
    }
    let line = TrialLine {
        trial: row.trial,
        branch,
        segment: decided.segment,
        origin: decided.origin,
        outcome: decided.outcome,
        why: &decided.why,
        value: decided.value,
        candidate: row.candidate.as_ref().map(|found| found.commit.as_str()),
        commit: row.commit.as_deref(),
        duration_us: row.commands_us(),
        decided_at: last.time,
    };
    let tail = row.tail();
    let shows_tail = decided.outcome.is_failure() && !tail.is_empty();
    let more = More {
        against: decided.against,
        values: decided.values,
        readings: decided.readings,
        tree: decided.tree,
        policy: decided.policy,
        output_tail: shows_tail.then(|| output_tail(tail)),
        paths: row
            .candidate
            .as_ref()
            .map_or_else(Vec::new, |candidate| candidate.paths.clone()),
    };
    line.encode(&more)
}

/// Shows the decided trials of a run one by one, each with the number of the event that decided it,
/// to go on from.
pub fn visit_lines(
    store: &Store,
    run: &RunId,
    select: Select,
    mut visit: impl FnMut(u64, &TrialLine<'_>) -> ControlFlow<()>,
) -> Result<(), EngineError> {
    visit_rows(store, run, select, |seq, row| {
        let (line, _) = TrialLine::decode(row)?;
        Ok(visit(seq, &line))
    })
}

/// The same, with all the rest of their decisions.
pub fn visit_decisions(
    store: &Store,
    run: &RunId,
    select: Select,
    mut visit: impl FnMut(u64, &TrialLine<'_>, &More) -> ControlFlow<()>,
) -> Result<(), EngineError> {
    visit_rows(store, run, select, |seq, row| {
        let (line, more) = TrialLine::decode(row)?;
        Ok(visit(seq, &line, &More::decode(more)?))
    })
}

fn visit_rows(
    store: &Store,
    run: &RunId,
    select: Select,
    mut visit: impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, String>,
) -> Result<(), EngineError> {
    let mut damage = None;
    store.visit_listing(&LISTING, run, select, |row| {
        visit(row.seq, row.bytes).unwrap_or_else(|what| {
            damage = Some(Damage {
                run: run.clone(),
                batch: None,
                seq: Some(row.seq),
                what,
            });
            ControlFlow::Break(())
        })
    })?;
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
