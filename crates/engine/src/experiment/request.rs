//! What is asked of a session, how it went, and what an earlier one pinned.

use loopwright_core::event::Event;
use loopwright_core::experiment::{Caps, Decided, kind};
use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::kernel::{self, Resolution};
use loopwright_core::machine::Ending;
use loopwright_core::spec::ExperimentSpec;
use loopwright_exec::Supervisor;
use loopwright_record::{Key, KeySource, Store};

use crate::error::EngineError;

use super::claim::pinned_spec;

/// What an invocation is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Propose, measure, decide.
    Run,
    /// Measure the baseline.
    Baseline,
    /// Try an old trial's candidate again.
    Retry(u64),
}

/// What is asked of a session.
#[derive(Clone, Debug)]
pub struct Request {
    /// The loop as it is to be driven now.
    pub spec: ExperimentSpec,
    /// Whether the specification and the user's commit were read anew (`run`), or what was pinned
    /// goes on (`resume`).
    pub fresh: bool,
    /// What for.
    pub purpose: Purpose,
    /// Where below the top of the repository commands run; empty at the top.
    pub workdir: String,
    /// Whether to take the run from a holder that lives.
    pub force: bool,
    /// What is to be said once it is sure that the run can be driven.
    pub notices: Vec<String>,
    /// What is said about effects whose outcome is unknown, where the run waits for that.
    pub unknown: Option<Resolution>,
    /// Starts supervisors.
    pub supervisor: Supervisor,
}

/// How a session went.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// The run.
    pub run: RunId,
    /// How the invocation ended.
    pub ending: Ending,
    /// What the run waits for, where it waits for a person.
    pub waiting: Option<String>,
}

/// The value under which a decided trial is found by its tree.
pub(super) fn tree_key(segment: u64, tree: &str) -> String {
    format!("{segment}/{tree}")
}

fn keys_of(event: &Event) -> Vec<Key> {
    if event.kind != kind::TRIAL_DECIDED {
        return Vec::new();
    }
    let Ok(Decided {
        segment,
        tree: Some(tree),
        ..
    }) = kernel::body(event)
    else {
        return Vec::new();
    };
    vec![Key {
        name: "tree",
        value: tree_key(segment, &tree),
    }]
}

/// The keys by which an experiment run's events are found.
pub const KEYS: KeySource = KeySource {
    version: 1,
    keys_of,
};

/// The newest run of a loop, with the specification it was last driven with.
pub fn pinned(store: &Store, loop_name: &LoopName) -> Result<Option<(RunId, Caps)>, EngineError> {
    let Some(summary) = store.latest_run(loop_name)? else {
        return Ok(None);
    };
    let newest = loopwright_record::Select::newest(1);
    let begun = store.events_of_kind(&summary.run, kernel::kind::INVOCATION_BEGUN, newest)?;
    let Some(entry) = begun.first() else {
        return Ok(None);
    };
    let body: kernel::InvocationBegun = kernel::body(&entry.sealed.event)
        .map_err(|misfit| EngineError::refused(misfit.to_string()))?;
    let caps = serde_json::from_value(body.caps)
        .map_err(|error| EngineError::refused(format!("run {}: {error}", summary.run)))?;
    Ok(Some((summary.run, caps)))
}

/// Whether the newest run of a loop keeps on the branch that the user has checked out.
pub fn is_in_place(store: &Store, loop_name: &LoopName) -> Result<bool, EngineError> {
    let Some((_, caps)) = pinned(store, loop_name)? else {
        return Ok(false);
    };
    Ok(pinned_spec(&caps.specification)?.in_place)
}
