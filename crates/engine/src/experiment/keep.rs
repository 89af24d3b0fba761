//! Performing a keep: what was measured is checked against the checkout once more, committed,
//! synced, and the loop's branch is moved, in this order. The event that names the commit comes
//! after all of it.

use std::time::Duration;

use loopwright_core::effect::Announced;
use loopwright_core::experiment::results::Kept;
use loopwright_core::metric::Real;
use loopwright_core::usage::Usage;
use loopwright_git::{
    CommitSpec, GitError, InPlaceCommit, ObjectStore, Oid, Published, UserBranch,
};

use crate::error::EngineError;
use crate::hands::Control;

use super::user_git::ForEffect;
use super::workshop::{Done, Workshop, oid_field, request_field};

/// How the subjects of our own commits on a loop's branch begin.
const OWN_SUBJECT: &str = "loopwright: ";

impl Workshop {
    /// Performs `t<trial>/keep/<time>`. Done again after a crash, it makes the commit anew and takes
    /// the branch over from the one that nobody settled.
    pub(super) fn keep(
        &mut self,
        announced: &Announced,
        control: &Control,
    ) -> Result<Done, EngineError> {
        let tree = oid_field(&announced.request, "tree")?;
        let parent = oid_field(&announced.request, "parent_commit")?;
        let listing = self.objects.checkout_listing(&tree)?;
        let foreign = self.foreign_harness(&listing)?;
        if let Some(change) = foreign.first() {
            // It was measured by the segment's, so this would be kept unmeasured.
            return Ok(Done::builtin(&Kept::Refused {
                words: format!("{} is not the file that judged it", change.path),
            }));
        }
        if self.site.is_in_place() {
            return self.keep_in_place(announced, control, tree, parent);
        }
        let found = self.full_tree(announced, tree, parent)?;
        if found != tree {
            return Ok(Done::builtin(&Kept::Mismatch {
                found_tree: found.to_hex(),
            }));
        }
        let commit = self.objects.commit(&CommitSpec {
            tree,
            parents: &[parent],
            author: &self.identity,
            time_s: announced.asked_at.0 / 1_000_000,
            message: &self.keep_message(announced)?,
        })?;
        self.objects.make_durable()?;
        loopwright_record::crash_point!("keep.committed");
        let note = match self.publish(commit, parent) {
            Err(EngineError::Git(error @ GitError::ObjectsRefused { .. })) => {
                // It would be refused at every attempt: that is what the trial came to.
                let words = error.to_string();
                return Ok(Done::builtin(&Kept::Refused { words }));
            }
            published => published?,
        };
        loopwright_record::crash_point!("keep.published");
        // Without a measured candidate arm (after a crash) there is no cache to take over.
        let _ = self.arms.promote();
        Ok(committed(commit, note))
    }

    /// Commits on the branch that the user has checked out, with the user's hooks and signing. What
    /// they make of it is looked at: only what was measured is kept.
    fn keep_in_place(
        &mut self,
        announced: &Announced,
        control: &Control,
        tree: Oid,
        parent: Oid,
    ) -> Result<Done, EngineError> {
        let message = self.keep_message(announced)?;
        let before = self
            .site
            .committed_before(&mut self.objects, &tree, &parent)?;
        if let Some(commit) = before {
            return Ok(committed(commit, None));
        }
        let mut commands = ForEffect {
            runner: &self.runner,
            announced,
            control,
            limit: Duration::from_micros(self.spec.run_limit_us),
            grace: Duration::from_micros(self.spec.grace_us),
            fence: &self.fence,
            reader: &self.reader,
        };
        let done = self
            .site
            .commit_in_place(&mut self.objects, &tree, &message, &mut commands)?;
        loopwright_record::crash_point!("keep.published");
        let done = done.map(|(commit, undone)| {
            self.notices.undone(&undone);
            commit
        });
        match done {
            Some(InPlaceCommit::Stopped) => Ok(Done::Stopped(Usage::default().free_of_charge())),
            Some(InPlaceCommit::Committed { commit }) => {
                // Without a measured candidate arm (after a crash) there is no cache to take over.
                let _ = self.arms.promote();
                Ok(committed(commit, None))
            }
            Some(InPlaceCommit::Rewritten {
                tree: rewritten, ..
            }) => {
                let base = self.objects.read_commit(&parent)?.tree;
                let changes = self.objects.diff(&base, &rewritten)?;
                let findings = self.examine(base, &changes)?;
                let message = "what the commit hook made of it\n";
                let candidate = self.candidate(announced, parent, rewritten, &changes, message)?;
                Ok(Done::builtin(&Kept::Rewritten {
                    candidate,
                    findings,
                }))
            }
            Some(InPlaceCommit::Refused(obstacle)) => Ok(Done::builtin(&Kept::Refused {
                words: obstacle.to_string(),
            })),
            None => Err(EngineError::refused(
                "the user's checkout is not the place of this run",
            )),
        }
    }

    /// The tree that a checkout of the candidate holds, every file read.
    fn full_tree(
        &mut self,
        announced: &Announced,
        tree: Oid,
        parent: Oid,
    ) -> Result<Oid, EngineError> {
        let snapshot = self.site.full_snapshot(&mut self.objects)?;
        let base = self.objects.read_commit(&parent)?.tree;
        let (found, _) = self.without_ours(base, &snapshot)?;
        if found == tree || self.proposed == Some(tree) {
            // What this process saw there itself must still be there.
            return Ok(found);
        }
        // This process has not seen the candidate there: an old trial is tried again, or the engine
        // was killed since the proposal.
        let time_s = announced.asked_at.0 / 1_000_000;
        let commit = self.objects.commit(&CommitSpec {
            tree,
            parents: &[parent],
            author: &self.identity,
            time_s,
            message: "check\n",
        })?;
        self.site.begin(&mut self.objects, &commit)?;
        Ok(self.site.full_snapshot(&mut self.objects)?.tree)
    }

    fn keep_message(&self, announced: &Announced) -> Result<String, EngineError> {
        let value: Real = request_field(&announced.request, "value")?;
        let was: Option<Real> = request_field(&announced.request, "was")?;
        let was = was
            .map(|was| format!(" (was {})", was.short()))
            .unwrap_or_default();
        let trial = announced.scope.trial.unwrap_or(0);
        Ok(format!(
            "{OWN_SUBJECT}{} {}{was}\n\nLoop: {}\nTrial: {trial}\nRun: {}\n",
            self.spec.metric,
            value.short(),
            self.spec.name,
            announced.run,
        ))
    }

    /// Moves the loop's branch. If the user has done something to it, the commit stays in our own
    /// store and that is said; nothing is fought over.
    fn publish(&mut self, commit: Oid, parent: Oid) -> Result<Option<String>, EngineError> {
        let published = publish_over(&self.branch, &mut self.objects, &commit, Some(parent));
        match published {
            Ok(_) => Ok(None),
            Err(
                error @ (GitError::Moved { .. }
                | GitError::CheckedOut { .. }
                | GitError::BaseGone { .. }
                | GitError::BranchInTheWay { .. }),
            ) => Ok(Some(format!("the branch was not moved: {error}"))),
            Err(error) => Err(error.into()),
        }
    }
}

/// Moves the loop's branch from `old` to `commit`, also where it stands at a commit of ours on `old`
/// that an invocation made and did not live to record.
pub(super) fn publish_over(
    branch: &UserBranch,
    objects: &mut ObjectStore,
    commit: &Oid,
    old: Option<Oid>,
) -> Result<Published, GitError> {
    let moved = match branch.publish(objects, commit, old) {
        Err(error @ GitError::Moved { found: Some(_), .. }) => error,
        other => return other,
    };
    let GitError::Moved {
        found: Some(found), ..
    } = &moved
    else {
        return Err(moved);
    };
    if !objects.has(found)? {
        return Err(moved);
    }
    let facts = objects.read_commit(found)?;
    if facts.parents.first().copied() == old && facts.message.starts_with(OWN_SUBJECT) {
        return branch.publish(objects, commit, Some(*found));
    }
    Err(moved)
}

fn committed(commit: Oid, note: Option<String>) -> Done {
    Done::builtin(&Kept::Committed {
        commit: commit.to_hex(),
        note,
    })
}
