//! What came from outside: as it is given to a turn, and as the machine is told of it.

use serde::Serialize;
use serde_json::Value;

use crate::effect::Settlement;
use crate::event::{Event, Scope, Scrub};
use crate::ids::EffectId;
use crate::kernel::{self, AbandonedWhy, EffectAbandoned, EndedBy, InvocationEnded, kind};
use crate::machine::{Input, Misfit};

use super::TurnError;

/// Something that came from outside, to be recorded as an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// One of the given kinds of [`kernel::kind`].
    pub kind: &'static str,
    /// What it is about.
    pub scope: Scope,
    /// The effect it settles or gives up, with the attempt.
    pub effect: Option<(EffectId, u32)>,
    /// What was scrubbed from the body.
    pub scrub: Scrub,
    /// The body.
    pub body: Value,
}

impl Given {
    /// A given event about the whole run.
    pub fn new<T: Serialize>(kind: &'static str, body: &T) -> Self {
        let body = serde_json::to_value(body).expect("BUG: an event's body is plain data");
        Self {
            kind,
            scope: Scope::run(),
            effect: None,
            scrub: Scrub {
                rules: 0,
                values: 0,
            },
            body,
        }
    }

    /// A given event about an attempt.
    pub fn about<T: Serialize>(
        kind: &'static str,
        effect: &EffectId,
        attempt: u32,
        body: &T,
    ) -> Self {
        Self {
            effect: Some((effect.clone(), attempt)),
            ..Self::new(kind, body)
        }
    }

    /// The same with what was scrubbed from it.
    pub fn scrubbed(self, scrub: Scrub) -> Self {
        Self { scrub, ..self }
    }
}

/// Whether an event came from outside (and so must be given again in a replay).
pub fn is_given(event: &Event) -> bool {
    match event.kind.as_str() {
        kind::RUN_STARTED
        | kind::INVOCATION_BEGUN
        | kind::EFFECT_SETTLED
        | kind::EFFECT_UNKNOWN
        | kind::EFFECT_LOST
        | kind::CLOCK_REACHED
        | kind::LIMITS_SET
        | kind::OPERATOR_ACT
        | kind::OPERATOR_NOTED => true,
        kind::EFFECT_ABANDONED => kernel::body::<EffectAbandoned>(event)
            .is_ok_and(|abandoned| abandoned.why != AbandonedWhy::Withdrawn),
        kind::INVOCATION_ENDED => {
            kernel::body::<InvocationEnded>(event).is_ok_and(|ended| ended.by == EndedBy::Host)
        }
        _ => false,
    }
}

/// The input that a given event is to the machine.
pub(super) fn input_of(event: &Event) -> Result<Option<Input>, TurnError> {
    let effect = || {
        event
            .effect
            .clone()
            .ok_or_else(|| Misfit::new(event, "it names no effect"))
    };
    let input = match event.kind.as_str() {
        kind::INVOCATION_BEGUN => {
            let begun: kernel::InvocationBegun = kernel::body(event)?;
            Input::Begun {
                invocation: begun.invocation,
                caps: begun.caps,
            }
        }
        kind::EFFECT_SETTLED => {
            let settlement: Settlement = kernel::body(event)?;
            Input::Settled {
                effect: effect()?,
                settlement,
            }
        }
        kind::EFFECT_LOST => Input::Lost { effect: effect()? },
        kind::CLOCK_REACHED => Input::Woken,
        kind::LIMITS_SET => {
            let set: kernel::LimitsSet = kernel::body(event)?;
            Input::Limits { limits: set.limits }
        }
        kind::OPERATOR_ACT => {
            let act: kernel::OperatorAct = kernel::body(event)?;
            match kernel::resolved_effect(&act) {
                Some(effect) if act.act == kernel::ACT_RESOLVE => {
                    if !kernel::resolved_as_failed(&act) {
                        return Ok(None);
                    }
                    Input::Lost { effect }
                }
                _ => Input::Act {
                    act: act.act,
                    arguments: act.arguments,
                },
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(input))
}
