//! What the outside world answers: the results of an experiment loop's effects.
//!
//! These are the bodies of `effect.settled` events, so they are part of the record's format.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::metric::Readings;
use crate::usage::Usage;

use super::named::Named;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ended {
    /// By itself, with this exit status.
    Exited(i32),
    /// By a signal that the host did not send.
    Signaled(i32),
    /// Stopped at its time limit.
    TimedOut {
        /// The limit.
        limit_us: u64,
    },
    /// It could not be started, or its supervisor was lost.
    Broken {
        /// Why.
        why: String,
    },
}

impl Ended {
    /// Whether it ended by itself with status 0.
    pub fn is_success(&self) -> bool {
        *self == Self::Exited(0)
    }

    /// In words, after a subject: "the proposal `words`".
    pub fn words(&self) -> String {
        match self {
            Self::Exited(code) => format!("exited with status {code}"),
            Self::Signaled(signal) => format!("was ended by signal {signal}"),
            Self::TimedOut { limit_us } => format!("passed its limit of {}", seconds(*limit_us)),
            Self::Broken { why } => format!("could not be run: {why}"),
        }
    }
}

/// A duration in words, for limits: `90 s`, `0.25 s`.
pub fn seconds(duration_us: u64) -> String {
    let seconds = duration_us as f64 / 1e6;
    format!("{seconds} s")
}

/// What is known of a command that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// The end of its output, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// The whole output, up to the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_blob: Option<Digest>,
    /// Processes it left behind, which were ended.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub leftovers: Named,
    /// How its processes were contained.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub containment: String,
}

/// A tree under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Its tree.
    pub tree: String,
    /// The commit that keeps it (parent: the incumbent's commit).
    pub commit: String,
    /// The link of the run's keep-alive chain that holds it.
    pub chain_commit: String,
    /// How many paths it changes.
    pub changes: u64,
    /// The first of them, for people.
    pub paths: Vec<String>,
}

/// What an examination of a candidate's changes found against it. Whoever made the candidate (a
/// proposal, an old trial that is tried again, the user's commit hook), it goes through the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Protected files and declared inputs that it changes.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub protected: Named,
    /// New files that would be imported in place of what judges it.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub shadowing: Named,
    /// Files that hold what looks like a secret, which was not there before.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub secrets: Named,
}

impl Findings {
    /// Whether nothing speaks against it.
    pub fn is_empty(&self) -> bool {
        self.protected.is_empty() && self.shadowing.is_empty() && self.secrets.is_empty()
    }
}

/// What a proposal came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposed {
    /// The command.
    pub ran: Ran,
    /// What it left, if it differs from the incumbent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
    /// What speaks against it.
    #[serde(flatten)]
    pub findings: Findings,
    /// What git can't record, with the reason.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub refused: Named,
    /// What it did to the user's repository and was undone (in place only).
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub undone: Named,
    /// The trial that had the same tree in this segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<u64>,
    /// The brief it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief_digest: Option<Digest>,
}

/// A setup that went well, before the measurement that it was for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetUp {
    /// Its command.
    pub ran: Ran,
    /// What it used.
    pub usage: Usage,
    /// What the measuring command used by itself. What both used is the effect's usage.
    pub measuring: Usage,
}

/// What a measurement came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The measuring command, or the setup where that failed.
    pub ran: Ran,
    /// Whether it was the setup that ended like that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_setup: bool,
    /// The setup before it, where one was due and went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetUp>,
    /// The readings, by metric.
    pub readings: Readings,
    /// Protected files and links that the command changed.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub touched: Named,
}

/// What committing a kept change came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kept {
    /// It is on the loop's branch.
    Committed {
        /// The commit.
        commit: String,
        /// Something to tell, for example that the user had moved the branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The user's hook changed the content (in place only); that tree is to be measured.
    Rewritten {
        /// What the hook made of it.
        candidate: Candidate,
        /// What speaks against that.
        #[serde(default, skip_serializing_if = "Findings::is_empty")]
        findings: Findings,
    },
    /// The user's git refused: their hooks and signing (in place), or git itself, which takes an
    /// object of it for harmful.
    Refused {
        /// Its words.
        words: String,
    },
    /// The checkout does not hold what was measured.
    Mismatch {
        /// The tree found there.
        found_tree: String,
    },
}

/// What bringing an old candidate to the incumbent came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reapplied {
    /// It applies.
    Applied {
        /// The tree to be measured.
        candidate: Candidate,
        /// What speaks against it.
        #[serde(default, skip_serializing_if = "Findings::is_empty")]
        findings: Findings,
    },
    /// It makes no difference to the incumbent any more.
    NoChange,
    /// It doesn't apply.
    Conflict {
        /// Where.
        paths: Named,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn findings_stand_in_the_record_beside_what_else_a_proposal_came_to() {
        let recorded = json!({
            "ran": {"ended": {"exited": 0}},
            "protected": ["eval/score.sh"],
            "secrets": {"first": ["a"], "count": 60_000},
            "duplicate_of": 3,
        });
        let proposed: Proposed = serde_json::from_value(recorded.clone()).unwrap();
        assert_eq!(proposed.findings.protected.first(), ["eval/score.sh"]);
        assert_eq!(proposed.findings.secrets.count(), 60_000);
        assert_eq!(serde_json::to_value(&proposed).unwrap(), recorded);
        let mut unknown = recorded;
        unknown["later"] = json!(1);
        assert!(serde_json::from_value::<Proposed>(unknown).is_err());
    }
}
