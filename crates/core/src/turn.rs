//! One turn: what came from outside becomes one batch, with everything that follows from it.
//!
//! The host gives events ([`Given`]) to a [`Turn`]; the turn records each, lets the machine decide,
//! announces the effects that the new state wants, ends the invocation where nothing is left to do,
//! and hands back a batch to be committed and the effects to be performed *after* that commit. A
//! replay runs the same turns over the recorded givens and compares the bytes.

use serde::Serialize;
use serde_json::Value;

use crate::batch::Batch;
use crate::canonical::CanonicalError;
use crate::digest::Digest;
use crate::effect::{Announced, Effect, Settlement};
use crate::event::{EVENT_SCHEMA, Event, Scope, Scrub, Sealed};
use crate::ids::{EffectId, RunId};
use crate::kernel::{self, EffectAnnounced, EffectRefused, EndedBy, InvocationEnded, Kernel, kind};
use crate::machine::{Draft, Ending, Input, Machine, Misfit, Status};
use crate::role::Role;
use crate::time::Micros;

/// The most derived events one turn may make before it is taken for a machine that never rests.
const DERIVED_EVENTS_MAX: usize = 10_000;

/// A run as it stands: the kernel's state and the machine's.
#[derive(Clone, Debug, PartialEq)]
pub struct Run<M: Machine> {
    /// The kernel's state.
    pub kernel: Kernel,
    /// The machine's; none before the run has started.
    pub state: Option<M::State>,
    /// The newest batch: its number and digest.
    pub batch: Option<(u64, Digest)>,
}

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

/// What a turn leaves to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// To be committed before anything else; none when nothing happened.
    pub batch: Option<Batch>,
    /// To be performed after the commit.
    pub announced: Vec<Announced>,
    /// In flight and not wanted any more: to be stopped and given up.
    pub unwanted: Vec<EffectId>,
}

/// Why a turn can't be finished.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The given event doesn't fit the state.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// A body that can't be hashed.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The specification can't be started from.
    #[error("the run's specification can't be used: {0}")]
    Specification(String),
    /// The machine asks for ever more within one turn.
    #[error("the machine made more than {DERIVED_EVENTS_MAX} events in one turn")]
    Restless,
}

impl<M: Machine> Run<M> {
    /// A run before its first event.
    pub fn new(run: RunId) -> Self {
        Self {
            kernel: Kernel::new(run),
            state: None,
            batch: None,
        }
    }

    /// Folds one recorded event.
    pub fn apply(&mut self, event: &Event, id: Digest) -> Result<(), TurnError> {
        self.kernel.apply(event, id)?;
        if event.kind == kind::RUN_STARTED {
            let started: kernel::RunStarted = kernel::body(event)?;
            let state = M::start(&started.specification).map_err(TurnError::Specification)?;
            self.state = Some(state);
        } else if let Some(state) = &mut self.state {
            M::apply(state, event, id)?;
        }
        Ok(())
    }

    /// Notes that the events folded so far are those up to this batch.
    pub fn close_batch(&mut self, n: u64, digest: Digest) {
        self.batch = Some((n, digest));
    }

    /// What the run is doing.
    pub fn status(&self) -> Option<Status> {
        if let Some(ending) = &self.kernel.ended {
            return Some(Status::Ended(ending.clone()));
        }
        if let Some(effect) = self.asked_about() {
            let question =
                format!("the outcome of {effect} is unknown: do it again, or count it as failed?");
            return Some(Status::Waiting { question });
        }
        self.state.as_ref().map(M::status)
    }

    /// The effect of unknown outcome that a person has to say something about before the run can
    /// go on. While an invocation is open, an effect the machine has no use for any more (its trial
    /// is over) holds nothing up.
    fn asked_about(&self) -> Option<&EffectId> {
        let unknown = &self.kernel.unknown;
        match &self.state {
            Some(state) if self.kernel.invocation.is_some() && !unknown.is_empty() => {
                let wanted = M::next(state).effects;
                unknown
                    .iter()
                    .find(|id| wanted.iter().any(|effect| effect.id == **id))
            }
            _ => unknown.first(),
        }
    }

    /// When the machine wants to be woken, while an invocation is open.
    pub fn deadline(&self) -> Option<Micros> {
        self.kernel.invocation?;
        self.state
            .as_ref()
            .and_then(|state| M::next(state).deadline)
    }
}

/// A turn over a run.
pub struct Turn<'a, M: Machine> {
    run: &'a mut Run<M>,
    now: Micros,
    epoch: u64,
    events: Vec<Sealed>,
    announced: Vec<Announced>,
}

impl<'a, M: Machine> Turn<'a, M> {
    /// Begins a turn at `now` (never before the newest event) under the writer's `epoch`.
    pub fn new(run: &'a mut Run<M>, now: Micros, epoch: u64) -> Self {
        let now = now.max(run.kernel.last_time);
        Self {
            run,
            now,
            epoch,
            events: Vec::new(),
            announced: Vec::new(),
        }
    }

    /// The run as it stands within this turn.
    pub fn run(&self) -> &Run<M> {
        self.run
    }

    /// Records what came from outside and lets the machine decide about it.
    pub fn give(&mut self, given: Given) -> Result<(), TurnError> {
        let effect = given.effect.as_ref().map(|(effect, _)| effect.clone());
        let after = effect
            .as_ref()
            .and_then(|effect| self.run.kernel.in_flight.get(effect))
            .map(|flight| flight.event);
        let scope = match effect
            .as_ref()
            .and_then(|id| self.run.kernel.in_flight.get(id))
        {
            Some(flight) => flight.scope.clone(),
            None => given.scope,
        };
        let attempt = given.effect.map(|(_, attempt)| attempt);
        let event = self.envelope(given.kind, scope, after, given.body);
        let event = Event {
            effect,
            attempt,
            scrub: given.scrub,
            ..event
        };
        let input = input_of(&event)?;
        self.record(event)?;
        if let Some(input) = input {
            self.decide(&input)?;
        }
        Ok(())
    }

    /// Announces what the new state wants, ends what has come to its end, and closes the batch.
    pub fn finish(mut self) -> Result<Outcome, TurnError> {
        self.announce_wanted()?;
        self.end_invocation()?;
        let unwanted = self.unwanted();
        if self.events.is_empty() {
            return Ok(Outcome {
                batch: None,
                announced: Vec::new(),
                unwanted,
            });
        }
        let (n, previous) = match self.run.batch {
            Some((n, digest)) => (n + 1, Some(digest)),
            None => (0, None),
        };
        let run = self.run.kernel.run.clone();
        let batch = Batch::new(run, n, previous, self.epoch, self.events)?;
        self.run.close_batch(n, batch.digest);
        Ok(Outcome {
            batch: Some(batch),
            announced: self.announced,
            unwanted,
        })
    }

    fn envelope(&self, kind: &str, scope: Scope, after: Option<Digest>, body: Value) -> Event {
        let kernel = &self.run.kernel;
        let parents = match (after, kernel.last_event) {
            (Some(cause), _) => vec![cause],
            (None, last) => last.into_iter().collect(),
        };
        Event {
            schema: EVENT_SCHEMA,
            run: kernel.run.clone(),
            seq: kernel.next_seq,
            parents,
            kind: kind.to_owned(),
            scope,
            effect: None,
            attempt: None,
            time: self.now,
            scrub: Scrub {
                rules: 0,
                values: 0,
            },
            body,
        }
    }

    fn record(&mut self, event: Event) -> Result<Digest, TurnError> {
        if self.events.len() >= DERIVED_EVENTS_MAX {
            return Err(TurnError::Restless);
        }
        let sealed = event.seal()?;
        self.run.apply(&sealed.event, sealed.id)?;
        let id = sealed.id;
        self.events.push(sealed);
        Ok(id)
    }

    fn decide(&mut self, input: &Input) -> Result<(), TurnError> {
        let Some(state) = &self.run.state else {
            return Ok(());
        };
        let drafts = M::decide(state, input, self.now);
        for Draft {
            kind,
            scope,
            after,
            body,
        } in drafts
        {
            let event = self.envelope(kind, scope, after, body);
            self.record(event)?;
        }
        Ok(())
    }

    fn announce_wanted(&mut self) -> Result<(), TurnError> {
        while let Some(effect) = self.first_unannounced() {
            match self.run.kernel.account.fits(effect.ceiling) {
                Ok(()) => self.announce(effect)?,
                Err(over) => {
                    let body = serde_json::to_value(EffectRefused { over })
                        .expect("BUG: a refusal is plain data");
                    let event =
                        self.envelope(kind::EFFECT_REFUSED, effect.scope, effect.after, body);
                    self.record(Event {
                        effect: Some(effect.id.clone()),
                        ..event
                    })?;
                    self.decide(&Input::Refused {
                        effect: effect.id,
                        over,
                    })?;
                }
            }
        }
        Ok(())
    }

    fn first_unannounced(&self) -> Option<Effect> {
        let kernel = &self.run.kernel;
        if kernel.ended.is_some() || kernel.invocation.is_none() {
            return None;
        }
        let wanted = M::next(self.run.state.as_ref()?).effects;
        wanted.into_iter().find(|effect| {
            !kernel.in_flight.contains_key(&effect.id) && !kernel.unknown.contains(&effect.id)
        })
    }

    fn announce(&mut self, effect: Effect) -> Result<(), TurnError> {
        let before = self.run.kernel.attempts.get(&effect.id).copied();
        let attempt = before.map_or(0, |before| before.attempt) + 1;
        let announcement = EffectAnnounced {
            role: effect.role,
            request: effect.request.clone(),
            ceiling: effect.ceiling,
            on_unknown: effect.on_unknown,
        };
        let body = serde_json::to_value(announcement).expect("BUG: a request is plain data");
        let event = self.envelope(
            kind::EFFECT_ANNOUNCED,
            effect.scope.clone(),
            effect.after,
            body,
        );
        self.record(Event {
            effect: Some(effect.id.clone()),
            attempt: Some(attempt),
            ..event
        })?;
        self.announced.push(Announced {
            run: self.run.kernel.run.clone(),
            effect: effect.id,
            role: effect.role,
            attempt,
            epoch: self.epoch,
            scope: effect.scope,
            request: effect.request,
            asked_at: before.map_or(self.now, |before| before.asked_at),
        });
        Ok(())
    }

    /// Effects in flight that the state doesn't want any more. A question to a person stays open
    /// between invocations, when nothing is wanted.
    fn unwanted(&self) -> Vec<EffectId> {
        let Some(state) = &self.run.state else {
            return Vec::new();
        };
        let in_flight = &self.run.kernel.in_flight;
        let between = self.run.kernel.invocation.is_none();
        if in_flight.is_empty() {
            return Vec::new();
        }
        let wanted = M::next(state).effects;
        let is_wanted = |id: &EffectId| wanted.iter().any(|effect| effect.id == *id);
        in_flight
            .iter()
            .filter(|(_, flight)| !(between && flight.announcement.role == Role::Human))
            .map(|(id, _)| id)
            .filter(|id| !is_wanted(id))
            .cloned()
            .collect()
    }

    fn end_invocation(&mut self) -> Result<(), TurnError> {
        if self.run.kernel.busy() {
            return Ok(());
        }
        let Some(invocation) = self.run.kernel.invocation else {
            // A person may end a run that nobody drives.
            return match self.run.state.as_ref().map(M::status) {
                Some(Status::Ended(ending)) => self.end_run(ending),
                _ => Ok(()),
            };
        };
        let (ending, for_good) = match self.run.status() {
            Some(Status::Idle(ending)) => (ending, false),
            Some(Status::Ended(ending)) => (ending, true),
            Some(Status::Waiting { question }) => (Ending::new("waiting", question), false),
            Some(Status::Working) | None => return Ok(()),
        };
        let body = InvocationEnded {
            invocation: invocation.number,
            by: EndedBy::Machine,
            ending: ending.clone(),
        };
        let body = serde_json::to_value(body).expect("BUG: an ending is plain data");
        let event = self.envelope(kind::INVOCATION_ENDED, Scope::run(), None, body);
        self.record(event)?;
        if for_good {
            self.end_run(ending)?;
        }
        Ok(())
    }

    fn end_run(&mut self, ending: Ending) -> Result<(), TurnError> {
        if self.run.kernel.ended.is_some() {
            return Ok(());
        }
        let body = serde_json::to_value(kernel::RunEnded { ending })
            .expect("BUG: an ending is plain data");
        let event = self.envelope(kind::RUN_ENDED, Scope::run(), None, body);
        self.record(event)?;
        Ok(())
    }
}

/// Whether an event came from outside (and so must be given again in a replay).
pub fn is_given(event: &Event) -> bool {
    match event.kind.as_str() {
        kind::RUN_STARTED
        | kind::INVOCATION_BEGUN
        | kind::EFFECT_SETTLED
        | kind::EFFECT_ABANDONED
        | kind::EFFECT_UNKNOWN
        | kind::EFFECT_LOST
        | kind::CLOCK_REACHED
        | kind::OPERATOR_ACT => true,
        kind::INVOCATION_ENDED => {
            kernel::body::<InvocationEnded>(event).is_ok_and(|ended| ended.by == EndedBy::Host)
        }
        _ => false,
    }
}

/// The input that a given event is to the machine.
fn input_of(event: &Event) -> Result<Option<Input>, TurnError> {
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
