//! What the machine needs to know: settings of the loop, caps of an invocation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::guard::Guard;
use crate::ids::BranchName;
use crate::metric::{MetricName, Real};
use crate::role::OnUnknown;
use crate::spec::{ExperimentSpec, Goal, NoiseSpec, RuleSpec};

use super::rule::keep::{Keep, KnownNoise, Scale};
use super::rule::{RuleSettings, Threshold};

/// The settings that decide, taken from the loop's specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The number that is optimised.
    pub metric: MetricName,
    /// Which way is better.
    pub goal: Goal,
    /// The decision rule.
    pub rule: RuleSettings,
    /// Numbers that must hold.
    pub guards: Vec<Guard>,
    /// Where the work is done.
    pub target: Option<Real>,
    /// The most measurements in the loop's whole life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u64>,
    /// Time limit of a proposal.
    pub propose_limit_us: u64,
    /// The most time a measurement may take: its command's limit, and that of the setup before it
    /// where the loop has one.
    pub measurement_limit_us: u64,
    /// What happens to a proposal whose outcome is unknown.
    pub on_unknown_proposer: OnUnknown,
    /// What happens to a measurement whose outcome is unknown, its setup included.
    pub on_unknown_experiment: OnUnknown,
}

impl Settings {
    /// The settings of a pinned specification.
    pub fn of(specification: &Value) -> Result<Self, String> {
        let spec = ExperimentSpec::deserialize(specification).map_err(|error| error.to_string())?;
        Self::of_spec(&spec)
    }

    /// The settings of a specification.
    pub fn of_spec(spec: &ExperimentSpec) -> Result<Self, String> {
        let words = |error: &dyn std::fmt::Display| error.to_string();
        // The setup is a part of the measurement whose outcome is unknown: either may have run.
        let (setup_limit_us, on_unknown_experiment) = match &spec.setup {
            None => (0, spec.on_unknown.experiment),
            Some(_) => (
                spec.setup_limit_us,
                spec.on_unknown
                    .experiment
                    .more_careful(spec.on_unknown.setup),
            ),
        };
        let guards = spec.guards.iter().cloned().map(Guard::try_from);
        let guards = guards
            .collect::<Result<_, _>>()
            .map_err(|error| words(&error))?;
        Ok(Self {
            metric: MetricName::new(spec.metric.as_str()).map_err(|error| words(&error))?,
            goal: spec.goal,
            rule: rule_of(spec)?,
            guards,
            target: spec.target,
            max_runs: spec.max_runs,
            propose_limit_us: spec.propose_limit_us,
            measurement_limit_us: spec.run_limit_us.saturating_add(setup_limit_us),
            on_unknown_proposer: spec.on_unknown.proposer,
            on_unknown_experiment,
        })
    }

    /// Whether `value` is as good as the target asks.
    pub fn reaches_target(&self, value: Real) -> bool {
        self.target.is_some_and(|target| match self.goal {
            Goal::Minimize => value <= target,
            Goal::Maximize => value >= target,
        })
    }
}

fn rule_of(spec: &ExperimentSpec) -> Result<RuleSettings, String> {
    let keep = match &spec.rule {
        RuleSpec::Threshold { min_delta, confirm } => {
            return Ok(RuleSettings::Threshold(Threshold {
                min_delta: *min_delta,
                confirm: *confirm,
            }));
        }
        RuleSpec::Keep(keep) => keep,
    };
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let mut rule = Keep {
        doubt: keep.doubt,
        worth: keep.worth,
        max_pairs: count(keep.max_pairs),
        noise: KnownNoise::Auto,
        ratio: keep.ratio,
        coarse: keep.coarse,
        closing: count(keep.closing),
    };
    rule.noise = match &keep.noise {
        NoiseSpec::Auto => KnownNoise::Auto,
        NoiseSpec::None => KnownNoise::None,
        NoiseSpec::Readings(readings) => KnownNoise::of(readings, Scale::of(&rule, spec.goal))
            .map_err(|why| format!("noise: one of the readings {why}"))?,
    };
    Ok(RuleSettings::Keep(rule))
}

/// What an invocation is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mode {
    /// Propose, measure, decide, again and again.
    Run,
    /// Measure the baseline (again) and stop.
    Baseline,
    /// Measure the candidate of an old trial again.
    Retry(RetryOf),
}

/// The trial whose candidate is to be tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryOf {
    /// Its number.
    pub trial: u64,
    /// Its candidate's commit; the parent is what it was made from.
    pub commit: String,
}

/// The harness as an invocation finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HarnessStart {
    /// Digest over protected files, commands and settings that matter.
    pub digest: crate::digest::Digest,
    /// The commit a segment that starts now begins from.
    pub commit: String,
    /// That commit's tree.
    pub tree: String,
}

/// Body of `invocation.begun` in an experiment run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caps {
    /// The specification in force, pinned for this invocation.
    pub specification: Value,
    /// What it is for.
    pub mode: Mode,
    /// The branch it works on.
    pub branch: BranchName,
    /// Where below the top of the repository its commands run; empty at the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workdir: String,
    /// The harness it finds.
    pub harness: HarnessStart,
    /// The most trials to decide; unlimited where none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<u64>,
    /// The most wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_clock_us: Option<u64>,
    /// Consecutive trials without a judgement after which it gives up; 0 is never.
    pub give_up_after: u64,
}
