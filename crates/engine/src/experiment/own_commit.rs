//! Commits that a run makes on the incumbent: a keep, or the incumbent with other protected files.
//!
//! Each is a function of what was asked for and when, so that one which an invocation made and did
//! not live to record is known again, to the byte. Nothing else on the incumbent is ours, whatever
//! it says: it may be the user's.

use loopwright_core::experiment::{EffectPath, Experiment, keep_due};
use loopwright_core::ids::{EffectId, RunId};
use loopwright_core::metric::Real;
use loopwright_core::spec::ExperimentSpec;
use loopwright_core::time::Micros;
use loopwright_core::turn::Run;
use loopwright_git::{CommitFacts, CommitSpec, GitError, ObjectStore, Oid, Person};
use serde_json::Value;

use crate::error::EngineError;

use super::workshop::{oid_field, request_field};

/// A commit of the run's, but for the name of whoever it is made as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnCommit {
    pub tree: Oid,
    pub parent: Oid,
    pub time_s: i64,
    pub message: String,
}

impl OwnCommit {
    /// The commit that a keep was asked to make.
    pub fn of_keep(
        spec: &ExperimentSpec,
        run: &RunId,
        trial: u64,
        request: &Value,
        asked_at: Micros,
    ) -> Result<Self, EngineError> {
        let value: Real = request_field(request, "value")?;
        let was: Option<Real> = request_field(request, "was")?;
        let was = was
            .map(|was| format!(" (was {})", was.short()))
            .unwrap_or_default();
        let (metric, name) = (&spec.metric, &spec.name);
        Ok(Self {
            tree: oid_field(request, "tree")?,
            parent: oid_field(request, "parent_commit")?,
            time_s: asked_at.0 / 1_000_000,
            message: format!(
                "loopwright: {metric} {}{was}\n\nLoop: {name}\nTrial: {trial}\nRun: {run}\n",
                value.short(),
            ),
        })
    }

    /// The keep that was announced and never settled; none where none was.
    pub fn unsettled_keep(
        spec: &ExperimentSpec,
        run: &Run<Experiment>,
    ) -> Result<Option<Self>, EngineError> {
        let due = run.state.as_ref().and_then(keep_due);
        let Some((path, request)) = due else {
            return Ok(None);
        };
        let (id, kernel) = (EffectId::from(path), &run.kernel);
        let in_flight = kernel.in_flight.get(&id).map(|flight| flight.asked_at);
        let given_up = || kernel.given_up.get(&id).map(|last| last.asked_at);
        let Some(asked_at) = in_flight.or_else(given_up) else {
            return Ok(None);
        };
        let EffectPath { trial, .. } = path;
        Self::of_keep(spec, &kernel.run, trial, &request, asked_at).map(Some)
    }

    /// Stores it.
    pub fn make(&self, objects: &mut ObjectStore, author: &Person) -> Result<Oid, GitError> {
        objects.commit(&self.spec(&[self.parent], author))
    }

    /// Whether `found` is it, whatever name is set now.
    pub fn is(&self, objects: &mut ObjectStore, found: &Oid) -> Result<bool, GitError> {
        let anybody = Person::loopwright();
        objects.is_made_as(found, &self.spec(&[self.parent], &anybody))
    }

    /// Whether a commit that the user's own git made for it is this one. Hooks may write round its
    /// words, and git chooses the moment.
    pub fn is_made_by_git(&self, found: &CommitFacts) -> bool {
        found.tree == self.tree
            && found.parents == [self.parent]
            && found.time_s >= self.time_s
            && found.is_worded_as(&self.message)
    }

    fn spec<'a>(&'a self, parents: &'a [Oid], author: &'a Person) -> CommitSpec<'a> {
        CommitSpec {
            tree: self.tree,
            parents,
            author,
            time_s: self.time_s,
            message: &self.message,
        }
    }
}
