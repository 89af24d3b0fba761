//! A run as the pictures show it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{EffectPath, Experiment, Outcome, Part, TargetChecked, kind};
use loopwright_core::ids::RunId;
use loopwright_core::kernel;
use loopwright_core::metric::Real;
use loopwright_core::spec::Goal;
use loopwright_core::turn::Run;
use loopwright_record::{Select, Store};
use loopwright_report::{Mark, Point, Progress};

use crate::error::EngineError;

use super::lines::visit_lines;
use super::row::TrialLine;
use super::trials::{TrialRow, trial_row};

/// The most characters of a label.
const LABEL_CHARACTERS_MAX: usize = 60;

/// Everything the pictures show of an experiment run.
pub fn progress_of(store: &Store, run: &RunId) -> Result<Progress, EngineError> {
    let state: Run<Experiment> = loopwright_record::load(store, run)?;
    let Some(machine) = &state.state else {
        return Ok(Progress::default());
    };
    let settings = &machine.settings;
    let confirmed = confirmed_values(store, run)?;
    let mut points = Vec::new();
    visit_lines(store, run, Select::all(), |_, line| {
        points.push(Point {
            trial: line.trial,
            mark: mark_of(line),
            segment: line.segment,
            value: line.value.map(Real::get),
            confirmed: confirmed.get(&line.trial).copied(),
            low_high: None,
            label: None,
            outcome: line.outcome.name().to_owned(),
            branch: line.branch.to_owned(),
        });
        ControlFlow::Continue(())
    })?;
    for point in &mut points {
        if point.mark == Mark::Kept {
            point.label = trial_row(store, run, point.trial)?.and_then(|row| label_of(&row));
        }
    }
    let title = store
        .run(run)?
        .map_or_else(String::new, |summary| summary.loop_name.to_string());
    Ok(Progress {
        title,
        metric: settings.metric.as_str().to_owned(),
        lower_is_better: settings.goal == Goal::Minimize,
        unit: None,
        target: settings.target.map(Real::get),
        points,
        notes: Vec::new(),
    })
}

/// What was measured once more for the target, by trial.
fn confirmed_values(store: &Store, run: &RunId) -> Result<BTreeMap<u64, f64>, EngineError> {
    let mut confirmed = BTreeMap::new();
    for entry in store.events_of_kind(run, kind::TARGET_CHECKED, Select::all())? {
        if let Ok(checked) = kernel::body::<TargetChecked>(&entry.sealed.event)
            && let Some(value) = checked.value
        {
            confirmed.insert(checked.trial, value.get());
        }
    }
    Ok(confirmed)
}

fn mark_of(line: &TrialLine<'_>) -> Mark {
    if line.origin == Origin::Baseline && line.outcome == Outcome::Kept {
        return Mark::Baseline;
    }
    match line.outcome {
        Outcome::Kept | Outcome::Simplified => Mark::Kept,
        Outcome::Reverted | Outcome::Undecided | Outcome::GuardFailed | Outcome::HoldoutFailed => {
            Mark::Rejected
        }
        Outcome::HarnessChanged => Mark::Refused,
        Outcome::NoChange | Outcome::Duplicate | Outcome::Conflict => Mark::NotMeasured,
        Outcome::Unstable
        | Outcome::Failed
        | Outcome::TimedOut
        | Outcome::NoMetric
        | Outcome::NotFinite
        | Outcome::Ambiguous
        | Outcome::Interrupted => Mark::Failed,
    }
}

/// What a kept change is: the last line its proposer printed where that is short, as proposers
/// tend to end with a summary; else the paths.
fn label_of(row: &TrialRow) -> Option<String> {
    let proposal = row.commands.iter().find(|command| {
        let path = command.effect.parse::<EffectPath>();
        path.is_ok_and(|path| path.part == Part::Propose)
    });
    let said = proposal
        .and_then(|command| {
            command
                .ran
                .tail
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty())
        })
        .map(str::trim)
        .filter(|line| line.chars().count() <= LABEL_CHARACTERS_MAX)
        .map(str::to_owned);
    let paths = || {
        row.candidate
            .as_ref()
            .map(|candidate| candidate.paths.join(", "))
    };
    said.or_else(paths)
}
