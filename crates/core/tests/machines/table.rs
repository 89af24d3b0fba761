//! A table on which the toy machine is driven, and what can be given to it.

use loopwright_core::budget::{Ceiling, Limits};
use loopwright_core::effect::Settlement;
use loopwright_core::ending::Reason;
use loopwright_core::ids::{EffectId, LoopName, RunId};
use loopwright_core::kernel::{
    AbandonedWhy, EffectAbandoned, EndedBy, InvocationBegun, InvocationEnded, LimitsSet,
    OperatorAct, RunStarted, kind,
};
use loopwright_core::machine::{Ending, Machine};
use loopwright_core::replay::Replay;
use loopwright_core::role::Role;
use loopwright_core::time::Micros;
use loopwright_core::turn::{Given, Outcome, Run, Turn, TurnError};
use loopwright_core::usage::Usage;
use serde_json::{Value, json};

use crate::toy::{Toy, Wanted, Wants};

pub struct Table {
    pub run: Run<Toy>,
    pub batches: Vec<loopwright_core::batch::Batch>,
}

impl Table {
    pub fn new(steps: Option<u64>, stubborn: bool) -> Self {
        let limits = Limits {
            steps,
            ..Limits::default()
        };
        Self::with(limits, stubborn)
    }

    /// A run with those limits.
    pub fn limited(limits: Limits) -> Self {
        Self::with(limits, false)
    }

    fn with(limits: Limits, stubborn: bool) -> Self {
        let mut table = Self {
            run: Run::new(RunId::new("toy-1").unwrap()),
            batches: Vec::new(),
        };
        let started = RunStarted {
            loop_name: LoopName::new("toy").unwrap(),
            kind: Toy::KIND.to_owned(),
            machine: 1,
            policies: Vec::new(),
            release: "0.1.0".to_owned(),
            limits,
            parent: None,
            basis: None,
            specification: json!({"stubborn": stubborn}),
        };
        table.turn(vec![Given::new(kind::RUN_STARTED, &started)]);
        table
    }

    pub fn try_turn(&mut self, at: i64, given: Vec<Given>) -> Result<Outcome, TurnError> {
        let mut turn = Turn::new(&mut self.run, Micros(at), 1);
        for given in given {
            turn.give(given)?;
        }
        let outcome = turn.finish()?;
        self.batches.extend(outcome.batch.clone());
        Ok(outcome)
    }

    pub fn turn(&mut self, given: Vec<Given>) -> Outcome {
        let at = self.run.kernel.last_time.0 + 1;
        self.try_turn(at, given).unwrap()
    }

    /// A given event that must not fit.
    pub fn refused(&self, given: Given) -> String {
        let mut run = self.run.clone();
        let mut turn = Turn::new(&mut run, Micros(0), 1);
        turn.give(given).unwrap_err().to_string()
    }

    pub fn verify(&self) {
        let mut replay = Replay::<Toy>::new(self.run.kernel.run.clone());
        for batch in &self.batches {
            replay.batch(batch).unwrap();
        }
        assert_eq!(replay.run(), &self.run);
    }

    pub fn state(&self) -> &Wants {
        self.run.state.as_ref().expect("a run that has started")
    }

    /// How the last invocation ended.
    pub fn ended(&self) -> &str {
        let ending = self.run.kernel.last_ending.as_ref();
        ending.map_or("", |ending| ending.reason.as_str())
    }

    /// What is in flight, by name.
    pub fn in_flight(&self) -> Vec<&str> {
        let in_flight = self.run.kernel.in_flight.keys();
        in_flight.map(EffectId::as_str).collect()
    }

    pub fn kinds(&self) -> Vec<&str> {
        let events = self.batches.iter().flat_map(|batch| &batch.events);
        events.map(|sealed| sealed.event.kind.as_str()).collect()
    }
}

pub fn act(name: &str, arguments: Value) -> Given {
    let body = OperatorAct {
        act: name.to_owned(),
        arguments,
    };
    Given::new(kind::OPERATOR_ACT, &body)
}

pub fn want(id: &str, role: Role, steps: u64) -> Given {
    let ceiling = Ceiling {
        steps,
        ..Ceiling::time(None)
    };
    Wanted::new(id, role, ceiling).given()
}

pub fn paths(name: &str, paths: &[&str]) -> Given {
    act(name, json!({"paths": paths}))
}

pub fn limits_set(limits: Limits) -> Given {
    Given::new(kind::LIMITS_SET, &LimitsSet { limits })
}

/// A result that used so many tokens.
pub fn used(id: &str, attempt: u32, tokens: u64) -> Given {
    let body = Settlement {
        result: json!({}),
        usage: tokens_used(tokens),
    };
    Given::about(kind::EFFECT_SETTLED, &EffectId::new(id), attempt, &body)
}

pub fn tokens_used(tokens: u64) -> Usage {
    Usage {
        tokens: Some(tokens),
        ..Usage::default()
    }
}

/// An answer to a question.
pub fn answer(id: &str, attempt: u32, result: Value) -> Given {
    let body = Settlement {
        result,
        usage: Usage::default(),
    };
    Given::about(kind::EFFECT_SETTLED, &EffectId::new(id), attempt, &body)
}

/// A death as the next holder records it.
pub fn host_died(invocation: u64) -> Given {
    let ending = Ending::because(Reason::HostDied, "its host died");
    let body = InvocationEnded {
        invocation,
        by: EndedBy::Host,
        ending,
    };
    Given::new(kind::INVOCATION_ENDED, &body)
}

pub fn begun(invocation: u64) -> Given {
    Given::new(
        kind::INVOCATION_BEGUN,
        &InvocationBegun {
            invocation,
            caps: json!({}),
        },
    )
}

pub fn host_ended(invocation: u64) -> Given {
    let ending = Ending::new("interrupted", "interrupted");
    Given::new(
        kind::INVOCATION_ENDED,
        &InvocationEnded {
            invocation,
            by: EndedBy::Host,
            ending,
        },
    )
}

pub fn settled(id: &str, attempt: u32) -> Given {
    let body = Settlement {
        result: json!({}),
        usage: Usage::default(),
    };
    Given::about(kind::EFFECT_SETTLED, &EffectId::new(id), attempt, &body)
}

pub fn abandoned(id: &str, attempt: u32, why: AbandonedWhy) -> Given {
    let body = EffectAbandoned {
        why,
        usage: Usage::default(),
    };
    Given::about(kind::EFFECT_ABANDONED, &EffectId::new(id), attempt, &body)
}

pub fn announced(outcome: &Outcome) -> Vec<(&str, u32)> {
    let named = |effect: &loopwright_core::effect::Announced| effect.attempt;
    let announced = outcome.announced.iter();
    announced
        .map(|effect| (effect.effect.as_str(), named(effect)))
        .collect()
}
