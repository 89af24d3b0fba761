//! The decision about an iteration: accept, retry, replan, escalate or stop.

use serde::{Deserialize, Serialize};

use super::state::{AgentState, Fact, Verdict};

/// What is decided about an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The work is done.
    Accept,
    /// Another iteration with the same plan.
    Retry,
    /// Another iteration with another plan.
    Replan,
    /// A person is asked.
    Escalate,
    /// The run is over.
    Stop,
}

/// Body of `iteration.decided`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// What.
    pub action: Action,
    /// Why, one word.
    pub reason: String,
    /// The score, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<u64>,
    /// The best score after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<u64>,
    /// Iterations in a row without progress, after it.
    pub no_progress: u64,
    /// Iterations in a row without a usable answer, after it.
    pub unusable: u64,
}

/// Decides about the open iteration, once its fact is there.
pub fn decide(state: &AgentState) -> Option<Decided> {
    match state.fact? {
        Fact::NotActed | Fact::Judged(Verdict::Unusable) => Some(after_nothing(state)),
        Fact::Judged(Verdict::Judged { passed, score }) => Some(after_score(state, passed, score)),
        Fact::Planned(_) | Fact::Answered(_) => None,
    }
}

fn after_nothing(state: &AgentState) -> Decided {
    let unusable = state.unusable + 1;
    let (action, reason) = if unusable >= state.settings.max_retries {
        (Action::Stop, "stopped_infra_failure")
    } else if state.iteration >= state.settings.max_iterations {
        (Action::Stop, "stopped_max_iterations")
    } else {
        (Action::Retry, "unusable")
    };
    Decided {
        action,
        reason: reason.to_owned(),
        score: None,
        best: state.best,
        no_progress: state.no_progress,
        unusable,
    }
}

fn after_score(state: &AgentState, passed: bool, score: u64) -> Decided {
    let settings = &state.settings;
    let progress = state.best.is_none_or(|best| score > best);
    let no_progress = if progress { 0 } else { state.no_progress + 1 };
    let (action, reason) = if passed {
        (Action::Accept, "passed")
    } else if state.iteration >= settings.max_iterations {
        (Action::Stop, "stopped_max_iterations")
    } else if no_progress < settings.max_retries {
        (
            Action::Retry,
            if progress { "progress" } else { "no_progress" },
        )
    } else if state.replans < settings.max_replans {
        (Action::Replan, "no_progress")
    } else if state.questions < settings.max_questions {
        (Action::Escalate, "no_progress")
    } else {
        (Action::Stop, "stopped_no_progress")
    };
    Decided {
        action,
        reason: reason.to_owned(),
        score: Some(score),
        best: state.best.max(Some(score)),
        no_progress,
        unusable: 0,
    }
}
