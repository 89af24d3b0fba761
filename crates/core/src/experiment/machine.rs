//! The experiment machine: one trial at a time, each opened by the announcement of its first
//! effect and closed by `trial.decided`.
//!
//! A trial's effects are `t<trial>/propose` (or `/reapply`), `t<trial>/measure/<arm>/<reading>`,
//! `t<trial>/keep/<time>` and `t<trial>/target/1`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::budget::Ceiling;
use crate::digest::Digest;
use crate::effect::{Effect, Settlement};
use crate::event::{Event, Scope};
use crate::ids::EffectId;
use crate::kernel::{self, kind as kernel_kind};
use crate::machine::{Draft, Ending, Input, Machine, Misfit, Next, Status};
use crate::metric::Real;
use crate::role::Role;
use crate::time::Micros;

use super::conclude::{self, Step};
use super::events::{Decided, SegmentStarted, Taken, TargetChecked, kind};
use super::outcome::Outcome;
use super::results::{Kept, Measured, Proposed, Reapplied};
use super::rule::Arm;
use super::settings::{Caps, Mode, Settings};
use super::state::{
    Conclusion, Incumbent, Invocation, Line, Origin, Segment, State, TargetCheck, Trial,
};

/// The experiment loop's machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment;

impl Machine for Experiment {
    type State = State;
    const KIND: &str = "experiment";
    const VERSION: u32 = 1;

    fn start(specification: &Value) -> Result<State, String> {
        Ok(State::new(Settings::of(specification)?))
    }

    fn policies(state: &State) -> Vec<String> {
        vec![state.settings.rule.policy().to_owned()]
    }

    fn decide(state: &State, input: &Input, _now: Micros) -> Vec<Draft> {
        match input {
            Input::Begun { .. } => begin_segment(state),
            Input::Settled { effect, settlement } if part(effect) == "target" => {
                target_checked(state, settlement).into_iter().collect()
            }
            Input::Settled { .. } | Input::Lost { .. } => decided(state).into_iter().collect(),
            Input::Refused { .. } | Input::Act { .. } | Input::Woken => Vec::new(),
        }
    }

    fn apply(state: &mut State, event: &Event, _id: Digest) -> Result<(), Misfit> {
        match event.kind.as_str() {
            kernel_kind::INVOCATION_BEGUN => begin(state, event),
            kernel_kind::INVOCATION_ENDED => {
                state.invocation = None;
                Ok(())
            }
            kernel_kind::EFFECT_ANNOUNCED => {
                open_trial(state, event);
                Ok(())
            }
            kernel_kind::EFFECT_SETTLED => settle(state, event),
            kernel_kind::EFFECT_LOST => {
                lose(state, event);
                Ok(())
            }
            kernel_kind::OPERATOR_ACT => {
                let act: kernel::OperatorAct = kernel::body(event)?;
                if act.act == kernel::ACT_RESOLVE && kernel::resolved_as_failed(&act) {
                    lose(state, event);
                }
                Ok(())
            }
            kernel_kind::EFFECT_REFUSED => {
                let refused: kernel::EffectRefused = kernel::body(event)?;
                let over = refused.over;
                let words = format!(
                    "the budget of {} is used up ({} left of {})",
                    over.dimension.name(),
                    over.left,
                    over.limit
                );
                close(state, Ending::new("budget", words));
                Ok(())
            }
            kernel_kind::CLOCK_REACHED => {
                wake(state, event.time);
                Ok(())
            }
            kind::SEGMENT_STARTED => start_segment(state, event),
            kind::TRIAL_DECIDED => close_trial(state, event),
            kind::TARGET_CHECKED => {
                let checked: TargetChecked = kernel::body(event)?;
                state.target_check = None;
                if checked.reached {
                    state.target_reached = Some(checked.trial);
                    close(state, Ending::new("target_reached", checked.why));
                } else {
                    close_when_done(state);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn next(state: &State) -> Next {
        let Some(invocation) = &state.invocation else {
            return Next::default();
        };
        if invocation.ending.is_some() {
            return Next::default();
        }
        let wall_clock = invocation.caps.wall_clock_us;
        let deadline = wall_clock.map(|limit_us| invocation.begun_at.plus(limit_us));
        Next {
            effects: wanted(state).into_iter().collect(),
            deadline,
        }
    }

    fn status(state: &State) -> Status {
        match &state.invocation {
            None => Status::Idle(Ending::new("idle", "no invocation is open")),
            Some(Invocation {
                ending: Some(ending),
                ..
            }) => Status::Idle(ending.clone()),
            Some(_) => Status::Working,
        }
    }
}

/// The last-but-number part of an effect's path: `propose`, `measure`, `keep`, `target`.
fn part(effect: &EffectId) -> &str {
    effect.as_str().split('/').nth(1).unwrap_or("")
}

fn result<T: DeserializeOwned>(event: &Event) -> Result<T, Misfit> {
    let settlement: Settlement = kernel::body(event)?;
    serde_json::from_value(settlement.result).map_err(|error| Misfit::new(event, error.to_string()))
}

// ---- what is wanted -------------------------------------------------------------------------

fn wanted(state: &State) -> Option<Effect> {
    let incumbent = state.incumbent()?;
    if let Some(check) = state.target_check {
        return Some(measure(
            state,
            check.trial,
            "target/1",
            Arm::Incumbent,
            &incumbent.tree,
        ));
    }
    let opened;
    let trial = if let Some(trial) = &state.trial {
        trial
    } else {
        opened = new_trial(state)?;
        &opened
    };
    let number = trial.number;
    let line = state.line()?;
    match conclude::step(&state.settings, line, trial) {
        Step::Propose => Some(Effect {
            id: EffectId::new(format!("t{number}/propose")),
            role: Role::Proposer,
            scope: Scope::trial(&state.branch, number),
            after: None,
            request: json!({"commit": incumbent.commit, "tree": incumbent.tree}),
            ceiling: Ceiling {
                steps: 1,
                time_us: Some(state.settings.propose_limit_us),
                ..Ceiling::default()
            },
            on_unknown: state.settings.on_unknown_proposer,
        }),
        Step::Reapply => {
            let from = trial.retry.as_ref()?;
            let request = json!({
                "commit": from.commit, "onto_commit": incumbent.commit, "onto_tree": incumbent.tree,
            });
            let scope = Scope::trial(&state.branch, number);
            Some(Effect::builtin(
                format!("t{number}/reapply"),
                scope,
                request,
            ))
        }
        Step::Measure(arm) => {
            let tree = match (arm, &trial.candidate) {
                (Arm::Candidate, Some(candidate)) => &candidate.tree,
                _ => &incumbent.tree,
            };
            let reading = trial.readings.len() + 1;
            let path = format!("measure/{}/{reading}", arm.name());
            Some(measure(state, number, &path, arm, tree))
        }
        Step::Keep(value) => {
            let candidate = trial.candidate.as_ref()?;
            let request = json!({
                "tree": candidate.tree,
                "parent_commit": incumbent.commit,
                "value": value,
                "was": incumbent.value,
            });
            let path = format!("t{number}/keep/{}", trial.rewrites + 1);
            Some(Effect::builtin(
                path,
                Scope::trial(&state.branch, number),
                request,
            ))
        }
        // Decided in the same turn that brought it here.
        Step::Conclude(_) => None,
    }
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
    }
}

/// The trial that would be opened now.
fn new_trial(state: &State) -> Option<Trial> {
    let invocation = state.invocation.as_ref()?;
    let incumbent = state.incumbent()?;
    let (origin, retry) = match &invocation.caps.mode {
        _ if incumbent.value.is_none() => (Origin::Baseline, None),
        Mode::Baseline => (Origin::Baseline, None),
        Mode::Run => (Origin::Proposed, None),
        Mode::Retry(of) => (Origin::Retry { of: of.trial }, Some(of.clone())),
    };
    Some(Trial {
        number: state.next_trial,
        origin,
        retry,
        candidate: None,
        judge: None,
        readings: Vec::new(),
        values: Vec::new(),
        rewrites: 0,
        commit: None,
        commit_note: None,
        conclusion: None,
    })
}

// ---- decisions ------------------------------------------------------------------------------

fn begin_segment(state: &State) -> Vec<Draft> {
    let Some(invocation) = &state.invocation else {
        return Vec::new();
    };
    let start = &invocation.caps.harness;
    if state
        .segment
        .as_ref()
        .is_some_and(|segment| segment.harness == start.digest)
    {
        return Vec::new();
    }
    let mut drafts = Vec::new();
    let why = match state.segment {
        None => "the run's first",
        Some(_) => "the harness changed",
    };
    if let Some(trial) = &state.trial {
        let conclusion = Conclusion {
            outcome: Outcome::Conflict,
            why: "the harness changed while it was open".to_owned(),
            value: None,
        };
        drafts.push(decision(state, trial, conclusion));
    }
    let body = SegmentStarted {
        segment: state
            .segment
            .as_ref()
            .map_or(1, |segment| segment.number + 1),
        harness: start.digest,
        tree: start.tree.clone(),
        why: why.to_owned(),
    };
    drafts.push(Draft::new(
        kind::SEGMENT_STARTED,
        Scope::branch(&state.branch),
        &body,
    ));
    drafts
}

fn decided(state: &State) -> Option<Draft> {
    let trial = state.trial.as_ref()?;
    match conclude::step(&state.settings, state.line()?, trial) {
        Step::Conclude(conclusion) => Some(decision(state, trial, conclusion)),
        _ => None,
    }
}

fn decision(state: &State, trial: &Trial, conclusion: Conclusion) -> Draft {
    let against = match trial.origin {
        Origin::Baseline => None,
        Origin::Proposed | Origin::Retry { .. } => {
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
        values: trial.mean_values(),
        readings: trial.readings.clone(),
        tree,
        policy: state.settings.rule.policy().to_owned(),
    };
    Draft::new(
        kind::TRIAL_DECIDED,
        Scope::trial(&state.branch, trial.number),
        &body,
    )
}

fn target_checked(state: &State, settlement: &Settlement) -> Option<Draft> {
    let check = state.target_check?;
    let measured = Measured::deserialize(&settlement.result).ok();
    let metric = &state.settings.metric;
    let failed = measured
        .as_ref()
        .and_then(|m| conclude::after_measurement(m, metric.as_str(), true));
    let value = measured
        .as_ref()
        .and_then(|measured| measured.readings.value(metric.as_str()));
    let reached =
        failed.is_none() && value.is_some_and(|value| state.settings.reaches_target(value));
    let why = match (reached, failed, value) {
        (true, _, Some(value)) => format!("target reached: {metric} {} confirmed", value.short()),
        (_, Some(failed), _) => format!("target not confirmed: {}", failed.why),
        (_, None, Some(value)) => format!("target not confirmed: {metric} was {}", value.short()),
        (_, None, None) => "target not confirmed: no value".to_owned(),
    };
    let body = TargetChecked {
        trial: check.trial,
        value,
        reached,
        why,
    };
    Some(Draft::new(
        kind::TARGET_CHECKED,
        Scope::branch(&state.branch),
        &body,
    ))
}

// ---- folding --------------------------------------------------------------------------------

fn begin(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let begun: kernel::InvocationBegun = kernel::body(event)?;
    let mut caps: Caps = serde_json::from_value(begun.caps)
        .map_err(|error| Misfit::new(event, error.to_string()))?;
    let specification = std::mem::take(&mut caps.specification);
    state.settings = Settings::of(&specification).map_err(|why| Misfit::new(event, why))?;
    if state.trial.is_none() {
        state.branch = caps.branch.clone();
    }
    let reached = state.target_reached.filter(|_| caps.mode == Mode::Run);
    state.invocation = Some(Invocation {
        caps,
        begun_at: event.time,
        decided: 0,
        kept: 0,
        unjudged: 0,
        ending: None,
    });
    if let Some(trial) = reached {
        close(
            state,
            Ending::new(
                "target_reached",
                format!("the target was reached by trial {trial} before"),
            ),
        );
    }
    close_when_done(state);
    Ok(())
}

fn start_segment(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let started: SegmentStarted = kernel::body(event)?;
    let Some(invocation) = &mut state.invocation else {
        return Err(Misfit::new(event, "no invocation is open"));
    };
    // Reaching the target under another harness proves nothing under this one.
    if invocation
        .ending
        .as_ref()
        .is_some_and(|ending| ending.reason == "target_reached")
    {
        invocation.ending = None;
    }
    state.target_reached = None;
    state.target_check = None;
    let commit = invocation.caps.harness.commit.clone();
    state.segment = Some(Segment {
        number: started.segment,
        harness: started.harness,
        commit: commit.clone(),
        tree: started.tree.clone(),
    });
    let incumbent = Incumbent {
        commit,
        tree: started.tree,
        trial: None,
        value: None,
        values: std::collections::BTreeMap::new(),
    };
    let line = Line {
        incumbent,
        baseline: std::collections::BTreeMap::new(),
    };
    state.lines.insert(state.branch.clone(), line);
    Ok(())
}

fn open_trial(state: &mut State, event: &Event) {
    let opens = event.scope.trial == Some(state.next_trial) && state.trial.is_none();
    if opens && state.target_check.is_none() {
        state.trial = new_trial(state);
        state.next_trial += 1;
    }
}

fn settle(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let Some(effect) = &event.effect else {
        return Err(Misfit::new(event, "it names no effect"));
    };
    match part(effect) {
        "propose" => {
            let proposed: Proposed = result(event)?;
            settle_proposal(state, proposed);
        }
        "reapply" => {
            let reapplied: Reapplied = result(event)?;
            settle_reapplied(state, reapplied);
        }
        "measure" => {
            let measured: Measured = result(event)?;
            settle_measurement(state, effect, &measured);
        }
        "keep" => {
            let kept: Kept = result(event)?;
            settle_keep(state, kept);
        }
        // The state changes by `target.checked`.
        "target" => {}
        other => {
            return Err(Misfit::new(
                event,
                format!("no effect of this machine is called {other:?}"),
            ));
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
        Reapplied::Applied { candidate } => {
            state.chain_commit = Some(candidate.chain_commit.clone());
            put_under_test(state, Some(candidate), None);
        }
        Reapplied::NoChange => {
            let why = "the incumbent holds this change already".to_owned();
            put_under_test(state, None, conclusion(Outcome::NoChange, why));
        }
        Reapplied::Conflict { paths } => {
            let why = format!(
                "it no longer applies to the incumbent: {}",
                paths.join(", ")
            );
            put_under_test(state, None, conclusion(Outcome::Conflict, why));
        }
    }
}

fn put_under_test(
    state: &mut State,
    candidate: Option<super::results::Candidate>,
    conclusion: Option<Conclusion>,
) {
    let incumbent = state.incumbent().and_then(|incumbent| incumbent.value);
    let judge = incumbent.map(|value| state.settings.rule.open(state.settings.goal, value));
    if let Some(trial) = &mut state.trial {
        trial.candidate = candidate;
        trial.judge = judge;
        trial.conclusion = conclusion;
    }
}

fn settle_measurement(state: &mut State, effect: &EffectId, measured: &Measured) {
    let arm = match effect.as_str().split('/').nth(2) {
        Some("candidate") => Arm::Candidate,
        _ => Arm::Incumbent,
    };
    let metric = &state.settings.metric;
    let Some(trial) = &mut state.trial else {
        return;
    };
    let repeat = trial.readings.iter().any(|taken| taken.arm == arm);
    let conclusion = conclude::after_measurement(measured, metric.as_str(), repeat);
    let value = measured.readings.value(metric.as_str());
    let usable = value.filter(|_| conclusion.is_none());
    trial.readings.push(Taken { arm, value: usable });
    trial.conclusion = conclusion;
    let Some(value) = usable else { return };
    if arm == Arm::Candidate || trial.origin == Origin::Baseline {
        trial.values.push(measured.readings.values());
    }
    if let Some(judge) = &mut trial.judge {
        judge.feed(arm, value);
    }
}

fn settle_keep(state: &mut State, kept: Kept) {
    let incumbent = state.incumbent().and_then(|incumbent| incumbent.value);
    let judge = incumbent.map(|value| state.settings.rule.open(state.settings.goal, value));
    let Some(trial) = &mut state.trial else {
        return;
    };
    let measured = trial.readings.last().and_then(|taken| taken.value);
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
        Kept::Rewritten { candidate } if trial.rewrites == 0 => {
            // What the hook made of the change is another change: it is measured like one.
            state.chain_commit = Some(candidate.chain_commit.clone());
            trial.candidate = Some(candidate);
            trial.rewrites = 1;
            trial.values.clear();
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

fn lose(state: &mut State, event: &Event) {
    if event
        .effect
        .as_ref()
        .is_some_and(|effect| part(effect) == "target")
    {
        state.target_check = None;
        close_when_done(state);
        return;
    }
    let Some(trial) = &mut state.trial else {
        return;
    };
    let effect = event.effect.as_ref().map_or("an effect", EffectId::as_str);
    trial.conclusion = Some(Conclusion {
        outcome: Outcome::Failed,
        why: format!("the outcome of {effect} is unknown"),
        value: None,
    });
}

fn close_trial(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let decided: Decided = kernel::body(event)?;
    let Some(trial) = state.trial.take() else {
        return Err(Misfit::new(event, "no trial is open"));
    };
    if trial.origin == Origin::Baseline {
        close_baseline(state, &trial, &decided);
    } else {
        *state.counts.entry(decided.outcome).or_insert(0) += 1;
        if decided.outcome.is_keep() {
            move_incumbent(state, &trial, &decided);
        }
        if let Some(invocation) = &mut state.invocation {
            invocation.decided += 1;
            invocation.kept += u64::from(decided.outcome.is_keep());
            invocation.unjudged = if decided.outcome.is_judged() {
                0
            } else {
                invocation.unjudged + 1
            };
        }
    }
    let reaches = decided
        .value
        .is_some_and(|value| state.settings.reaches_target(value));
    if decided.outcome.is_keep() && reaches {
        state.target_check = Some(TargetCheck {
            trial: trial.number,
        });
    } else {
        close_when_done(state);
    }
    Ok(())
}

fn close_baseline(state: &mut State, trial: &Trial, decided: &Decided) {
    if decided.outcome != Outcome::Kept {
        let words = format!("the baseline can't be measured: {}", decided.why);
        close(state, Ending::new("baseline_failed", words));
        return;
    }
    if let Some(line) = state.lines.get_mut(&state.branch) {
        // A baseline that is measured again never moves the bar.
        if line.incumbent.value.is_none() {
            line.incumbent.value = decided.value;
            line.incumbent.values = trial.mean_values();
            line.incumbent.trial = Some(trial.number);
            line.baseline = trial.mean_values();
        }
    }
    let only = state
        .invocation
        .as_ref()
        .is_some_and(|open| open.caps.mode == Mode::Baseline);
    if only {
        let value = decided.value.map_or_else(String::new, Real::short);
        close(
            state,
            Ending::new(
                "finished",
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
            values: trial.mean_values(),
        };
    }
}

fn wake(state: &mut State, now: Micros) {
    let Some(invocation) = &state.invocation else {
        return;
    };
    let Some(limit_us) = invocation.caps.wall_clock_us else {
        return;
    };
    if now >= invocation.begun_at.plus(limit_us) {
        let words = format!(
            "the wall clock limit of {} has passed",
            super::results::seconds(limit_us)
        );
        close(state, Ending::new("wall_clock", words));
    }
}

/// Ends the invocation when its caps are reached and no trial is open.
fn close_when_done(state: &mut State) {
    if state.trial.is_some() {
        return;
    }
    let Some(invocation) = &state.invocation else {
        return;
    };
    let caps = &invocation.caps;
    let decided = invocation.decided;
    if caps.give_up_after > 0 && invocation.unjudged >= caps.give_up_after {
        let words = format!(
            "{} trials in a row came to no judgement",
            invocation.unjudged
        );
        close(state, Ending::new("gave_up", words));
    } else if matches!(caps.mode, Mode::Retry(_)) && decided > 0 {
        close(state, Ending::new("finished", "the trial was tried again"));
    } else if caps.trials.is_some_and(|cap| decided >= cap) && caps.mode == Mode::Run {
        let trials = if decided == 1 { "trial" } else { "trials" };
        let words = format!("{decided} {trials} done, {} kept", invocation.kept);
        close(state, Ending::new("finished", words));
    }
}

/// Settles how the invocation ends; the first reason stands.
fn close(state: &mut State, ending: Ending) {
    if let Some(invocation) = &mut state.invocation {
        invocation.ending.get_or_insert(ending);
    }
}

/// Writes a result as the value of a settlement.
pub fn settlement_of<T: Serialize>(result: &T) -> Value {
    serde_json::to_value(result).expect("BUG: a result is plain data")
}
