//! What an agent run folds from its events, what its roles answer, and what it is set to.

use loopwright_core::machine::Ending;
use loopwright_core::role::OnUnknown;
use loopwright_core::time::Micros;
use serde::{Deserialize, Serialize};

/// The pinned specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    /// The most iterations.
    pub max_iterations: u64,
    /// Iterations without progress, or without a usable answer, before something else is done.
    pub max_retries: u64,
    /// How often the plan may be made anew.
    pub max_replans: u64,
    /// How often a person may be asked.
    pub max_questions: u64,
    /// The pause after an unusable answer; it doubles each time.
    pub pause_us: u64,
    /// The most tokens one call may use.
    pub call_tokens: u64,
    /// Every so many iterations one is a loop of its own; 0 is never.
    pub child_every: u64,
    /// The most tokens such a loop may use.
    pub child_tokens: u64,
    /// What happens to calls whose outcome is unknown.
    pub on_unknown: OnUnknown,
}

/// What a planner answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// Whether there is a plan.
    pub usable: bool,
}

/// What an actor answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acted {
    /// Whether there is a result.
    pub usable: bool,
}

/// What an evaluator answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// It judged.
    Judged {
        /// Whether the work is done.
        passed: bool,
        /// How good it is, of 1000.
        score: u64,
    },
    /// It gave nothing that can be used.
    Unusable,
}

/// What a person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Go on.
    Continue,
    /// The best result is good enough.
    Accept,
    /// Leave it.
    Stop,
}

/// What an iteration is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A plan.
    Plan,
    /// The actor.
    Act,
    /// The evaluator.
    Evaluate,
    /// A person.
    Ask,
    /// Nothing more.
    Over,
}

/// A fact that was settled and not decided about yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// The planner's.
    Planned(Planned),
    /// The actor's, where there is no result.
    NotActed,
    /// The evaluator's.
    Judged(Verdict),
    /// A person's.
    Answered(Word),
}

/// The state of an agent run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentState {
    /// The settings.
    pub settings: AgentSettings,
    /// Whether an invocation is open.
    pub is_open: bool,
    /// What is waited for.
    pub phase: Phase,
    /// The iteration, from 1.
    pub iteration: u64,
    /// How many plans were asked for.
    pub plans: u64,
    /// How many of them were made anew.
    pub replans: u64,
    /// How many questions were asked.
    pub questions: u64,
    /// Iterations in a row without progress.
    pub no_progress: u64,
    /// Iterations in a row without a usable answer.
    pub unusable: u64,
    /// The best score so far.
    pub best: Option<u64>,
    /// Not before this moment.
    pub not_before: Option<Micros>,
    /// What is to be decided about.
    pub fact: Option<Fact>,
    /// How the run ended.
    pub ending: Option<Ending>,
    /// How this invocation ends, where it is not the run's end.
    pub pausing: Option<Ending>,
}

impl AgentState {
    /// A run before its first invocation.
    pub fn new(settings: AgentSettings) -> Self {
        Self {
            settings,
            is_open: false,
            phase: Phase::Plan,
            iteration: 1,
            plans: 0,
            replans: 0,
            questions: 0,
            no_progress: 0,
            unusable: 0,
            best: None,
            not_before: None,
            fact: None,
            ending: None,
            pausing: None,
        }
    }
}
