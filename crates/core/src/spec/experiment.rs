//! The specification of an experiment loop as it is pinned in the journal.
//!
//! Canonical by its types: text, whole numbers, true and false, lists and tables; numbers that are
//! not whole are decimal texts. Sets (patterns, names) are sorted, so that writing them in another
//! order is no change. A later release may add fields, each with a serde default that means what
//! the release before did.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::Limits;
use crate::guard::GuardSpec;
use crate::metric::Real;
use crate::role::OnUnknown;

use super::file::SPEC_FILE_NAME;
use super::keep::KeepSpec;
use super::pattern::Pattern;
use super::pattern_set::PatternSet;
use super::units::Money;
use super::value::Value;

/// The version of [`ExperimentSpec`]'s form.
pub const EXPERIMENT_SCHEMA: u32 = 1;

/// The variables every command gets under [`EnvPolicy::Clean`].
pub const BASIC_ENVIRONMENT: [&str; 12] = [
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMPDIR",
    "TZ", "USER",
];

/// Whether less or more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Less is better.
    Minimize,
    /// More is better.
    Maximize,
}

impl Goal {
    /// The goal's word: `minimize` or `maximize`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Minimize => "minimize",
            Self::Maximize => "maximize",
        }
    }
}

/// How it is decided whether a candidate is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum RuleSpec {
    /// Its value beats the incumbent's by more than `min_delta`; the worse of two with `confirm`.
    Threshold {
        /// The improvement to exceed, in the metric's unit.
        min_delta: Real,
        /// Measure again before keeping.
        confirm: bool,
    },
    /// It wins a duel of back-to-back runs, at a stake of the loop's doubt.
    Keep(KeepSpec),
}

/// Which of loopwright's own environment commands get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvPolicy {
    /// All of it.
    Inherit,
    /// [`BASIC_ENVIRONMENT`] and what `pass_env` names.
    Clean,
}

/// [`OnUnknown`] per role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnUnknownSpec {
    /// For proposals.
    pub proposer: OnUnknown,
    /// For measurements.
    pub experiment: OnUnknown,
    /// For the setup command.
    pub setup: OnUnknown,
}

/// What the loop may spend in its whole life; none is no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetSpec {
    /// Proposals.
    pub steps: Option<u64>,
    /// Time of its commands together, in microseconds.
    pub time_us: Option<u64>,
    /// Model tokens.
    pub tokens: Option<u64>,
    /// Money.
    pub money: Option<Money>,
}

impl BudgetSpec {
    /// The limits of a run.
    pub fn limits(&self) -> Limits {
        Limits {
            steps: self.steps,
            time_us: self.time_us,
            tokens: self.tokens,
            money_micros: self.money.as_ref().map(|money| money.micros),
            wall_us: None,
        }
    }
}

/// An experiment loop, complete and checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSpec {
    /// [`EXPERIMENT_SCHEMA`].
    pub schema: u32,
    /// The loop's name.
    pub name: String,
    /// The measuring command.
    pub run: String,
    /// The number to improve.
    pub metric: String,
    /// Whether less or more is better.
    pub goal: Goal,
    /// The proposing command; none where only measuring is wanted.
    pub propose: Option<String>,
    /// The setup command.
    pub setup: Option<String>,
    /// The files the setup depends on.
    pub setup_inputs: Vec<Pattern>,
    /// The longest a measurement may take, in microseconds.
    pub run_limit_us: u64,
    /// The longest a proposal may take, in microseconds.
    pub propose_limit_us: u64,
    /// The longest a setup may take, in microseconds.
    pub setup_limit_us: u64,
    /// From asking a command to end to ending it, in microseconds.
    pub grace_us: u64,
    /// Outputs up to this size are recorded whole.
    pub max_output_bytes: u64,
    /// Files that come from the baseline; see [`ExperimentSpec::protected`].
    pub protect: Vec<Pattern>,
    /// Read-only inputs git does not carry, by relative path.
    pub link: Vec<String>,
    /// What measurements may keep from one to the next.
    pub cache: Vec<Pattern>,
    /// A file of the checkout the numbers are written to.
    pub result_file: Option<String>,
    /// Refuse contradicting values of the metric.
    pub strict_metric: bool,
    /// Environment variables for every command.
    pub env: BTreeMap<String, String>,
    /// Which of our own environment commands get.
    pub env_policy: EnvPolicy,
    /// Names handed on under [`EnvPolicy::Clean`]; a closing `*` means all that begin so.
    pub pass_env: Vec<String>,
    /// Secondary metrics that must hold, sorted by metric.
    pub guards: Vec<GuardSpec>,
    /// How candidates are judged.
    pub rule: RuleSpec,
    /// End the run at this value.
    pub target: Option<Real>,
    /// The most measurements in the loop's whole life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u64>,
    /// The most trials of one invocation.
    pub trials: Option<u64>,
    /// The longest an invocation may last, in microseconds.
    pub wall_clock_us: Option<u64>,
    /// Stop after so many trials in a row without a judgement; 0 is never.
    pub give_up_after: u64,
    /// What the loop may spend in its whole life.
    pub budget: BudgetSpec,
    /// Tell the proposer the history.
    pub brief: bool,
    /// The line of work inside the loop.
    pub branch: String,
    /// Work in the user's checkout itself.
    pub in_place: bool,
    /// What to do about lost outcomes.
    pub on_unknown: OnUnknownSpec,
}

impl ExperimentSpec {
    /// The protected patterns, `loopwright.toml` among them.
    pub fn protected(&self) -> PatternSet {
        let mut patterns = self.protect.clone();
        // The name is a valid pattern, as a test makes sure.
        patterns.extend(Pattern::new(SPEC_FILE_NAME));
        PatternSet::new(patterns)
    }

    /// The protected patterns the user gave: those that must match something.
    pub fn protect_set(&self) -> PatternSet {
        PatternSet::new(self.protect.clone())
    }

    /// What measurements may keep from one to the next.
    pub fn cache_set(&self) -> PatternSet {
        PatternSet::new(self.cache.clone())
    }

    /// Whether commands get our own variable of that name.
    pub fn passes_variable(&self, name: &str) -> bool {
        let passed = |wanted: &String| match wanted.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == wanted,
        };
        self.env_policy == EnvPolicy::Inherit
            || BASIC_ENVIRONMENT.contains(&name)
            || self.pass_env.iter().any(passed)
    }

    /// Every setting by its key in the table: the inverse of resolving.
    pub fn entries(&self) -> BTreeMap<String, Option<Value>> {
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        let opt_text = |text: &Option<String>| text.clone().map(Value::Text);
        let list = |items: Vec<String>| (!items.is_empty()).then_some(Value::List(items));
        let patterns = |patterns: &[Pattern]| {
            list(
                patterns
                    .iter()
                    .map(|pattern| pattern.as_str().to_owned())
                    .collect(),
            )
        };
        let duration = |duration_us: u64| Some(Value::DurationUs(duration_us));
        let switch = |on: bool| Some(Value::Switch(on));
        let mut entries: Vec<(String, Option<Value>)> = [
            ("kind", text("experiment")),
            ("run", text(&self.run)),
            ("metric", text(&self.metric)),
            ("goal", text(self.goal.name())),
            ("propose", opt_text(&self.propose)),
            ("setup", opt_text(&self.setup)),
            ("setup_inputs", patterns(&self.setup_inputs)),
            ("run_limit", duration(self.run_limit_us)),
            ("propose_limit", duration(self.propose_limit_us)),
            ("setup_limit", duration(self.setup_limit_us)),
            ("grace", duration(self.grace_us)),
            ("max_output", Some(Value::Bytes(self.max_output_bytes))),
            ("protect", patterns(&self.protect)),
            ("link", list(self.link.clone())),
            ("cache", patterns(&self.cache)),
            ("result_file", opt_text(&self.result_file)),
            ("strict_metric", switch(self.strict_metric)),
            ("env_policy", text(self.env_policy.name())),
            ("pass_env", list(self.pass_env.clone())),
            ("max_runs", self.max_runs.map(Value::Count)),
            ("target", self.target.map(Value::Number)),
            ("trials", self.trials.map(Value::Count)),
            ("wall_clock", self.wall_clock_us.map(Value::DurationUs)),
            ("give_up_after", Some(Value::Count(self.give_up_after))),
            ("budget.steps", self.budget.steps.map(Value::Count)),
            ("budget.time", self.budget.time_us.map(Value::DurationUs)),
            ("budget.tokens", self.budget.tokens.map(Value::Count)),
            ("budget.money", self.budget.money.clone().map(Value::Money)),
            ("brief", switch(self.brief)),
            ("branch", text(&self.branch)),
            ("in_place", switch(self.in_place)),
            ("on_unknown.proposer", text(self.on_unknown.proposer.name())),
            (
                "on_unknown.experiment",
                text(self.on_unknown.experiment.name()),
            ),
            ("on_unknown.setup", text(self.on_unknown.setup.name())),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into();
        entries.extend(
            self.rule
                .entries()
                .into_iter()
                .map(|(key, value)| (key.to_owned(), Some(value))),
        );
        entries.extend(
            self.env
                .iter()
                .map(|(name, value)| (format!("env.{name}"), text(value))),
        );
        entries.extend(self.guards.iter().map(|guard| {
            (
                format!("guard.{}", guard.metric),
                Some(Value::Guard(guard.clone())),
            )
        }));
        entries.into_iter().collect()
    }
}

impl RuleSpec {
    /// The rule's word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Threshold { .. } => "threshold",
            Self::Keep(_) => "keep",
        }
    }

    /// The rule's own settings by their keys.
    fn entries(&self) -> Vec<(&'static str, Value)> {
        let mut entries = vec![("rule", Value::Text(self.name().to_owned()))];
        match self {
            Self::Threshold { min_delta, confirm } => entries.extend([
                ("min_delta", Value::Number(*min_delta)),
                ("confirm", Value::Switch(*confirm)),
            ]),
            Self::Keep(keep) => entries.extend([
                ("doubt", Value::Number(keep.doubt)),
                ("worth", Value::Amount(keep.worth)),
                ("max_pairs", Value::Count(keep.max_pairs)),
                ("noise", Value::Noise(keep.noise.clone())),
                ("ratio", Value::Switch(keep.ratio)),
                ("coarse", Value::Switch(keep.coarse)),
                ("closing", Value::Count(keep.closing)),
            ]),
        }
        entries
    }
}

impl EnvPolicy {
    /// The policy's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inherit => "inherit",
            Self::Clean => "clean",
        }
    }
}
