//! Folding an experiment run's events into its state.

use std::collections::BTreeMap;

use crate::ending::Reason;
use crate::event::Event;
use crate::kernel::{self, kind as kernel_kind};
use crate::machine::{Ending, Misfit};
use crate::metric::Real;
use crate::time::Micros;

use super::books;
use super::closing::{self, close};
use super::events::{Decided, SegmentStarted, TargetChecked, kind};
use super::outcome::Outcome;
use super::path::{EffectPath, Part};
use super::results::seconds;
use super::rule::keep::Standing;
use super::settings::{Caps, Mode, Settings};
use super::settle;
use super::state::{Incumbent, Invocation, Line, Origin, Segment, State, TargetStand, Trial};
use super::wanted;

/// Folds one event.
pub(super) fn apply(state: &mut State, event: &Event) -> Result<(), Misfit> {
    match event.kind.as_str() {
        kernel_kind::INVOCATION_BEGUN => begin(state, event)?,
        kernel_kind::INVOCATION_ENDED => state.invocation = None,
        kernel_kind::EFFECT_ANNOUNCED => open_trial(state, event)?,
        kernel_kind::EFFECT_SETTLED => settle::settle(state, event)?,
        kernel_kind::EFFECT_LOST => {
            if let Some(effect) = &event.effect {
                settle::lose(state, effect);
            }
        }
        kernel_kind::OPERATOR_ACT => {
            let act: kernel::OperatorAct = kernel::body(event)?;
            if act.act == kernel::ACT_RESOLVE
                && kernel::resolved_as_failed(&act)
                && let Some(effect) = kernel::resolved_effect(&act)
            {
                settle::lose(state, &effect);
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
