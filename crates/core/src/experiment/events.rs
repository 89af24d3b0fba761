//! The experiment machine's own events. Their bodies hold no times, durations, commits or ids of
//! events, so that equal runs have equal decision logs on every host and after every crash.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::metric::{MetricName, Real};

use super::outcome::Outcome;
use super::rule::Arm;
use super::rule::keep::{Claim, Purpose};
use super::state::Origin;

/// Kinds of the experiment machine's events.
pub mod kind {
    /// A stretch with one harness begins; nothing is compared across it.
    pub const SEGMENT_STARTED: &str = "segment.started";
    /// A trial came to its end.
    pub const TRIAL_DECIDED: &str = "trial.decided";
    /// A kept value that reaches the target was measured once more.
    pub const TARGET_CHECKED: &str = "target.checked";
    /// Where a line of work started and where it arrived were measured against each other.
    pub const CLOSING_CHECKED: &str = "closing.checked";
}

/// Body of [`kind::SEGMENT_STARTED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentStarted {
    /// Its number, from 1.
    pub segment: u64,
    /// The harness that holds in it.
    pub harness: Digest,
    /// The tree it starts from.
    pub tree: String,
    /// Why, in words.
    pub why: String,
}

/// One reading as it stands in a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// Which tree was measured.
    pub arm: Arm,
    /// The value; none where there was no usable one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Real>,
    /// What it was for, where the rule takes readings for more than one thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Purpose>,
}

/// Body of [`kind::TRIAL_DECIDED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// How it ended.
    pub outcome: Outcome,
    /// Why, in words.
    pub why: String,
    /// Where the candidate came from.
    pub origin: Origin,
    /// The segment.
    pub segment: u64,
    /// The value that stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Real>,
    /// The incumbent's value that it stood against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Real>,
    /// All metrics, the guards' included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<MetricName, Real>,
    /// Every reading, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Taken>,
    /// The candidate's tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The policy that decided, `name/version`.
    pub policy: String,
    /// How many false keeps the loop still tolerates, under a rule that counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt_left: Option<Real>,
}

/// Body of [`kind::TARGET_CHECKED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetChecked {
    /// The trial whose value is confirmed or not.
    pub trial: u64,
    /// The confirming value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Real>,
    /// Whether it reaches the target too.
    pub reached: bool,
    /// In words.
    pub why: String,
}

/// Body of [`kind::CLOSING_CHECKED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosingChecked {
    /// The trial that made the incumbent.
    pub trial: u64,
    /// What may be claimed; none where it could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// In words.
    pub why: String,
}
