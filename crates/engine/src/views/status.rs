//! The status of a loop: what its newest run is doing and where it stands.

use std::collections::BTreeMap;

use loopwright_core::budget::{Account, OverBudget};
use loopwright_core::experiment::{Experiment, Outcome};
use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::kernel::{self, EffectRefused};
use loopwright_core::machine::Ending;
use loopwright_core::metric::Real;
use loopwright_core::time::Micros;
use loopwright_core::turn::Run;
use loopwright_record::{RunState, Select, Store};
use serde::Serialize;

use crate::committer::now;
use crate::error::EngineError;
use crate::experiment::is_in_place;

/// What a loop is doing and where it stands.
#[derive(Clone, Debug, Serialize)]
pub struct LoopStatus {
    /// The loop.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// Its newest run.
    pub run: String,
    /// `running`, `interrupted`, `idle` or `ended`.
    pub state: &'static str,
    /// More about that, in words.
    pub words: String,
    /// How the last invocation ended.
    pub last_ending: Option<Ending>,
    /// The metric.
    pub metric: String,
    /// `minimize` or `maximize`.
    pub goal: &'static str,
    /// The branch worked on.
    pub branch: String,
    /// Whether what is kept is committed to the branch that the user has checked out.
    pub in_place: bool,
    /// The segment.
    pub segment: Option<u64>,
    /// The value at the segment's start.
    pub baseline: Option<Real>,
    /// The incumbent's value.
    pub incumbent: Option<Real>,
    /// The trial that kept it, or measured it as the baseline.
    pub incumbent_trial: Option<u64>,
    /// Whether the incumbent is still the segment's baseline.
    pub is_baseline: bool,
    /// The incumbent's commit.
    pub commit: Option<String>,
    /// The trial that is open.
    pub open_trial: Option<u64>,
    /// Effects in flight: id, attempt, since when.
    pub in_flight: Vec<(String, u32, Micros)>,
    /// How many trials ended how, baselines not counted.
    pub counts: BTreeMap<Outcome, u64>,
    /// What was spent, and the limits.
    pub budget: Account,
    /// When the newest event was recorded.
    pub last_at: Micros,
    /// The digest of all decisions.
    pub decisions: String,
}

/// The status of a loop's newest run; none where it was never run here.
pub fn status_of(store: &Store, loop_name: &LoopName) -> Result<Option<LoopStatus>, EngineError> {
    let Some(summary) = store.latest_run(loop_name)? else {
        return Ok(None);
    };
    let run: Run<Experiment> = loopwright_record::load(store, &summary.run)?;
    let (state, words) = match store.state_of(&summary, now())? {
        RunState::Ended(ending) => ("ended", ending.words),
        RunState::Driven(lease) => (
            "running",
            lease
                .holder
                .map(|holder| holder.to_string())
                .unwrap_or_default(),
        ),
        RunState::Interrupted => (
            "interrupted",
            "nobody drives it; loopwright resume goes on".to_owned(),
        ),
        RunState::Idle(ending) => (
            "idle",
            ending.map(|ending| ending.words).unwrap_or_default(),
        ),
    };
    let mut status = of_run(&summary.run, loop_name, run, state, words);
    status.in_place = is_in_place(store, loop_name)?;
    Ok(Some(status))
}

/// What didn't fit the budget of a run last, in its newest invocation; none where everything did.
pub fn refused_by_budget(store: &Store, run: &RunId) -> Result<Option<OverBudget>, EngineError> {
    let begun = store.events_of_kind(run, kernel::kind::INVOCATION_BEGUN, Select::newest(1))?;
    // Refusals have no index of their own: no more is read than what came since.
    let since = Select {
        after_seq: begun.first().map(|entry| entry.sealed.event.seq),
        ..Select::newest(1)
    };
    let refused = store.events_of_kind(run, kernel::kind::EFFECT_REFUSED, since)?;
    let body = refused
        .first()
        .and_then(|entry| kernel::body::<EffectRefused>(&entry.sealed.event).ok());
    Ok(body.map(|refused| refused.over))
}

fn of_run(
    id: &RunId,
    loop_name: &LoopName,
    run: Run<Experiment>,
    state: &'static str,
    words: String,
) -> LoopStatus {
    let Run {
        kernel,
        state: machine,
        ..
    } = run;
    let incumbent = machine
        .as_ref()
        .and_then(|state| state.incumbent())
        .cloned();
    let metric = machine
        .as_ref()
        .map_or("", |state| state.settings.metric.as_str())
        .to_owned();
    let started_from = machine
        .as_ref()
        .and_then(|state| state.segment.as_ref())
        .map(|segment| segment.commit.clone());
    let baseline = machine.as_ref().and_then(|state| state.line());
    let baseline = baseline.and_then(|line| line.baseline.get(metric.as_str()).copied());
    LoopStatus {
        loop_name: loop_name.to_string(),
        run: id.to_string(),
        state,
        words,
        last_ending: kernel.last_ending,
        goal: machine
            .as_ref()
            .map_or("", |state| state.settings.goal.name()),
        branch: machine
            .as_ref()
            .map_or_else(String::new, |state| state.branch.to_string()),
        in_place: false,
        segment: machine
            .as_ref()
            .and_then(|state| state.segment.as_ref())
            .map(|segment| segment.number),
        baseline,
        incumbent: incumbent.as_ref().and_then(|incumbent| incumbent.value),
        incumbent_trial: incumbent.as_ref().and_then(|incumbent| incumbent.trial),
        is_baseline: started_from.is_some()
            && started_from.as_ref() == incumbent.as_ref().map(|incumbent| &incumbent.commit),
        commit: incumbent.map(|incumbent| incumbent.commit),
        open_trial: machine
            .as_ref()
            .and_then(|state| state.trial.as_ref())
            .map(|trial| trial.number),
        in_flight: kernel
            .in_flight
            .iter()
            .map(|(id, flight)| (id.to_string(), flight.attempt, flight.announced_at))
            .collect(),
        counts: machine.map(|state| state.counts).unwrap_or_default(),
        metric,
        budget: kernel.account,
        last_at: kernel.last_time,
        decisions: kernel.decisions.to_string(),
    }
}
