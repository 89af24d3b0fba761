//! Folding the kernel's events.

use crate::budget::Account;
use crate::canonical::to_canonical;
use crate::digest::Digest;
use crate::effect::{Booking, Settlement};
use crate::ending::Reason;
use crate::event::Event;
use crate::ids::EffectId;
use crate::machine::Misfit;
use crate::usage::Usage;

use super::bodies::{
    ACT_RESOLVE, ClockExhausted, EffectAbandoned, EffectAnnounced, InvocationBegun,
    InvocationEnded, LimitsSet, OperatorAct, RunEnded, RunStarted, body, kind, resolved_as_failed,
    resolved_effect,
};
use super::state::{
    CLOSED_MAX, Closed, ClosedHow, DECISION_DOMAIN, GivenUp, InFlight, Kernel, OpenInvocation,
    UNKNOWN_MAX, answer_digest,
};

impl Kernel {
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
        } else if self.ended.is_some() && event.kind != kind::OPERATOR_NOTED {
            return Err(Misfit::new(event, "the run has ended"));
        } else {
            let passed_us = self.passed_us(event);
            self.apply_kind(event, id)?;
            self.account.pass(passed_us);
        }
        self.next_seq += 1;
        self.last_event = Some(id);
        self.last_time = event.time;
        Ok(())
    }

    /// Forgets what can't come again, so that what is kept is bounded. Something may still be said
    /// about unknown outcomes of the past, as long as there aren't many.
    pub(crate) fn forget(&mut self, is_past: impl Fn(&EffectId) -> bool) {
        self.given_up.retain(|effect, _| !is_past(effect));
        let mut too_many = self.unknown.len().saturating_sub(UNKNOWN_MAX);
        self.unknown.retain(|effect| {
            let is_dropped = too_many > 0 && is_past(effect);
            too_many -= usize::from(is_dropped);
            !is_dropped
        });
    }

    fn start(&mut self, event: &Event) -> Result<(), Misfit> {
        if event.seq != 0 {
            return Err(Misfit::new(event, "the run has started already"));
        }
        let body: RunStarted = body(event)?;
        self.account = Account::new(body.limits);
        Ok(())
    }

    /// How far the wall clock runs up to `event`. Nobody knows when a host died that left its
    /// invocation open: what passed since its last word is nobody's time.
    fn passed_us(&self, event: &Event) -> u64 {
        let died = event.kind == kind::INVOCATION_ENDED
            && body::<InvocationEnded>(event)
                .is_ok_and(|ended| ended.ending.known() == Some(Reason::HostDied));
        if self.clock_runs() && !died {
            event.time.since(self.last_time)
        } else {
            0
        }
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
            kind::EFFECT_SETTLED => self.settle(event),
            kind::EFFECT_ABANDONED => self.abandon(event),
            kind::EFFECT_UNKNOWN => {
                let (effect, flight) = self.land(event)?;
                self.give_up(effect.clone(), &flight, &Usage::default());
                self.unknown.insert(effect);
                Ok(())
            }
            kind::EFFECT_LOST => {
                let (_, flight) = self.land(event)?;
                let ceiling = flight.announcement.ceiling;
                self.account.settle(ceiling, &Usage::default());
                Ok(())
            }
            kind::LIMITS_SET => {
                let set: LimitsSet = body(event)?;
                self.account.limits = set.limits;
                self.is_out_of_time &= self.account.out_of_time().is_some();
                Ok(())
            }
            kind::CLOCK_EXHAUSTED => {
                let _: ClockExhausted = body(event)?;
                self.is_out_of_time = true;
                Ok(())
            }
            kind::OPERATOR_ACT => self.act(event),
            kind::RUN_ENDED => {
                let ended: RunEnded = body(event)?;
                self.ended = Some(ended.ending);
                self.ended_at = Some(event.time);
                Ok(())
            }
            kind::EFFECT_REFUSED | kind::CLOCK_REACHED | kind::OPERATOR_NOTED => Ok(()),
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
        let expected = self.next_attempt(&effect);
        if attempt != expected || self.in_flight.contains_key(&effect) {
            return Err(Misfit::new(
                event,
                format!("attempt {expected} was expected"),
            ));
        }
        let before = self.given_up.remove(&effect);
        if announcement.booking == Booking::AllAttempts
            && let Some(booked) = before.and_then(|before| before.booked)
        {
            self.account.take_back(booked);
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
        let is_current = |flight: &InFlight| flight.attempt == attempt;
        let is_in_flight = self.in_flight.get(&effect).is_some_and(is_current);
        match self.in_flight.remove(&effect).filter(|_| is_in_flight) {
            Some(flight) => Ok((effect, flight)),
            None => Err(Misfit::new(
                event,
                format!("attempt {attempt} of {effect} is not in flight"),
            )),
        }
    }

    fn settle(&mut self, event: &Event) -> Result<(), Misfit> {
        let settlement: Settlement = body(event)?;
        let (effect, flight) = self.land(event)?;
        if !flight.is_question() {
            let ceiling = flight.announcement.ceiling;
            self.account.settle(ceiling, &settlement.usage);
            return Ok(());
        }
        let digest = answer_digest(&settlement.result)
            .map_err(|error| Misfit::new(event, error.to_string()))?;
        self.close(event, effect, flight.attempt, ClosedHow::Answered(digest));
        Ok(())
    }

    fn abandon(&mut self, event: &Event) -> Result<(), Misfit> {
        let abandoned: EffectAbandoned = body(event)?;
        let (effect, flight) = self.land(event)?;
        if flight.is_question() {
            self.close(event, effect.clone(), flight.attempt, ClosedHow::Withdrawn);
        }
        self.give_up(effect, &flight, &abandoned.usage);
        Ok(())
    }

    /// Books an attempt that comes to nothing. Its number is kept even for an unwanted one: if it
    /// is wanted again, its attempts go on counting.
    fn give_up(&mut self, effect: EffectId, flight: &InFlight, usage: &Usage) {
        let announcement = &flight.announcement;
        let booked = (!flight.is_question())
            .then(|| self.account.give_up(announcement.ceiling, usage))
            .filter(|_| announcement.booking == Booking::AllAttempts);
        let given_up = GivenUp {
            attempt: flight.attempt,
            asked_at: flight.asked_at,
            booked,
        };
        self.given_up.insert(effect, given_up);
    }

    /// Remembers how a question was closed, for a while.
    fn close(&mut self, event: &Event, effect: EffectId, attempt: u32, how: ClosedHow) {
        if self.closed.len() == CLOSED_MAX {
            self.closed.pop_front();
        }
        self.closed.push_back(Closed {
            effect,
            attempt,
            at: event.time,
            how,
        });
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
            self.given_up.remove(&effect);
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
}

fn named_attempt(event: &Event) -> Result<(EffectId, u32), Misfit> {
    match (&event.effect, event.attempt) {
        (Some(effect), Some(attempt)) => Ok((effect.clone(), attempt)),
        _ => Err(Misfit::new(event, "it names no effect and attempt")),
    }
}
