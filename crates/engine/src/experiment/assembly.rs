//! Assembling what an invocation works with: the loop's branch in the user's repository, the site
//! of proposals, the workshop, and what keeps the lease.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopwright_core::experiment::{Experiment, HarnessStart};
use loopwright_core::ids::RunId;
use loopwright_core::metric::MetricName;
use loopwright_core::spec::{ExperimentSpec, Pattern};
use loopwright_core::turn::Run;
use loopwright_git::arms::{ArmRules, Arms, ArmsError, Patterns};
use loopwright_git::{GitError, InPlace, ObjectStore, Oid, ProposerRepository, UserBranch};
use loopwright_record::{Lease, LeaseError, OpenMode, Store};

use crate::commands::CommandRunner;
use crate::committer::{LEASE_TTL, now};
use crate::driver::Watcher;
use crate::error::EngineError;
use crate::project::Project;
use crate::views::History;

use super::environment::known_secrets;
use super::fence::Fence;
use super::keep::publish_over;
use super::request::KEYS;
use super::session::Session;
use super::site::Site;
use super::workshop::Workshop;

impl Session {
    /// Says that the user's commit has what the loop's incumbent has not: a loop goes on from its
    /// incumbent, not from HEAD.
    pub(super) fn say_left_out(
        &self,
        run: &Run<Experiment>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), EngineError> {
        let incumbent = run.state.as_ref().and_then(|state| state.incumbent());
        let (true, Some(incumbent)) = (self.request.fresh, incumbent) else {
            return Ok(());
        };
        let head = self.project.user.head.to_hex();
        let git = self.project.user.hermetic();
        let ancestor = git.output(
            ["merge-base", "--is-ancestor", &head, &incumbent.commit],
            b"",
        )?;
        // Status 1 is a no; anything else (the incumbent was never brought over) says nothing.
        if ancestor.status.code() == Some(1) {
            watcher.notice(&format!(
                "the loop goes on from its incumbent {}; commits of yours up to {} are not in it (a new loop starts from them: --loop NAME)",
                short(&incumbent.commit),
                short(&head)
            ));
        }
        Ok(())
    }

    /// In place, the user's branch must stand where the loop left it: a commit of somebody else's
    /// was never measured.
    pub(super) fn check_in_place(&self, run: &Run<Experiment>) -> Result<(), EngineError> {
        let incumbent = run.state.as_ref().and_then(|state| state.incumbent());
        let (true, Some(incumbent)) = (self.request.spec.in_place, incumbent) else {
            return Ok(());
        };
        let head = self.project.user.head.to_hex();
        let keeping = run
            .state
            .as_ref()
            .is_some_and(|state| state.trial.is_some());
        if head == incumbent.commit || keeping {
            return Ok(());
        }
        Err(EngineError::Refused {
            what: format!(
                "the checked-out branch stands at {}, and the loop's incumbent is {}",
                short(&head),
                short(&incumbent.commit)
            ),
            hints: vec![
                format!(
                    "go back to it: git checkout BRANCH, or git reset --hard {}",
                    short(&incumbent.commit)
                ),
                "or start from here under a new name: --loop NAME".to_owned(),
            ],
        })
    }

    /// The loop's branch in the user's repository, standing where the run stands.
    pub(super) fn loop_branch(
        &mut self,
        harness: &HarnessStart,
        run: &Run<Experiment>,
    ) -> Result<UserBranch, EngineError> {
        let branch = UserBranch::new(
            &self.project.user,
            self.loop_name.as_str(),
            self.branch.as_str(),
        )?;
        if self.request.spec.in_place {
            // The branch that moves is the user's own.
            return Ok(branch);
        }
        let commit: Oid = harness.commit.parse()?;
        let incumbent = run.state.as_ref().and_then(|state| state.incumbent());
        let mut old = incumbent
            .map(|incumbent| incumbent.commit.parse())
            .transpose()?;
        if self.starts_over {
            old = branch.current()?;
        }
        match publish_over(&branch, &mut self.objects, &commit, old) {
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

    pub(super) fn site(&mut self, work: &Path) -> Result<Site, EngineError> {
        let user = &self.project.user;
        if self.request.spec.in_place {
            let keeper = InPlace::open(&in_place_notes(&self.project), user, &mut self.objects)?;
            let (top, at) = (user.top.clone(), user.head);
            return Ok(Site::InPlace {
                keeper: Box::new(keeper),
                top,
                at,
            });
        }
        let place = work.join("proposer");
        let repository =
            ProposerRepository::create(&place, user, &mut self.objects, &self.identity)?;
        Ok(Site::Apart(Box::new(repository)))
    }

    pub(super) fn workshop(
        &mut self,
        run: &RunId,
        branch: UserBranch,
        fence: Fence,
        judging: Oid,
    ) -> Result<Workshop, EngineError> {
        let spec = self.request.spec.clone();
        let rules = ArmRules {
            cache: Patterns::parse(&texts(&spec.cache))?,
            links: self.links.iter().map(|link| link.link.clone()).collect(),
        };
        let (work, arms) = open_arms(self.project.work_of(run), fence.epoch(), rules)?;
        let secrets = Arc::new(known_secrets());
        let objects = ObjectStore::open_or_create(&self.project.objects(), &self.project.user)?;
        let objects = std::mem::replace(&mut self.objects, objects);
        let mut reader = Store::open(&self.project.store, OpenMode::Read)?;
        reader.index_keys(KEYS)?;
        let mut workshop = Workshop {
            workdir: self.request.workdir.clone().into(),
            site: self.site(&work)?,
            objects,
            arms,
            links: self.links.clone(),
            links_are_changed: false,
            runner: CommandRunner {
                supervisor: self.request.supervisor.clone(),
                running: self.store.running().clone(),
                blobs: self.store.blobs().clone(),
                secrets: secrets.clone(),
                work: work.clone(),
                read_only: self
                    .links
                    .iter()
                    .map(|input| input.link.target.clone())
                    .collect(),
                output_bytes_max: spec.max_output_bytes,
            },
            reader,
            fence,
            secrets,
            identity: self.identity.clone(),
            branch,
            work,
            protected: spec.protected(),
            judging,
            proposed: None,
            setup_inputs: Patterns::parse(&texts(&spec.setup_inputs))?,
            metrics: metrics_of(&spec),
            history: History::default(),
            spec,
        };
        workshop.metrics.dedup();
        Ok(workshop)
    }
}

/// The tree whose protected files judge what this invocation measures: the segment's, or that of the
/// one which starts now.
pub(super) fn judging_tree(
    run: &Run<Experiment>,
    harness: &HarnessStart,
) -> Result<Oid, EngineError> {
    let segment = run.state.as_ref().and_then(|state| state.segment.as_ref());
    let goes_on = segment.filter(|segment| segment.harness == harness.digest);
    Ok(goes_on
        .map_or(&harness.tree, |segment| &segment.tree)
        .parse()?)
}

/// How the folders begin in which whoever took a run over by force works.
const TAKEN_OVER: &str = "taken-over-";

/// The arms, and the folder they are in. A process that the run was taken from by force still has
/// its folder and may wake up in it: whoever took the run over works beside it.
fn open_arms(work: PathBuf, epoch: u64, rules: ArmRules) -> Result<(PathBuf, Arms), EngineError> {
    sweep_taken_over(&work);
    match Arms::open(&work.join("arms"), rules.clone()) {
        Err(ArmsError::InUse(_)) => {
            let beside = work.join(format!("{TAKEN_OVER}{epoch}"));
            let arms = Arms::open(&beside.join("arms"), rules)?;
            Ok((beside, arms))
        }
        opened => Ok((work, opened?)),
    }
}

/// Removes the folders of those who once took the run over and are gone. The lease is ours and what
/// they left running was ended; one who only sleeps still has its arms open, and keeps its folder.
fn sweep_taken_over(work: &Path) {
    for entry in std::fs::read_dir(work).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(TAKEN_OVER) {
            continue;
        }
        let folder = entry.path();
        // Tidying up hinders nobody from working.
        let _ = Arms::remove_unused(&folder, &folder.join("arms"));
    }
}

/// Where notes for putting the user's checkout back lie.
fn in_place_notes(project: &Project) -> PathBuf {
    project.store.join("in-place")
}

/// The project after what an interrupted proposal in place did to it was undone.
pub(super) fn recovered(
    project: &Project,
    spec: &ExperimentSpec,
    watcher: &mut dyn Watcher,
) -> Result<Project, EngineError> {
    let mut project = project.clone();
    if !spec.in_place {
        return Ok(project);
    }
    if let Some(undone) = InPlace::recover(&in_place_notes(&project))? {
        for what in undone {
            watcher.notice(&format!(
                "undone of the interrupted proposal: {}: {}",
                what.path, what.why
            ));
        }
        project.user = project.user.discover_again()?;
    }
    Ok(project)
}

/// The first characters of a commit's id, for people.
fn short(hex: &str) -> &str {
    hex.get(..10).unwrap_or(hex)
}

fn texts(patterns: &[Pattern]) -> Vec<String> {
    patterns
        .iter()
        .map(|pattern| pattern.as_str().to_owned())
        .collect()
}

/// The metric and what the guards watch.
fn metrics_of(spec: &ExperimentSpec) -> Vec<MetricName> {
    let guards = spec.guards.iter().map(|guard| guard.metric.as_str());
    let names = std::iter::once(spec.metric.as_str()).chain(guards);
    // The names were checked with the specification.
    names
        .filter_map(|name| MetricName::new(name).ok())
        .collect()
}

/// Renews the lease over a connection of its own; gives it up when it is dropped.
pub(super) fn renewal(store: &Path, lease: Lease) -> Box<dyn FnMut() -> Result<(), String>> {
    struct Renewal {
        folder: PathBuf,
        lease: Option<Lease>,
    }
    impl Drop for Renewal {
        fn drop(&mut self) {
            let store = Store::open(&self.folder, OpenMode::Write);
            if let (Ok(store), Some(lease)) = (store, self.lease.take()) {
                // A lease that can't be given up ends with this process.
                let _ = lease.release(&store);
            }
        }
    }
    let mut renewal = Renewal {
        folder: store.to_path_buf(),
        lease: Some(lease),
    };
    Box::new(move || {
        let renewal = &mut renewal;
        let store =
            Store::open(&renewal.folder, OpenMode::Write).map_err(|error| error.to_string())?;
        let Some(lease) = &mut renewal.lease else {
            return Ok(());
        };
        lease
            .renew(&store, now(), LEASE_TTL)
            .map_err(|error: LeaseError| error.to_string())
    })
}
