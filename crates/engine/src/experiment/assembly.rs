//! Assembling what an invocation works with: the site of proposals, the workshop.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopwright_core::canonical::to_canonical;
use loopwright_core::digest::Digest;
use loopwright_core::experiment::{Experiment, HarnessStart};
use loopwright_core::ids::RunId;
use loopwright_core::metric::MetricName;
use loopwright_core::spec::{ExperimentSpec, Pattern};
use loopwright_core::turn::Run;
use loopwright_git::arms::{ArmRules, Arms, ArmsError, LinkFingerprint, Patterns, SetupInputs};
use loopwright_git::{
    Handout, InPlace, ObjectStore, Oid, Owner, ProposerRepository, UserBranch, UserSettings,
};
use loopwright_record::{OpenMode, Store};
use serde_json::json;

use crate::commands::CommandRunner;
use crate::driver::Watcher;
use crate::error::EngineError;
use crate::project::{IN_PLACE_FOLDER, Project};
use crate::views::History;

use super::desk::BRIEF;
use super::environment::environment_of_all;
use super::environment::known_secrets;
use super::fence::Fence;
use super::notices::{Notices, words_of};
use super::own_commit::OwnCommit;
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
        let state = run.state.as_ref();
        let incumbent = state.and_then(|state| state.starts_from(&self.branch));
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

    /// Whether the branch of a run in place is not where the loop left it. What stands there was never
    /// measured: whoever starts the loop anew begins from there, and a resume refuses.
    pub(super) fn is_moved_in_place(
        &mut self,
        run: &Run<Experiment>,
        watcher: &mut dyn Watcher,
    ) -> Result<bool, EngineError> {
        let incumbent = run.state.as_ref().and_then(|state| state.incumbent());
        let (true, Some(incumbent)) = (self.request.spec.in_place, incumbent) else {
            return Ok(false);
        };
        let head = self.project.user.head.to_hex();
        if head == incumbent.commit || self.is_unsettled_keep(run)? {
            return Ok(false);
        }
        let (head, kept) = (short(&head), short(&incumbent.commit));
        if self.request.fresh && !self.was_interrupted {
            watcher.notice(&format!(
                "the checked-out branch stands at {head}, where the loop did not leave it ({kept}): a new segment starts from there"
            ));
            return Ok(true);
        }
        Err(EngineError::Refused {
            what: format!(
                "the checked-out branch stands at {head}, and the loop's incumbent is {kept}; nothing was changed"
            ),
            hints: vec![
                "to start from what is there, in a new segment: loopwright run".to_owned(),
                format!(
                    "to go on from the loop's: keep yours under a name (git branch NAME {head}), then git reset --hard {kept}"
                ),
            ],
        })
    }

    /// Whether HEAD is the keep that an invocation made of the open trial's candidate and did not
    /// live to record.
    fn is_unsettled_keep(&mut self, run: &Run<Experiment>) -> Result<bool, EngineError> {
        let Some(own) = OwnCommit::unsettled_keep(&self.request.spec, run)? else {
            return Ok(false);
        };
        let user = &self.project.user;
        self.objects.import_base(user, &user.head)?;
        Ok(own.is_made_by_git(&self.objects.read_commit(&user.head)?))
    }

    /// Which settings of the user's count: those that a person has seen when they started the run, or
    /// the ones that stood before whatever is unfinished. A proposal can change those outside of the
    /// repository, too.
    pub(super) fn settings(&self, run: &Run<Experiment>) -> UserSettings {
        let state = run.state.as_ref();
        let is_unfinished = state.is_some_and(|state| state.trial.is_some());
        if self.request.fresh && !is_unfinished && !self.was_interrupted {
            UserSettings::AsTheyAre
        } else {
            UserSettings::AsHeld
        }
    }

    /// Everything above the store that a command in the user's checkout may close, and the store.
    fn way_to_record(&self) -> Vec<PathBuf> {
        if !self.request.spec.in_place {
            return Vec::new();
        }
        let user = &self.project.user;
        let mut way = vec![user.top.clone(), user.top.join(".git")];
        let between = user.git_dir.ancestors();
        let between = between.take_while(|path| path.starts_with(&user.common_dir));
        way.extend(
            between
                .map(Path::to_path_buf)
                .collect::<Vec<_>>()
                .into_iter()
                .rev(),
        );
        way.extend([user.common_dir.clone(), self.project.store.clone()]);
        way
    }

    fn site(
        &mut self,
        work: &Path,
        run: &RunId,
        settings: UserSettings,
    ) -> Result<Site, EngineError> {
        let user = &self.project.user;
        if self.request.spec.in_place {
            let owner = owner_of(run, &self.request.spec);
            let notes = in_place_notes(&self.project);
            let keeper = InPlace::open(&notes, owner, user, &mut self.objects, settings)?;
            return Ok(Site::InPlace(Box::new(keeper)));
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
        settings: UserSettings,
    ) -> Result<Workshop, EngineError> {
        let spec = self.request.spec.clone();
        let rules = ArmRules {
            cache: Patterns::parse(&texts(&spec.cache))?,
            links: self.links.iter().map(|link| link.link.clone()).collect(),
        };
        let (work, arms) = open_arms(self.project.work_of(run), fence.epoch(), rules)?;
        let secrets = Arc::new(known_secrets());
        let objects = self.objects.another();
        let objects = std::mem::replace(&mut self.objects, objects);
        let mut reader = Store::open(&self.project.store, OpenMode::Read)?;
        reader.index_keys(KEYS)?;
        let mut workshop = Workshop {
            workdir: self.request.workdir.clone().into(),
            site: self.site(&work, run, settings)?,
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
                way: self.way_to_record(),
            },
            reader,
            fence,
            secrets,
            identity: self.identity.clone(),
            branch,
            brief: Handout::new(&work, BRIEF),
            work,
            protected: spec.protected(),
            judging,
            proposed: None,
            setup_inputs: SetupInputs {
                files: Patterns::parse(&texts(&spec.setup_inputs))?,
                surroundings: surroundings_of_setup(&spec, &self.request.workdir, &self.links)?,
            },
            metrics: metrics_of(&spec),
            history: History::default(),
            notices: Notices::default(),
            environment: environment_of_all(&spec),
            ready: None,
            spec,
        };
        workshop.metrics.dedup();
        Ok(workshop)
    }
}

/// A digest of what a setup depends on beside the tree.
fn surroundings_of_setup(
    spec: &ExperimentSpec,
    workdir: &str,
    links: &[LinkFingerprint],
) -> Result<String, EngineError> {
    let links = links
        .iter()
        .map(|link| (link.link.path.to_string(), &link.digest));
    let all = json!({
        "env": spec.env,
        "env_policy": spec.env_policy.name(),
        "links": links.collect::<Vec<_>>(),
        "pass_env": spec.pass_env,
        "setup": spec.setup,
        "workdir": workdir,
    });
    let bytes = to_canonical(&all).map_err(|error| EngineError::refused(error.to_string()))?;
    Ok(Digest::of_content(&bytes).to_string())
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
pub(super) fn in_place_notes(project: &Project) -> PathBuf {
    project.store.join(IN_PLACE_FOLDER)
}

fn owner_of(run: &RunId, spec: &ExperimentSpec) -> Owner {
    Owner {
        run: run.to_string(),
        loop_name: spec.name.clone(),
    }
}

/// The run whose proposal in the checkout was interrupted, for one that is to work there now.
pub(super) fn interrupted_run(
    project: &Project,
    spec: &ExperimentSpec,
) -> Result<Option<RunId>, EngineError> {
    if !spec.in_place {
        return Ok(None);
    }
    let interrupted = InPlace::interrupted(&in_place_notes(project))?;
    Ok(interrupted.and_then(|found| RunId::new(&found.owner.run).ok()))
}

/// The project after the user's checkout was put right, and whether a proposal in it was interrupted.
pub(super) fn recovered(
    project: &Project,
    spec: &ExperimentSpec,
    run: &RunId,
    watcher: &mut dyn Watcher,
) -> Result<(Project, bool), EngineError> {
    let mut project = project.clone();
    if !spec.in_place {
        return Ok((project, false));
    }
    let notes = in_place_notes(&project);
    let was_interrupted = InPlace::interrupted(&notes)?.is_some();
    if was_interrupted {
        let mut objects = ObjectStore::open_or_create(&project.objects(), &project.user)?;
        let owner = owner_of(run, spec);
        let undone = InPlace::recover(&notes, &owner, &project.user, &mut objects)?;
        for words in words_of(&undone.unwrap_or_default()) {
            watcher.notice(&format!("undone of the interrupted proposal: {words}"));
        }
    }
    // Somebody else may have worked here until the claim was ours.
    project.user = project.user.discover_again()?;
    Ok((project, was_interrupted))
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
