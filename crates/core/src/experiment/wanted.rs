//! What an experiment run wants from the world: at most one effect at a time, computed from the
//! state, so that a resumed run wants the same one again.

use serde_json::{Value, json};

use crate::budget::Ceiling;
use crate::effect::{Booking, Effect};
use crate::event::Scope;
use crate::ids::EffectId;
use crate::role::Role;

use super::conclude::{self, Step};
use super::rule::Arm;
use super::settings::Mode;
use super::state::{Invocation, Line, Origin, State, Trial};

/// The effect wanted now, while `invocation` is open and has no ending yet.
pub(super) fn wanted(state: &State, invocation: &Invocation) -> Option<Effect> {
    let line = state.line()?;
    let incumbent = &line.incumbent;
    if state.target_check_is_due() {
        let path = format!("target/{}", line.target.checks + 1);
        let trial = incumbent.trial?;
        return Some(measure(
            state,
            trial,
            &path,
            Arm::Incumbent,
            &incumbent.tree,
        ));
    }
    let opened;
    let trial = if let Some(trial) = &state.trial {
        trial
    } else {
        opened = new_trial(state, invocation)?;
        &opened
    };
    match conclude::step(&state.settings, line, trial) {
        Step::Propose => Some(propose(state, invocation, line, trial)),
        Step::Reapply => {
            let from = trial.retry.as_ref()?;
            let request = json!({
                "commit": from.commit, "onto_commit": incumbent.commit, "onto_tree": incumbent.tree,
            });
            Some(builtin(state, trial.number, "reapply", request))
        }
        Step::Measure(arm) => {
            let tree = match (arm, &trial.candidate) {
                (Arm::Candidate, Some(candidate)) => &candidate.tree,
                _ => &incumbent.tree,
            };
            let reading = trial.readings.len() + 1;
            let path = format!("measure/{}/{reading}", arm.name());
            Some(measure(state, trial.number, &path, arm, tree))
        }
        Step::Keep(value) => {
            let candidate = trial.candidate.as_ref()?;
            let request = json!({
                "tree": candidate.tree,
                "parent_commit": incumbent.commit,
                "value": value,
                "was": incumbent.value,
            });
            let path = format!("keep/{}", trial.rewrites + 1);
            Some(builtin(state, trial.number, &path, request))
        }
        // Decided in the same turn that brought it here.
        Step::Conclude(_) => None,
    }
}

/// A proposal: what it was asked for before, or as things stand now.
fn propose(state: &State, invocation: &Invocation, line: &Line, trial: &Trial) -> Effect {
    let asked = trial.asked.clone();
    let request = asked.unwrap_or_else(|| proposal_request(state, invocation, line));
    let trial = trial.number;
    Effect {
        id: EffectId::new(format!("t{trial}/propose")),
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

fn builtin(state: &State, trial: u64, path: &str, request: Value) -> Effect {
    let scope = Scope::trial(&state.branch, trial);
    Effect::builtin(format!("t{trial}/{path}"), scope, request)
}

fn measure(state: &State, trial: u64, path: &str, arm: Arm, tree: &str) -> Effect {
    Effect {
        id: EffectId::new(format!("t{trial}/{path}")),
        role: Role::Experiment,
        scope: Scope::trial(&state.branch, trial),
        after: None,
        request: json!({"arm": arm, "tree": tree}),
        ceiling: Ceiling::time(Some(state.settings.run_limit_us)),
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
