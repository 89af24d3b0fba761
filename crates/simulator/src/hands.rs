//! The hands of the simulated host: scripted results on a virtual clock, in any order.

use std::rc::Rc;

use loopwright_core::effect::{Announced, Settlement};
use loopwright_core::event::Scrub;
use loopwright_core::ids::EffectId;
use loopwright_core::time::Micros;
use loopwright_core::usage::Usage;
use loopwright_engine::{Hands, Happening, Haste, HostFault};
use serde_json::Value;

use crate::plan::Disturbance;
use crate::random::Random;
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::violation::{Law, Violation};

/// How often a life may wait before it is taken for one that never ends.
const WAITS_MAX: u32 = 5_000;
/// How far a clock may be set back.
const SET_BACK_US_MAX: u64 = 5_000_000;

/// How a scripted role performs an effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Performance {
    /// What comes of it.
    pub result: Value,
    /// What it uses; the wall clock is filled in where it doesn't say.
    pub usage: Usage,
    /// How long it takes at least, and at most.
    pub takes_us: (u64, u64),
}

/// An effect that is being performed.
struct Performing {
    effect: EffectId,
    attempt: u32,
    performance: Performance,
    began: Micros,
    ends: Micros,
    stopped: bool,
}

/// The hands of one life.
pub struct SimHands<S: Scenario> {
    stage: Rc<Stage>,
    scenario: Rc<S>,
    random: Random,
    performing: Vec<Performing>,
    delivered: Vec<Happening>,
    disturbance: Option<Disturbance>,
    waits: u32,
    interrupts: u32,
}

impl<S: Scenario> SimHands<S> {
    /// Hands for one life; `seed` is of that life alone.
    pub fn new(
        stage: &Rc<Stage>,
        scenario: &Rc<S>,
        seed: u64,
        disturbance: Option<Disturbance>,
    ) -> Self {
        Self {
            stage: Rc::clone(stage),
            scenario: Rc::clone(scenario),
            random: Random::of(seed, "hands"),
            performing: Vec::new(),
            delivered: Vec::new(),
            disturbance,
            waits: 0,
            interrupts: 0,
        }
    }

    fn disturbed(&mut self) -> Option<Happening> {
        match self.disturbance {
            Some(Disturbance::Interrupt { wait, again }) => {
                let most = 1 + u32::from(again);
                (self.waits >= wait && self.interrupts < most).then(|| {
                    self.interrupts += 1;
                    let haste = if self.interrupts == 1 {
                        Haste::Gently
                    } else {
                        Haste::AtOnce
                    };
                    Happening::Interrupt {
                        haste,
                        by: "SIGINT".to_owned(),
                    }
                })
            }
            Some(Disturbance::Broken(wait)) if self.waits >= wait => {
                Some(Happening::Broken(HostFault::host("the disk is gone")))
            }
            // Broken while it obeys a signal.
            Some(Disturbance::InterruptThenBroken(wait)) if self.waits >= wait => {
                self.interrupts += 1;
                Some(if self.interrupts == 1 {
                    Happening::Interrupt {
                        haste: Haste::Gently,
                        by: "SIGTERM".to_owned(),
                    }
                } else {
                    Happening::Broken(HostFault::host("the disk is gone"))
                })
            }
            _ => None,
        }
    }

    /// A word that arrives twice, or late: from a worker whose first word got lost, or about an
    /// attempt that was given up.
    fn repeated(&mut self) -> Option<Happening> {
        if !self.random.one_in(12) {
            return None;
        }
        if let Some(late) = self.late() {
            return Some(late);
        }
        if self.delivered.is_empty() {
            return None;
        }
        let index = self.random.below(self.delivered.len() as u64) as usize;
        let mut happening = self.delivered[index].clone();
        if let Happening::Settled { attempt, .. } | Happening::Stopped { attempt, .. } =
            &mut happening
        {
            *attempt -= u32::from(*attempt > 1 && self.random.one_in(2));
        }
        Some(happening)
    }

    /// A person at another window says something about a question, open or not.
    fn said(&mut self) -> Option<Happening> {
        if !self.random.one_in(9) {
            return None;
        }
        let questions = self.stage.world.questions(&self.scenario.run_id());
        if questions.is_empty() {
            return None;
        }
        let (effect, attempt) = &questions[self.random.below(questions.len() as u64) as usize];
        self.scenario.word(effect, *attempt).map(Happening::Said)
    }

    /// The word of an attempt that was given up, while the next one is under way.
    fn late(&mut self) -> Option<Happening> {
        let next = self.performing.iter().find(|one| one.attempt > 1)?;
        Some(Happening::Settled {
            effect: next.effect.clone(),
            attempt: next.attempt - 1,
            settlement: Settlement {
                result: Value::Null,
                usage: Usage::default(),
            },
            scrub: Scrub {
                rules: 1,
                values: 0,
            },
        })
    }

    /// The one that ends first; which, if several do, is chance.
    fn first_to_end(&mut self) -> Option<usize> {
        let first = self.performing.iter().map(|one| one.ends).min()?;
        let ends_then = |(index, one): (usize, &Performing)| (one.ends == first).then_some(index);
        let candidates: Vec<usize> = self
            .performing
            .iter()
            .enumerate()
            .filter_map(ends_then)
            .collect();
        Some(self.random.pick(&candidates))
    }

    fn deliver(&mut self, index: usize) -> Happening {
        let one = self.performing.swap_remove(index);
        self.stage.world.reach(one.ends);
        // It is done and paid for, and nobody has heard of it yet.
        self.stage.pass("hands.performed");
        let wall_us = Some(one.ends.since(one.began));
        let Performing {
            effect, attempt, ..
        } = one;
        let happening = if one.stopped {
            let usage = Usage {
                wall_us,
                ..Usage::default()
            };
            Happening::Stopped {
                effect,
                attempt,
                usage,
            }
        } else {
            let settlement = Settlement {
                result: one.performance.result,
                usage: Usage {
                    wall_us: one.performance.usage.wall_us.or(wall_us),
                    ..one.performance.usage
                },
            };
            let scrub = Scrub {
                rules: 1,
                values: 0,
            };
            Happening::Settled {
                effect,
                attempt,
                settlement,
                scrub,
            }
        };
        self.delivered.push(happening.clone());
        happening
    }
}

impl<S: Scenario> Hands for SimHands<S> {
    fn begin(&mut self, announced: Announced) {
        // Durable, and nothing done about it yet.
        self.stage.pass("hands.announced");
        let performance = self.scenario.perform(&self.stage, &announced);
        let began = self.stage.world.now();
        let (least, most) = performance.takes_us;
        let ends = began.plus(self.random.between(least, most));
        self.stage.pass("hands.begun");
        self.performing.push(Performing {
            effect: announced.effect,
            attempt: announced.attempt,
            performance,
            began,
            ends,
            stopped: false,
        });
    }

    fn stop(&mut self, effect: &EffectId, haste: Haste) {
        let now = self.stage.world.now();
        let Some(one) = self.performing.iter_mut().find(|one| one.effect == *effect) else {
            return;
        };
        // Now and then the end comes faster than the stop.
        if self.random.one_in(4) {
            return;
        }
        let patience_us = match haste {
            Haste::Gently => self.random.below(5_000_000),
            Haste::AtOnce => 0,
        };
        one.stopped = true;
        one.ends = one.ends.min(now.plus(patience_us));
    }

    fn wait(&mut self, until: Option<Micros>) -> Happening {
        self.waits += 1;
        if self.waits > WAITS_MAX {
            Violation::throw(Law::ComesToItsEnd, "the driver waits and waits");
        }
        self.stage.pass("hands.wait");
        let happening = self.disturbed().or_else(|| self.repeated());
        if let Some(happening) = happening.or_else(|| self.said()) {
            return happening;
        }
        match (self.first_to_end(), until) {
            (None, None) => Violation::throw(
                Law::ComesToItsEnd,
                "the driver waits for something that nobody does",
            ),
            (None, Some(until)) => {
                self.stage.world.reach(until);
                Happening::TimeReached
            }
            (Some(index), Some(until)) if until < self.performing[index].ends => {
                self.stage.world.reach(until);
                Happening::TimeReached
            }
            (Some(index), _) => self.deliver(index),
        }
    }

    fn now(&mut self) -> Micros {
        let now = self.stage.world.now();
        // Clocks are set back now and then; the record's time is not.
        if self.random.one_in(20) {
            let back = self.random.below(SET_BACK_US_MAX);
            return Micros(now.0.saturating_sub(back.cast_signed()));
        }
        now
    }
}
