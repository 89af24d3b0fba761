//! What an invocation that was cut off still had to do, so that a resumed run comes to where the
//! undisturbed one would have.

use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{Caps, Decided, Mode, kind};
use loopwright_core::ids::RunId;
use loopwright_core::kernel::{self, EndedBy, InvocationBegun, InvocationEnded};
use loopwright_record::{Select, Store};

use crate::error::EngineError;

use super::request::Purpose;

/// The rest of an invocation that did not come to an end of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// What it was for.
    pub purpose: Purpose,
    /// How many of its trials are left; none where it had no limit.
    pub trials_left: Option<u64>,
}

/// What the newest invocation of a run left undone; none where it came to its own end.
pub fn unfinished(store: &Store, run: &RunId) -> Result<Option<Unfinished>, EngineError> {
    let newest = |kind: &str| -> Result<_, EngineError> {
        Ok(store
            .events_of_kind(run, kind, Select::newest(1))?
            .into_iter()
            .next()
            .map(|entry| entry.sealed.event))
    };
    let Some(begun) = newest(kernel::kind::INVOCATION_BEGUN)? else {
        return Ok(None);
    };
    let ended = newest(kernel::kind::INVOCATION_ENDED)?.filter(|ended| ended.seq > begun.seq);
    let by_itself = ended.is_some_and(|event| {
        kernel::body::<InvocationEnded>(&event).is_ok_and(|ended| ended.by == EndedBy::Machine)
    });
    if by_itself {
        return Ok(None);
    }
    let refuse = |words: String| EngineError::refused(words);
    let body: InvocationBegun = kernel::body(&begun).map_err(|error| refuse(error.to_string()))?;
    let caps: Caps =
        serde_json::from_value(body.caps).map_err(|error| refuse(format!("run {run}: {error}")))?;
    let mut decided = 0;
    let mut retried = false;
    for entry in store.events_of_kind(run, kind::TRIAL_DECIDED, Select::after(begun.seq))? {
        let trial: Decided =
            kernel::body(&entry.sealed.event).map_err(|error| refuse(error.to_string()))?;
        decided += u64::from(trial.origin != Origin::Baseline);
        retried |= matches!(trial.origin, Origin::Retry { .. });
    }
    if retried {
        // What is left of a retry after its decision (confirming the target) tries nothing again.
        return Ok(Some(Unfinished {
            purpose: Purpose::Run,
            trials_left: Some(0),
        }));
    }
    Ok(Some(Unfinished {
        purpose: match caps.mode {
            Mode::Run => Purpose::Run,
            Mode::Baseline => Purpose::Baseline,
            Mode::Retry(of) => Purpose::Retry(of.trial),
        },
        trials_left: caps.trials.map(|trials| trials.saturating_sub(decided)),
    }))
}
