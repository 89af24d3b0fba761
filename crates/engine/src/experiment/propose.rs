//! Performing a proposal: the proposer gets a fresh checkout of the incumbent and a brief, and
//! whatever it leaves becomes one candidate tree once its last process is gone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;

use loopwright_core::digest::Digest;
use loopwright_core::effect::Announced;
use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::{Proposed, Reapplied};
use loopwright_core::experiment::shadow;
use loopwright_exec::Command;
use loopwright_git::{Change, GitError, Oid, Snapshot};

use crate::commands::CommandRun;
use crate::error::EngineError;
use crate::hands::Control;

use super::environment::environment;
use super::notices::words_of;
use super::workshop::{Done, Workshop, oid_field, request_field};

/// Larger files are not searched for secrets.
const SECRET_SEARCH_BYTES_MAX: usize = 1 << 20;

impl Workshop {
    /// Performs `t<trial>/propose`.
    pub(super) fn propose(
        &mut self,
        announced: &Announced,
        control: &Control,
    ) -> Result<Done, EngineError> {
        let incumbent = oid_field(&announced.request, "commit")?;
        let base_tree = oid_field(&announced.request, "tree")?;
        self.arms.reject();
        let mut undone = words_of(&self.site.begin(&mut self.objects, &incumbent)?);
        self.place_links()?;
        loopwright_record::crash_point!("propose.ready");
        let (command, brief_digest) = self.propose_command(announced)?;
        let CommandRun {
            ran,
            usage,
            stopped,
            scrubbed,
        } = self.runner.run(command, None, announced, control)?;
        self.expect_ours()?;
        if stopped {
            self.leave_checkout();
            return Ok(Done::Stopped(usage));
        }
        let snapshot = self.site.snapshot(&mut self.objects)?;
        let (tree, changes) = self.without_ours(base_tree, &snapshot)?;
        loopwright_record::crash_point!("propose.snapshot");
        let candidate = if tree == base_tree {
            None
        } else {
            let message = candidate_message(announced, &snapshot);
            Some(self.candidate(announced, incumbent, tree, &changes, &message)?)
        };
        let changed = |change: &&Change| self.protected.matches(change.path.as_bytes());
        let protected: Vec<String> = changes
            .iter()
            .filter(changed)
            .map(|change| change.path.to_string())
            .collect();
        let mut refused: Vec<String> = snapshot
            .refused
            .iter()
            .map(|path| format!("{}: {}", path.path, path.why))
            .collect();
        undone.extend(words_of(&snapshot.undone));
        if snapshot.removed {
            refused.push("it removed its own directory".to_owned());
        }
        let proposed = Proposed {
            ran,
            shadowing: self.shadowing(base_tree, &changes)?,
            secrets: self.new_secrets(&changes)?,
            duplicate_of: self.duplicate_of(announced, &tree)?,
            candidate,
            protected,
            refused,
            undone,
            brief_digest,
        };
        Ok(Done::Result(settlement_of(&proposed), usage, scrubbed))
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
        if self.spec.brief {
            let json = brief.to_json();
            digest = Some(Digest::of_content(json.as_bytes()));
            told.insert(
                "LOOPWRIGHT_BRIEF",
                self.put_on_desk("brief.json", &json)?.into(),
            );
            told.insert(
                "LOOPWRIGHT_BRIEF_MARKDOWN",
                self.put_on_desk("brief.md", &brief.to_markdown())?.into(),
            );
        }
        let work = self.site.work_tree();
        let ceiling = work.parent().unwrap_or(work);
        let line = self.spec.propose.clone().unwrap_or_default();
        let mut command = Command::shell(line, work.join(&self.workdir));
        command.env = environment(&self.spec, ceiling, told);
        command.time_limit = Some(Duration::from_micros(self.spec.propose_limit_us));
        command.grace = Duration::from_micros(self.spec.grace_us);
        Ok((command, digest))
    }

    /// Writes a read-only file for a command, outside every tree.
    fn put_on_desk(&self, name: &str, text: &str) -> Result<PathBuf, EngineError> {
        let path = self.desk.join(name);
        let write = || -> std::io::Result<()> {
            let _ = fs::remove_file(&path);
            fs::write(&path, text)?;
            let mut permissions = fs::metadata(&path)?.permissions();
            permissions.set_readonly(true);
            fs::set_permissions(&path, permissions)
        };
        write().map_err(EngineError::io(format!("write {}", path.display())))?;
        Ok(path)
    }

    /// Shows the proposer the declared inputs; they are no part of what it proposes.
    fn place_links(&self) -> Result<(), EngineError> {
        if self.site.is_in_place() {
            // They are where they are.
            return Ok(());
        }
        for link in self.input_links() {
            let place = link.path.to_path(self.site.work_tree());
            let put = || -> std::io::Result<()> {
                if let Some(parent) = place.parent() {
                    fs::create_dir_all(parent)?;
                }
                symlink(&link.target, &place)
            };
            put().map_err(EngineError::io(format!("link {}", place.display())))?;
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

    /// New files that would be imported in place of what judges the change.
    fn shadowing(&mut self, base: Oid, changes: &[Change]) -> Result<Vec<String>, EngineError> {
        use loopwright_git::Objects as _;
        if self.spec.protect.is_empty() || changes.iter().all(|change| change.before.is_some()) {
            return Ok(Vec::new());
        }
        let listing = self.objects.listing(&base)?;
        let protected: Vec<String> = listing
            .keys()
            .filter(|path| self.protected.matches(path.as_bytes()))
            .map(ToString::to_string)
            .collect();
        let added: Vec<String> = changes
            .iter()
            .filter(|change| change.before.is_none())
            .map(|change| change.path.to_string())
            .collect();
        Ok(shadow::shadowing(
            added.iter().map(String::as_str),
            &protected,
        ))
    }

    /// Changed files that hold more of what looks like a secret than before.
    fn new_secrets(&mut self, changes: &[Change]) -> Result<Vec<String>, EngineError> {
        let mut found = Vec::new();
        for change in changes {
            let after = self.secrets_in(change.after)?;
            if after > 0 && after > self.secrets_in(change.before)? {
                found.push(change.path.to_string());
            }
        }
        Ok(found)
    }

    fn secrets_in(
        &mut self,
        entry: Option<(loopwright_git::Mode, Oid)>,
    ) -> Result<usize, EngineError> {
        use loopwright_git::Objects as _;
        let Some((mode, oid)) = entry else {
            return Ok(0);
        };
        if !mode.is_regular() {
            return Ok(0);
        }
        let content = self.objects.read_blob(&oid)?;
        if content.len() > SECRET_SEARCH_BYTES_MAX {
            return Ok(0);
        }
        Ok(self.secrets.findings(&content).len())
    }

    /// The trial of this segment that had the same tree.
    fn duplicate_of(&self, announced: &Announced, tree: &Oid) -> Result<Option<u64>, EngineError> {
        let segment: u64 = request_field(&announced.request, "segment")?;
        let key = super::request::tree_key(segment, &tree.to_hex());
        let Some(seq) = self.reader.first_with_key(&announced.run, "tree", &key)? else {
            return Ok(None);
        };
        let entry = self.reader.event(&announced.run, seq)?;
        Ok(entry.and_then(|entry| entry.sealed.event.scope.trial))
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
                    let paths = paths.iter().map(ToString::to_string).collect();
                    return Ok(Done::builtin(&Reapplied::Conflict { paths }));
                }
                Err(error) => return Err(error.into()),
            }
        };
        if tree == onto_tree {
            return Ok(Done::builtin(&Reapplied::NoChange));
        }
        let changes = self.objects.diff(&onto_tree, &tree)?;
        let candidate = self.candidate(announced, onto_commit, tree, &changes, &facts.message)?;
        Ok(Done::builtin(&Reapplied::Applied { candidate }))
    }
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
