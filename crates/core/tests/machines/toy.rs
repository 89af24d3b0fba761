//! A toy machine that wants what it is told to want, and a table on which it is driven.

use loopwright_core::budget::{Ceiling, Limits};
use loopwright_core::digest::Digest;
use loopwright_core::effect::{Booking, Effect, Settlement};
use loopwright_core::event::{Event, Scope};
use loopwright_core::ids::{EffectId, LoopName, RunId};
use loopwright_core::kernel::{
    self, AbandonedWhy, EffectAbandoned, EndedBy, InvocationBegun, InvocationEnded, LimitsSet,
    OperatorAct, RunStarted, kind,
};
use loopwright_core::machine::{Draft, Ending, Finish, Input, Machine, Misfit, Next, Status};
use loopwright_core::replay::Replay;
use loopwright_core::role::{OnUnknown, Role};
use loopwright_core::time::Micros;
use loopwright_core::turn::{Given, Outcome, Run, Turn, TurnError};
use loopwright_core::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Wants what `toy.want` says until it is settled, refused or no longer wanted (`toy.drop`), in the
/// order in which it was told.
#[derive(Clone, Debug, PartialEq)]
pub struct Toy;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wants {
    pub wanted: Vec<Wanted>,
    /// What may finish: `*` is everything.
    spared: Vec<EffectId>,
    /// What never comes again.
    past: Vec<EffectId>,
    /// What was settled though nothing wanted it.
    pub extra: u64,
    /// How often the end of the wall clock was told.
    pub exhausted: u64,
    /// The limits as the machine was told of them.
    pub limits: Limits,
    wakes_at: Option<Micros>,
    ended: bool,
    stubborn: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    pub id: EffectId,
    pub role: Role,
    pub ceiling: Ceiling,
    pub booking: Booking,
}

impl Wanted {
    pub fn new(id: &str, role: Role, ceiling: Ceiling) -> Self {
        Self {
            id: EffectId::new(id),
            role,
            ceiling,
            booking: Booking::EachAttempt,
        }
    }

    /// An actor that uses up to so many tokens.
    pub fn tokens(id: &str, tokens: u64) -> Self {
        let ceiling = Ceiling {
            tokens: Some(tokens),
            ..Ceiling::time(None)
        };
        Self::new(id, Role::Actor, ceiling)
    }

    /// The same with an account of its own.
    pub fn child(self) -> Self {
        Self {
            booking: Booking::AllAttempts,
            ..self
        }
    }

    /// The word that makes it wanted.
    pub fn given(&self) -> Given {
        act("toy.want", json!({"what": self}))
    }
}

impl Machine for Toy {
    type State = Wants;
    const KIND: &str = "toy";
    const VERSION: u32 = 1;

    fn start(specification: &Value) -> Result<Wants, String> {
        let stubborn = specification["stubborn"]
            .as_bool()
            .ok_or("it says nothing")?;
        Ok(Wants {
            stubborn,
            ..Wants::default()
        })
    }

    fn policies(_state: &Wants) -> Vec<String> {
        Vec::new()
    }

    fn decide(_state: &Wants, input: &Input, _now: Micros) -> Vec<Draft> {
        match input {
            Input::Settled { effect, .. } => {
                vec![Draft::new(
                    "toy.done",
                    Scope::run(),
                    &json!({"effect": effect}),
                )]
            }
            Input::Lost { effect } => {
                vec![Draft::new(
                    "toy.lost",
                    Scope::run(),
                    &json!({"effect": effect}),
                )]
            }
            _ => Vec::new(),
        }
    }

    fn apply(state: &mut Wants, event: &Event, _id: Digest) -> Result<(), Misfit> {
        let named = EffectId::new(event.body["effect"].as_str().unwrap_or(""));
        match event.kind.as_str() {
            "toy.done" | "toy.lost" => {
                let before = state.wanted.len();
                state.wanted.retain(|wanted| wanted.id != named);
                state.extra += u64::from(before == state.wanted.len());
            }
            kind::EFFECT_REFUSED if !state.stubborn => {
                state
                    .wanted
                    .retain(|wanted| Some(&wanted.id) != event.effect.as_ref());
            }
            kind::CLOCK_EXHAUSTED => state.exhausted += 1,
            kind::LIMITS_SET => state.limits = kernel::body::<LimitsSet>(event)?.limits,
            kind::OPERATOR_ACT => obey(state, &kernel::body(event)?),
            _ => {}
        }
        Ok(())
    }

    fn next(state: &Wants) -> Next {
        let effect = |wanted: &Wanted| Effect {
            id: wanted.id.clone(),
            role: wanted.role,
            scope: Scope::iteration(1),
            after: None,
            request: json!({"do": wanted.id}),
            ceiling: wanted.ceiling,
            on_unknown: OnUnknown::Retry,
            booking: wanted.booking,
        };
        Next {
            effects: state.wanted.iter().map(effect).collect(),
            finish: match state.spared.as_slice() {
                [] => Finish::Nothing,
                [all] if all.as_str() == "*" => Finish::Everything,
                paths => Finish::Under(paths.to_vec()),
            },
            deadline: state.wakes_at,
        }
    }

    fn status(state: &Wants) -> Status {
        if state.ended {
            return Status::Ended(Ending::new("stopped", "stopped by hand"));
        }
        if state.wanted.is_empty() {
            return Status::Idle(Ending::new("finished", "nothing is wanted"));
        }
        if state.wakes_at.is_some() {
            return Status::Working;
        }
        if state.wanted.iter().all(|wanted| wanted.role == Role::Human) {
            return Status::Waiting {
                question: "well?".to_owned(),
            };
        }
        Status::Working
    }

    fn is_past(state: &Wants, effect: &EffectId) -> bool {
        state.past.iter().any(|path| effect.is_under(path))
    }
}

fn obey(state: &mut Wants, act: &OperatorAct) {
    let paths = || {
        let paths = act.arguments["paths"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let path = |path: &Value| EffectId::new(path.as_str().unwrap_or(""));
        paths.iter().map(path).collect()
    };
    match act.act.as_str() {
        "toy.want" => {
            let wanted = Wanted::deserialize(&act.arguments["what"]).expect("something to want");
            state.wanted.push(wanted);
        }
        "toy.drop" => {
            let dropped: Vec<EffectId> = paths();
            state.wanted.retain(|wanted| !dropped.contains(&wanted.id));
        }
        "toy.spare" => state.spared = paths(),
        "toy.past" => state.past = paths(),
        "toy.wake" => state.wakes_at = act.arguments["at"].as_i64().map(Micros),
        "toy.end" => state.ended = true,
        _ => {}
    }
}

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
    let ending = Ending::new(kernel::HOST_DIED, "its host died");
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
