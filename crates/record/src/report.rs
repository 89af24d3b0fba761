//! What verifying a run is asked, and what it answers.

use loopwright_core::batch::{Batch, Head};
use loopwright_core::digest::Digest;
use loopwright_core::ids::RunId;
use loopwright_core::machine::Machine;
use loopwright_core::turn::Run;
use serde::Serialize;

use crate::load::fold_batch;
use crate::snapshot::Snapshot;

/// Looks for git objects.
pub trait GitCheck {
    /// What is wrong with the files by which objects are found, in words; nothing is looked for then.
    fn faults(&self) -> Vec<String>;

    /// Those of `oids` that are missing or damaged.
    fn missing(&self, oids: &[String]) -> Vec<String>;
}

/// Folds the record, to see whether the machine accepts it.
pub trait FoldCheck {
    /// The next batch; what is wrong with it, in words.
    fn batch(&mut self, batch: &Batch) -> Result<(), String>;

    /// A snapshot taken after the batch that was folded last; what is wrong with it, in words.
    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), String>;
}

/// Folds with a machine, and compares its snapshots with what the fold gives.
pub struct Folding<M: Machine>(Run<M>);

impl<M: Machine> Folding<M> {
    /// A fold of `run` from its start.
    pub fn new(run: &RunId) -> Self {
        Self(Run::new(run.clone()))
    }

    /// The state folded so far.
    pub fn run(&self) -> &Run<M> {
        &self.0
    }
}

impl<M: Machine> FoldCheck for Folding<M> {
    fn batch(&mut self, batch: &Batch) -> Result<(), String> {
        fold_batch(&mut self.0, batch).map_err(|error| error.to_string())
    }

    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        match snapshot.restore::<M>() {
            Some(restored)
                if restored.kernel != self.0.kernel || restored.state != self.0.state =>
            {
                Err("it isn't the state that the events give".to_owned())
            }
            // One of another version is never used.
            _ => Ok(()),
        }
    }
}

/// What is checked besides the chain.
#[derive(Default)]
pub struct Checks<'a> {
    /// Looks for the git objects that the record names.
    pub git: Option<&'a dyn GitCheck>,
    /// Folds the record.
    pub fold: Option<&'a mut dyn FoldCheck>,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The database file.
    Database,
    /// The chain of events and batches.
    Chain,
    /// A copy of what the chain says: listings may be wrong, the record isn't.
    Index,
    /// The machine doesn't accept it.
    Fold,
    /// A blob.
    Blob,
    /// A git object.
    Git,
    /// A ref.
    Ref,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// The batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// The event's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What is wrong, in words, with the place.
    pub words: String,
}

/// How many of what was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Batches whose digest and predecessor were checked.
    pub batches: u64,
    /// Events whose id, number, parents and columns were checked.
    pub events: u64,
    /// Blobs read through and compared with their names.
    pub blobs: u64,
    /// The length of those.
    pub blob_bytes: u64,
    /// Git objects looked for.
    pub git_objects: u64,
    /// Snapshots compared with the fold.
    pub snapshots: u64,
    /// Refs that name an event of the run.
    pub refs: u64,
}

/// What verifying a run found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The run.
    pub run: RunId,
    /// The digest of its last batch, to be compared with one noted elsewhere.
    pub head: Digest,
    /// How many of what was checked.
    pub counts: Counts,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What could have been checked and wasn't, in words.
    pub skipped: Vec<String>,
    /// What no check here can prove, in words.
    pub not_proved: Vec<String>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

/// What no check can prove about a run that ends at `head`.
pub(crate) fn not_proved(ended: bool, head: &Head) -> Vec<String> {
    let tail = if ended {
        "that nobody wrote the whole run anew: it is not signed"
    } else {
        "that nothing was cut off its end: it is not finished, and not signed"
    };
    vec![
        format!(
            "{tail}; compare its head with one noted elsewhere (batch {}, {})",
            head.n, head.digest
        ),
        "that the times are true: they are what the writer's clock said".to_owned(),
        "who wrote it: events are not signed".to_owned(),
        "that what commands reported is true: it is recorded as they reported it".to_owned(),
    ]
}
