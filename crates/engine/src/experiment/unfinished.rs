//! What an invocation still had to do when it was cut off or ended, so that a resumed run comes to
//! where the undisturbed one would have, and no further.

use loopwright_core::ending::Reason;
use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{Caps, Decided, Experiment, Mode, kind};
use loopwright_core::ids::RunId;
use loopwright_core::kernel::{self, EndedBy, InvocationBegun, InvocationEnded};
use loopwright_core::machine::Ending;
use loopwright_record::{Select, Store};

use crate::error::EngineError;

use super::request::Purpose;

/// What is left of the newest invocation of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// What it was for.
    pub purpose: Purpose,
    /// How many of its trials are left; none where it had no limit.
    pub trials_left: Option<u64>,
    /// Whether start and finish are still to be measured against each other.
    pub is_closing: bool,
    /// How it ended, where it came to an end of its own.
    pub ended: Option<Ending>,
}

impl Unfinished {
    /// How it ended, where it has done all it was asked for.
    pub fn done(&self) -> Option<&Ending> {
        let ending = self.ended.as_ref()?;
        if ending.known() == Some(Reason::Waiting) {
            return None;
        }
        match self.purpose {
            Purpose::Run => (self.trials_left == Some(0) && !self.is_closing).then_some(ending),
            Purpose::Baseline => (ending.known() == Some(Reason::Finished)).then_some(ending),
            Purpose::Retry(_) => None,
        }
    }
}

/// What the newest invocation of a run left undone; none where there was none.
pub fn unfinished(store: &Store, run: &RunId) -> Result<Option<Unfinished>, EngineError> {
    let newest = |kind: &str| -> Result<_, EngineError> {
        Ok(store
            .events_of_kind(run, kind, Select::newest(1))?
            .into_iter()
            .next()
            .map(|entry| entry.sealed.event))
    };
    let refuse = |words: String| EngineError::refused(words);
    let Some(begun) = newest(kernel::kind::INVOCATION_BEGUN)? else {
        return Ok(None);
    };
    let body: InvocationBegun = kernel::body(&begun).map_err(|error| refuse(error.to_string()))?;
    let caps: Caps =
        serde_json::from_value(body.caps).map_err(|error| refuse(format!("run {run}: {error}")))?;
    let ended = newest(kernel::kind::INVOCATION_ENDED)?
        .filter(|ended| ended.seq > begun.seq)
        .and_then(|event| kernel::body::<InvocationEnded>(&event).ok())
        .filter(|ended| ended.by == EndedBy::Machine)
        .map(|ended| ended.ending);
    let mut decided = 0;
    let mut retried = false;
    for entry in store.events_of_kind(run, kind::TRIAL_DECIDED, Select::after(begun.seq))? {
        let trial: Decided =
            kernel::body(&entry.sealed.event).map_err(|error| refuse(error.to_string()))?;
        decided += u64::from(trial.origin != Origin::Baseline);
        retried |= matches!(trial.origin, Origin::Retry { .. });
    }
    let (purpose, trials_left) = match caps.mode {
        // What is left of a retry after its decision (confirming the target) tries nothing again.
        Mode::Retry(_) if retried => (Purpose::Run, Some(0)),
        Mode::Retry(of) => (Purpose::Retry(of.trial), None),
        Mode::Baseline => (Purpose::Baseline, None),
        Mode::Run => {
            let left = caps.trials.map(|trials| trials.saturating_sub(decided));
            (Purpose::Run, left)
        }
    };
    let state = loopwright_record::load::<Experiment>(store, run)?.state;
    let line = state
        .as_ref()
        .and_then(|state| state.lines.get(&caps.branch));
    Ok(Some(Unfinished {
        purpose,
        trials_left,
        is_closing: line.is_some_and(|line| line.closing.is_some()),
        ended,
    }))
}
