//! Folding an experiment run's events into its state.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::effect::Settlement;
use crate::ending::Reason;
use crate::event::Event;
use crate::ids::EffectId;
use crate::kernel::{self, kind as kernel_kind};
use crate::machine::{Ending, Misfit};
use crate::metric::{Reading, Readings, Real, Refusal};
use crate::time::Micros;

use super::books;
use super::closing::{self, close};
use super::conclude;
use super::events::{Decided, SegmentStarted, TargetChecked, kind};
use super::outcome::Outcome;
use super::path::{EffectPath, Part};
use super::results::{Candidate, Kept, Measured, Proposed, Reapplied, seconds};
use super::rule::Arm;
use super::rule::keep::{Failed, Standing};
use super::settings::{Caps, Mode, Settings};
use super::state::{
    Conclusion, Incumbent, Invocation, Line, Origin, Segment, State, TargetStand, Trial,
};
use super::wanted;

/// Folds one event.
pub(super) fn apply(state: &mut State, event: &Event) -> Result<(), Misfit> {
    match event.kind.as_str() {
        kernel_kind::INVOCATION_BEGUN => begin(state, event)?,
        kernel_kind::INVOCATION_ENDED => state.invocation = None,
        kernel_kind::EFFECT_ANNOUNCED => open_trial(state, event)?,
        kernel_kind::EFFECT_SETTLED => settle(state, event)?,
        kernel_kind::EFFECT_LOST => {
            if let Some(effect) = &event.effect {
                lose(state, effect);
            }
        }
        kernel_kind::OPERATOR_ACT => {
            let act: kernel::OperatorAct = kernel::body(event)?;
            if act.act == kernel::ACT_RESOLVE
                && kernel::resolved_as_failed(&act)
                && let Some(effect) = kernel::resolved_effect(&act)
            {
                lose(state, &effect);
            }
        }
        kernel_kind::EFFECT_REFUSED => refuse(state, event)?,
        kernel_kind::CLOCK_REACHED => wake(state, event.time),
        kind::SEGMENT_STARTED => start_segment(state, event)?,
        kind::TRIAL_DECIDED => close_trial(state, event)?,
        kind::TARGET_CHECKED => close_target_check(state, event)?,
        kind::CLOSING_CHECKED => {
            closing::apply(state, event)?;
            close_when_done(state);
        }
        _ => {}
    }
    Ok(())
}

fn result<T: DeserializeOwned>(event: &Event) -> Result<T, Misfit> {
    let settlement: Settlement = kernel::body(event)?;
    serde_json::from_value(settlement.result).map_err(|error| Misfit::new(event, error.to_string()))
}

fn begin(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let begun: kernel::InvocationBegun = kernel::body(event)?;
    let mut caps: Caps = serde_json::from_value(begun.caps)
        .map_err(|error| Misfit::new(event, error.to_string()))?;
    let specification = std::mem::take(&mut caps.specification);
    state.settings = Settings::of(&specification).map_err(|why| Misfit::new(event, why))?;
    if state.trial.is_none() {
        state.branch = caps.branch.clone();
    }
    state.invocation = Some(Invocation {
        caps,
        begun_at: event.time,
        decided: 0,
        kept: 0,
        unjudged: 0,
        retried: false,
        ending: None,
        ends_after_closing: None,
    });
    closing::revise(state);
    // Under a new harness nothing is known yet, neither the target nor an incumbent.
    if !state.harness_is_new() {
        close_when_done(state);
    }
    Ok(())
}

fn start_segment(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let started: SegmentStarted = kernel::body(event)?;
    let Some(invocation) = &state.invocation else {
        return Err(Misfit::new(event, "no invocation is open"));
    };
    let commit = invocation.caps.harness.commit.clone();
    let branch = event
        .scope
        .branch
        .clone()
        .ok_or_else(|| Misfit::new(event, "it names no branch"))?;
    let goes_on = state
        .segment
        .as_ref()
        .is_some_and(|segment| segment.harness == started.harness);
    if !goes_on {
        // Nothing is compared across it, on no branch.
        state.lines.clear();
        state.segment = Some(Segment {
            number: started.segment,
            harness: started.harness,
            commit: commit.clone(),
            tree: started.tree.clone(),
        });
    }
    let incumbent = Incumbent {
        commit,
        tree: started.tree,
        trial: None,
        value: None,
        values: BTreeMap::new(),
    };
    // What grows out of a line of this segment knows how noisy the metric is.
    let origin = state
        .lines
        .values()
        .find(|line| line.incumbent.commit == incumbent.commit);
    let standing = origin.and_then(|line| line.standing.as_ref());
    let line = Line {
        start: incumbent.tree.clone(),
        standing: standing.map(Standing::fork),
        incumbent,
        baseline: BTreeMap::new(),
        target: TargetStand::default(),
        unclaimed: false,
        closings: 0,
        closing: None,
    };
    state.lines.insert(branch, line);
    close_when_done(state);
    Ok(())
}

fn open_trial(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let opens = event.scope.trial == Some(state.next_trial) && state.trial.is_none();
    let Some(invocation) = state.invocation.as_ref().filter(|_| opens) else {
        return Ok(());
    };
    let mut trial = wanted::new_trial(state, invocation);
    let path = event.effect.as_ref().map(EffectPath::of);
    let is_proposal = matches!(path, Some(Ok(path)) if path.part == Part::Propose);
    if let Some(trial) = trial.as_mut().filter(|_| is_proposal) {
        let announced: kernel::EffectAnnounced = kernel::body(event)?;
        trial.asked = Some(announced.request);
    }
    state.trial = trial;
    state.next_trial += 1;
    Ok(())
}

fn refuse(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let refused: kernel::EffectRefused = kernel::body(event)?;
    let what = event.effect.as_ref().map_or("", |effect| effect.as_str());
    let words = refused.over.words(what);
    closing::close_at_once(state, Ending::because(Reason::Budget, words));
    Ok(())
}

fn settle(state: &mut State, event: &Event) -> Result<(), Misfit> {
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
    let failure = conclude::after_measurement(measured, &state.settings, repeat);
    let value = measured.readings.value(state.settings.metric.as_str());
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
fn lose(state: &mut State, effect: &EffectId) {
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

fn close_trial(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let decided: Decided = kernel::body(event)?;
    // A trial that the new harness cut off says nothing about this invocation.
    let cut_off = state.harness_is_new();
    let Some(trial) = state.trial.take() else {
        return Err(Misfit::new(event, "no trial is open"));
    };
    if trial.origin != Origin::Baseline {
        *state.counts.entry(decided.outcome).or_insert(0) += 1;
        if decided.outcome.is_keep() {
            move_incumbent(state, &trial, &decided);
        }
        books::close(state, &trial, decided.outcome.is_keep());
    }
    if cut_off {
        enter_branch(state);
        return Ok(());
    }
    if trial.origin == Origin::Baseline {
        close_baseline(state, &trial, &decided);
    } else {
        count_in_invocation(state, &trial, decided.outcome);
    }
    enter_branch(state);
    close_when_done(state);
    Ok(())
}

/// Brings the invocation to the branch it is for, once no trial of another one is open.
fn enter_branch(state: &mut State) {
    if let Some(invocation) = &state.invocation {
        state.branch = invocation.caps.branch.clone();
    }
}

fn count_in_invocation(state: &mut State, trial: &Trial, outcome: Outcome) {
    let Some(invocation) = &mut state.invocation else {
        return;
    };
    invocation.decided += 1;
    invocation.kept += u64::from(outcome.is_keep());
    invocation.unjudged = if outcome.is_judged() {
        0
    } else {
        invocation.unjudged + 1
    };
    if let (Mode::Retry(asked), Origin::Retry { of }) = (&invocation.caps.mode, &trial.origin) {
        invocation.retried |= asked.trial == *of;
    }
}

fn close_baseline(state: &mut State, trial: &Trial, decided: &Decided) {
    if decided.outcome != Outcome::Kept {
        let words = format!("the baseline can't be measured: {}", decided.why);
        close(state, Ending::because(Reason::BaselineFailed, words));
        return;
    }
    if let Some(line) = state.lines.get_mut(&state.branch) {
        // A baseline that is measured again never moves the bar.
        if line.incumbent.value.is_none() {
            line.incumbent.value = decided.value;
            line.incumbent.values = trial.values.all();
            line.incumbent.trial = Some(trial.number);
            line.baseline = trial.values.all();
        }
    }
    if let Some(value) = decided.value {
        books::baseline(state, value);
    }
    let only = state
        .invocation
        .as_ref()
        .is_some_and(|open| open.caps.mode == Mode::Baseline);
    if only {
        let value = decided.value.map_or_else(String::new, Real::short);
        close(
            state,
            Ending::because(
                Reason::Finished,
                format!("baseline: {} {value}", state.settings.metric),
            ),
        );
    }
}

fn move_incumbent(state: &mut State, trial: &Trial, decided: &Decided) {
    let (Some(candidate), Some(commit)) = (&trial.candidate, &trial.commit) else {
        return;
    };
    if let Some(line) = state.lines.get_mut(&state.branch) {
        line.incumbent = Incumbent {
            commit: commit.clone(),
            tree: candidate.tree.clone(),
            trial: Some(trial.number),
            value: decided.value,
            values: trial.values.all(),
        };
        line.target = TargetStand::default();
        line.unclaimed = true;
        line.closings = 0;
        line.closing = None;
    }
}

fn close_target_check(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let checked: TargetChecked = kernel::body(event)?;
    let asked = state.settings.target;
    if let Some(line) = state.lines.get_mut(&state.branch) {
        line.target = TargetStand {
            checks: line.target.checks + 1,
            asked,
            reached: checked.reached,
        };
    }
    if checked.reached {
        close(state, Ending::because(Reason::TargetReached, checked.why));
    }
    close_when_done(state);
    Ok(())
}

fn wake(state: &mut State, now: Micros) {
    let Some(invocation) = &state.invocation else {
        return;
    };
    let Some(limit_us) = invocation.caps.wall_clock_us else {
        return;
    };
    if now >= invocation.begun_at.plus(limit_us) {
        let words = format!("the wall clock limit of {} has passed", seconds(limit_us));
        closing::close_at_once(state, Ending::because(Reason::WallClock, words));
    }
}

/// Ends the invocation when it has done what it is for, and no trial is open.
fn close_when_done(state: &mut State) {
    if state.trial.is_some() {
        return;
    }
    if state.target_check_is_due() {
        if let Some(ending) = out_of_runs(state, 1) {
            close(state, ending);
        }
        return;
    }
    let Some(invocation) = &state.invocation else {
        return;
    };
    let (caps, decided) = (&invocation.caps, invocation.decided);
    let ending = if caps.mode == Mode::Run && state.target_is_reached() {
        Some(Ending::because(
            Reason::TargetReached,
            "the target was reached before",
        ))
    } else if caps.give_up_after > 0 && invocation.unjudged >= caps.give_up_after {
        let words = format!(
            "{} trials in a row came to no judgement",
            invocation.unjudged
        );
        Some(Ending::because(Reason::GaveUp, words))
    } else if invocation.retried {
        Some(Ending::because(
            Reason::Finished,
            "the trial was tried again",
        ))
    } else if caps.mode == Mode::Run && caps.trials.is_some_and(|cap| decided >= cap) {
        let trials = if decided == 1 { "trial" } else { "trials" };
        let words = format!("{decided} {trials} done, {} kept", invocation.kept);
        Some(Ending::because(Reason::Finished, words))
    } else {
        out_of_runs(state, books::runs_to_begin(state))
    };
    if let Some(ending) = ending {
        close(state, ending);
    }
}

/// The end where so many runs are no longer left.
fn out_of_runs(state: &State, needed: u64) -> Option<Ending> {
    let left = books::runs_for_trials(state)?;
    let most = state.settings.max_runs?;
    (left < needed).then(|| {
        let words = format!(
            "{} of the loop's {most} runs are used, and another trial needs more than is left",
            state.runs
        );
        Ending::because(Reason::Budget, words)
    })
}
