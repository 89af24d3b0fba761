//! The loop's branch in the user's repository, and from where it is ours to move: from where the record
//! says that it was left, from any commit that the new one stands on (nothing is lost by that, and a
//! move that was missed once is made up for), and from a commit that an invocation made and did not
//! live to record. One that is gone is made again. Whatever else stands there is somebody's.

use std::ops::ControlFlow;

use loopwright_core::experiment::{Experiment, HarnessStart};
use loopwright_core::ids::{BranchName, RunId};
use loopwright_core::turn::Run;
use loopwright_git::{GitError, ObjectStore, Oid, Published, UserBranch};
use loopwright_record::{Select, Store};

use crate::error::EngineError;
use crate::views::visit_lines;

use super::harness::Harness;
use super::own_commit::OwnCommit;
use super::session::Session;

impl Session {
    /// The loop's branch in the user's repository, standing where the run stands. `replaced` is the
    /// run whose place this one takes.
    pub(super) fn loop_branch(
        &mut self,
        start: &HarnessStart,
        run: &Run<Experiment>,
        replaced: Option<&RunId>,
    ) -> Result<UserBranch, EngineError> {
        let (name, spec) = (self.branch.as_str(), &self.request.spec);
        let branch = UserBranch::new(&self.project.user, self.loop_name.as_str(), name)?;
        if spec.in_place {
            // The branch that moves is the user's own.
            return Ok(branch);
        }
        let commit: Oid = start.commit.parse()?;
        let unrecorded = Unrecorded {
            store: &self.store,
            run,
            branch: &self.branch,
            harness: Harness {
                spec,
                workdir: &self.request.workdir,
                links: &self.links,
                moved: None,
            },
        };
        let old = match replaced {
            Some(replaced) => left_at(&loopwright_record::load(&self.store, replaced)?, name)?,
            None => left_at(run, name)?,
        };
        let is_ours = |objects: &mut ObjectStore, found: &Oid| unrecorded.has(objects, found);
        match publish_over(&branch, &mut self.objects, &commit, old, is_ours)? {
            Ok(_) => Ok(branch),
            // The user did something to it: what is kept stays in our own store, and each keep says so.
            Err(
                GitError::Moved { .. } | GitError::CheckedOut { .. } | GitError::BaseGone { .. },
            ) if run.state.is_some() => Ok(branch),
            Err(error @ GitError::Moved { .. }) => Err(EngineError::refused_with(
                format!(
                    "the loop's branch stands elsewhere, and no run of this store put it there: {error}"
                ),
                format!(
                    "rename or delete it (git branch -m {0} NAME), or start the loop under a new name",
                    branch.short_name()
                ),
            )),
            Err(error) => Err(error.into()),
        }
    }
}

/// Where the record says that a run left the branch.
pub(super) fn left_at(run: &Run<Experiment>, branch: &str) -> Result<Option<Oid>, EngineError> {
    let lines = run.state.iter().flat_map(|state| &state.lines);
    let mut lines = lines.filter(|(name, _)| name.as_str() == branch);
    let line = lines.next().map(|(_, line)| line.incumbent.commit.parse());
    Ok(line.transpose()?)
}

/// Moves the loop's branch from `old` to `commit`, also where it stands elsewhere by our own doing, as
/// `is_ours` knows. The inner error is about the user's side.
pub(super) fn publish_over(
    branch: &UserBranch,
    objects: &mut ObjectStore,
    commit: &Oid,
    old: Option<Oid>,
    is_ours: impl FnOnce(&mut ObjectStore, &Oid) -> Result<bool, EngineError>,
) -> Result<Result<Published, GitError>, EngineError> {
    match branch.publish(objects, commit, old) {
        Err(GitError::Moved { found: None, .. }) => Ok(branch.publish(objects, commit, None)),
        Err(
            moved @ GitError::Moved {
                found: Some(found), ..
            },
        ) => {
            if stands_on(objects, *commit, &found)? || is_ours(objects, &found)? {
                return Ok(branch.publish(objects, commit, Some(found)));
            }
            Ok(Err(moved))
        }
        published => Ok(published),
    }
}

/// Whether a branch that stands at `found` would only move forward to `commit`.
fn stands_on(objects: &mut ObjectStore, commit: Oid, found: &Oid) -> Result<bool, EngineError> {
    let mut current = commit;
    while current != *found {
        let parents = objects.read_commit(&current)?.parents;
        match parents.first() {
            Some(parent) if objects.has(parent)? => current = *parent,
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Where else than the record says a run may have left its branch.
struct Unrecorded<'a> {
    store: &'a Store,
    run: &'a Run<Experiment>,
    branch: &'a BranchName,
    harness: Harness<'a>,
}

impl Unrecorded<'_> {
    fn has(&self, objects: &mut ObjectStore, found: &Oid) -> Result<bool, EngineError> {
        let Some(state) = &self.run.state else {
            return Ok(false);
        };
        if let Some(keep) = OwnCommit::unsettled_keep(self.harness.spec, self.run)?
            && keep.is(objects, found)?
        {
            return Ok(true);
        }
        if self
            .harness
            .is_start_of(objects, state, self.branch, found)?
        {
            return Ok(true);
        }
        if state.lines.contains_key(self.branch) {
            return Ok(false);
        }
        // A line that begins, in a branch that the same loop left there under another harness.
        self.was_kept(found)
    }

    /// Whether it is a keep of this run.
    fn was_kept(&self, found: &Oid) -> Result<bool, EngineError> {
        let (found, mut was_kept) = (found.to_hex(), false);
        let run = &self.run.kernel.run;
        visit_lines(self.store, run, Select::all(), |_, line| {
            was_kept |= line.commit == Some(found.as_str());
            ControlFlow::Continue(())
        })?;
        Ok(was_kept)
    }
}
