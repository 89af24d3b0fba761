//! The newest trials of a branch, kept up to date at the cost of what is new.

use std::collections::VecDeque;

use loopwright_core::experiment::brief::{HISTORY_MAX, Past, output_tail};
use loopwright_core::experiment::{Outcome, kind};
use loopwright_core::ids::{BranchName, RunId};
use loopwright_record::{Select, Store};

use crate::error::EngineError;

use super::trials::{TrialRow, trial_row};

/// The newest decided trials of one branch, oldest first.
#[derive(Debug, Default)]
pub struct History {
    past: VecDeque<Past>,
    branch: Option<BranchName>,
    /// Everything up to this event is in it.
    seen_seq: Option<u64>,
}

impl History {
    /// Brings it up to what the record holds now.
    pub fn catch_up(
        &mut self,
        store: &Store,
        run: &RunId,
        branch: &BranchName,
    ) -> Result<&VecDeque<Past>, EngineError> {
        if self.branch.as_ref() != Some(branch) {
            *self = Self {
                branch: Some(branch.clone()),
                ..Self::default()
            };
        }
        let select = match self.seen_seq {
            Some(seq) => Select::after(seq),
            None => Select::newest(HISTORY_MAX as u64 * 4),
        };
        let mut decided = store.events_of_kind(run, kind::TRIAL_DECIDED, select)?;
        decided.sort_by_key(|entry| entry.sealed.event.seq);
        for entry in decided {
            self.seen_seq = Some(entry.sealed.event.seq);
            let scope = &entry.sealed.event.scope;
            let (Some(trial), true) = (scope.trial, scope.branch.as_ref() == Some(branch)) else {
                continue;
            };
            if let Some(row) = trial_row(store, run, trial)? {
                self.past.extend(past_of(&row));
            }
            while self.past.len() > HISTORY_MAX {
                self.past.pop_front();
            }
        }
        Ok(&self.past)
    }
}

fn past_of(row: &TrialRow) -> Option<Past> {
    let outcome = row.outcome?;
    let failed = matches!(
        outcome,
        Outcome::Failed
            | Outcome::TimedOut
            | Outcome::NoMetric
            | Outcome::NotFinite
            | Outcome::Ambiguous
            | Outcome::Unstable
    );
    let tail = row.tail();
    Some(Past {
        trial: row.trial,
        outcome,
        value: row.value,
        why: row.why.clone(),
        commit: row.commit.clone(),
        paths: row
            .candidate
            .iter()
            .flat_map(|candidate| candidate.paths.clone())
            .collect(),
        output_tail: (failed && !tail.is_empty()).then(|| output_tail(tail)),
    })
}
