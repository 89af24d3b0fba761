//! Effects: what a machine asks of the outside world, and how that ends.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::{Ceiling, Limits};
use crate::digest::Digest;
use crate::event::Scope;
use crate::ids::{EffectId, RunId};
use crate::role::{OnUnknown, Role};
use crate::time::Micros;
use crate::usage::Usage;

/// Something the outside world is asked to do. A machine's state says which effects are wanted;
/// the kernel announces those that are new, and the host performs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// A path computed from the state, no counter.
    pub id: EffectId,
    /// Who does it.
    pub role: Role,
    /// What part of the run it belongs to.
    pub scope: Scope,
    /// The event it follows from, where that isn't the newest one of the run.
    pub after: Option<Digest>,
    /// What is asked, small; big inputs are rebuilt from the journal by the host.
    pub request: Value,
    /// The worst case, reserved before it starts.
    pub ceiling: Ceiling,
    /// What happens when its outcome is unknown.
    pub on_unknown: OnUnknown,
    /// What its attempts report.
    pub booking: Booking,
}

/// What the attempts of an effect report as used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Booking {
    /// Each its own; a lost one is booked at its ceiling, and stays so.
    #[default]
    EachAttempt,
    /// Each what all have used together: whoever performs it keeps an account of his own, as a
    /// child run does. What a lost or stopped one was booked at is taken back when the next is
    /// announced. In a limited dimension without a ceiling it reserves all that is free.
    AllAttempts,
}

impl Booking {
    /// Whether it is the default, which isn't written down.
    pub fn is_each(&self) -> bool {
        *self == Self::EachAttempt
    }
}

impl Effect {
    /// A question to a person. It reserves nothing and costs nothing, and stays open over
    /// invocations.
    pub fn question(id: impl Into<String>, scope: Scope, request: Value) -> Self {
        Self {
            role: Role::Human,
            ceiling: Ceiling::nothing(),
            ..Self::builtin(id, scope, request)
        }
    }

    /// A built-in effect: free, and safe to do again.
    pub fn builtin(id: impl Into<String>, scope: Scope, request: Value) -> Self {
        Self {
            id: EffectId::new(id),
            role: Role::Builtin,
            scope,
            after: None,
            request,
            ceiling: Ceiling::time(None),
            on_unknown: OnUnknown::Retry,
            booking: Booking::EachAttempt,
        }
    }
}

/// An announced effect as the host gets it: the effect with its attempt and fencing token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    /// The run.
    pub run: RunId,
    /// The effect.
    pub effect: EffectId,
    /// Who does it.
    pub role: Role,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The writer's epoch, so that a stale holder's work can be told apart.
    pub epoch: u64,
    /// What part of the run it belongs to.
    pub scope: Scope,
    /// What is asked.
    pub request: Value,
    /// What was reserved for it: whoever performs it must not use more. A child run's limits are
    /// its own under this ([`Limits::under`](crate::budget::Limits::under)).
    pub ceiling: Ceiling,
    /// What was left of the run's limits before that was reserved.
    pub left: Limits,
    /// When its first attempt was announced. Clocks in role inputs read this, so that a retry sends
    /// the same.
    pub asked_at: Micros,
}

impl Announced {
    /// The key under which an outside service can recognise a repeated attempt.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.run, self.effect)
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    /// The role's result, typed by the machine that asked; small, big values by digest.
    pub result: Value,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
}
