//! The experiment machine's state: what it folds from its events. Its size does not depend on how
//! many trials lie behind it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::ids::BranchName;
use crate::machine::Ending;
use crate::metric::{MetricName, Readings, Real};
use crate::time::Micros;

use super::closing::OpenClosing;
use super::events::Taken;
use super::means::Means;
use super::outcome::Outcome;
use super::results::Candidate;
use super::rule::Judge;
use super::rule::keep::{Purse, Standing};
use super::settings::{Caps, Mode, RetryOf, Settings};

/// Where a trial's candidate comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Origin {
    /// The incumbent itself is measured.
    Baseline,
    /// The proposer makes it.
    Proposed,
    /// It is an old trial's, tried again.
    Retry {
        /// That trial.
        of: u64,
    },
}

/// The best accepted change of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incumbent {
    /// Its commit.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// The trial that kept it; none for a segment's start.
    pub trial: Option<u64>,
    /// Its value; none before the baseline is measured.
    pub value: Option<Real>,
    /// All its metrics.
    pub values: BTreeMap<MetricName, Real>,
}

/// One line of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The best accepted change.
    pub incumbent: Incumbent,
    /// The metrics of the segment's baseline, which guards are held against.
    pub baseline: BTreeMap<MetricName, Real>,
    /// What is known of the incumbent and the target.
    pub target: TargetStand,
    /// The tree it started from in this segment.
    pub start: String,
    /// What the keep rule knows of the incumbent and of the metric's noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// Whether something was kept since start and finish were held against each other.
    pub unclaimed: bool,
    /// How many closing checks of this incumbent were begun.
    pub closings: u32,
    /// The one that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<OpenClosing>,
}

/// Whether an incumbent was measured once more for the target, and with what result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetStand {
    /// How often it was measured for that.
    pub checks: u32,
    /// The target it was held against last.
    pub asked: Option<Real>,
    /// Whether it reached that one again.
    pub reached: bool,
}

/// A stretch with one harness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Its number, from 1.
    pub number: u64,
    /// The harness.
    pub harness: Digest,
    /// The commit it started from; its protected files hold in the whole segment.
    pub commit: String,
    /// That commit's tree.
    pub tree: String,
}

/// How a trial will end, once it is decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conclusion {
    /// The outcome.
    pub outcome: Outcome,
    /// Why, in words.
    pub why: String,
    /// The value that stands for it.
    pub value: Option<Real>,
}

/// The trial that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Its number.
    pub number: u64,
    /// Where its candidate comes from.
    pub origin: Origin,
    /// The commit of an old trial's candidate, where it is that trial's.
    pub retry: Option<RetryOf>,
    /// What its proposer was asked first, budgets left included: a further attempt is asked the same,
    /// whatever invocation makes it.
    pub asked: Option<Value>,
    /// The tree under test, once there is one.
    pub candidate: Option<Candidate>,
    /// The rule's case, once there is something to judge.
    pub judge: Option<Judge>,
    /// Every reading so far.
    pub readings: Vec<Taken>,
    /// All metrics over the readings of the candidate.
    pub values: Means,
    /// All metrics over the readings of the incumbent in this trial.
    pub beside: Means,
    /// Guarded metrics that a reading of the candidate gave no value, with the reason.
    pub refused: Readings,
    /// How often the user's commit hook rewrote it (in place only).
    pub rewrites: u32,
    /// The commit, once it is on the branch.
    pub commit: Option<String>,
    /// Something to tell about that commit.
    pub commit_note: Option<String>,
    /// How it ends, where that is settled.
    pub conclusion: Option<Conclusion>,
}

impl Trial {
    /// A trial of which nothing is known yet.
    pub fn new(number: u64, origin: Origin, retry: Option<RetryOf>) -> Self {
        Self {
            number,
            origin,
            retry,
            asked: None,
            candidate: None,
            judge: None,
            readings: Vec::new(),
            values: Means::default(),
            beside: Means::default(),
            refused: Readings::default(),
            rewrites: 0,
            commit: None,
            commit_note: None,
            conclusion: None,
        }
    }
}

/// The invocation that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invocation {
    /// Its caps, without the specification.
    pub caps: Caps,
    /// When it began.
    pub begun_at: Micros,
    /// Trials decided in it, baselines not counted.
    pub decided: u64,
    /// Of these, kept.
    pub kept: u64,
    /// Trials in a row that came to no judgement.
    pub unjudged: u64,
    /// Whether the trial that was to be tried again has been.
    pub retried: bool,
    /// How it ends, once that is settled.
    pub ending: Option<Ending>,
    /// How it ends once the closing check is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_after_closing: Option<Ending>,
}

/// The state of an experiment run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The settings in force.
    pub settings: Settings,
    /// The open invocation.
    pub invocation: Option<Invocation>,
    /// The segment in force.
    pub segment: Option<Segment>,
    /// The lines of work.
    pub lines: BTreeMap<BranchName, Line>,
    /// The number of the next trial.
    pub next_trial: u64,
    /// The open trial.
    pub trial: Option<Trial>,
    /// Its branch; also the one worked on last.
    pub branch: BranchName,
    /// The end of the keep-alive chain.
    pub chain_commit: Option<String>,
    /// How many trials ended how, baselines not counted.
    pub counts: BTreeMap<Outcome, u64>,
    /// How many measurements were made, failed ones and those of unknown outcome included.
    pub runs: u64,
    /// The doubt that is left, once the keep rule was in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purse: Option<Purse>,
}

impl State {
    /// A state before the first invocation.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            invocation: None,
            segment: None,
            lines: BTreeMap::new(),
            next_trial: 0,
            trial: None,
            branch: BranchName::main(),
            chain_commit: None,
            counts: BTreeMap::new(),
            runs: 0,
            purse: None,
        }
    }

    /// The line of work in force.
    pub fn line(&self) -> Option<&Line> {
        self.lines.get(&self.branch)
    }

    /// The incumbent of the line in force.
    pub fn incumbent(&self) -> Option<&Incumbent> {
        self.line().map(|line| &line.incumbent)
    }

    /// What work on a branch goes on from: its own incumbent or, where it is new, that of the line
    /// in force.
    pub fn starts_from(&self, branch: &BranchName) -> Option<&Incumbent> {
        let line = self.lines.get(branch).or_else(|| self.line());
        line.map(|line| &line.incumbent)
    }

    /// Whether the open invocation found another harness than the segment's. True only until the
    /// new segment begins.
    pub fn harness_is_new(&self) -> bool {
        let Some(invocation) = &self.invocation else {
            return false;
        };
        self.segment
            .as_ref()
            .is_none_or(|segment| segment.harness != invocation.caps.harness.digest)
    }

    /// Whether the incumbent's value reaches the target and is to be measured once more, before
    /// anything else. A trial that is asked to be tried again comes first.
    pub fn target_check_is_due(&self) -> bool {
        let (Some(invocation), Some(line)) = (&self.invocation, self.line()) else {
            return false;
        };
        let its_turn = match invocation.caps.mode {
            Mode::Run => true,
            Mode::Baseline => false,
            Mode::Retry(_) => invocation.retried,
        };
        self.trial.is_none()
            && its_turn
            && self.incumbent_reaches_target()
            && line.target.asked != self.settings.target
    }

    /// Whether the incumbent was confirmed to reach the target that is in force.
    pub fn target_is_reached(&self) -> bool {
        self.line()
            .is_some_and(|line| line.target.reached && line.target.asked == self.settings.target)
            && self.incumbent_reaches_target()
    }

    fn incumbent_reaches_target(&self) -> bool {
        let value = self.incumbent().and_then(|incumbent| incumbent.value);
        value.is_some_and(|value| self.settings.reaches_target(value))
    }
}
