//! How a trial can end: one closed list, each with its mark and its words.

use serde::{Deserialize, Serialize};

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It measurably helps and was committed.
    Kept,
    /// It does no harm and makes the tree simpler; committed.
    Simplified,
    /// It was measured and does not help enough.
    Reverted,
    /// A duel was cut short by a budget.
    Undecided,
    /// It failed when it was measured again.
    Unstable,
    /// A command failed, or the change could not be committed.
    Failed,
    /// A command passed its time limit.
    TimedOut,
    /// The metric was missing or malformed.
    NoMetric,
    /// The metric was not a finite number.
    NotFinite,
    /// The output gave the metric contradicting values.
    Ambiguous,
    /// The proposal left the tree as it was.
    NoChange,
    /// The tree was seen before in this loop and segment.
    Duplicate,
    /// The proposal or the measurement touched what judges it.
    HarnessChanged,
    /// A guard was broken.
    GuardFailed,
    /// The hidden measurement disagreed.
    HoldoutFailed,
    /// It no longer applies to the incumbent.
    Conflict,
    /// Stopped by hand; only in imported ledgers.
    Interrupted,
}

impl Outcome {
    /// All of them, in the order of summaries.
    pub const ALL: [Self; 17] = [
        Self::Kept,
        Self::Simplified,
        Self::Reverted,
        Self::Undecided,
        Self::Unstable,
        Self::Failed,
        Self::TimedOut,
        Self::NoMetric,
        Self::NotFinite,
        Self::Ambiguous,
        Self::NoChange,
        Self::Duplicate,
        Self::HarnessChanged,
        Self::GuardFailed,
        Self::HoldoutFailed,
        Self::Conflict,
        Self::Interrupted,
    ];

    /// Whether a command failed to do what was asked of it, so that the end of its output says why.
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Failed
                | Self::TimedOut
                | Self::NoMetric
                | Self::NotFinite
                | Self::Ambiguous
                | Self::Unstable
        )
    }

    /// The word used in the record, `--json` and filters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Simplified => "simplified",
            Self::Reverted => "reverted",
            Self::Undecided => "undecided",
            Self::Unstable => "unstable",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::NoMetric => "no_metric",
            Self::NotFinite => "not_finite",
            Self::Ambiguous => "ambiguous",
            Self::NoChange => "no_change",
            Self::Duplicate => "duplicate",
            Self::HarnessChanged => "harness_changed",
            Self::GuardFailed => "guard_failed",
            Self::HoldoutFailed => "holdout_failed",
            Self::Conflict => "conflict",
            Self::Interrupted => "interrupted",
        }
    }

    /// The outcome of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// One character for a trial line.
    pub fn mark(self) -> char {
        match self {
            Self::Kept => '+',
            Self::Simplified => 's',
            Self::Reverted => '-',
            Self::Undecided => 'u',
            Self::Unstable => 'x',
            Self::Failed => '!',
            Self::TimedOut => 'T',
            Self::NoMetric => '?',
            Self::NotFinite => '~',
            Self::Ambiguous => 'A',
            Self::NoChange => '=',
            Self::Duplicate => 'd',
            Self::HarnessChanged => 'H',
            Self::GuardFailed => 'G',
            Self::HoldoutFailed => 'h',
            Self::Conflict => 'C',
            Self::Interrupted => '^',
        }
    }

    /// What it means, for a legend.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Kept => "it measurably helps and was committed",
            Self::Simplified => "it does no harm, makes the tree simpler, and was committed",
            Self::Reverted => "it was measured and does not help enough",
            Self::Undecided => "a budget cut the comparison short",
            Self::Unstable => "it failed when it was measured again",
            Self::Failed => "a command failed, or the change could not be committed",
            Self::TimedOut => "a command passed its time limit",
            Self::NoMetric => "the metric was missing or malformed",
            Self::NotFinite => "the metric was not a finite number",
            Self::Ambiguous => "the output gave the metric contradicting values",
            Self::NoChange => "the proposal left the tree as it was",
            Self::Duplicate => "the same tree was tried before",
            Self::HarnessChanged => "the proposal or the measurement touched what judges it",
            Self::GuardFailed => "a guard was broken",
            Self::HoldoutFailed => "the hidden measurement disagreed",
            Self::Conflict => "it no longer applies to the incumbent",
            Self::Interrupted => "it was stopped by hand",
        }
    }

    /// Whether the change is on the loop's branch now.
    pub fn is_keep(self) -> bool {
        matches!(self, Self::Kept | Self::Simplified)
    }

    /// Whether the trial came as far as a judgement of its measured effect. Trials that did not
    /// count for `give_up_after`.
    pub fn is_judged(self) -> bool {
        matches!(
            self,
            Self::Kept | Self::Simplified | Self::Reverted | Self::Undecided | Self::GuardFailed
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_marks_are_all_different_and_names_read_back() {
        let names: BTreeSet<_> = Outcome::ALL.iter().map(|outcome| outcome.name()).collect();
        let marks: BTreeSet<_> = Outcome::ALL.iter().map(|outcome| outcome.mark()).collect();
        assert_eq!(
            (names.len(), marks.len()),
            (Outcome::ALL.len(), Outcome::ALL.len())
        );
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_name(outcome.name()), Some(outcome));
            let json = serde_json::to_value(outcome).unwrap();
            assert_eq!(json, outcome.name());
        }
    }
}
