//! Performing a keep: what was measured is checked against the checkout once more, committed,
//! synced, and the loop's branch is moved, in this order. The event that names the commit comes
//! after all of it.

use std::time::Duration;

use loopwright_core::effect::Announced;
use loopwright_core::experiment::results::Kept;
use loopwright_core::usage::Usage;
use loopwright_git::{CommitSpec, GitError, InPlaceCommit, ObjectStore, Oid};

use crate::error::EngineError;
use crate::hands::Control;

use super::loop_branch::publish_over;
use super::own_commit::OwnCommit;
use super::user_git::ForEffect;
use super::workshop::{Done, Workshop};

impl Workshop {
    /// Performs `t<trial>/keep/<time>`. Done again after a crash, it makes the commit anew and takes
    /// the branch over from the one that nobody settled.
    pub(super) fn keep(
        &mut self,
        announced: &Announced,
        control: &Control,
    ) -> Result<Done, EngineError> {
        let trial = announced.scope.trial.unwrap_or(0);
        let (run, request) = (&announced.run, &announced.request);
        let own = OwnCommit::of_keep(&self.spec, run, trial, request, announced.asked_at)?;
        let (tree, parent) = (own.tree, own.parent);
        let listing = self.objects.checkout_listing(&tree)?;
        let foreign = self.foreign_harness(&listing)?;
        if let Some(change) = foreign.first() {
            // It was measured by the segment's, so this would be kept unmeasured.
            return Ok(Done::builtin(&Kept::Refused {
                words: format!("{} is not the file that judged it", change.path),
            }));
        }
        if self.site.is_in_place() {
            return self.keep_in_place(announced, control, &own);
        }
        let found = self.full_tree(announced, tree, parent)?;
        if found != tree {
            return Ok(Done::builtin(&Kept::Mismatch {
                found_tree: found.to_hex(),
            }));
        }
        let commit = own.make(&mut self.objects, &self.identity)?;
        self.objects.make_durable()?;
        loopwright_record::crash_point!("keep.committed");
        let note = match self.publish(commit, &own) {
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
        own: &OwnCommit,
    ) -> Result<Done, EngineError> {
        let (tree, parent) = (own.tree, own.parent);
        let before = self.site.at();
        if let Some(commit) = before
            && own.is_made_by_git(&self.objects.read_commit(&commit)?)
        {
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
            fault: None,
            used: Usage::nothing(),
        };
        let done = self
            .site
            .commit_in_place(&mut self.objects, &tree, &own.message, &mut commands);
        let done = commands.result_of(done)?;
        let used = commands.used;
        loopwright_record::crash_point!("keep.published");
        let done = done.map(|(commit, undone)| {
            self.notices.undone(&undone);
            commit
        });
        match done {
            Some(InPlaceCommit::Stopped) => Ok(Done::Stopped(used)),
            Some(InPlaceCommit::Committed { commit }) => {
                // Without a measured candidate arm (after a crash) there is no cache to take over.
                let _ = self.arms.promote();
                Ok(committed(commit, None).having_used(used))
            }
            Some(InPlaceCommit::Rewritten {
                tree: rewritten, ..
            }) => {
                let base = self.objects.read_commit(&parent)?.tree;
                let changes = self.objects.diff(&base, &rewritten)?;
                let findings = self.examine(base, &changes)?;
                let message = "what the commit hook made of it\n";
                let candidate = self.candidate(announced, parent, rewritten, &changes, message)?;
                let kept = Kept::Rewritten {
                    candidate,
                    findings,
                };
                Ok(Done::builtin(&kept).having_used(used))
            }
            Some(InPlaceCommit::Refused(obstacle)) => {
                let words = obstacle.to_string();
                Ok(Done::builtin(&Kept::Refused { words }).having_used(used))
            }
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

    /// Moves the loop's branch. If the user has done something to it, the commit stays in our own
    /// store and that is said; nothing is fought over.
    fn publish(&mut self, commit: Oid, own: &OwnCommit) -> Result<Option<String>, EngineError> {
        let old = Some(own.parent);
        let is_ours = |objects: &mut ObjectStore, found: &Oid| Ok(own.is(objects, found)?);
        let published = publish_over(&self.branch, &mut self.objects, &commit, old, is_ours)?;
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

fn committed(commit: Oid, note: Option<String>) -> Done {
    Done::builtin(&Kept::Committed {
        commit: commit.to_hex(),
        note,
    })
}
