//! The newest trials of a branch, kept up to date at the cost of what is new.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use loopwright_core::experiment::brief::{HISTORY_MAX, Past};
use loopwright_core::ids::{BranchName, RunId};
use loopwright_record::{Select, Store};

use crate::error::EngineError;

use super::lines::visit_decisions;
use super::row::{More, TrialLine};

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
        let mut found = Vec::new();
        visit_decisions(store, run, select, |seq, line, more| {
            found.push((
                seq,
                (line.branch == branch.as_str()).then(|| past_of(line, more)),
            ));
            ControlFlow::Continue(())
        })?;
        found.sort_by_key(|(seq, _)| *seq);
        for (seq, past) in found {
            self.seen_seq = Some(seq);
            self.past.extend(past);
        }
        while self.past.len() > HISTORY_MAX {
            self.past.pop_front();
        }
        Ok(&self.past)
    }
}

fn past_of(line: &TrialLine<'_>, more: &More) -> Past {
    Past {
        trial: line.trial,
        outcome: line.outcome,
        value: line.value,
        why: line.why.to_owned(),
        commit: line.commit.map(str::to_owned),
        paths: more.paths.clone(),
        output_tail: more.output_tail.clone(),
    }
}
