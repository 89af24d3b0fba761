//! The scripted steps of a search run.

use std::rc::Rc;

use loopwright_core::batch::Batch;
use loopwright_core::budget::Limits;
use loopwright_core::effect::{Announced, Settlement};
use loopwright_core::ending::Reason;
use loopwright_core::ids::{EffectId, LoopName, RunId};
use loopwright_core::kernel::{RunStarted, kind};
use loopwright_core::machine::Machine as _;
use loopwright_core::role::OnUnknown;
use loopwright_core::turn::{Given, Run};
use loopwright_core::usage::Usage;
use serde_json::json;

use crate::hands::Performance;
use crate::plan::{Lost, Plan};
use crate::random::{Random, mixed};
use crate::scenario::{Command, Comparison, Scenario};
use crate::stage::Stage;

use super::machine::Search;
use super::state::{Pruning, SearchSettings};

/// A search run with scripted steps.
#[derive(Clone, Debug)]
pub struct SearchScenario {
    seed: u64,
    settings: SearchSettings,
    limits: Limits,
}

impl SearchScenario {
    /// The scenario of a plan.
    pub fn of(plan: &Plan) -> Self {
        let mut random = Random::of(plan.seed, "search");
        let mut more = Random::of(plan.seed, "search pruning");
        let pruning = more.pick(&[Pruning::Stop, Pruning::Finish, Pruning::Patient]);
        let asks = more.one_in(2);
        Self {
            seed: plan.seed,
            settings: SearchSettings {
                levels: u64::from(plan.steps.div_ceil(2)),
                branches: random.between(1, 4) as usize,
                parts: random.between(1, 3) as usize,
                width: plan.width as usize,
                part_tokens: random.between(20, 200),
                on_unknown: match plan.lost {
                    Lost::Retry => OnUnknown::Retry,
                    Lost::AskRetry | Lost::AskFail | Lost::NobodyToAsk => OnUnknown::Ask,
                    Lost::Fail => OnUnknown::Fail,
                },
                pruning,
                asks,
            },
            limits: Limits {
                tokens: plan.tokens,
                ..Limits::default()
            },
        }
    }
}

impl SearchScenario {
    /// Whether the order of results decides nothing, not even what is judged.
    pub fn is_patient(&self) -> bool {
        self.settings.pruning == Pruning::Patient
    }
}

impl Scenario for SearchScenario {
    type Machine = Search;

    fn run_id(&self) -> RunId {
        RunId::new("search").expect("BUG: a plain name")
    }

    fn started(&self) -> RunStarted {
        RunStarted {
            loop_name: LoopName::new("search").expect("BUG: a plain name"),
            kind: Search::KIND.to_owned(),
            machine: Search::VERSION,
            policies: vec!["cheapest/1".to_owned()],
            release: "simulator".to_owned(),
            limits: self.limits,
            parent: None,
            basis: None,
            specification: serde_json::to_value(&self.settings)
                .expect("BUG: settings are plain data"),
        }
    }

    fn command(&self, run: &Run<Search>, _batches: &[Batch]) -> Command {
        let kernel = &run.kernel;
        let paused = kernel.last_ending.as_ref();
        let is_idle = kernel.invocation.is_none();
        let is_paused =
            is_idle && paused.is_some_and(|ending| ending.known() == Some(Reason::Budget));
        if kernel.ended.is_some() || is_paused {
            return Command::Nothing;
        }
        match kernel.questions().next() {
            Some((effect, flight)) if is_idle => {
                let mut random = Random::of(self.seed, &format!("{effect} {}", kernel.next_seq));
                if random.one_in(3) {
                    return Command::Invoke(json!({}));
                }
                Command::Say {
                    after_us: random.below(1_000_000_000),
                    given: answer(effect, flight.attempt),
                }
            }
            _ => Command::Invoke(json!({})),
        }
    }

    fn word(&self, question: &EffectId, attempt: u32) -> Option<Vec<Given>> {
        Some(answer(question, attempt))
    }

    fn perform(&self, stage: &Rc<Stage>, announced: &Announced) -> Performance {
        // What comes of a part depends on where it stands, not on when it is asked for.
        let question = format!("{} {}", announced.effect, announced.request);
        let mut random = Random::new(mixed(self.seed, &question));
        let used = random.between(0, announced.ceiling.tokens.unwrap_or(0));
        stage.world.pay(announced, used);
        let result = if random.one_in(15) {
            json!({"cost": null})
        } else {
            json!({"cost": random.below(20)})
        };
        Performance {
            result,
            usage: Usage {
                tokens: Some(used),
                ..Usage::default()
            },
            takes_us: (0, 5_000_000),
        }
    }

    fn width(&self) -> usize {
        // Those that are being stopped, or may finish, are still in flight when others take their
        // place: of this level and of the one before.
        self.settings.width + 2 * self.settings.branches * self.settings.parts
    }

    fn comparison(&self) -> Comparison {
        Comparison::AsSet
    }
}

fn answer(question: &EffectId, attempt: u32) -> Vec<Given> {
    let settlement = Settlement {
        result: json!({"go": "on"}),
        usage: Usage::default(),
    };
    vec![Given::about(
        kind::EFFECT_SETTLED,
        question,
        attempt,
        &settlement,
    )]
}
