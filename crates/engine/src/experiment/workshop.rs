//! The workshop: the places where an experiment run's effects are performed, and the door through
//! which the worker's thread performs them.
//!
//! It holds what outlives a trial (the object store, the proposer's repository, the arms) and
//! nothing that decides. A failure of these places themselves ends the invocation; a failure of
//! what is tried in them is a result.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use loopwright_core::effect::{Announced, Settlement};
use loopwright_core::event::Scrub;
use loopwright_core::experiment::NAMES_MAX;
use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::Candidate;
use loopwright_core::experiment::{EffectPath, Part};
use loopwright_core::ids::EffectId;
use loopwright_core::metric::MetricName;
use loopwright_core::scrub::{self, Secrets};
use loopwright_core::spec::{ExperimentSpec, PatternSet};
use loopwright_core::usage::Usage;
use loopwright_exec::Environment;
use loopwright_git::arms::{Arms, InputLink, LinkFingerprint, SetupInputs};
use loopwright_git::{
    Change, CommitSpec, GitError, Handout, ObjectStore, Oid, Person, UserBranch, quoted,
};
use loopwright_record::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::commands::CommandRunner;
use crate::driver::HostFault;
use crate::error::EngineError;
use crate::hands::{Control, Performed, Performer};
use crate::views::History;

use super::fence::Fence;
use super::measure::ReadyArm;
use super::notices::Notices;
use super::site::Site;

/// Everything an experiment run works with.
pub struct Workshop {
    /// The loop's specification, as pinned for this invocation.
    pub spec: ExperimentSpec,
    /// What every command gets.
    pub environment: Environment,
    /// Where below the top of the repository commands run; empty at the top.
    pub workdir: PathBuf,
    /// The engine's own objects.
    pub objects: ObjectStore,
    /// Where proposals are made.
    pub site: Site,
    /// Where trees are measured.
    pub arms: Arms,
    /// What is linked into them, as it was at the start.
    pub links: Vec<LinkFingerprint>,
    /// Whether any of it was found changed when it was looked at last.
    pub links_are_changed: bool,
    /// Runs commands.
    pub runner: CommandRunner,
    /// Reads the record; commits are the driver's.
    pub reader: Store,
    /// Whether the run is still ours.
    pub fence: Fence,
    /// Takes secrets out of results.
    pub secrets: Arc<Secrets>,
    /// Who commits.
    pub identity: Person,
    /// The loop's branch in the user's repository.
    pub branch: UserBranch,
    /// The run's folder, in which the desk lies.
    pub work: PathBuf,
    /// What the proposer is told, as files.
    pub brief: Handout,
    /// What judges the work, by pattern.
    pub protected: PatternSet,
    /// The tree whose protected files judge everything in this segment.
    pub judging: Oid,
    /// The tree that the last proposal of this process left in the proposer's checkout.
    pub proposed: Option<Oid>,
    /// What the setup depends on.
    pub setup_inputs: SetupInputs,
    /// All metrics that are read.
    pub metrics: Vec<MetricName>,
    /// The newest trials, for briefs.
    pub history: History,
    /// What a person is to be told at the end.
    pub notices: Notices,
    /// What was made ready, and for which attempt at which effect.
    pub(super) ready: Option<(EffectId, u32, Ready)>,
}

/// What can be made ready for an effect before it is announced for good.
pub(super) enum Ready {
    /// The proposer's checkout is at the incumbent.
    Site,
    /// An arm holds the tree to be measured.
    Arm(ReadyArm),
}

/// How one effect was performed.
pub(super) enum Done {
    /// To its end, with what it used and how many values were scrubbed.
    Result(Value, Usage, u64),
    /// Stopped on request.
    Stopped(Usage),
}

impl Done {
    /// A result of the engine's own.
    pub(super) fn builtin<T: Serialize>(result: &T) -> Self {
        Self::Result(settlement_of(result), Usage::default().free_of_charge(), 0)
    }

    /// The same, for which commands of the user's were run.
    pub(super) fn having_used(self, usage: Usage) -> Self {
        match self {
            Self::Result(result, _, scrubbed) => Self::Result(result, usage, scrubbed),
            Self::Stopped(_) => Self::Stopped(usage),
        }
    }
}

impl Performer for Workshop {
    fn between(&mut self) {
        if self.expect_ours().is_err() {
            return;
        }
        // No command runs now. What fails here is done, or told, where it is needed.
        self.runner.supervisor.make_ready();
        let _ = self.clear_desk();
        if let Site::Apart(repository) = &mut self.site {
            repository.look_ahead();
        }
    }

    fn make_ready(&mut self, announced: &Announced) {
        self.ready = None;
        // The user's checkout is seen by somebody.
        if self.site.is_in_place() || self.links_are_changed || self.expect_ours().is_err() {
            return;
        }
        let ready = match EffectPath::of(&announced.effect).map(|path| path.part) {
            Ok(Part::Propose) => self.ready_site(announced).ok().map(|_| Ready::Site),
            Ok(Part::Measure { .. } | Part::Target { .. } | Part::Closing { .. }) => {
                let arm = self.ready_arm(announced).ok().and_then(Result::ok);
                arm.map(Ready::Arm)
            }
            _ => None,
        };
        // What failed fails again, where its failure can be told.
        self.ready = ready.map(|ready| (announced.effect.clone(), announced.attempt, ready));
    }

    fn perform(&mut self, announced: &Announced, control: &Control) -> Performed {
        if let Err(error) = self.expect_ours() {
            return Performed::Broken(HostFault::from(&error));
        }
        let done = match EffectPath::of(&announced.effect).map(|path| path.part) {
            Ok(Part::Propose) => self.propose(announced, control),
            Ok(Part::Measure { .. } | Part::Target { .. } | Part::Closing { .. }) => {
                self.measure(announced, control)
            }
            Ok(Part::Keep { .. }) => self.keep(announced, control),
            Ok(Part::Reapply) => self.reapply(announced),
            Err(not_ours) => Err(EngineError::refused(not_ours.to_string())),
        };
        match done {
            Ok(Done::Result(mut result, usage, scrubbed)) => {
                let found = self.secrets.scrub_json(&mut result) as u64;
                let scrub = Scrub {
                    rules: scrub::RULES_VERSION,
                    values: scrubbed + found,
                };
                Performed::Settled {
                    settlement: Settlement { result, usage },
                    scrub,
                }
            }
            Ok(Done::Stopped(usage)) => Performed::Stopped { usage },
            Err(error) => {
                let (effect, secrets) = (&announced.effect, &self.secrets);
                Performed::Broken(HostFault::while_performing(effect, &error, secrets))
            }
        }
    }
}

impl Workshop {
    /// What was made ready for this attempt.
    pub(super) fn take_ready(&mut self, announced: &Announced) -> Option<Ready> {
        let (effect, attempt, ready) = self.ready.take()?;
        (effect == announced.effect && attempt == announced.attempt).then_some(ready)
    }

    /// Refuses to go on where another process has taken the run over.
    pub(super) fn expect_ours(&self) -> Result<(), EngineError> {
        self.fence.check(&self.reader)
    }

    /// Leaves the user's checkout at the incumbent; if that fails now, the next session does it.
    pub(super) fn leave_checkout(&mut self) {
        match self.site.close(&mut self.objects) {
            Ok(undone) => self.notices.undone(&undone),
            Err(error) => self.notices.say(format!(
                "your checkout could not be brought back to the loop's incumbent: {error}"
            )),
        }
    }

    /// Makes a candidate of a tree: a commit on the incumbent, kept alive by the run's chain, both
    /// durable.
    pub(super) fn candidate(
        &mut self,
        announced: &Announced,
        parent: Oid,
        tree: Oid,
        changes: &[Change],
        message: &str,
    ) -> Result<Candidate, EngineError> {
        let time_s = announced.asked_at.0 / 1_000_000;
        // An agent's own words may be in it.
        let (message, _) = self.secrets.scrub_text(message);
        let commit = self.objects.commit(&CommitSpec {
            tree,
            parents: &[parent],
            author: &self.identity,
            time_s,
            message: &message,
        })?;
        let run = announced.run.as_str();
        let previous = self.objects.chain_head(run)?;
        let link = self
            .objects
            .append_to_chain(run, previous, commit, time_s)?;
        loopwright_record::crash_point!("candidate.chained");
        let paths = changes.iter().take(NAMES_MAX);
        Ok(Candidate {
            tree: tree.to_hex(),
            commit: commit.to_hex(),
            chain_commit: link.to_hex(),
            changes: changes.len() as u64,
            paths: paths.map(|change| change.path.to_string()).collect(),
        })
    }

    /// The declared inputs that are not what they were at the start, in words.
    pub(super) fn changed_links(&mut self) -> Result<Vec<String>, EngineError> {
        let mut changed = Vec::new();
        for link in &self.links {
            if let Some(found) = link.recheck()? {
                changed.push(match found.example {
                    Some(example) => {
                        let example = quoted(example.as_os_str().as_bytes());
                        format!("{} (linked: {example})", found.link)
                    }
                    None => format!("{} (linked)", found.link),
                });
            }
        }
        self.links_are_changed = !changed.is_empty();
        Ok(changed)
    }

    /// Why nothing can be tried or measured now: an earlier effect, or somebody else, has changed
    /// a declared input, and that is not laid to the next one.
    pub(super) fn lost_inputs(&mut self) -> Result<Option<String>, EngineError> {
        if !self.links_are_changed {
            return Ok(None);
        }
        let changed = self.changed_links()?;
        Ok((!changed.is_empty()).then(|| {
            format!(
                "what it needs is not what it was when this invocation began: {}",
                changed.join(", ")
            )
        }))
    }

    /// The declared links.
    pub(super) fn input_links(&self) -> Vec<InputLink> {
        self.links
            .iter()
            .map(|fingerprint| fingerprint.link.clone())
            .collect()
    }
}

/// A request's field that names a git object.
pub(super) fn oid_field(request: &Value, field: &str) -> Result<Oid, EngineError> {
    let text: String = request_field(request, field)?;
    text.parse()
        .map_err(|error: GitError| EngineError::from(error))
}

/// A typed field of a request.
pub(super) fn request_field<T: DeserializeOwned>(
    request: &Value,
    field: &str,
) -> Result<T, EngineError> {
    let value = request.get(field).cloned().unwrap_or(Value::Null);
    serde_json::from_value(value).map_err(|error| {
        EngineError::refused(format!("a request's {field} can't be read: {error}"))
    })
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // Whoever has taken the run over answers for the checkout from then on.
        if self.expect_ours().is_err() {
            return;
        }
        self.leave_checkout();
        // So that the next session need not check everything out again; without, it does.
        let _ = self.arms.close();
    }
}
