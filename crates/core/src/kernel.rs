//! The bookkeeping that all kinds of loop share: invocations, effects in flight, budgets, ends.
//!
//! The kernel folds its own kinds of events; a machine never has to know what an attempt or an
//! epoch is. Its events fall in two groups. *Given* ones record what came from outside (an
//! invocation, a settled effect, a person's word); *derived* ones follow from them (announcements,
//! refusals, a machine's own end). [`crate::turn`] makes the second from the first, which is why a
//! replay can check them byte for byte.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::{Account, Ceiling, Limits, OverBudget};
use crate::canonical::to_canonical;
use crate::digest::Digest;
use crate::event::{Event, Scope};
use crate::ids::{EffectId, LoopName, RunId};
use crate::machine::{Ending, Misfit};
use crate::role::{OnUnknown, Role};
use crate::time::Micros;
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
    /// Given: an attempt was stopped or lost; another may follow.
    pub const EFFECT_ABANDONED: &str = "effect.abandoned";
    /// Given: an attempt's outcome is unknown and a person is asked about it.
    pub const EFFECT_UNKNOWN: &str = "effect.unknown";
    /// Given: an effect's outcome is unknown and it counts as failed.
    pub const EFFECT_LOST: &str = "effect.lost";
    /// Derived: an effect doesn't fit the budget.
    pub const EFFECT_REFUSED: &str = "effect.refused";
    /// Given: a deadline has passed.
    pub const CLOCK_REACHED: &str = "clock.reached";
    /// Given: a person's word.
    pub const OPERATOR_ACT: &str = "operator.act";
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
}

/// Why an attempt was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbandonedWhy {
    /// The host stopped it, on a signal.
    Interrupted,
    /// The host died; what the attempt did is not known.
    HostDied,
    /// The machine doesn't want it any more.
    Unwanted,
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

/// Body of [`kind::RUN_ENDED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEnded {
    /// Why.
    pub ending: Ending,
}

/// An attempt that was announced and not settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InFlight {
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The announcement.
    pub announcement: EffectAnnounced,
    /// What part of the run it belongs to.
    pub scope: Scope,
    /// When it was announced.
    pub announced_at: Micros,
    /// When its first attempt was announced: the clock of whatever is asked.
    pub asked_at: Micros,
    /// The announcing event.
    pub event: Digest,
}

/// An effect that was given up and may be attempted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenUp {
    /// Its last attempt.
    pub attempt: u32,
    /// When its first attempt was announced.
    pub asked_at: Micros,
}

impl InFlight {
    fn given_up(&self) -> GivenUp {
        GivenUp {
            attempt: self.attempt,
            asked_at: self.asked_at,
        }
    }
}

/// An invocation that has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenInvocation {
    /// Its number.
    pub number: u64,
    /// When it began.
    pub begun_at: Micros,
}

/// The kernel's state of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// The run.
    pub run: RunId,
    /// The next event's number.
    pub next_seq: u64,
    /// The newest event.
    pub last_event: Option<Digest>,
    /// The newest event's time.
    pub last_time: Micros,
    /// How many invocations have begun.
    pub invocations: u64,
    /// The open one.
    pub invocation: Option<OpenInvocation>,
    /// How the last invocation ended.
    pub last_ending: Option<Ending>,
    /// Effects announced and not settled.
    pub in_flight: BTreeMap<EffectId, InFlight>,
    /// Effects that were given up and may be attempted again.
    pub attempts: BTreeMap<EffectId, GivenUp>,
    /// Effects a person is asked about.
    pub unknown: BTreeSet<EffectId>,
    /// The run's budget.
    pub account: Account,
    /// How the run ended.
    pub ended: Option<Ending>,
    /// A rolling digest of all decisions, without times: equal for equal decision logs.
    pub decisions: Digest,
}

const DECISION_DOMAIN: &str = "loopwright/decision/1";

impl Kernel {
    /// The state before the first event.
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            next_seq: 0,
            last_event: None,
            last_time: Micros(0),
            invocations: 0,
            invocation: None,
            last_ending: None,
            in_flight: BTreeMap::new(),
            attempts: BTreeMap::new(),
            unknown: BTreeSet::new(),
            account: Account::default(),
            ended: None,
            decisions: Digest::of(DECISION_DOMAIN, b""),
        }
    }

    /// Folds one event, the machine's kinds included.
    pub fn apply(&mut self, event: &Event, id: Digest) -> Result<(), Misfit> {
        if event.seq != self.next_seq {
            return Err(Misfit::new(
                event,
                format!("event {} was expected", self.next_seq),
            ));
        }
        if event.run != self.run {
            return Err(Misfit::new(
                event,
                format!("it belongs to run {}", event.run),
            ));
        }
        if event.kind == kind::RUN_STARTED {
            self.start(event)?;
        } else if event.seq == 0 {
            return Err(Misfit::new(event, "a run begins with run.started"));
        } else {
            self.apply_kind(event, id)?;
        }
        self.next_seq += 1;
        self.last_event = Some(id);
        self.last_time = event.time;
        Ok(())
    }

    fn start(&mut self, event: &Event) -> Result<(), Misfit> {
        if event.seq != 0 {
            return Err(Misfit::new(event, "the run has started already"));
        }
        let body: RunStarted = body(event)?;
        self.account = Account::new(body.limits);
        Ok(())
    }

    fn apply_kind(&mut self, event: &Event, id: Digest) -> Result<(), Misfit> {
        match event.kind.as_str() {
            kind::INVOCATION_BEGUN => self.begin(event),
            kind::INVOCATION_ENDED => {
                let ended: InvocationEnded = body(event)?;
                let open = self.invocation.map(|invocation| invocation.number);
                if open != Some(ended.invocation) {
                    return Err(Misfit::new(event, "that invocation is not open"));
                }
                self.invocation = None;
                self.last_ending = Some(ended.ending);
                Ok(())
            }
            kind::EFFECT_ANNOUNCED => self.announce(event, id),
            kind::EFFECT_SETTLED => {
                let settlement: crate::effect::Settlement = body(event)?;
                let (_, flight) = self.land(event)?;
                self.account
                    .settle(flight.announcement.ceiling, &settlement.usage);
                Ok(())
            }
            kind::EFFECT_ABANDONED => {
                let abandoned: EffectAbandoned = body(event)?;
                let (effect, flight) = self.land(event)?;
                self.account
                    .give_up(flight.announcement.ceiling, &abandoned.usage);
                // Kept even for an unwanted one: if it is wanted again, its attempts go on counting.
                self.attempts.insert(effect, flight.given_up());
                Ok(())
            }
            kind::EFFECT_UNKNOWN | kind::EFFECT_LOST => {
                let (effect, flight) = self.land(event)?;
                let ceiling = flight.announcement.ceiling;
                if event.kind == kind::EFFECT_UNKNOWN {
                    self.account.give_up(ceiling, &Usage::default());
                    self.attempts.insert(effect.clone(), flight.given_up());
                    self.unknown.insert(effect);
                } else {
                    self.account.settle(ceiling, &Usage::default());
                }
                Ok(())
            }
            kind::OPERATOR_ACT => self.act(event),
            kind::RUN_ENDED => {
                let ended: RunEnded = body(event)?;
                self.ended = Some(ended.ending);
                Ok(())
            }
            kind::EFFECT_REFUSED | kind::CLOCK_REACHED => Ok(()),
            _ => self.note_decision(event),
        }
    }

    fn begin(&mut self, event: &Event) -> Result<(), Misfit> {
        let begun: InvocationBegun = body(event)?;
        if self.invocation.is_some() || begun.invocation != self.invocations + 1 {
            return Err(Misfit::new(
                event,
                "another invocation is open, or its number is wrong",
            ));
        }
        if self.ended.is_some() {
            return Err(Misfit::new(event, "the run has ended"));
        }
        if self.busy() {
            return Err(Misfit::new(
                event,
                "attempts of the invocation before are still in flight",
            ));
        }
        self.invocations = begun.invocation;
        self.invocation = Some(OpenInvocation {
            number: begun.invocation,
            begun_at: event.time,
        });
        Ok(())
    }

    fn announce(&mut self, event: &Event, id: Digest) -> Result<(), Misfit> {
        let announcement: EffectAnnounced = body(event)?;
        let (effect, attempt) = named_attempt(event)?;
        let before = self.attempts.remove(&effect);
        let expected = before.map_or(0, |before| before.attempt) + 1;
        if attempt != expected || self.in_flight.contains_key(&effect) {
            return Err(Misfit::new(
                event,
                format!("attempt {expected} was expected"),
            ));
        }
        self.account.reserve(announcement.ceiling);
        let flight = InFlight {
            attempt,
            announcement,
            scope: event.scope.clone(),
            announced_at: event.time,
            asked_at: before.map_or(event.time, |before| before.asked_at),
            event: id,
        };
        self.in_flight.insert(effect, flight);
        Ok(())
    }

    /// Takes the attempt that `event` is about out of the air.
    fn land(&mut self, event: &Event) -> Result<(EffectId, InFlight), Misfit> {
        let (effect, attempt) = named_attempt(event)?;
        match self.in_flight.remove(&effect) {
            Some(flight) if flight.attempt == attempt => Ok((effect, flight)),
            _ => Err(Misfit::new(
                event,
                format!("attempt {attempt} of {effect} is not in flight"),
            )),
        }
    }

    fn act(&mut self, event: &Event) -> Result<(), Misfit> {
        let act: OperatorAct = body(event)?;
        if act.act != ACT_RESOLVE {
            return Ok(());
        }
        let effect =
            resolved_effect(&act).ok_or_else(|| Misfit::new(event, "it names no effect"))?;
        if !self.unknown.remove(&effect) {
            return Err(Misfit::new(
                event,
                format!("nobody was asked about {effect}"),
            ));
        }
        if resolved_as_failed(&act) {
            self.attempts.remove(&effect);
        }
        Ok(())
    }

    fn note_decision(&mut self, event: &Event) -> Result<(), Misfit> {
        let decision = serde_json::json!({
            "before": self.decisions, "kind": event.kind, "scope": event.scope, "body": event.body,
        });
        let bytes =
            to_canonical(&decision).map_err(|error| Misfit::new(event, error.to_string()))?;
        self.decisions = Digest::of(DECISION_DOMAIN, &bytes);
        Ok(())
    }

    /// Whether effects other than questions to people are in flight.
    pub fn busy(&self) -> bool {
        self.in_flight
            .values()
            .any(|flight| flight.announcement.role != Role::Human)
    }
}

/// The effect that an [`ACT_RESOLVE`] is about.
pub fn resolved_effect(act: &OperatorAct) -> Option<EffectId> {
    act.arguments
        .get("effect")
        .and_then(Value::as_str)
        .map(EffectId::new)
}

/// Whether an [`ACT_RESOLVE`] says that the effect counts as failed.
pub fn resolved_as_failed(act: &OperatorAct) -> bool {
    act.arguments.get("as").and_then(Value::as_str) == Some("fail")
}

fn named_attempt(event: &Event) -> Result<(EffectId, u32), Misfit> {
    match (&event.effect, event.attempt) {
        (Some(effect), Some(attempt)) => Ok((effect.clone(), attempt)),
        _ => Err(Misfit::new(event, "it names no effect and attempt")),
    }
}

/// The typed body of an event.
pub fn body<T: serde::de::DeserializeOwned>(event: &Event) -> Result<T, Misfit> {
    T::deserialize(&event.body).map_err(|error| Misfit::new(event, error.to_string()))
}
