//! The driver: one run of any kind of loop, driven under a lease.
//!
//! It does four things in turn, and nothing else: wait for something to happen, give it to the
//! machine, commit what follows, act on it. A commit always comes before the act it announces, and
//! a driver that can't commit stops everything and goes: the record is then what it was, and
//! whoever resumes finds the same effects again.
//!
//! [`doors`] says what it needs from outside.

mod doors;
mod fault;

use loopwright_core::ending::Reason;
use loopwright_core::ids::EffectId;
use loopwright_core::kernel::{
    AbandonedWhy, EffectAbandoned, EndedBy, InvocationBegun, InvocationEnded, kind,
};
use loopwright_core::machine::{Ending, Machine, Status};
use loopwright_core::role::{OnUnknown, Role};
use loopwright_core::turn::{Given, Outcome, Run, Turn, TurnError};
use loopwright_core::usage::Usage;
use loopwright_record::{AppendError, crash_point};

pub use doors::{Committer, DriveError, Driven, Hands, Happening, Haste, Watcher};
pub use fault::{FaultKind, HostFault};

/// Drives one run.
pub struct Driver<'a, M: Machine, H: Hands, C: Committer<M>> {
    run: &'a mut Run<M>,
    hands: &'a mut H,
    committer: &'a mut C,
    watcher: &'a mut dyn Watcher,
    epoch: u64,
    /// Whether somebody can be asked about effects whose outcome is unknown.
    can_ask: bool,
}

impl<'a, M: Machine, H: Hands, C: Committer<M>> Driver<'a, M, H, C> {
    /// A driver of `run` under the lease's `epoch`.
    pub fn new(
        run: &'a mut Run<M>,
        hands: &'a mut H,
        committer: &'a mut C,
        watcher: &'a mut dyn Watcher,
        epoch: u64,
        can_ask: bool,
    ) -> Self {
        Self {
            run,
            hands,
            committer,
            watcher,
            epoch,
            can_ask,
        }
    }

    /// Records what came from outside while nothing is driven: the run's start, a person's words.
    /// All of it or, where something comes too late, nothing.
    pub fn record(&mut self, given: Vec<Given>) -> Result<(), DriveError> {
        let mut refused = Vec::new();
        let outcome = self.turn_with(Vec::new(), vec![given], &mut refused)?;
        self.tell(&outcome);
        refused
            .into_iter()
            .next()
            .map_or(Ok(()), |why| Err(why.into()))
    }

    /// One invocation from beginning to end.
    pub fn invoke(&mut self, caps: serde_json::Value) -> Result<Driven, DriveError> {
        self.invoke_with(Vec::new(), caps, Vec::new())
    }

    /// The same with what is recorded in one batch with its beginning: before it the start of a
    /// new run (so that there never is a run that nobody ever invoked), after it what a person says
    /// that belongs to it.
    pub fn invoke_with(
        &mut self,
        first: Vec<Given>,
        caps: serde_json::Value,
        then: Vec<Given>,
    ) -> Result<Driven, DriveError> {
        if let Some(ending) = &self.run.kernel.ended {
            return Err(DriveError::Ended(ending.clone()));
        }
        self.recover()?;
        // What was lost may have been decided about, and have ended the run.
        if let Some(ending) = &self.run.kernel.ended {
            return Ok(Driven {
                ending: ending.clone(),
                waiting: None,
            });
        }
        let invocation = self.run.kernel.invocations + 1;
        let begun = Given::new(
            kind::INVOCATION_BEGUN,
            &InvocationBegun { invocation, caps },
        );
        let given = first.into_iter().chain([begun]).chain(then).collect();
        let outcome = self.turn(given)?;
        self.act(outcome);
        while self.run.kernel.invocation.is_some() {
            let deadline = self.run.deadline();
            match self.hands.wait(deadline) {
                Happening::Interrupt { haste, by } => {
                    self.interrupt(
                        haste,
                        Ending::because(Reason::Interrupted, format!("interrupted by {by}")),
                    )?;
                }
                Happening::Broken(fault) => return Err(self.give_up(fault)),
                Happening::Said(words) => {
                    let outcome = self.turn_and_hear(Vec::new(), vec![words])?;
                    self.act(outcome);
                }
                other => {
                    let given = self
                        .given(other, AbandonedWhy::Unwanted)
                        .into_iter()
                        .collect();
                    let outcome = self.turn(given)?;
                    self.act(outcome);
                }
            }
        }
        let ending = self.run.kernel.last_ending.clone();
        let waiting = match self.run.status() {
            Some(Status::Waiting { question }) => Some(question),
            _ => None,
        };
        let ending =
            ending.unwrap_or_else(|| Ending::because(Reason::Finished, "nothing was left to do"));
        Ok(Driven { ending, waiting })
    }

    /// Closes what a dead holder left open: its invocation, and the attempts whose outcome nobody
    /// knows. What was settled stays settled.
    fn recover(&mut self) -> Result<(), DriveError> {
        let mut given = Vec::new();
        for (effect, flight) in &self.run.kernel.in_flight {
            if flight.announcement.role == Role::Human {
                continue;
            }
            let (effect, attempt) = (effect, flight.attempt);
            let abandoned = EffectAbandoned {
                why: AbandonedWhy::HostDied,
                usage: Usage::default(),
            };
            let nothing = serde_json::json!({});
            given.push(match flight.announcement.on_unknown {
                OnUnknown::Retry => {
                    Given::about(kind::EFFECT_ABANDONED, effect, attempt, &abandoned)
                }
                OnUnknown::Ask if self.can_ask => {
                    Given::about(kind::EFFECT_UNKNOWN, effect, attempt, &nothing)
                }
                OnUnknown::Ask | OnUnknown::Fail => {
                    Given::about(kind::EFFECT_LOST, effect, attempt, &nothing)
                }
            });
        }
        if let Some(open) = self.run.kernel.invocation {
            let ending = Ending::because(Reason::HostDied, "its host died");
            given.insert(0, ended_by_host(open.number, ending));
        }
        if !given.is_empty() {
            let outcome = self.turn(given)?;
            self.act(outcome);
        }
        Ok(())
    }

    /// Ends the invocation from outside: stops what is in flight, waits for it, records the end.
    fn interrupt(&mut self, haste: Haste, ending: Ending) -> Result<(), DriveError> {
        self.stop_all(haste);
        let (mut given, mut said) = (Vec::new(), Vec::new());
        let mut open: Vec<EffectId> = self.in_flight();
        while !open.is_empty() {
            let happening = self.hands.wait(None);
            let landed = match &happening {
                Happening::Settled { effect, .. } | Happening::Stopped { effect, .. } => {
                    effect.clone()
                }
                Happening::Interrupt { haste, .. } => {
                    self.stop_all((*haste).max(Haste::AtOnce));
                    continue;
                }
                Happening::Said(words) => {
                    said.push(words.clone());
                    continue;
                }
                Happening::Broken(fault) => return Err(self.give_up(fault.clone())),
                Happening::TimeReached => continue,
            };
            // The state doesn't know of what landed meanwhile: a word said twice counts once.
            if open.contains(&landed)
                && let Some(landing) = self.given(happening, AbandonedWhy::Interrupted)
            {
                open.retain(|effect| *effect != landed);
                given.push(landing);
            }
        }
        let number = self
            .run
            .kernel
            .invocation
            .map_or(0, |invocation| invocation.number);
        // The end comes first, so that what was settled meanwhile announces nothing new.
        given.insert(0, ended_by_host(number, ending));
        let outcome = self.turn_and_hear(given, said)?;
        self.tell(&outcome);
        Ok(())
    }

    /// The host can't go on: what is in flight stays so in the record, and whoever resumes treats
    /// it like that of a host that died. A store that can't even record the end keeps its words.
    fn give_up(&mut self, fault: HostFault) -> DriveError {
        self.stop_all(Haste::AtOnce);
        let number = self.run.kernel.invocation.map_or(0, |open| open.number);
        let ended = ended_by_host(
            number,
            Ending::because(Reason::HostFailed, fault.words.clone()),
        );
        match self.turn(vec![ended]) {
            Ok(outcome) => {
                self.tell(&outcome);
                DriveError::Host(fault)
            }
            // That is why it couldn't, and says it better.
            Err(DriveError::Append(
                error @ (AppendError::Fenced { .. } | AppendError::Damaged(_)),
            )) => DriveError::Append(error),
            Err(error) => DriveError::Host(fault.and(error)),
        }
    }

    fn in_flight(&self) -> Vec<EffectId> {
        let flights = self.run.kernel.in_flight.iter();
        flights
            .filter(|(_, flight)| flight.announcement.role != Role::Human)
            .map(|(effect, _)| effect.clone())
            .collect()
    }

    fn stop_all(&mut self, haste: Haste) {
        for effect in self.in_flight() {
            self.hands.stop(&effect, haste);
        }
    }

    /// What happened, as it is recorded; nothing where it is about an attempt that is not in
    /// flight any more.
    fn given(&self, happening: Happening, why: AbandonedWhy) -> Option<Given> {
        let current = |effect: &EffectId, attempt: u32| {
            let flight = self.run.kernel.in_flight.get(effect);
            flight.is_some_and(|flight| flight.attempt == attempt)
        };
        match happening {
            Happening::Settled {
                effect,
                attempt,
                settlement,
                scrub,
            } => current(&effect, attempt).then(|| {
                Given::about(kind::EFFECT_SETTLED, &effect, attempt, &settlement).scrubbed(scrub)
            }),
            Happening::Stopped {
                effect,
                attempt,
                usage,
            } => current(&effect, attempt).then(|| {
                Given::about(
                    kind::EFFECT_ABANDONED,
                    &effect,
                    attempt,
                    &EffectAbandoned { why, usage },
                )
            }),
            Happening::TimeReached => Some(Given::new(kind::CLOCK_REACHED, &serde_json::json!({}))),
            Happening::Said(_) | Happening::Interrupt { .. } | Happening::Broken(_) => None,
        }
    }

    /// One turn: everything given becomes one batch, durable on return.
    fn turn(&mut self, given: Vec<Given>) -> Result<Outcome, DriveError> {
        self.turn_with(given, Vec::new(), &mut Vec::new())
    }

    /// The same with what people said; the watcher hears what was not recorded of it.
    fn turn_and_hear(
        &mut self,
        given: Vec<Given>,
        said: Vec<Vec<Given>>,
    ) -> Result<Outcome, DriveError> {
        let mut refused = Vec::new();
        let outcome = self.turn_with(given, said, &mut refused)?;
        for why in &refused {
            self.watcher.refused(why);
        }
        Ok(outcome)
    }

    /// One turn with what must fit and with what people said, which need not: words that come too
    /// late, or that mean nothing here, end no run.
    fn turn_with(
        &mut self,
        given: Vec<Given>,
        said: Vec<Vec<Given>>,
        refused: &mut Vec<TurnError>,
    ) -> Result<Outcome, DriveError> {
        let now = self.hands.now();
        let mut turn = Turn::new(self.run, now, self.epoch);
        for given in given {
            turn.give(given)?;
        }
        for words in said {
            match turn.say(words) {
                Ok(()) => {}
                Err(why @ (TurnError::Late(_) | TurnError::Misfit(_))) => refused.push(why),
                Err(error) => return Err(error.into()),
            }
        }
        let outcome = turn.finish()?;
        if let Some(batch) = &outcome.batch {
            for announced in &outcome.announced {
                self.hands.make_ready(announced);
            }
            crash_point!("turn.before_commit");
            self.committer.commit(batch, self.run)?;
            crash_point!("turn.after_commit");
        }
        Ok(outcome)
    }

    /// The watcher hears of what is durable.
    fn tell(&mut self, outcome: &Outcome) {
        if let Some(batch) = &outcome.batch {
            self.watcher.committed(&batch.events);
        }
    }

    /// What was decided is durable: now it may be done. Then it is told: nobody waits for that.
    fn act(&mut self, outcome: Outcome) {
        self.begin(&outcome);
        self.tell(&outcome);
    }

    fn begin(&mut self, outcome: &Outcome) {
        for effect in &outcome.unwanted {
            self.hands.stop(effect, Haste::Gently);
        }
        for announced in &outcome.announced {
            // A question waits for a person, and is answered from outside.
            if announced.role != Role::Human {
                self.hands.begin(announced.clone());
            }
        }
    }
}

fn ended_by_host(invocation: u64, ending: Ending) -> Given {
    Given::new(
        kind::INVOCATION_ENDED,
        &InvocationEnded {
            invocation,
            by: EndedBy::Host,
            ending,
        },
    )
}
