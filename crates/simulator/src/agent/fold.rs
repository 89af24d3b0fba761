//! Folding an agent run's events.

use loopwright_core::budget::OverBudget;
use loopwright_core::effect::Settlement;
use loopwright_core::event::Event;
use loopwright_core::kernel::{self, kind as kernel_kind};
use loopwright_core::machine::{Ending, Misfit};
use loopwright_core::usage::Dimension;
use serde::de::DeserializeOwned;

use super::machine::{Answered, PlanAdopted, kind};
use super::policy::{Action, Decided};
use super::state::{Acted, AgentState, Fact, Phase, Planned, Verdict, Word};

/// Folds one event.
pub fn apply(state: &mut AgentState, event: &Event) -> Result<(), Misfit> {
    match event.kind.as_str() {
        kernel_kind::INVOCATION_BEGUN => {
            state.is_open = true;
            state.pausing = None;
        }
        kernel_kind::INVOCATION_ENDED => state.is_open = false,
        kernel_kind::EFFECT_ANNOUNCED => announced(state, event),
        kernel_kind::EFFECT_SETTLED => settled(state, event)?,
        kernel_kind::EFFECT_LOST => lost(state, name_of(event)),
        kernel_kind::OPERATOR_ACT => {
            let act: kernel::OperatorAct = kernel::body(event)?;
            if act.act == kernel::ACT_RESOLVE
                && kernel::resolved_as_failed(&act)
                && let Some(effect) = kernel::resolved_effect(&act)
            {
                lost(state, effect.as_str());
            }
        }
        kernel_kind::EFFECT_REFUSED => {
            let refused: kernel::EffectRefused = kernel::body(event)?;
            state.pausing = Some(exhausted(refused.over));
        }
        kernel_kind::CLOCK_EXHAUSTED => {
            let exhausted_clock: kernel::ClockExhausted = kernel::body(event)?;
            state.pausing = Some(exhausted(exhausted_clock.over));
        }
        kernel_kind::LIMITS_SET => {
            let set: kernel::LimitsSet = kernel::body(event)?;
            if let Some(iterations) = set.limits.steps {
                state.settings.max_iterations = iterations;
            }
        }
        kernel_kind::CLOCK_REACHED
            if state.not_before.is_some_and(|moment| event.time >= moment) =>
        {
            state.not_before = None;
        }
        kind::PLAN_ADOPTED => {
            let _: PlanAdopted = kernel::body(event)?;
            state.fact = None;
            state.phase = Phase::Act;
        }
        kind::ITERATION_DECIDED => decided(state, event)?,
        kind::QUESTION_ANSWERED => answered(state, kernel::body(event)?),
        kind::RUN_CANCELLED => end(state, "stopped_by_human", "a person cancelled it"),
        _ => {}
    }
    Ok(())
}

fn exhausted(over: OverBudget) -> Ending {
    let reason = match over.dimension {
        Dimension::Wall => "time",
        _ => "budget",
    };
    let words = format!("nothing is left of the {}", over.dimension.name());
    Ending::new(reason, words)
}

fn name_of(event: &Event) -> &str {
    event.effect.as_ref().map_or("", |effect| effect.as_str())
}

fn part(effect: &str) -> &str {
    effect.rsplit('/').next().unwrap_or("")
}

fn announced(state: &mut AgentState, event: &Event) {
    // A first attempt of a plan counts; the next attempts are of the same plan.
    if part(name_of(event)) == "plan" && event.attempt == Some(1) {
        state.plans += 1;
    }
}

fn result<T: DeserializeOwned>(event: &Event) -> Result<T, Misfit> {
    let settlement: Settlement = kernel::body(event)?;
    serde_json::from_value(settlement.result).map_err(|error| Misfit::new(event, error.to_string()))
}

fn settled(state: &mut AgentState, event: &Event) -> Result<(), Misfit> {
    let of_old = event.scope.iteration != Some(state.iteration);
    match part(name_of(event)) {
        "plan" => state.fact = Some(Fact::Planned(result::<Planned>(event)?)),
        "act" if !of_old => {
            if result::<Acted>(event)?.usable {
                state.phase = Phase::Evaluate;
            } else {
                state.fact = Some(Fact::NotActed);
            }
        }
        "evaluate" if !of_old => {
            state.fact = Some(Fact::Judged(result::<Verdict>(event)?));
        }
        "ask" if state.phase == Phase::Ask => {
            state.fact = Some(Fact::Answered(result::<Word>(event)?));
        }
        other => return Err(Misfit::new(event, format!("nobody waits for {other:?}"))),
    }
    Ok(())
}

fn lost(state: &mut AgentState, effect: &str) {
    state.fact = Some(match part(effect) {
        "plan" => Fact::Planned(Planned { usable: false }),
        "act" => Fact::NotActed,
        _ => Fact::Judged(Verdict::Unusable),
    });
}

fn decided(state: &mut AgentState, event: &Event) -> Result<(), Misfit> {
    let decided: Decided = kernel::body(event)?;
    state.fact = None;
    state.best = decided.best;
    state.no_progress = decided.no_progress;
    state.unusable = decided.unusable;
    match decided.action {
        Action::Accept => end(state, "succeeded", "the evaluator passed it"),
        Action::Stop => end(state, &decided.reason, "no more is allowed"),
        Action::Escalate => {
            state.phase = Phase::Ask;
            state.questions += 1;
        }
        Action::Replan => {
            state.replans += 1;
            state.no_progress = 0;
            begin_iteration(state, Phase::Plan);
        }
        Action::Retry => {
            begin_iteration(state, Phase::Act);
            if decided.unusable > 0 {
                let doublings = decided.unusable.saturating_sub(1).min(10);
                let pause_us = state.settings.pause_us << doublings;
                state.not_before = Some(event.time.plus(pause_us));
            }
        }
    }
    Ok(())
}

fn answered(state: &mut AgentState, answered: Answered) {
    state.fact = None;
    match answered.word {
        Word::Continue => {
            state.no_progress = 0;
            begin_iteration(state, Phase::Act);
        }
        Word::Accept => end(state, "succeeded", "a person accepted it"),
        Word::Stop => end(state, "stopped_by_human", "a person stopped it"),
    }
}

fn begin_iteration(state: &mut AgentState, phase: Phase) {
    state.iteration += 1;
    state.phase = phase;
}

fn end(state: &mut AgentState, reason: &str, words: &str) {
    state.phase = Phase::Over;
    state.ending.get_or_insert(Ending::new(reason, words));
}
