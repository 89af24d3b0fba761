//! Effects: what a machine asks of the outside world, and how that ends.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::Ceiling;
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
}

impl Effect {
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
