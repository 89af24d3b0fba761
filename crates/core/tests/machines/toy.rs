//! A toy machine that wants what it is told to want.

use loopwright_core::budget::{Ceiling, Limits};
use loopwright_core::digest::Digest;
use loopwright_core::effect::{Booking, Effect};
use loopwright_core::event::{Event, Scope};
use loopwright_core::ids::EffectId;
use loopwright_core::kernel::{self, LimitsSet, OperatorAct, kind};
use loopwright_core::machine::{Draft, Ending, Finish, Input, Machine, Misfit, Next, Status};
use loopwright_core::role::{OnUnknown, Role};
use loopwright_core::time::Micros;
use loopwright_core::turn::Given;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::table::act;

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
    const KINDS: &[&str] = &["toy.done", "toy.lost"];
    const POLICIES: &[&str] = &["toy/1"];

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
