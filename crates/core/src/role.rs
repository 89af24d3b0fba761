//! Roles: who does a part of a loop, and what happens when an attempt's outcome is unknown.

use serde::{Deserialize, Serialize};

/// Who does a part of a loop. One closed list for all kinds of loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Changes the tree of an experiment loop.
    Proposer,
    /// Measures a tree.
    Experiment,
    /// Fetches and builds what a measurement needs.
    Setup,
    /// Measures what the proposer must not see.
    Holdout,
    /// Shapes what a planner gets.
    PrePlanner,
    /// Makes a plan.
    Planner,
    /// Acts on a plan.
    Actor,
    /// Acts when the evaluator asks for somebody else.
    Delegate,
    /// Judges an actor's result.
    Evaluator,
    /// Advises an evaluator.
    Judge,
    /// Proposes next states of a search loop.
    Step,
    /// A person.
    Human,
    /// The engine itself: free, and safe to do again.
    Builtin,
}

impl Role {
    /// The word used in code, configuration and the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proposer => "proposer",
            Self::Experiment => "experiment",
            Self::Setup => "setup",
            Self::Holdout => "holdout",
            Self::PrePlanner => "pre_planner",
            Self::Planner => "planner",
            Self::Actor => "actor",
            Self::Delegate => "delegate",
            Self::Evaluator => "evaluator",
            Self::Judge => "judge",
            Self::Step => "step",
            Self::Human => "human",
            Self::Builtin => "builtin",
        }
    }
}

/// What to do about an effect that was announced and never settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// Do it again: same idempotency key, next attempt.
    Retry,
    /// Ask a person; where nobody can be asked, fail.
    Ask,
    /// Settle it as failed.
    Fail,
}

impl OnUnknown {
    /// The word used in configuration and the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Ask => "ask",
            Self::Fail => "fail",
        }
    }

    /// The one that risks less: asking before failing before doing it again.
    #[must_use]
    pub fn more_careful(self, other: Self) -> Self {
        match (self, other) {
            (Self::Ask, _) | (_, Self::Ask) => Self::Ask,
            (Self::Fail, _) | (_, Self::Fail) => Self::Fail,
            (Self::Retry, Self::Retry) => Self::Retry,
        }
    }
}
