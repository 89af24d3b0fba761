//! Which events follow from an input: the segment that begins, the trial that is over, the target
//! that is confirmed or not.

use serde::Deserialize;

use crate::effect::Settlement;
use crate::event::Scope;
use crate::ids::EffectId;
use crate::machine::Draft;
use crate::metric::Real;

use super::books;
use super::conclude::{self, Step};
use super::events::{Decided, SegmentStarted, TargetChecked, kind};
use super::outcome::Outcome;
use super::path::EffectPath;
use super::results::Measured;
use super::rule::{Judge, Want};
use super::state::{Conclusion, Origin, State, Trial};

/// What follows from the beginning of an invocation.
pub(super) fn after_begin(state: &State) -> Vec<Draft> {
    let segment = segment_due(state);
    let Some(trial) = &state.trial else {
        return segment.into_iter().collect();
    };
    let Some(segment) = segment.filter(|_| state.harness_is_new()) else {
        // The open trial is finished where it was begun; another branch follows it. Settings that
        // changed meanwhile may have ended it.
        return after_result(state);
    };
    let conclusion = Conclusion {
        outcome: Outcome::Conflict,
        why: "the harness changed while it was open".to_owned(),
        value: None,
    };
    vec![decision(state, trial, conclusion), segment]
}

/// What follows from a result: the open trial's decision, where that is due.
pub(super) fn after_result(state: &State) -> Vec<Draft> {
    let (Some(trial), Some(line)) = (&state.trial, state.line()) else {
        return Vec::new();
    };
    match conclude::step(state, line, trial) {
        Step::Conclude(conclusion) => {
            let mut drafts = vec![decision(state, trial, conclusion)];
            drafts.extend(segment_due(state));
            drafts
        }
        _ => Vec::new(),
    }
}

/// The beginning of a segment, or of another branch in it, where the open invocation needs one.
fn segment_due(state: &State) -> Option<Draft> {
    let caps = &state.invocation.as_ref()?.caps;
    let (number, why) = match &state.segment {
        None => (1, "the run's first"),
        Some(segment) if state.harness_is_new() => (segment.number + 1, "the harness changed"),
        Some(_) if state.lines.contains_key(&caps.branch) => return None,
        Some(segment) => (segment.number, "the branch's first"),
    };
    let body = SegmentStarted {
        segment: number,
        harness: caps.harness.digest,
        tree: caps.harness.tree.clone(),
        why: why.to_owned(),
    };
    Some(Draft::new(
        kind::SEGMENT_STARTED,
        Scope::branch(&caps.branch),
        &body,
    ))
}

fn decision(state: &State, trial: &Trial, conclusion: Conclusion) -> Draft {
    let against = match (&trial.origin, trial.judge.as_ref().map(Judge::want)) {
        (Origin::Baseline, _) => None,
        (_, Some(Want::Verdict(verdict))) => Some(verdict.against),
        (Origin::Proposed | Origin::Retry { .. }, _) => {
            state.incumbent().and_then(|incumbent| incumbent.value)
        }
    };
    let tree = match (&trial.origin, &trial.candidate) {
        (Origin::Baseline, _) => state.incumbent().map(|incumbent| incumbent.tree.clone()),
        (_, candidate) => candidate.as_ref().map(|candidate| candidate.tree.clone()),
    };
    let body = Decided {
        outcome: conclusion.outcome,
        why: conclusion.why,
        origin: trial.origin.clone(),
        segment: state.segment.as_ref().map_or(0, |segment| segment.number),
        value: conclusion.value,
        against,
        values: trial.values.all(),
        readings: trial.readings.clone(),
        tree,
        policy: state.settings.rule.policy().to_owned(),
        doubt_left: books::doubt_left(state, trial, conclusion.outcome.is_keep()),
    };
    Draft::new(
        kind::TRIAL_DECIDED,
        Scope::trial(&state.branch, trial.number),
        &body,
    )
}

/// What the confirming run says about the target.
pub(super) fn target_checked(state: &State, settlement: &Settlement) -> Option<Draft> {
    let measured = Measured::deserialize(&settlement.result).ok();
    let metric = &state.settings.metric;
    let failed = measured
        .as_ref()
        .and_then(|measured| conclude::after_measurement(measured, &state.settings, true));
    let value = measured
        .filter(|_| failed.is_none())
        .and_then(|measured| measured.readings.value(metric.as_str()));
    let reached = value.is_some_and(|value| state.settings.reaches_target(value));
    let why = match (failed, value) {
        (_, Some(value)) if reached => {
            format!("target reached: {metric} {} confirmed", value.short())
        }
        (_, Some(value)) => format!("target not confirmed: {metric} was {}", value.short()),
        (Some(failed), None) => format!("target not confirmed: {}", failed.why),
        (None, None) => "target not confirmed: no value".to_owned(),
    };
    target_draft(state, value, reached, why)
}

/// A confirming run whose outcome is unknown confirms nothing.
pub(super) fn target_lost(state: &State, effect: &EffectId) -> Option<Draft> {
    let trial = EffectPath::of(effect).ok().map(|path| path.trial);
    if trial != state.incumbent()?.trial {
        return None;
    }
    let why = format!("target not confirmed: the outcome of {effect} is unknown");
    target_draft(state, None, false, why)
}

fn target_draft(state: &State, value: Option<Real>, reached: bool, why: String) -> Option<Draft> {
    let body = TargetChecked {
        trial: state.incumbent()?.trial?,
        value,
        reached,
        why,
    };
    let scope = Scope::branch(&state.branch);
    Some(Draft::new(kind::TARGET_CHECKED, scope, &body))
}
