//! Making the brief of a proposal: from its announcement, the specification and the record.

use std::collections::BTreeMap;

use loopwright_core::effect::Announced;
use loopwright_core::experiment::Outcome;
use loopwright_core::experiment::brief::Brief;
use loopwright_core::ids::BranchName;
use loopwright_core::metric::Real;
use loopwright_core::spec::{RuleSpec, Tolerance};
use loopwright_core::time::Micros;

use crate::error::EngineError;

use super::workshop::{Workshop, request_field};

impl Workshop {
    /// The brief of `t<trial>/propose`.
    pub(super) fn brief(&mut self, announced: &Announced) -> Result<Brief, EngineError> {
        let request = &announced.request;
        let branch = announced
            .scope
            .branch
            .clone()
            .unwrap_or_else(BranchName::main);
        let ends_at: Option<Micros> = request_field(request, "ends_at")?;
        let counts: BTreeMap<Outcome, u64> = request_field(request, "counts")?;
        let history = if self.spec.brief {
            let past = self
                .history
                .catch_up(&self.reader, &announced.run, &branch)?;
            past.iter().cloned().collect()
        } else {
            Vec::new()
        };
        Ok(Brief {
            loop_name: self.spec.name.clone(),
            run: announced.run.to_string(),
            branch: branch.to_string(),
            trial: announced.scope.trial.unwrap_or(0),
            metric: self.spec.metric.clone(),
            goal: self.spec.goal,
            incumbent: request_field(request, "incumbent")?,
            baseline: request_field(request, "baseline")?,
            target: self
                .spec
                .target
                .and_then(|target| Real::new(target.get()).ok()),
            rule: rule_words(&self.spec.rule),
            run_command: self.spec.run.clone(),
            guards: self.spec.guards.iter().map(ToString::to_string).collect(),
            protected: self
                .spec
                .protect
                .iter()
                .map(|pattern| pattern.as_str().to_owned())
                .collect(),
            counts,
            history,
            trials_left: request_field(request, "trials_left")?,
            wall_clock_left_us: ends_at.map(|ends_at| ends_at.since(announced.asked_at)),
            budget_left: announced.left,
            propose_limit_us: self.spec.propose_limit_us,
            run_limit_us: self.spec.run_limit_us,
        })
    }
}

fn rule_words(rule: &RuleSpec) -> String {
    match rule {
        RuleSpec::Threshold { min_delta, confirm } => {
            let by = match min_delta.get() {
                0.0 => String::new(),
                _ => format!(" by more than {min_delta}"),
            };
            let again = if *confirm { ", twice in a row" } else { "" };
            format!("a change is kept if it beats the incumbent{by}{again}; a tie is not enough")
        }
        RuleSpec::Keep(keep) => {
            let by = match keep.worth {
                Tolerance::Percent(amount) | Tolerance::Absolute(amount) if amount.get() == 0.0 => {
                    String::new()
                }
                worth => format!(" by more than {worth}"),
            };
            format!(
                "a change is kept if back-to-back runs of it and the incumbent show that it is \
                 better{by}; one lucky run is not enough"
            )
        }
    }
}
