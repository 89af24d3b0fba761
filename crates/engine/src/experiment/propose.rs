//! Performing a proposal: the proposer gets a fresh checkout of the incumbent and a brief, and
//! whatever it leaves becomes one candidate tree once its last process is gone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use loopwright_core::digest::Digest;
use loopwright_core::effect::Announced;
use loopwright_core::experiment::Named;
use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::{Findings, Proposed, Reapplied};
use loopwright_exec::Command;
use loopwright_git::{Change, GitError, Oid, Snapshot, UntrustedDirectory};

use crate::commands::CommandRun;
use crate::error::EngineError;
use crate::hands::Control;
use crate::views::trial_row;

use super::environment::environment;
use super::notices::words_of;
use super::workshop::{Done, Ready, Workshop, oid_field, request_field};

const BRIEF_JSON: &str = "brief.json";
const BRIEF_MARKDOWN: &str = "brief.md";

impl Workshop {
    /// Performs `t<trial>/propose`.
    pub(super) fn propose(
        &mut self,
        announced: &Announced,
        control: &Control,
    ) -> Result<Done, EngineError> {
        let incumbent = oid_field(&announced.request, "commit")?;
        let base_tree = oid_field(&announced.request, "tree")?;
        let ready = self.take_ready(announced);
        if let Some(why) = self.lost_inputs()? {
            return Ok(not_begun(why));
        }
        let mut undone = match ready {
            Some(Ready::Site) => Named::default(),
            _ => self.ready_site(announced)?,
        };
        self.place_links()?;
        loopwright_record::crash_point!("propose.ready");
        let (command, brief_digest) = self.propose_command(announced)?;
        let CommandRun {
            ran,
            usage,
            stopped,
            scrubbed,
        } = self.runner.run(command, None, announced, control)?;
        // For the measurement; while the change is looked at, and no command runs.
        self.runner.supervisor.make_ready();
        self.expect_ours()?;
        if stopped {
            self.leave_checkout();
            return Ok(Done::Stopped(usage));
        }
        let snapshot = self.site.snapshot(&mut self.objects)?;
        let (tree, changes) = self.without_ours(base_tree, &snapshot)?;
        loopwright_record::crash_point!("propose.snapshot");
        self.proposed = Some(tree);
        let candidate = if tree == base_tree {
            None
        } else {
            let message = candidate_message(announced, &snapshot);
            Some(self.candidate(announced, incumbent, tree, &changes, &message)?)
        };
        let mut findings = self.examine(base_tree, &changes)?;
        findings.protected.extend(self.changed_links()?);
        let mut refused: Named = words_of(&snapshot.refused).into_iter().collect();
        undone.extend(words_of(&snapshot.undone));
        if snapshot.removed {
            refused.push("it removed its own directory");
        }
        let proposed = Proposed {
            ran,
            findings,
            duplicate_of: self.duplicate_of(announced, &tree)?,
            candidate,
            refused,
            undone,
            brief_digest,
        };
        Ok(Done::Result(settlement_of(&proposed), usage, scrubbed))
    }

    /// Brings the proposer's checkout to the incumbent; says what of the user's had to give way.
    pub(super) fn ready_site(&mut self, announced: &Announced) -> Result<Named, EngineError> {
        let incumbent = oid_field(&announced.request, "commit")?;
        self.arms.reject();
        self.proposed = None;
        let begun = self.site.begin(&mut self.objects, &incumbent)?;
        Ok(words_of(&begun).into_iter().collect())
    }

    fn propose_command(
        &mut self,
        announced: &Announced,
    ) -> Result<(Command, Option<Digest>), EngineError> {
        let trial = announced.scope.trial.unwrap_or(0);
        let mut told: BTreeMap<&str, OsString> = BTreeMap::new();
        let brief = self.brief(announced)?;
        let incumbent = brief
            .incumbent
            .map(|value| value.to_string())
            .unwrap_or_default();
        told.insert("LOOPWRIGHT_TRIAL", trial.to_string().into());
        told.insert("LOOPWRIGHT_METRIC", self.spec.metric.clone().into());
        told.insert("LOOPWRIGHT_GOAL", self.spec.goal.name().into());
        told.insert("LOOPWRIGHT_INCUMBENT", incumbent.into());
        told.insert("LOOPWRIGHT_LOOP", self.spec.name.clone().into());
        told.insert("LOOPWRIGHT_RUN", announced.run.to_string().into());
        told.insert(
            "LOOPWRIGHT_IDEMPOTENCY_KEY",
            announced.idempotency_key().into(),
        );
        let mut digest = None;
        self.clear_desk()?;
        if self.spec.brief {
            let (json, markdown) = (brief.to_json(), brief.to_markdown());
            digest = Some(Digest::of_content(json.as_bytes()));
            self.brief.lay_out(&[
                (BRIEF_JSON, json.as_bytes()),
                (BRIEF_MARKDOWN, markdown.as_bytes()),
            ])?;
            let place = self.brief.path();
            told.insert("LOOPWRIGHT_BRIEF", place.join(BRIEF_JSON).into());
            told.insert(
                "LOOPWRIGHT_BRIEF_MARKDOWN",
                place.join(BRIEF_MARKDOWN).into(),
            );
        }
        let work = self.site.work_tree();
        let ceiling = work.parent().unwrap_or(work);
        let line = self.spec.propose.clone().unwrap_or_default();
        let mut command = Command::shell(line, work.join(&self.workdir));
        command.env = environment(&self.environment, ceiling, told);
        command.time_limit = Some(Duration::from_micros(self.spec.propose_limit_us));
        command.grace = Duration::from_micros(self.spec.grace_us);
        Ok((command, digest))
    }

    /// Shows the proposer the declared inputs; they are no part of what it proposes.
    fn place_links(&self) -> Result<(), EngineError> {
        let links = self.input_links();
        if self.site.is_in_place() || links.is_empty() {
            // In place they are where they are.
            return Ok(());
        }
        let place = self.site.work_tree();
        let Some(mut tree) = UntrustedDirectory::open(place)? else {
            return Err(EngineError::io(format!("open {}", place.display()))(
                std::io::ErrorKind::NotFound.into(),
            ));
        };
        for link in links {
            tree.put_link(&link.path, &link.target)?;
        }
        Ok(())
    }

    /// The snapshot's tree and changes less the links that we put there and what lies in a declared
    /// cache: only measurements write a cache.
    pub(super) fn without_ours(
        &mut self,
        base: Oid,
        snapshot: &Snapshot,
    ) -> Result<(Oid, Vec<Change>), EngineError> {
        let links = self.input_links();
        let cache = self.arms.rules().cache.clone();
        let is_ours = |change: &Change| {
            let is_link = links.iter().any(|link| link.path == change.path);
            is_link || (change.before.is_none() && cache.cover(&change.path))
        };
        if !snapshot.changes.iter().any(is_ours) {
            return Ok((snapshot.tree, snapshot.changes.clone()));
        }
        let own: Vec<Change> = snapshot
            .changes
            .iter()
            .filter(|change| !is_ours(change))
            .cloned()
            .collect();
        let tree = self.objects.write_tree(&base, &own)?;
        Ok((tree, own))
    }

    /// The first trial of this segment in which the same tree was measured. One that came to an end
    /// before that (its proposer failed) says nothing about the tree.
    fn duplicate_of(&self, announced: &Announced, tree: &Oid) -> Result<Option<u64>, EngineError> {
        let segment: u64 = request_field(&announced.request, "segment")?;
        let key = super::request::tree_key(segment, &tree.to_hex());
        for seq in self.reader.all_with_key(&announced.run, "tree", &key)? {
            let entry = self.reader.event(&announced.run, seq)?;
            let Some(trial) = entry.and_then(|entry| entry.sealed.event.scope.trial) else {
                continue;
            };
            let measuring = format!("t{trial}/measure/");
            let row = trial_row(&self.reader, &announced.run, trial)?;
            let mut commands = row.iter().flat_map(|row| &row.commands);
            if commands.any(|command| command.effect.starts_with(&measuring)) {
                return Ok(Some(trial));
            }
        }
        Ok(None)
    }

    /// Performs `t<trial>/reapply`: an old candidate is brought to the incumbent.
    pub(super) fn reapply(&mut self, announced: &Announced) -> Result<Done, EngineError> {
        let commit = oid_field(&announced.request, "commit")?;
        let onto_commit = oid_field(&announced.request, "onto_commit")?;
        let onto_tree = oid_field(&announced.request, "onto_tree")?;
        let facts = self.objects.read_commit(&commit)?;
        let parent = facts.parents.first().copied();
        let base = match parent {
            Some(parent) => self.objects.read_commit(&parent)?.tree,
            None => self.objects.empty_tree()?,
        };
        let tree = if base == onto_tree {
            facts.tree
        } else {
            match self.objects.apply_candidate(&facts.tree, &base, &onto_tree) {
                Ok(tree) => tree,
                Err(GitError::Conflict { paths }) => {
                    let paths: Named = paths.iter().map(ToString::to_string).collect();
                    return Ok(Done::builtin(&Reapplied::Conflict { paths }));
                }
                Err(error) => return Err(error.into()),
            }
        };
        if tree == onto_tree {
            return Ok(Done::builtin(&Reapplied::NoChange));
        }
        let changes = self.objects.diff(&onto_tree, &tree)?;
        let findings = self.examine(onto_tree, &changes)?;
        let candidate = self.candidate(announced, onto_commit, tree, &changes, &facts.message)?;
        Ok(Done::builtin(&Reapplied::Applied {
            candidate,
            findings,
        }))
    }
}

/// A proposal that was not asked for, and why.
fn not_begun(why: String) -> Done {
    let CommandRun { ran, usage, .. } = CommandRun::not_started(&why);
    let proposed = Proposed {
        ran,
        candidate: None,
        findings: Findings::default(),
        refused: Named::default(),
        undone: Named::default(),
        duplicate_of: None,
        brief_digest: None,
    };
    Done::Result(settlement_of(&proposed), usage, 0)
}

/// What a candidate's commit says: the agent's own words, where it committed by itself.
fn candidate_message(announced: &Announced, snapshot: &Snapshot) -> String {
    let trial = announced.scope.trial.unwrap_or(0);
    let own = snapshot
        .agent_head
        .as_ref()
        .and_then(|head| head.message.as_deref());
    match own.map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => format!("candidate of trial {trial}\n\n{message}\n"),
        None => format!("candidate of trial {trial}\n"),
    }
}
