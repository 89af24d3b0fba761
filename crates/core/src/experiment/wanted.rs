//! What an experiment run wants from the world: at most one effect at a time, computed from the
//! state, so that a resumed run wants the same one again.

use serde_json::{Value, json};

use crate::budget::Ceiling;
use crate::effect::{Booking, Effect};
use crate::event::Scope;
use crate::metric::Real;
use crate::role::Role;

use super::closing;
use super::conclude::{self, Step};
use super::path::{EffectPath, Part};
use super::rule::Arm;
use super::settings::Mode;
use super::state::{Invocation, Line, Origin, State, Trial};

/// The effect wanted now, while `invocation` is open and has no ending yet.
pub(super) fn wanted(state: &State, invocation: &Invocation) -> Option<Effect> {
    let line = state.line()?;
    let incumbent = &line.incumbent;
    if closing::comes_first(state, invocation, line) {
        return closing::wanted(state, line);
    }
    if state.target_check_is_due() {
        let part = Part::Target {
            check: u64::from(line.target.checks) + 1,
        };
        let trial = incumbent.trial?;
        let path = EffectPath { trial, part };
        return Some(measure(state, path, Arm::Incumbent, &incumbent.tree));
    }
    let opened;
    let trial = if let Some(trial) = &state.trial {
        trial
    } else {
        opened = new_trial(state, invocation)?;
        &opened
    };
    let path = |part| EffectPath {
        trial: trial.number,
        part,
    };
    match conclude::step(state, line, trial) {
        Step::Propose => Some(propose(state, invocation, line, trial)),
        Step::Reapply => {
            let from = trial.retry.as_ref()?;
            let request = json!({
                "commit": from.commit, "onto_commit": incumbent.commit, "onto_tree": incumbent.tree,
            });
            Some(builtin(state, path(Part::Reapply), request))
        }
        Step::Measure(arm) => {
            let tree = match (arm, &trial.candidate) {
                (Arm::Candidate, Some(candidate)) => &candidate.tree,
                _ => &incumbent.tree,
            };
            let reading = trial.readings.len() as u64 + 1;
            let path = path(Part::Measure { arm, reading });
            Some(measure(state, path, arm, tree))
        }
        Step::Keep(value) => {
            let (path, request) = keep_of(line, trial, value)?;
            Some(builtin(state, path, request))
        }
        // Decided in the same turn that brought it here.
        Step::Conclude(_) => None,
    }
}

/// The keep that the open trial has come to, whether or not an invocation is open to make it: its
/// path, and what is asked.
pub fn keep_due(state: &State) -> Option<(EffectPath, Value)> {
    let (line, trial) = (state.line()?, state.trial.as_ref()?);
    match conclude::step(state, line, trial) {
        Step::Keep(value) => keep_of(line, trial, value),
        _ => None,
    }
}

fn keep_of(line: &Line, trial: &Trial, value: Real) -> Option<(EffectPath, Value)> {
    let incumbent = &line.incumbent;
    let request = json!({
        "tree": trial.candidate.as_ref()?.tree,
        "parent_commit": incumbent.commit,
        "value": value,
        "was": incumbent.value,
    });
    let time = u64::from(trial.rewrites) + 1;
    let (trial, part) = (trial.number, Part::Keep { time });
    Some((EffectPath { trial, part }, request))
}

/// A proposal: what it was asked for before, or as things stand now.
fn propose(state: &State, invocation: &Invocation, line: &Line, trial: &Trial) -> Effect {
    let asked = trial.asked.clone();
    let request = asked.unwrap_or_else(|| proposal_request(state, invocation, line));
    let (trial, part) = (trial.number, Part::Propose);
    Effect {
        id: EffectPath { trial, part }.into(),
        role: Role::Proposer,
        scope: Scope::trial(&state.branch, trial),
        after: None,
        request,
        ceiling: Ceiling {
            steps: 1,
            time_us: Some(state.settings.propose_limit_us),
            ..Ceiling::default()
        },
        on_unknown: state.settings.on_unknown_proposer,
        booking: Booking::EachAttempt,
    }
}

/// What a proposal starts from, and what only the state knows of its brief.
fn proposal_request(state: &State, invocation: &Invocation, line: &Line) -> Value {
    let caps = &invocation.caps;
    json!({
        "commit": line.incumbent.commit,
        "tree": line.incumbent.tree,
        "segment": state.segment.as_ref().map_or(0, |segment| segment.number),
        "incumbent": line.incumbent.value,
        "baseline": line.baseline.get(state.settings.metric.as_str()),
        "counts": state.counts,
        "trials_left": caps.trials.map(|cap| cap.saturating_sub(invocation.decided)),
        "ends_at": caps.wall_clock_us.map(|limit_us| invocation.begun_at.plus(limit_us)),
    })
}

fn builtin(state: &State, path: EffectPath, request: Value) -> Effect {
    let scope = Scope::trial(&state.branch, path.trial);
    Effect::builtin(path.to_string(), scope, request)
}

fn measure(state: &State, path: EffectPath, arm: Arm, tree: &str) -> Effect {
    Effect {
        id: path.into(),
        role: Role::Experiment,
        scope: Scope::trial(&state.branch, path.trial),
        after: None,
        request: json!({"arm": arm, "tree": tree}),
        ceiling: Ceiling::time(Some(state.settings.measurement_limit_us)),
        on_unknown: state.settings.on_unknown_experiment,
        booking: Booking::EachAttempt,
    }
}

/// The trial that would be opened now; none where the invocation has done what it is for.
pub(super) fn new_trial(state: &State, invocation: &Invocation) -> Option<Trial> {
    let (origin, retry) = match &invocation.caps.mode {
        _ if state.incumbent()?.value.is_none() => (Origin::Baseline, None),
        Mode::Baseline => (Origin::Baseline, None),
        Mode::Run => (Origin::Proposed, None),
        Mode::Retry(of) => (Origin::Retry { of: of.trial }, Some(of.clone())),
    };
    Some(Trial::new(state.next_trial, origin, retry))
}
