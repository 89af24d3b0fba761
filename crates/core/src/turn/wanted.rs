//! What follows from a turn's new state: effects announced, refused or left to wait, questions
//! withdrawn, the invocation's end and the run's.

use crate::budget::{Admission, OverBudget};
use crate::effect::{Announced, Effect};
use crate::ending::Reason;
use crate::event::{Event, Scope};
use crate::ids::EffectId;
use crate::kernel::{
    AbandonedWhy, EffectAbandoned, EffectAnnounced, EffectRefused, EndedBy, InvocationEnded,
    RunEnded, kind,
};
use crate::machine::{Ending, Input, Machine, Status};
use crate::usage::Usage;

use super::{Turn, TurnError, plain};

impl<M: Machine> Turn<'_, M> {
    /// Announces what the state wants, in its order, until something has to wait for effects in
    /// flight. Nothing overtakes it: what is admitted is what would be if each began after the end
    /// of those before it, whoever finishes first.
    pub(super) fn announce_wanted(&mut self) -> Result<(), TurnError> {
        while let Some(effect) = self.first_unannounced() {
            let (ceiling, admission) = self.run.kernel.admit(&effect);
            match admission {
                Admission::Fits => self.announce(Effect { ceiling, ..effect })?,
                Admission::Waits => break,
                Admission::Refused(over) => self.refuse(effect, over)?,
            }
        }
        Ok(())
    }

    fn refuse(&mut self, effect: Effect, over: OverBudget) -> Result<(), TurnError> {
        let body = plain(&EffectRefused { over });
        let event = self.envelope(kind::EFFECT_REFUSED, effect.scope, effect.after, body);
        self.record(Event {
            effect: Some(effect.id.clone()),
            ..event
        })?;
        self.decide(&Input::Refused {
            effect: effect.id,
            over,
        })
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
        let attempt = self.run.kernel.next_attempt(&effect.id);
        let before = self.run.kernel.given_up.get(&effect.id);
        let asked_at = before.map_or(self.now, |before| before.asked_at);
        let announcement = EffectAnnounced {
            role: effect.role,
            request: effect.request.clone(),
            ceiling: effect.ceiling,
            on_unknown: effect.on_unknown,
            booking: effect.booking,
        };
        let body = plain(&announcement);
        let left = self.run.kernel.account.all_left();
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
            ceiling: effect.ceiling,
            left,
            asked_at,
        });
        Ok(())
    }

    /// Withdraws questions that the open invocation's state doesn't want answered any more. Between
    /// invocations nothing is wanted, and questions stay open, but for those that a person's other
    /// words have made a thing of the past: no answer to them would fit.
    pub(super) fn withdraw_unwanted(&mut self) -> Result<bool, TurnError> {
        let questions = self.run.kernel.questions();
        let mut open: Vec<EffectId> = questions.map(|(id, _)| id.clone()).collect();
        let unwanted = if self.run.kernel.invocation.is_some() {
            self.unwanted_of(open)
        } else {
            let state = self.run.state.as_ref();
            open.retain(|id| state.is_some_and(|state| M::is_past(state, id)));
            open
        };
        self.withdraw(&unwanted)?;
        Ok(!unwanted.is_empty())
    }

    fn withdraw(&mut self, questions: &[EffectId]) -> Result<(), TurnError> {
        for id in questions {
            let Some(flight) = self.run.kernel.in_flight.get(id) else {
                continue;
            };
            let (attempt, scope, asked) = (flight.attempt, flight.scope.clone(), flight.event);
            let body = plain(&EffectAbandoned {
                why: AbandonedWhy::Withdrawn,
                usage: Usage::default(),
            });
            let event = self.envelope(kind::EFFECT_ABANDONED, scope, Some(asked), body);
            self.record(Event {
                effect: Some(id.clone()),
                attempt: Some(attempt),
                ..event
            })?;
        }
        Ok(())
    }

    /// Effects in flight, questions apart, that the state doesn't want any more and doesn't spare.
    pub(super) fn unwanted(&self) -> Vec<EffectId> {
        let in_flight = self.run.kernel.in_flight.iter();
        let performed = in_flight.filter(|(_, flight)| !flight.is_question());
        self.unwanted_of(performed.map(|(id, _)| id.clone()).collect())
    }

    fn unwanted_of(&self, mut effects: Vec<EffectId>) -> Vec<EffectId> {
        let Some(state) = self.run.state.as_ref().filter(|_| !effects.is_empty()) else {
            return Vec::new();
        };
        let next = M::next(state);
        let is_wanted = |id: &EffectId| next.effects.iter().any(|effect| effect.id == *id);
        effects.retain(|id| !is_wanted(id) && !next.finish.spares(id));
        effects
    }

    pub(super) fn end_invocation(&mut self) -> Result<(), TurnError> {
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
            Some(Status::Waiting { question }) => {
                (Ending::because(Reason::Waiting, question), false)
            }
            Some(Status::Working) | None => return Ok(()),
        };
        if for_good {
            self.withdraw_all()?;
        }
        let body = InvocationEnded {
            invocation: invocation.number,
            by: EndedBy::Machine,
            ending: ending.clone(),
        };
        let event = self.envelope(kind::INVOCATION_ENDED, Scope::run(), None, plain(&body));
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
        self.withdraw_all()?;
        let body = plain(&RunEnded { ending });
        let event = self.envelope(kind::RUN_ENDED, Scope::run(), None, body);
        self.record(event)?;
        Ok(())
    }

    /// With the run's end nobody waits for any answer.
    fn withdraw_all(&mut self) -> Result<(), TurnError> {
        let questions = self.run.kernel.questions();
        let open: Vec<EffectId> = questions.map(|(id, _)| id.clone()).collect();
        self.withdraw(&open)
    }
}
