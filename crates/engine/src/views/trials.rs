//! Trials as rows: one per trial, folded from its events.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use loopwright_core::effect::Settlement;
use loopwright_core::event::Event;
use loopwright_core::experiment::results::{Candidate, Kept, Measured, Proposed, Ran, Reapplied};
use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{Decided, EffectPath, Outcome, Part, Taken, kind};
use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::kernel::{self, kind as kernel_kind};
use loopwright_core::metric::{MetricName, Real};
use loopwright_core::time::Micros;
use loopwright_core::usage::Usage;
use loopwright_record::{Select, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::EngineError;

use super::lines::visit_lines;

/// One trial as surfaces show it. Fields that its events don't tell are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialRow {
    /// Its number.
    pub trial: u64,
    /// Its branch.
    pub branch: String,
    /// The segment; none while it is open.
    pub segment: Option<u64>,
    /// Where its candidate comes from; none while it is open.
    pub origin: Option<Origin>,
    /// How it ended; none while it is open.
    pub outcome: Option<Outcome>,
    /// Why, in words.
    pub why: String,
    /// The value that stands for it.
    pub value: Option<Real>,
    /// The incumbent's value that it stood against.
    pub against: Option<Real>,
    /// All metrics.
    pub values: BTreeMap<MetricName, Real>,
    /// Every reading, in order.
    pub readings: Vec<Taken>,
    /// The policy that decided.
    pub policy: Option<String>,
    /// The tree under test.
    pub tree: Option<String>,
    /// The commit that keeps the candidate; its parent is the incumbent it was made from.
    pub candidate: Option<Candidate>,
    /// The commit on the loop's branch.
    pub commit: Option<String>,
    /// Its commands, in order, with the effect each belongs to.
    pub commands: Vec<CommandRow>,
    /// Attempts that were given up (interrupted, or the host died): notes, not trials.
    pub repeated: Vec<String>,
    /// When its first effect was announced.
    pub started_at: Option<Micros>,
    /// When it was decided.
    pub decided_at: Option<Micros>,
}

/// A command of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommandRow {
    /// The effect.
    pub effect: String,
    /// Which attempt.
    pub attempt: u32,
    /// Whether it is the setup before what the effect is for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_setup: bool,
    /// How it went.
    pub ran: Ran,
    /// What it used.
    pub usage: Usage,
}

impl TrialRow {
    /// A row without anything known yet.
    pub fn new(trial: u64, branch: &str) -> Self {
        Self {
            trial,
            branch: branch.to_owned(),
            segment: None,
            origin: None,
            outcome: None,
            why: String::new(),
            value: None,
            against: None,
            values: BTreeMap::new(),
            readings: Vec::new(),
            policy: None,
            tree: None,
            candidate: None,
            commit: None,
            commands: Vec::new(),
            repeated: Vec::new(),
            started_at: None,
            decided_at: None,
        }
    }

    /// Folds one event of the trial.
    pub fn apply(&mut self, event: &Event) {
        match event.kind.as_str() {
            kernel_kind::EFFECT_ANNOUNCED => {
                self.started_at.get_or_insert(event.time);
            }
            kernel_kind::EFFECT_SETTLED => self.settle(event),
            kernel_kind::EFFECT_ABANDONED => self.repeat(event),
            kind::TRIAL_DECIDED => {
                if let Ok(decided) = kernel::body::<Decided>(event) {
                    self.decide(decided, event.time);
                }
            }
            _ => {}
        }
    }

    fn settle(&mut self, event: &Event) {
        let Some(effect) = &event.effect else { return };
        let Ok(settlement) = kernel::body::<Settlement>(event) else {
            return;
        };
        let Ok(EffectPath { part, .. }) = EffectPath::of(effect) else {
            return;
        };
        let attempt = event.attempt.unwrap_or(1);
        let mut command = |ran: Ran, usage: Usage, is_setup: bool| {
            self.commands.push(CommandRow {
                effect: effect.as_str().to_owned(),
                attempt,
                is_setup,
                ran,
                usage,
            });
        };
        match part {
            Part::Propose => {
                if let Some(proposed) = result::<Proposed>(&settlement) {
                    command(proposed.ran, settlement.usage, false);
                    self.candidate = proposed.candidate;
                }
            }
            Part::Measure { .. } | Part::Target { .. } | Part::Closing { .. } => {
                if let Some(measured) = result::<Measured>(&settlement) {
                    let mut usage = settlement.usage;
                    if let Some(setup) = measured.setup {
                        usage = setup.measuring;
                        command(setup.ran, setup.usage, true);
                    }
                    command(measured.ran, usage, measured.in_setup);
                }
            }
            Part::Reapply => {
                if let Some(Reapplied::Applied { candidate, .. }) = result(&settlement) {
                    self.candidate = Some(candidate);
                }
            }
            Part::Keep { .. } => match result::<Kept>(&settlement) {
                Some(Kept::Committed { commit, .. }) => self.commit = Some(commit),
                Some(Kept::Rewritten { candidate, .. }) => self.candidate = Some(candidate),
                _ => {}
            },
        }
    }

    fn repeat(&mut self, event: &Event) {
        let Ok(abandoned) = kernel::body::<kernel::EffectAbandoned>(event) else {
            return;
        };
        let why = match abandoned.why {
            kernel::AbandonedWhy::Interrupted => "was interrupted",
            kernel::AbandonedWhy::HostDied => "was cut off when its host died",
            kernel::AbandonedWhy::Unwanted => "was not wanted any more",
            kernel::AbandonedWhy::Withdrawn => "was withdrawn",
        };
        let effect = event.effect.as_ref().map_or("", |effect| effect.as_str());
        let attempt = event.attempt.unwrap_or(1);
        self.repeated
            .push(format!("attempt {attempt} of {effect} {why}"));
    }

    fn decide(&mut self, decided: Decided, at: Micros) {
        self.segment = Some(decided.segment);
        self.origin = Some(decided.origin);
        self.outcome = Some(decided.outcome);
        self.why = decided.why;
        self.value = decided.value;
        self.against = decided.against;
        self.values = decided.values;
        self.readings = decided.readings;
        self.policy = Some(decided.policy);
        self.tree = decided.tree;
        self.decided_at = Some(at);
    }

    /// Wall clock of all its commands together; none where one of them isn't known.
    pub fn commands_us(&self) -> Option<u64> {
        self.commands
            .iter()
            .map(|command| command.usage.wall_us)
            .sum()
    }

    /// The end of the last command's output.
    pub fn tail(&self) -> &str {
        self.commands
            .last()
            .map_or("", |command| command.ran.tail.as_str())
    }
}

fn result<T: DeserializeOwned>(settlement: &Settlement) -> Option<T> {
    T::deserialize(&settlement.result).ok()
}

/// One trial in full; none where the run has no such trial.
pub fn trial_row(store: &Store, run: &RunId, trial: u64) -> Result<Option<TrialRow>, EngineError> {
    let entries = store.events_of_trial(run, trial)?;
    let Some(first) = entries.first() else {
        return Ok(None);
    };
    let branch = first
        .sealed
        .event
        .scope
        .branch
        .as_ref()
        .map_or("main", |branch| branch.as_str());
    let mut row = TrialRow::new(trial, branch);
    for entry in &entries {
        row.apply(&entry.sealed.event);
    }
    Ok(Some(row))
}

/// One trial in full, or the refusal that says which there are.
pub fn trial_that_is_there(
    store: &Store,
    run: &RunId,
    loop_name: &LoopName,
    trial: u64,
) -> Result<TrialRow, EngineError> {
    if let Some(row) = trial_row(store, run, trial)? {
        return Ok(row);
    }
    let mut newest = None;
    visit_lines(store, run, Select::newest(1), |_, line| {
        newest = Some(line.trial);
        ControlFlow::Break(())
    })?;
    let there = match newest {
        None => "no trial was decided yet".to_owned(),
        Some(0) => "there is only trial 0, the baseline".to_owned(),
        Some(newest) => format!("there are trials 0 to {newest}; loopwright log lists them"),
    };
    Err(EngineError::refused_with(
        format!("loop {loop_name} has no trial {trial}"),
        there,
    ))
}
