//! The agent machine: the door.

use loopwright_core::budget::Ceiling;
use loopwright_core::digest::Digest;
use loopwright_core::effect::{Booking, Effect};
use loopwright_core::ending::Reason;
use loopwright_core::event::{Event, Scope};
use loopwright_core::ids::EffectId;
use loopwright_core::machine::{Draft, Ending, Finish, Input, Machine, Misfit, Next, Status};
use loopwright_core::role::{OnUnknown, Role};
use loopwright_core::time::Micros;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fold;
use super::policy;
use super::state::{AgentSettings, AgentState, Fact, Phase, Word};

/// Kinds of the agent machine's events.
pub mod kind {
    /// A plan holds from now on, or that there is none.
    pub const PLAN_ADOPTED: &str = "plan.adopted";
    /// An iteration is over.
    pub const ITERATION_DECIDED: &str = "iteration.decided";
    /// A person answered.
    pub const QUESTION_ANSWERED: &str = "question.answered";
    /// A person cancelled the run.
    pub const RUN_CANCELLED: &str = "loop.cancelled";
}

/// A person's act that ends the run.
pub const ACT_CANCEL: &str = "loop.cancel";

/// Body of `plan.adopted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanAdopted {
    /// Whether the planner gave one.
    pub usable: bool,
}

/// Body of `question.answered`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answered {
    /// What a person said.
    pub word: Word,
}

/// The little agent loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent;

impl Machine for Agent {
    type State = AgentState;
    const KIND: &'static str = "agent";
    const VERSION: u32 = 1;
    const KINDS: &'static [&'static str] = &[
        kind::PLAN_ADOPTED,
        kind::ITERATION_DECIDED,
        kind::QUESTION_ANSWERED,
        kind::RUN_CANCELLED,
    ];
    const POLICIES: &'static [&'static str] = &["little/1"];

    fn start(specification: &Value) -> Result<AgentState, String> {
        let settings = AgentSettings::deserialize(specification);
        settings
            .map(AgentState::new)
            .map_err(|error| error.to_string())
    }

    fn policies(_state: &AgentState) -> Vec<String> {
        vec!["little/1".to_owned()]
    }

    fn decide(state: &AgentState, input: &Input, _now: Micros) -> Vec<Draft> {
        let scope = Scope::iteration(state.iteration);
        if let Input::Act { act, .. } = input {
            let cancels = act == ACT_CANCEL && state.phase != Phase::Over;
            let draft = || Draft::new(kind::RUN_CANCELLED, Scope::run(), &json!({}));
            return cancels.then(draft).into_iter().collect();
        }
        match state.fact {
            Some(Fact::Planned(planned)) => {
                let body = PlanAdopted {
                    usable: planned.usable,
                };
                vec![Draft::new(kind::PLAN_ADOPTED, scope, &body)]
            }
            Some(Fact::Answered(word)) => {
                vec![Draft::new(
                    kind::QUESTION_ANSWERED,
                    scope,
                    &Answered { word },
                )]
            }
            Some(Fact::NotActed | Fact::Judged(_)) => policy::decide(state)
                .map(|decided| Draft::new(kind::ITERATION_DECIDED, scope, &decided))
                .into_iter()
                .collect(),
            None => Vec::new(),
        }
    }

    fn apply(state: &mut AgentState, event: &Event, _id: Digest) -> Result<(), Misfit> {
        fold::apply(state, event)
    }

    fn next(state: &AgentState) -> Next {
        if !state.is_open {
            return Next::default();
        }
        if state.pausing.is_some() {
            // Begin nothing new; what was begun is paid for.
            return Next {
                finish: Finish::Everything,
                ..Next::default()
            };
        }
        if state.not_before.is_some() {
            return Next {
                deadline: state.not_before,
                ..Next::default()
            };
        }
        Next {
            effects: wanted(state).into_iter().collect(),
            ..Next::default()
        }
    }

    fn status(state: &AgentState) -> Status {
        if let Some(ending) = &state.ending {
            return Status::Ended(ending.clone());
        }
        if let Some(pausing) = &state.pausing {
            return Status::Idle(pausing.clone());
        }
        match state.phase {
            Phase::Ask => Status::Waiting {
                question: format!("no progress at {:?} of 1000: go on?", state.best),
            },
            _ if state.is_open => Status::Working,
            _ => Status::Idle(Ending::because(Reason::Idle, "no invocation is open")),
        }
    }

    fn is_past(state: &AgentState, effect: &EffectId) -> bool {
        let iteration = effect.as_str().split('/').next();
        let number = iteration.and_then(|first| first.strip_prefix('i')?.parse::<u64>().ok());
        number.is_some_and(|number| number < state.iteration || state.phase == Phase::Over)
    }
}

fn wanted(state: &AgentState) -> Option<Effect> {
    let iteration = state.iteration;
    let settings = &state.settings;
    let is_child = settings.child_every > 0 && iteration.is_multiple_of(settings.child_every);
    let scope = Scope::iteration(iteration);
    let id = |path: &str| format!("i{iteration}/{path}");
    let (path, role, request) = match state.phase {
        Phase::Plan => ("plan", Role::Planner, json!({"best": state.best})),
        Phase::Act if is_child => ("act", Role::Actor, json!({"loop": "child"})),
        Phase::Act => ("act", Role::Actor, json!({"loop": null})),
        Phase::Evaluate => ("evaluate", Role::Evaluator, json!({})),
        Phase::Ask => {
            let request = json!({"best": state.best});
            return Some(Effect::question(id("ask"), scope, request));
        }
        Phase::Over => return None,
    };
    let is_child = is_child && role == Role::Actor;
    let tokens = if is_child {
        settings.child_tokens
    } else {
        settings.call_tokens
    };
    Some(Effect {
        id: EffectId::new(id(path)),
        role,
        scope,
        after: None,
        request,
        ceiling: Ceiling {
            tokens: Some(tokens),
            money_micros: Some(0),
            ..Ceiling::default()
        },
        on_unknown: if is_child {
            // A child's own record knows what was done.
            OnUnknown::Retry
        } else {
            settings.on_unknown
        },
        booking: if is_child {
            Booking::AllAttempts
        } else {
            Booking::EachAttempt
        },
    })
}
