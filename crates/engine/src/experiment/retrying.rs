//! What can be tried again: a decided trial that left a change, which the incumbent has not got.
//! Everything else is refused before anything is spent.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{Experiment, RetryOf};
use loopwright_core::ids::RunId;
use loopwright_core::turn::Run;
use loopwright_git::Oid;
use loopwright_record::Select;

use crate::error::EngineError;
use crate::views::{trial_that_is_there, visit_lines};

use super::session::Session;

impl Session {
    /// The trial that is asked for.
    pub(super) fn retry_of(&mut self, run: &RunId, trial: u64) -> Result<RetryOf, EngineError> {
        let row = trial_that_is_there(&self.store, run, &self.loop_name, trial)?;
        if row.outcome.is_none() {
            return Err(EngineError::refused_with(
                format!("trial {trial} is not decided yet"),
                "go on with it: loopwright resume",
            ));
        }
        if row.origin == Some(Origin::Baseline) {
            return Err(EngineError::refused_with(
                format!("trial {trial} is a baseline: there is no change to try again"),
                "measure it again: loopwright baseline",
            ));
        }
        let Some(candidate) = row.candidate else {
            return Err(EngineError::refused_with(
                format!("trial {trial} left no change that could be tried again"),
                format!("loopwright show {trial} says why"),
            ));
        };
        if let Some(kept) = self.kept_as(run, trial)? {
            let which = if kept == trial {
                format!("trial {trial} is kept already")
            } else {
                format!("trial {trial} was tried again and is kept, as trial {kept}")
            };
            return Err(EngineError::refused_with(
                format!("{which}: its change is in the incumbent"),
                format!(
                    "loopwright show {kept} says with what value; loopwright adopt brings it to your branch"
                ),
            ));
        }
        Ok(RetryOf {
            trial,
            commit: candidate.commit,
        })
    }

    /// The trial as which the change of `trial` came to what the branch's incumbent is built on.
    fn kept_as(&mut self, run: &RunId, trial: u64) -> Result<Option<u64>, EngineError> {
        let below = self.below_incumbent(run)?;
        let (mut same, mut kept) = (BTreeSet::from([trial]), None);
        visit_lines(&self.store, run, Select::all(), |_, line| {
            if let Origin::Retry { of } = line.origin
                && same.contains(&of)
            {
                same.insert(line.trial);
            }
            let is_below = line.commit.is_some_and(|commit| below.contains(commit));
            if same.contains(&line.trial) && line.outcome.is_keep() && is_below {
                kept = Some(line.trial);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok(kept)
    }

    /// The commits on the way from the branch's incumbent back to where the loop began.
    fn below_incumbent(&mut self, run: &RunId) -> Result<BTreeSet<String>, EngineError> {
        let run: Run<Experiment> = loopwright_record::load(&self.store, run)?;
        let state = run.state.as_ref();
        let incumbent = state.and_then(|state| state.starts_from(&self.branch));
        let mut next: Option<Oid> = incumbent.map(|it| it.commit.parse()).transpose()?;
        let mut below = BTreeSet::new();
        while let Some(commit) = next {
            if !below.insert(commit.to_hex()) || !self.objects.has(&commit)? {
                break;
            }
            next = self.objects.read_commit(&commit)?.parents.first().copied();
        }
        Ok(below)
    }
}
