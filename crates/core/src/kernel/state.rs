//! What the kernel knows of a run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::{Account, Admission, Booked, Ceiling};
use crate::canonical::{CanonicalError, to_canonical};
use crate::digest::Digest;
use crate::effect::{Booking, Effect};
use crate::event::Scope;
use crate::ids::{EffectId, RunId};
use crate::machine::Ending;
use crate::role::Role;
use crate::time::Micros;

use super::bodies::EffectAnnounced;

pub(super) const DECISION_DOMAIN: &str = "loopwright/decision/1";
const ANSWER_DOMAIN: &str = "loopwright/answer/1";

/// How many closed questions are remembered.
pub const CLOSED_MAX: usize = 8;

/// From how many on effects of unknown outcome are forgotten that can't come again.
pub const UNKNOWN_MAX: usize = 64;

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

/// What is remembered of an effect that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenUp {
    /// Its last attempt.
    pub attempt: u32,
    /// When its first attempt was announced.
    pub asked_at: Micros,
    /// What the next attempt's announcement takes back, where each reports what all have used.
    pub booked: Option<Booked>,
}

/// A question to a person that is not open any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    /// Which.
    pub effect: EffectId,
    /// Which time it was asked, from 1.
    pub attempt: u32,
    /// When it was closed.
    pub at: Micros,
    /// How.
    pub how: ClosedHow,
}

/// How a question was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedHow {
    /// By an answer; the digest tells an equal one from another.
    Answered(Digest),
    /// Nobody waited for an answer any more.
    Withdrawn,
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
    pub given_up: BTreeMap<EffectId, GivenUp>,
    /// Effects a person is asked about.
    pub unknown: BTreeSet<EffectId>,
    /// The questions closed last, oldest first; at most [`CLOSED_MAX`].
    pub closed: VecDeque<Closed>,
    /// The run's budget.
    pub account: Account,
    /// Whether the end of the wall clock has been said, under the limit in force.
    pub is_out_of_time: bool,
    /// How the run ended.
    pub ended: Option<Ending>,
    /// When it ended.
    pub ended_at: Option<Micros>,
    /// A rolling digest of all decisions, without times: equal for equal decision logs.
    pub decisions: Digest,
}

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
            given_up: BTreeMap::new(),
            unknown: BTreeSet::new(),
            closed: VecDeque::new(),
            account: Account::default(),
            is_out_of_time: false,
            ended: None,
            ended_at: None,
            decisions: Digest::of(DECISION_DOMAIN, b""),
        }
    }

    /// Whether effects other than questions to people are in flight.
    pub fn busy(&self) -> bool {
        self.in_flight.values().any(|flight| !flight.is_question())
    }

    /// The questions to people that are open.
    pub fn questions(&self) -> impl Iterator<Item = (&EffectId, &InFlight)> {
        self.in_flight
            .iter()
            .filter(|(_, flight)| flight.is_question())
    }

    /// Whether the wall clock runs: while an invocation is open, unless a person is all that is
    /// waited for.
    pub fn clock_runs(&self) -> bool {
        self.invocation.is_some() && (self.in_flight.is_empty() || self.busy())
    }

    /// When the wall clock runs out, if it goes on running and that has not been said.
    pub fn out_of_time_at(&self) -> Option<Micros> {
        let limit = self.account.limits.wall_us?;
        let left = limit.saturating_sub(self.account.spent.wall_us);
        (self.clock_runs() && !self.is_out_of_time).then(|| self.last_time.plus(left))
    }

    /// The next attempt at an effect, from 1.
    pub fn next_attempt(&self, effect: &EffectId) -> u32 {
        self.given_up.get(effect).map_or(0, |last| last.attempt) + 1
    }

    /// Whether an effect may be announced now, and what is reserved for it then.
    pub fn admit(&self, effect: &Effect) -> (Ceiling, Admission) {
        if effect.role == Role::Human {
            return (Ceiling::nothing(), Admission::Fits);
        }
        if effect.booking == Booking::EachAttempt {
            return (effect.ceiling, self.account.admit(effect.ceiling));
        }
        let mut account = self.account;
        if let Some(booked) = self.given_up.get(&effect.id).and_then(|last| last.booked) {
            account.take_back(booked);
        }
        let ceiling = account.with_the_rest(effect.ceiling);
        (ceiling, account.admit(effect.ceiling))
    }
}

impl InFlight {
    /// Whether a person is asked.
    pub fn is_question(&self) -> bool {
        self.announcement.role == Role::Human
    }
}

/// The digest by which equal answers are known.
pub fn answer_digest(result: &Value) -> Result<Digest, CanonicalError> {
    Ok(Digest::of(ANSWER_DOMAIN, &to_canonical(result)?))
}
