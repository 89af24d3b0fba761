//! The world outside: its clock, the ledger of paid calls, and what is known to be durable. It
//! outlives every crash.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use loopwright_core::batch::Batch;
use loopwright_core::digest::Digest;
use loopwright_core::effect::Announced;
use loopwright_core::ids::{EffectId, RunId};
use loopwright_core::kernel::{EffectAnnounced, kind};
use loopwright_core::role::Role;
use loopwright_core::time::Micros;

use crate::laws;
use crate::violation::{Law, Violation};

/// When every simulated world begins.
const BEGINNING: Micros = Micros(1_700_000_000_000_000);

/// One paid call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The run it was made for.
    pub run: RunId,
    /// The effect.
    pub effect: EffectId,
    /// The attempt.
    pub attempt: u32,
    /// The tokens it takes, where it has a price of its own.
    pub tokens: u64,
}

/// What is known to be durable of a run: a journal must never know less.
#[derive(Debug, Default)]
struct Durable {
    /// The newest batch whose append returned.
    returned: Option<(u64, Digest)>,
    /// Attempts announced in such batches.
    announced: BTreeSet<(EffectId, u32)>,
    /// Effects settled in such batches.
    settled: BTreeSet<EffectId>,
    /// Questions asked in such batches, whatever became of them.
    questions: BTreeSet<(EffectId, u32)>,
}

/// The world.
#[derive(Debug)]
pub struct World {
    now: Cell<Micros>,
    ledger: RefCell<Vec<Call>>,
    durable: RefCell<BTreeMap<RunId, Durable>>,
    /// How often a word came too late while a run was driven.
    refused: Cell<u32>,
}

impl World {
    /// A world in which nothing has happened.
    pub fn new() -> Self {
        Self {
            now: Cell::new(BEGINNING),
            ledger: RefCell::default(),
            durable: RefCell::default(),
            refused: Cell::new(0),
        }
    }

    /// The time.
    pub fn now(&self) -> Micros {
        self.now.get()
    }

    /// Lets time pass.
    pub fn pass(&self, duration_us: u64) {
        self.now.set(self.now.get().plus(duration_us));
    }

    /// Lets time pass until that moment, if it isn't over.
    pub fn reach(&self, moment: Micros) {
        self.now.set(self.now.get().max(moment));
    }

    /// The newest batch of a run whose append returned.
    pub fn returned(&self, run: &RunId) -> Option<(u64, Digest)> {
        let all = self.durable.borrow();
        all.get(run).and_then(|durable| durable.returned)
    }

    /// Notes that a word came too late while a run was driven.
    pub fn refuse(&self) {
        self.refused.set(self.refused.get() + 1);
    }

    /// How often one did.
    pub fn refused(&self) -> u32 {
        self.refused.get()
    }

    /// The questions that a run has asked a person so far, with the attempt.
    pub fn questions(&self, run: &RunId) -> Vec<(EffectId, u32)> {
        let all = self.durable.borrow();
        let questions = all.get(run).map(|durable| durable.questions.iter());
        questions.into_iter().flatten().cloned().collect()
    }

    /// Notes a batch whose append returned, or that was found after a crash.
    pub fn learn(&self, batch: &Batch) {
        let mut all = self.durable.borrow_mut();
        let durable = all.entry(batch.header.run.clone()).or_default();
        durable.returned = Some((batch.header.n, batch.digest));
        for sealed in &batch.events {
            let event = &sealed.event;
            let Some(effect) = &event.effect else {
                continue;
            };
            match event.kind.as_str() {
                kind::EFFECT_ANNOUNCED => {
                    let attempt = event.attempt.unwrap_or(0);
                    durable.announced.insert((effect.clone(), attempt));
                    let announced = laws::body::<EffectAnnounced>(event);
                    if announced.is_some_and(|announced| announced.role == Role::Human) {
                        durable.questions.insert((effect.clone(), attempt));
                    }
                }
                kind::EFFECT_SETTLED | kind::EFFECT_LOST => {
                    durable.settled.insert(effect.clone());
                }
                _ => {}
            }
        }
    }

    /// Somebody pays for a call: the laws of paying are checked at the till.
    pub fn pay(&self, announced: &Announced, tokens: u64) {
        let Announced {
            run,
            effect,
            attempt,
            ..
        } = announced;
        {
            let all = self.durable.borrow();
            let durable = all.get(run);
            let is_announced = durable
                .is_some_and(|durable| durable.announced.contains(&(effect.clone(), *attempt)));
            if !is_announced {
                let words =
                    format!("attempt {attempt} of {effect} began before it was durably announced");
                Violation::throw(Law::CommitThenAct, words);
            }
            if durable.is_some_and(|durable| durable.settled.contains(effect)) {
                let words = format!("{effect} was settled, and was performed again");
                Violation::throw(Law::SettledOnce, words);
            }
        }
        let made = self.calls_for(run, effect);
        if made.iter().any(|made| made >= attempt) {
            let words = format!("attempt {attempt} of {effect} came after attempts {made:?}");
            Violation::throw(Law::AttemptsInOrder, words);
        }
        self.ledger.borrow_mut().push(Call {
            run: run.clone(),
            effect: effect.clone(),
            attempt: *attempt,
            tokens,
        });
    }

    /// Every call from number `from` on, in order.
    pub fn ledger(&self, from: usize) -> Vec<Call> {
        self.ledger.borrow()[from..].to_vec()
    }

    fn calls_for(&self, run: &RunId, effect: &EffectId) -> Vec<u32> {
        let ledger = self.ledger.borrow();
        let its = ledger
            .iter()
            .filter(|call| call.run == *run && call.effect == *effect);
        its.map(|call| call.attempt).collect()
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}
