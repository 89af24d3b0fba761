//! The scripted roles of an agent run, and the person who answers.

use std::rc::Rc;

use loopwright_core::batch::Batch;
use loopwright_core::budget::Limits;
use loopwright_core::effect::{Announced, Settlement};
use loopwright_core::ids::{EffectId, LoopName, RunId};
use loopwright_core::kernel::{self, LimitsSet, OperatorAct, ParentRun, RunStarted};
use loopwright_core::machine::Machine as _;
use loopwright_core::role::{OnUnknown, Role};
use loopwright_core::turn::{Given, Run};
use loopwright_core::usage::Usage;
use serde_json::{Value, json};

use crate::hands::Performance;
use crate::laws::Inspector;
use crate::life::{LifeEnd, carry_out};
use crate::medium::SimJournal;
use crate::plan::{Lost, Plan};
use crate::random::{Random, mixed};
use crate::scenario::{Command, Comparison, Scenario};
use crate::stage::Stage;
use crate::violation::{Law, Violation};

use super::machine::{ACT_CANCEL, Agent};
use super::state::{Acted, AgentSettings, Planned, Verdict, Word};

const DAY_US: u64 = 86_400_000_000;
/// How many commands a child may take.
const CHILD_COMMANDS_MAX: u64 = 60;

/// An agent run with scripted roles.
#[derive(Clone, Debug)]
pub struct AgentScenario {
    run: RunId,
    seed: u64,
    settings: AgentSettings,
    limits: Limits,
    /// How often somebody raises the limits of a run that pauses for want of something.
    raises: u64,
    parent: Option<ParentRun>,
    is_tight: bool,
}

impl AgentScenario {
    /// The scenario of a plan.
    pub fn of(plan: &Plan) -> Self {
        let mut random = Random::of(plan.seed, "agent");
        let settings = AgentSettings {
            max_iterations: u64::from(plan.steps) * 2,
            max_retries: random.between(2, 3),
            max_replans: random.below(2),
            max_questions: random.below(3),
            pause_us: random.between(1, 600_000_000),
            call_tokens: random.between(50, 400),
            child_every: random.pick(&[0, 0, 2, 3]),
            child_tokens: 0,
            on_unknown: on_unknown(plan.lost),
        };
        // Repeats are paid for: a child that is short of tokens may end otherwise after a crash.
        let is_tight = settings.child_every > 0 && random.one_in(3);
        let calls = if is_tight { random.between(1, 5) } else { 16 };
        let settings = AgentSettings {
            child_tokens: settings.call_tokens * calls,
            ..settings
        };
        let mut random = Random::of(plan.seed, "agent limits");
        let wall_us = random.one_in(5).then(|| random.between(1, 400_000_000));
        Self {
            run: RunId::new("agent").expect("BUG: a plain name"),
            seed: plan.seed,
            settings,
            limits: Limits {
                tokens: plan.tokens,
                wall_us,
                ..Limits::default()
            },
            raises: random.below(4),
            parent: None,
            is_tight,
        }
    }

    /// The loop that does one iteration of this one. Its id is the key of the parent's effect, so
    /// that a repeated attempt goes on with the same run.
    fn child(&self, announced: &Announced) -> Self {
        let name = announced.effect.as_str().replace('/', "-");
        let run = RunId::new(&format!("{}.{name}", self.run)).expect("BUG: a plain name");
        Self {
            seed: mixed(self.seed, run.as_str()),
            run,
            settings: AgentSettings {
                child_every: 0,
                max_questions: 0,
                max_iterations: 2,
                ..self.settings.clone()
            },
            limits: Limits::default().under(announced.ceiling),
            raises: 0,
            parent: Some(ParentRun {
                run: self.run.clone(),
                effect: announced.effect.clone(),
            }),
            is_tight: self.is_tight,
        }
    }

    fn chance(&self, announced: &Announced) -> Random {
        Random::of(self.seed, announced.effect.as_str())
    }

    /// What a person says to a question; `limits` are those in force, where they are known.
    fn answer(&self, effect: &EffectId, attempt: u32, limits: Option<Limits>) -> Vec<Given> {
        let mut random = Random::of(self.seed, effect.as_str());
        let word = random.pick(&[Word::Continue, Word::Continue, Word::Accept, Word::Stop]);
        let settlement = Settlement {
            result: plain(&word),
            // What a person takes is nobody's budget.
            usage: Usage {
                wall_us: Some(DAY_US),
                tokens: Some(9),
                ..Usage::default()
            },
        };
        let settled = Given::about(kernel::kind::EFFECT_SETTLED, effect, attempt, &settlement);
        let more = random.below(3);
        let raised = limits
            .filter(|_| word == Word::Continue && more > 0)
            .map(|limits| {
                let before = limits.steps.unwrap_or(self.settings.max_iterations);
                limits_set(Limits {
                    steps: Some(before + more),
                    ..limits
                })
            });
        [settled].into_iter().chain(raised).collect()
    }

    fn answered(&self, effect: &EffectId, attempt: u32, limits: Limits) -> Command {
        let mut random = Random::of(self.seed, &format!("{effect} by whom"));
        let after_us = random.between(1, 20 * DAY_US);
        let given = if random.one_in(8) {
            let act = OperatorAct {
                act: ACT_CANCEL.to_owned(),
                arguments: json!({}),
            };
            vec![Given::new(kernel::kind::OPERATOR_ACT, &act)]
        } else {
            self.answer(effect, attempt, Some(limits))
        };
        Command::Say { after_us, given }
    }

    /// What is done about a run that pauses for want of something: it is given more, a few times.
    fn given_more(&self, limits: Limits, batches: &[Batch]) -> Command {
        // Whoever sets limits here says it twice, unless the process dies in between.
        let mut raises: Vec<String> = Vec::new();
        for batch in batches {
            let first = batch.events.first().map(|sealed| &sealed.event);
            if let Some(event) = first.filter(|event| event.kind == kernel::kind::LIMITS_SET) {
                raises.push(event.body.to_string());
            }
        }
        raises.dedup();
        if raises.len() as u64 >= self.raises {
            return Command::Nothing;
        }
        let more = Limits {
            tokens: limits
                .tokens
                .map(|tokens| tokens + 4 * self.settings.call_tokens),
            wall_us: limits.wall_us.map(|wall_us| wall_us * 2 + 60_000_000),
            ..limits
        };
        Command::Say {
            after_us: DAY_US,
            given: vec![limits_set(more)],
        }
    }

    /// Drives the child to its end, on the same disk and in the same process.
    fn perform_child(&self, stage: &Rc<Stage>, announced: &Announced) -> Performance {
        let child = Rc::new(self.child(announced));
        let began = stage.world.now();
        let mut inspector = Inspector::new(&child.run);
        for command in 0..CHILD_COMMANDS_MAX {
            let life = u64::from(announced.attempt) * 1000 + command;
            match carry_out(stage, &child, &mut inspector, life, None) {
                Ok(LifeEnd::Nothing) => {
                    let took_us = stage.world.now().since(began);
                    return outcome(stage, &mut inspector, took_us);
                }
                Ok(_) => {}
                Err(violation) => Violation::throw(violation.law, violation.words),
            }
        }
        Violation::throw(Law::ComesToItsEnd, "the child goes on and on")
    }
}

/// What a child that has come to its end is to its parent.
fn outcome(stage: &Rc<Stage>, inspector: &mut Inspector<Agent>, took_us: u64) -> Performance {
    let loaded = SimJournal::open(stage).and_then(|journal| {
        let run = inspector.inspect(&journal, &stage.world)?;
        journal.close()?;
        Ok(run)
    });
    let run = match loaded {
        Ok(Some(run)) => run,
        Ok(None) => Violation::throw(Law::ComesToItsEnd, "the child left no record"),
        Err(violation) => Violation::throw(violation.law, violation.words),
    };
    let ending = run.kernel.ended.as_ref();
    let succeeded = ending.is_some_and(|ending| ending.reason == "succeeded");
    Performance {
        result: plain(&Acted { usable: succeeded }),
        usage: run.kernel.account.usage(),
        takes_us: (1, 1 + took_us % 1000),
    }
}

fn limits_set(limits: Limits) -> Given {
    let set = LimitsSet { limits };
    Given::new(kernel::kind::LIMITS_SET, &set)
}

fn on_unknown(lost: Lost) -> OnUnknown {
    match lost {
        Lost::Retry => OnUnknown::Retry,
        Lost::AskRetry | Lost::AskFail | Lost::NobodyToAsk => OnUnknown::Ask,
        Lost::Fail => OnUnknown::Fail,
    }
}

fn plain<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("BUG: an answer is plain data")
}

impl Scenario for AgentScenario {
    type Machine = Agent;

    fn run_id(&self) -> RunId {
        self.run.clone()
    }

    fn started(&self) -> RunStarted {
        let specification = plain(&self.settings);
        let policies = Agent::start(&specification).map(|state| Agent::policies(&state));
        RunStarted {
            loop_name: LoopName::new("agent").expect("BUG: a plain name"),
            kind: Agent::KIND.to_owned(),
            machine: Agent::VERSION,
            policies: policies.unwrap_or_default(),
            release: "simulator".to_owned(),
            limits: self.limits,
            parent: self.parent.clone(),
            basis: None,
            specification,
        }
    }

    fn command(&self, run: &Run<Agent>, batches: &[Batch]) -> Command {
        let kernel = &run.kernel;
        let limits = kernel.account.limits;
        if kernel.ended.is_some() {
            return Command::Nothing;
        }
        if kernel.invocation.is_some() {
            return Command::Invoke(json!({}));
        }
        if let Some((effect, flight)) = kernel.questions().next() {
            return self.answered(effect, flight.attempt, limits);
        }
        // A pause, unless it was given more since.
        let newest = batches.last().and_then(|batch| batch.events.last());
        let is_raised = newest.is_some_and(|newest| newest.event.kind == kernel::kind::LIMITS_SET);
        let paused = kernel.last_ending.as_ref();
        let is_paused =
            paused.is_some_and(|ending| ["budget", "time"].contains(&ending.reason.as_str()));
        if is_paused && !is_raised {
            return self.given_more(limits, batches);
        }
        Command::Invoke(json!({}))
    }

    fn word(&self, question: &EffectId, attempt: u32) -> Option<Vec<Given>> {
        Some(self.answer(question, attempt, None))
    }

    fn perform(&self, stage: &Rc<Stage>, announced: &Announced) -> Performance {
        if announced.request["loop"] == "child" {
            // What it uses is paid by its own calls.
            stage.world.pay(announced, 0);
            return self.perform_child(stage, announced);
        }
        let mut random = self.chance(announced);
        let used = random.between(0, self.settings.call_tokens);
        stage.world.pay(announced, used);
        let result = match announced.role {
            Role::Planner => plain(&Planned {
                usable: !random.one_in(8),
            }),
            Role::Actor => plain(&Acted {
                usable: !random.one_in(10),
            }),
            _ if random.one_in(10) => plain(&Verdict::Unusable),
            _ => plain(&Verdict::Judged {
                passed: random.one_in(9),
                score: random.below(1000),
            }),
        };
        Performance {
            result,
            usage: Usage {
                // Some calls report nothing: they count at their ceiling.
                tokens: (!random.one_in(5)).then_some(used),
                ..Usage::default()
            },
            takes_us: (1_000, 90_000_000),
        }
    }

    fn width(&self) -> usize {
        1
    }

    fn comparison(&self) -> Comparison {
        if self.is_tight || self.limits.wall_us.is_some() {
            Comparison::None
        } else {
            Comparison::InOrder
        }
    }
}
