//! The experiment machine: one trial at a time, each opened by the announcement of its first
//! effect and closed by `trial.decided`.
//!
//! A trial's effects are named by [`EffectPath`]. [`super::wanted`] computes them from the state,
//! [`super::decide`] makes the events that follow from an input, [`super::fold`] folds them.

use serde::Serialize;
use serde_json::Value;

use crate::digest::Digest;
use crate::ending::Reason;
use crate::event::Event;
use crate::ids::EffectId;
use crate::machine::{Draft, Ending, Finish, Input, Machine, Misfit, Next, Status};
use crate::time::Micros;

use super::events::kind;
use super::path::{EffectPath, Part};
use super::rule::RuleSettings;
use super::settings::Settings;
use super::state::{Invocation, State};
use super::{closing, decide, fold, wanted};

/// The experiment loop's machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment;

impl Machine for Experiment {
    type State = State;
    const KIND: &str = "experiment";
    const VERSION: u32 = 2;
    const KINDS: &[&str] = &[
        kind::SEGMENT_STARTED,
        kind::TRIAL_DECIDED,
        kind::TARGET_CHECKED,
        kind::CLOSING_CHECKED,
    ];
    const POLICIES: &[&str] = RuleSettings::POLICIES;

    fn start(specification: &Value) -> Result<State, String> {
        Ok(State::new(Settings::of(specification)?))
    }

    fn policies(state: &State) -> Vec<String> {
        vec![state.settings.rule.policy().to_owned()]
    }

    fn decide(state: &State, input: &Input, _now: Micros) -> Vec<Draft> {
        match input {
            Input::Begun { .. } => decide::after_begin(state),
            Input::Settled { effect, settlement } if is_target(effect) => {
                decide::target_checked(state, settlement)
                    .into_iter()
                    .collect()
            }
            Input::Lost { effect } if is_target(effect) => {
                decide::target_lost(state, effect).into_iter().collect()
            }
            Input::Settled { effect, .. } | Input::Lost { effect } if is_closing(effect) => {
                closing::checked(state).into_iter().collect()
            }
            Input::Settled { .. } | Input::Lost { .. } => decide::after_result(state),
            Input::Refused { .. }
            | Input::Act { .. }
            | Input::Woken
            | Input::Exhausted { .. }
            | Input::Limits { .. } => Vec::new(),
        }
    }

    fn apply(state: &mut State, event: &Event, _id: Digest) -> Result<(), Misfit> {
        fold::apply(state, event)
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
            effects: wanted::wanted(state, invocation).into_iter().collect(),
            finish: Finish::Nothing,
            deadline,
        }
    }

    fn status(state: &State) -> Status {
        match &state.invocation {
            None => Status::Idle(Ending::because(Reason::Idle, "no invocation is open")),
            Some(Invocation {
                ending: Some(ending),
                ..
            }) => Status::Idle(ending.clone()),
            Some(_) => Status::Working,
        }
    }

    fn is_past(state: &State, effect: &EffectId) -> bool {
        let Ok(EffectPath { trial, part }) = EffectPath::of(effect) else {
            return false;
        };
        let is_open = state.trial.as_ref().map(|trial| trial.number) == Some(trial);
        // An incumbent may still be measured for a target, or for the closing check that is open.
        let is_incumbent = state.lines.values().any(|line| {
            let is_over = matches!(part, Part::Closing { check, .. }
                if line.closing.is_none() || check < u64::from(line.closings));
            line.incumbent.trial == Some(trial) && !is_over
        });
        trial < state.next_trial && !is_open && !is_incumbent
    }
}

fn is_target(effect: &EffectId) -> bool {
    EffectPath::of(effect).is_ok_and(|path| matches!(path.part, Part::Target { .. }))
}

fn is_closing(effect: &EffectId) -> bool {
    EffectPath::of(effect).is_ok_and(|path| matches!(path.part, Part::Closing { .. }))
}

/// Writes a result as the value of a settlement.
pub fn settlement_of<T: Serialize>(result: &T) -> Value {
    serde_json::to_value(result).expect("BUG: a result is plain data")
}
