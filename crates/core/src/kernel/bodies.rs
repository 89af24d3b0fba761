//! The kinds of the kernel's events, and what stands in them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::{Ceiling, Limits, OverBudget};
use crate::digest::Digest;
use crate::effect::Booking;
use crate::event::Event;
use crate::ids::{EffectId, LoopName, RunId};
use crate::machine::{Ending, Misfit};
use crate::role::{OnUnknown, Role};
use crate::usage::Usage;

/// Kinds of the kernel's events.
pub mod kind {
    /// Given: the first event of a run.
    pub const RUN_STARTED: &str = "run.started";
    /// Derived: the run is over for good.
    pub const RUN_ENDED: &str = "run.ended";
    /// Given: `run` or `resume` began.
    pub const INVOCATION_BEGUN: &str = "invocation.begun";
    /// Given when the host ends it, derived when the machine has nothing more to do.
    pub const INVOCATION_ENDED: &str = "invocation.ended";
    /// Derived: an effect is about to start.
    pub const EFFECT_ANNOUNCED: &str = "effect.announced";
    /// Given: an effect came to its end.
    pub const EFFECT_SETTLED: &str = "effect.settled";
    /// Given: an attempt was stopped or lost; another may follow. Derived where a question is
    /// withdrawn.
    pub const EFFECT_ABANDONED: &str = "effect.abandoned";
    /// Given: an attempt's outcome is unknown and a person is asked about it.
    pub const EFFECT_UNKNOWN: &str = "effect.unknown";
    /// Given: an effect's outcome is unknown and it counts as failed.
    pub const EFFECT_LOST: &str = "effect.lost";
    /// Derived: an effect doesn't fit the budget.
    pub const EFFECT_REFUSED: &str = "effect.refused";
    /// Given: a deadline has passed.
    pub const CLOCK_REACHED: &str = "clock.reached";
    /// Derived: the wall clock of the run has run out.
    pub const CLOCK_EXHAUSTED: &str = "clock.exhausted";
    /// Given: the run's limits are others from now on.
    pub const LIMITS_SET: &str = "limits.set";
    /// Given: a person's word that something may follow from.
    pub const OPERATOR_ACT: &str = "operator.act";
    /// Given: a person's word that nothing follows from, a tag or a remark; also after the end.
    pub const OPERATOR_NOTED: &str = "operator.noted";

    /// All of them.
    pub const ALL: [&str; 15] = [
        RUN_STARTED,
        RUN_ENDED,
        INVOCATION_BEGUN,
        INVOCATION_ENDED,
        EFFECT_ANNOUNCED,
        EFFECT_SETTLED,
        EFFECT_ABANDONED,
        EFFECT_UNKNOWN,
        EFFECT_LOST,
        EFFECT_REFUSED,
        CLOCK_REACHED,
        CLOCK_EXHAUSTED,
        LIMITS_SET,
        OPERATOR_ACT,
        OPERATOR_NOTED,
    ];
}

/// The operator's act that says what to do about an effect whose outcome is unknown.
pub const ACT_RESOLVE: &str = "unknown.resolve";

/// Body of [`kind::RUN_STARTED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStarted {
    /// The loop's name.
    #[serde(rename = "loop")]
    pub loop_name: LoopName,
    /// `experiment`, `agent` or `search`.
    pub kind: String,
    /// The machine's version.
    pub machine: u32,
    /// The decision policies in force, `name/version`.
    pub policies: Vec<String>,
    /// The release that wrote it.
    pub release: String,
    /// The run's budget.
    pub limits: Limits,
    /// The run this one is a role of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// What the run was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// The pinned specification.
    pub specification: Value,
}

/// The run and effect that a child run works for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentRun {
    /// The parent.
    pub run: RunId,
    /// The parent's effect.
    pub effect: EffectId,
}

/// What a fork stands on. The fork has an id of its own for each act of forking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Basis {
    /// The run that was forked.
    pub run: RunId,
    /// The last event it shares with the fork.
    pub event: Digest,
    /// That event's number.
    pub seq: u64,
}

/// Body of [`kind::INVOCATION_BEGUN`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvocationBegun {
    /// Its number, from 1.
    pub invocation: u64,
    /// Its caps, typed by the machine.
    pub caps: Value,
}

/// Who ended an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The machine had nothing more to do.
    Machine,
    /// The host: a signal, a full disk.
    Host,
}

/// Body of [`kind::INVOCATION_ENDED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvocationEnded {
    /// Its number.
    pub invocation: u64,
    /// Who ended it.
    pub by: EndedBy,
    /// Why.
    pub ending: Ending,
}

/// Body of [`kind::EFFECT_ANNOUNCED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectAnnounced {
    /// Who does it.
    pub role: Role,
    /// What is asked.
    pub request: Value,
    /// The worst case, reserved.
    pub ceiling: Ceiling,
    /// What happens when its outcome is unknown.
    pub on_unknown: OnUnknown,
    /// What its attempts report.
    #[serde(default, skip_serializing_if = "Booking::is_each")]
    pub booking: Booking,
}

/// Why an attempt was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbandonedWhy {
    /// The host stopped it, on a signal.
    Interrupted,
    /// The host died; what the attempt did is not known.
    HostDied,
    /// The machine doesn't want it any more, and the host stopped it.
    Unwanted,
    /// A question that the machine doesn't want answered any more. Nobody has to be stopped for
    /// that, so it follows from the state.
    Withdrawn,
}

/// Body of [`kind::EFFECT_ABANDONED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectAbandoned {
    /// Why.
    pub why: AbandonedWhy,
    /// What it had used, as far as known.
    #[serde(default)]
    pub usage: Usage,
}

/// Body of [`kind::EFFECT_REFUSED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectRefused {
    /// Where it doesn't fit.
    pub over: OverBudget,
}

/// Body of [`kind::OPERATOR_ACT`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorAct {
    /// What, `noun.verb`.
    pub act: String,
    /// With what.
    pub arguments: Value,
}

/// Body of [`kind::OPERATOR_NOTED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorNoted {
    /// What, `noun.verb`.
    pub note: String,
    /// With what.
    pub arguments: Value,
}

/// Body of [`kind::LIMITS_SET`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsSet {
    /// All of them, and not what is added: said twice it is said once.
    pub limits: Limits,
}

/// Body of [`kind::CLOCK_EXHAUSTED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockExhausted {
    /// The limit.
    pub over: OverBudget,
}

/// Body of [`kind::RUN_ENDED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEnded {
    /// Why.
    pub ending: Ending,
}

/// What a person says about an effect whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It is done again: same idempotency key, next attempt.
    Retry,
    /// It counts as failed.
    Fail,
}

impl Resolution {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Fail => RESOLVED_AS_FAILED,
        }
    }

    /// The act that says so about `effect`.
    pub fn act(self, effect: &EffectId) -> OperatorAct {
        OperatorAct {
            act: ACT_RESOLVE.to_owned(),
            arguments: serde_json::json!({"effect": effect, "as": self.name()}),
        }
    }
}

const RESOLVED_AS_FAILED: &str = "fail";

/// The effect that an [`ACT_RESOLVE`] is about.
pub fn resolved_effect(act: &OperatorAct) -> Option<EffectId> {
    act.arguments
        .get("effect")
        .and_then(Value::as_str)
        .map(EffectId::new)
}

/// Whether an [`ACT_RESOLVE`] says that the effect counts as failed.
pub fn resolved_as_failed(act: &OperatorAct) -> bool {
    act.arguments.get("as").and_then(Value::as_str) == Some(RESOLVED_AS_FAILED)
}

/// The typed body of an event.
pub fn body<T: serde::de::DeserializeOwned>(event: &Event) -> Result<T, Misfit> {
    T::deserialize(&event.body).map_err(|error| Misfit::new(event, error.to_string()))
}
