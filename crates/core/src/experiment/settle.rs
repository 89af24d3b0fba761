//! Folding what effects came to: the candidate that was made, the readings that were taken, the
//! commit that was made or refused.

use serde::de::DeserializeOwned;

use crate::effect::Settlement;
use crate::ending::Reason;
use crate::event::Event;
use crate::ids::EffectId;
use crate::kernel;
use crate::machine::{Ending, Misfit};
use crate::metric::{Reading, Readings, Refusal};

use super::books;
use super::closing;
use super::conclude;
use super::outcome::Outcome;
use super::path::{EffectPath, Part};
use super::results::{Candidate, Kept, Measured, Proposed, Reapplied};
use super::rule::Arm;
use super::rule::keep::Failed;
use super::settings::Settings;
use super::state::{Conclusion, Origin, State, Trial};

/// Folds the end of one effect.
pub(super) fn settle(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let Some(effect) = &event.effect else {
        return Err(Misfit::new(event, "it names no effect"));
    };
    let path =
        EffectPath::of(effect).map_err(|not_ours| Misfit::new(event, not_ours.to_string()))?;
    match path.part {
        Part::Propose => {
            let proposed: Proposed = result(event)?;
            settle_proposal(state, proposed);
        }
        Part::Reapply => {
            let reapplied: Reapplied = result(event)?;
            settle_reapplied(state, reapplied);
        }
        Part::Measure { arm, .. } => {
            state.runs += 1;
            let measured: Measured = result(event)?;
            settle_measurement(state, arm, &measured);
        }
        Part::Keep { .. } => {
            let kept: Kept = result(event)?;
            settle_keep(state, kept);
        }
        // The state changes by `target.checked`.
        Part::Target { .. } => state.runs += 1,
        Part::Closing { .. } => {
            state.runs += 1;
            let measured: Measured = result(event)?;
            closing::settle(state, &measured);
        }
    }
    Ok(())
}

fn settle_proposal(state: &mut State, proposed: Proposed) {
    let Some(tree) = state.incumbent().map(|incumbent| incumbent.tree.clone()) else {
        return;
    };
    let conclusion = conclude::after_proposal(&proposed, &tree);
    if let Some(candidate) = &proposed.candidate {
        state.chain_commit = Some(candidate.chain_commit.clone());
    }
    put_under_test(state, proposed.candidate, conclusion);
}

fn settle_reapplied(state: &mut State, reapplied: Reapplied) {
    let conclusion = |outcome, why| {
        Some(Conclusion {
            outcome,
            why,
            value: None,
        })
    };
    match reapplied {
        Reapplied::Applied {
            candidate,
            findings,
        } => {
            state.chain_commit = Some(candidate.chain_commit.clone());
            let conclusion = conclude::after_candidate("the change tried again", &findings);
            put_under_test(state, Some(candidate), conclusion);
        }
        Reapplied::NoChange => {
            let why = "the incumbent holds this change already".to_owned();
            put_under_test(state, None, conclusion(Outcome::NoChange, why));
        }
        Reapplied::Conflict { paths } => {
            let why = format!("it no longer applies to the incumbent: {paths}");
            put_under_test(state, None, conclusion(Outcome::Conflict, why));
        }
    }
}

fn put_under_test(state: &mut State, candidate: Option<Candidate>, conclusion: Option<Conclusion>) {
    let judge = books::open(state);
    if let Some(trial) = &mut state.trial {
        trial.candidate = candidate;
        trial.judge = judge;
        trial.conclusion = conclusion;
    }
}

fn settle_measurement(state: &mut State, arm: Arm, measured: &Measured) {
    let Some(trial) = &state.trial else {
        return;
    };
    let stands_for_trial = arm == Arm::Candidate || trial.origin == Origin::Baseline;
    let repeat = stands_for_trial && !trial.values.is_empty();
    let value = measured.readings.value(state.settings.metric.as_str());
    let failure = conclude::after_measurement(measured, &state.settings, repeat)
        .or_else(|| conclude::not_judged(&state.settings.metric, value?, trial.judge.as_ref()?));
    let usable = value.filter(|_| failure.is_none());
    let taken = books::taken(trial, arm, usable);
    let conclusion = failure.and_then(|failure| blame(state, arm, failure));
    let Some(trial) = &mut state.trial else {
        return;
    };
    trial.readings.push(taken);
    trial.conclusion = conclusion;
    let Some(value) = usable else { return };
    if stands_for_trial {
        if books::replaces_first_draw(trial) {
            trial.values.clear();
        }
        trial.values.add(&measured.readings.values());
        note_missing_guards(trial, &state.settings, measured);
    } else if books::is_beside(trial) {
        trial.beside.add(&measured.readings.values());
    }
    books::feed(state, arm, value);
}

/// What a reading of the candidate said of no guarded metric stays unknown, whatever others say.
fn note_missing_guards(trial: &mut Trial, settings: &Settings, measured: &Measured) {
    for guard in &settings.guards {
        let name = guard.metric();
        match measured.readings.get(name.as_str()) {
            Some(Reading::Value(_)) => {}
            Some(refused) => trial.refused.insert(name.clone(), refused.clone()),
            None => trial.refused.insert(name.clone(), Refusal::missing()),
        }
    }
}

/// How the trial ends because a run of `arm` failed, if it does: the rule may have it repeated, or
/// find that it is the harness that is broken.
fn blame(state: &mut State, arm: Arm, failure: Conclusion) -> Option<Conclusion> {
    // Who touches what judges it has no second run.
    if arm == Arm::Candidate && failure.outcome == Outcome::HarnessChanged {
        return Some(failure);
    }
    match books::fail(state, arm) {
        None | Some(Failed::Candidate) => Some(failure),
        Some(Failed::Again) => None,
        Some(Failed::Harness) => {
            let words = format!(
                "the incumbent can't be measured any more, twice in a row: {}; the open trial waits",
                failure.why
            );
            closing::close_at_once(state, Ending::because(Reason::BaselineFailed, words));
            None
        }
    }
}

fn settle_keep(state: &mut State, kept: Kept) {
    let rewritten = matches!(kept, Kept::Rewritten { .. });
    let judge = rewritten.then(|| books::open(state)).flatten();
    let Some(trial) = &mut state.trial else {
        return;
    };
    let measured = conclude::value_of(trial);
    let failed = |why: String| {
        Some(Conclusion {
            outcome: Outcome::Failed,
            why,
            value: measured,
        })
    };
    match kept {
        Kept::Committed { commit, note } => {
            trial.commit = Some(commit);
            trial.commit_note = note;
        }
        Kept::Rewritten {
            candidate,
            findings,
        } if trial.rewrites == 0 => {
            // What the hook made of the change is another change: it is examined and measured like
            // one.
            trial.conclusion = conclude::after_candidate("the commit hook", &findings);
            state.chain_commit = Some(candidate.chain_commit.clone());
            trial.candidate = Some(candidate);
            trial.rewrites = 1;
            trial.values.clear();
            trial.beside.clear();
            trial.refused = Readings::default();
            trial.judge = judge;
        }
        Kept::Rewritten { .. } => {
            let why = "the commit hook rewrote the change again after it was measured";
            trial.conclusion = failed(why.to_owned());
        }
        Kept::Refused { words } => {
            trial.conclusion = failed(format!("it helps, but the commit was refused: {words}"));
        }
        Kept::Mismatch { found_tree } => {
            let why = format!("the checkout no longer held what was measured (tree {found_tree})");
            trial.conclusion = failed(why);
        }
    }
}

/// An effect's outcome will stay unknown: what it was for has failed. What the target check was for
/// is settled by `target.checked`, and what belongs to no open trial changes nothing any more.
pub(super) fn lose(state: &mut State, effect: &EffectId) {
    let path = EffectPath::of(effect);
    match path.as_ref().map(|path| path.part) {
        Ok(Part::Closing { .. }) => {
            state.runs += 1;
            closing::lose(state);
        }
        Ok(Part::Measure { .. } | Part::Target { .. }) => state.runs += 1,
        _ => {}
    }
    let Some(trial) = &mut state.trial else {
        return;
    };
    if path.is_ok_and(|path| path.trial == trial.number) {
        trial.conclusion = Some(Conclusion {
            outcome: Outcome::Failed,
            why: format!("the outcome of {effect} is unknown"),
            value: None,
        });
    }
}

fn result<T: DeserializeOwned>(event: &Event) -> Result<T, Misfit> {
    let settlement: Settlement = kernel::body(event)?;
    serde_json::from_value(settlement.result).map_err(|error| Misfit::new(event, error.to_string()))
}
