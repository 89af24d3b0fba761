//! The door that every kind of loop has.
//!
//! A machine is three functions over a state that folds from events. `decide` says which events
//! follow from an input, `apply` folds one event, `next` says which effects the state wants, as a
//! set keyed by effect id, and when it wants to be woken. Results arrive in any order.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::budget::{Limits, OverBudget};
use crate::digest::Digest;
use crate::effect::{Effect, Settlement};
use crate::ending::Reason;
use crate::event::{Event, Scope};
use crate::ids::EffectId;
use crate::time::Micros;

/// What a machine is told. Each is recorded as an event before the machine sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// An invocation (`run`, `resume`) begins, with the caps that hold for it alone.
    Begun {
        /// The invocation's number, from 1.
        invocation: u64,
        /// Its caps, typed by the machine.
        caps: Value,
    },
    /// An effect was settled.
    Settled {
        /// Which.
        effect: EffectId,
        /// How it ended.
        settlement: Settlement,
    },
    /// An effect may not start: it doesn't fit the budget.
    Refused {
        /// Which.
        effect: EffectId,
        /// Where it doesn't fit.
        over: OverBudget,
    },
    /// An effect's outcome is unknown and will stay so (`on_unknown = fail`, or nobody to ask).
    Lost {
        /// Which.
        effect: EffectId,
    },
    /// A person's word: an answer, a request to retry, a cancellation.
    Act {
        /// What, `noun.verb`.
        act: String,
        /// With what.
        arguments: Value,
    },
    /// A deadline that the machine asked for has passed.
    Woken,
    /// The run's wall clock has run out; nothing new is admitted until its limit is raised.
    Exhausted {
        /// The limit.
        over: OverBudget,
    },
    /// The run's limits were set anew.
    Limits {
        /// All of them.
        limits: Limits,
    },
}

/// An event that a machine wants recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// What happened, `noun.verb`.
    pub kind: &'static str,
    /// What it is about.
    pub scope: Scope,
    /// The event it follows from, where that isn't the newest one of the run.
    pub after: Option<Digest>,
    /// The rest; integers only, no times, durations or ids of events, so that it reads the same
    /// on every host and after every crash.
    pub body: Value,
}

impl Draft {
    /// A draft that follows the newest event.
    pub fn new<T: Serialize>(kind: &'static str, scope: Scope, body: &T) -> Self {
        let body = serde_json::to_value(body).expect("BUG: an event's body is plain data");
        Self {
            kind,
            scope,
            after: None,
            body,
        }
    }
}

/// What a state wants from the world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// The effects wanted now, each with its own id. An effect stays wanted until it is settled.
    /// They are admitted to the budget in this order: where one waits for effects in flight, those
    /// behind it wait too.
    pub effects: Vec<Effect>,
    /// What becomes of effects in flight that are not among them.
    pub finish: Finish,
    /// When the machine wants to be woken at the latest.
    pub deadline: Option<Micros>,
}

/// Which effects in flight may come to their end though the state doesn't want them begun: a
/// pruned branch, an invocation that ends for want of money. Whatever isn't spared is stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// None.
    #[default]
    Nothing,
    /// All.
    Everything,
    /// Those whose path is one of these or lies under one.
    Under(Vec<EffectId>),
}

impl Finish {
    /// Whether it spares that effect.
    pub fn spares(&self, effect: &EffectId) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Under(paths) => paths.iter().any(|path| effect.is_under(path)),
        }
    }
}

/// Why an invocation or a run is over, for machines and people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// The reason: the name of a [`Reason`], or a word that only a kind of loop of its own knows.
    pub reason: String,
    /// The reason in words.
    pub words: String,
}

impl Ending {
    /// An ending for one of the reasons that all surfaces know.
    pub fn because(reason: Reason, words: impl Into<String>) -> Self {
        Self::new(reason.name(), words)
    }

    /// The reason, where this release knows it.
    pub fn known(&self) -> Option<Reason> {
        Reason::named(&self.reason)
    }

    /// An ending for a reason of the machine's own.
    pub fn new(reason: &str, words: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            words: words.into(),
        }
    }
}

/// What a machine is doing, as its host needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It wants effects, or waits for those in flight.
    Working,
    /// It waits for a person; nothing else will move it.
    Waiting {
        /// What for, in words.
        question: String,
    },
    /// This invocation has nothing more to do; another may begin.
    Idle(Ending),
    /// The run is over for good.
    Ended(Ending),
}

/// The journal doesn't fit the machine: damaged, or written by something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} ({kind}) doesn't fit the run's state: {why}")]
pub struct Misfit {
    /// The event's number.
    pub seq: u64,
    /// Its kind.
    pub kind: String,
    /// What is wrong.
    pub why: String,
}

impl Misfit {
    /// A misfit of `event`.
    pub fn new(event: &Event, why: impl Into<String>) -> Self {
        Self {
            seq: event.seq,
            kind: event.kind.clone(),
            why: why.into(),
        }
    }
}

/// A kind of loop.
pub trait Machine {
    /// The state; small (64 KiB), independent of how many trials or iterations lie behind it.
    type State: Clone + PartialEq + Serialize + DeserializeOwned;

    /// The kind's name: `experiment`, `agent`, `search`.
    const KIND: &'static str;

    /// The machine's own version; a snapshot of another version is not used.
    const VERSION: u32;

    /// The kinds of its own events, all that any release up to this one writes. A run that holds
    /// others can be read, but not driven.
    const KINDS: &'static [&'static str];

    /// The decision policies it has, `name/version`; old ones stay.
    const POLICIES: &'static [&'static str];

    /// The state before the first input, from the pinned specification.
    fn start(specification: &Value) -> Result<Self::State, String>;

    /// The decision policies in force, `name/version`; recorded with the run's start.
    fn policies(state: &Self::State) -> Vec<String>;

    /// Which events follow from `input`, already recorded and applied, at `now`.
    fn decide(state: &Self::State, input: &Input, now: Micros) -> Vec<Draft>;

    /// Folds one event, of the kernel's or of this machine's.
    fn apply(state: &mut Self::State, event: &Event, id: Digest) -> Result<(), Misfit>;

    /// What the state wants.
    fn next(state: &Self::State) -> Next;

    /// What the state is doing.
    fn status(state: &Self::State) -> Status;

    /// Whether the state can never want that effect again, whatever happens: its trial, level or
    /// iteration is over. The kernel then forgets how often it was attempted, so that what it keeps
    /// is bounded. One that is wanted again after all would be recorded as a first attempt twice.
    fn is_past(state: &Self::State, effect: &EffectId) -> bool;
}
