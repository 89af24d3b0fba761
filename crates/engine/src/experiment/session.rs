//! A session: one invocation of an experiment loop, from what was asked to how it ended.
//!
//! The order matters. Everything that can be refused is refused before the first effect; the lease
//! is taken before anything of the run is touched; what a dead holder left running is ended before
//! the first effect; and only then does the driver begin.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loopwright_core::budget::Limits;
use loopwright_core::event::Event;
use loopwright_core::experiment::{
    Caps, Decided, Experiment, HarnessStart, Mode, RetryOf, Settings, kind,
};
use loopwright_core::ids::{BranchName, LoopName, RunId};
use loopwright_core::kernel::{self, RunStarted};
use loopwright_core::machine::{Ending, Machine as _};
use loopwright_core::metric::MetricName;
use loopwright_core::scrub::Secrets;
use loopwright_core::spec::ExperimentSpec;
use loopwright_core::turn::{Given, Run};
use loopwright_exec::{Supervisor, SupervisorId, end_orphans};
use loopwright_git::arms::{ArmRules, Arms, InputLink, LinkFingerprint, Patterns};
use loopwright_git::{GitError, InPlace, ObjectStore, Oid, Person, ProposerRepository, UserBranch};
use loopwright_record::{
    Holder, Key, KeySource, Lease, LeaseError, OpenMode, StartLock, Store, Terms,
};
use uuid::Uuid;

use crate::commands::CommandRunner;
use crate::committer::{LEASE_TTL, StoreCommitter, now};
use crate::driver::{Driver, Watcher};
use crate::error::EngineError;
use crate::hands::{Happenings, WorkerHands};
use crate::project::Project;
use crate::views::{History, trial_row};

use super::harness::Harness;
use super::preflight;
use super::site::Site;
use super::workshop::Workshop;

/// How long a start waits for another one of the same loop to come through.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How long what a dead holder left running may take to end.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(10);

/// What an invocation is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Propose, measure, decide.
    Run,
    /// Measure the baseline.
    Baseline,
    /// Try an old trial's candidate again.
    Retry(u64),
}

/// What is asked of a session.
#[derive(Clone, Debug)]
pub struct Request {
    /// The loop as it is to be driven now.
    pub spec: ExperimentSpec,
    /// Whether the specification and the user's commit were read anew (`run`), or what was pinned
    /// goes on (`resume`).
    pub fresh: bool,
    /// What for.
    pub purpose: Purpose,
    /// Where below the top of the repository commands run; empty at the top.
    pub workdir: String,
    /// Whether to take the run from a holder that lives.
    pub force: bool,
    /// Starts supervisors.
    pub supervisor: Supervisor,
}

/// How a session went.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// The run.
    pub run: RunId,
    /// How the invocation ended.
    pub ending: Ending,
    /// What the run waits for, where it waits for a person.
    pub waiting: Option<String>,
}

/// The value under which a decided trial is found by its tree.
pub(super) fn tree_key(segment: u64, tree: &str) -> String {
    format!("{segment}/{tree}")
}

fn keys_of(event: &Event) -> Vec<Key> {
    if event.kind != kind::TRIAL_DECIDED {
        return Vec::new();
    }
    let Ok(Decided {
        segment,
        tree: Some(tree),
        ..
    }) = kernel::body(event)
    else {
        return Vec::new();
    };
    vec![Key {
        name: "tree",
        value: tree_key(segment, &tree),
    }]
}

/// The keys by which an experiment run's events are found.
pub const KEYS: KeySource = KeySource {
    version: 1,
    keys_of,
};

/// The newest run of a loop, with the specification it was last driven with.
pub fn pinned(store: &Store, loop_name: &LoopName) -> Result<Option<(RunId, Caps)>, EngineError> {
    let Some(summary) = store.latest_run(loop_name)? else {
        return Ok(None);
    };
    let newest = loopwright_record::Select::newest(1);
    let begun = store.events_of_kind(&summary.run, kernel::kind::INVOCATION_BEGUN, newest)?;
    let Some(entry) = begun.first() else {
        return Ok(None);
    };
    let body: kernel::InvocationBegun = kernel::body(&entry.sealed.event)
        .map_err(|misfit| EngineError::refused(misfit.to_string()))?;
    let caps = serde_json::from_value(body.caps)
        .map_err(|error| EngineError::refused(format!("run {}: {error}", summary.run)))?;
    Ok(Some((summary.run, caps)))
}

/// One invocation of an experiment loop.
pub struct Session {
    project: Project,
    request: Request,
    store: Store,
    objects: ObjectStore,
    identity: Person,
    loop_name: LoopName,
    branch: BranchName,
    links: Vec<LinkFingerprint>,
}

impl Session {
    /// Drives one invocation to its end.
    pub fn drive(
        project: &Project,
        request: Request,
        happenings: Happenings,
        watcher: &mut dyn Watcher,
    ) -> Result<SessionReport, EngineError> {
        let project = recovered(project, &request.spec, watcher)?;
        let mut session = Self::open(project, request)?;
        session.preflight(watcher)?;
        let (run_id, lease) = session.take_run()?;
        session.end_left_running(&run_id, watcher)?;
        session.invoke(run_id, lease, happenings, watcher)
    }

    fn open(project: Project, request: Request) -> Result<Self, EngineError> {
        let refuse = |error: &dyn std::fmt::Display| EngineError::refused(error.to_string());
        let loop_name = LoopName::new(&request.spec.name).map_err(|error| refuse(&error))?;
        let branch = BranchName::new(&request.spec.branch).map_err(|error| refuse(&error))?;
        // Refused here rather than by the machine in the middle of a run.
        Settings::of_spec(&request.spec).map_err(EngineError::refused)?;
        let identity = project.user.identity()?;
        let mut store = Store::open(&project.store, OpenMode::Create)?;
        store.index_keys(KEYS)?;
        let objects = ObjectStore::open_or_create(&project.objects(), &project.user)?;
        let declared = InputLink::resolve(&project.user.top, &request.spec.link)?;
        let links = declared
            .iter()
            .map(LinkFingerprint::take)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            project,
            request,
            store,
            objects,
            identity,
            loop_name,
            branch,
            links,
        })
    }

    fn preflight(&mut self, watcher: &mut dyn Watcher) -> Result<(), EngineError> {
        if self.request.purpose == Purpose::Run && self.request.spec.propose.is_none() {
            let hint = "give one: --propose CMD, or propose = \"CMD\" in loopwright.toml";
            return Err(EngineError::refused_with(
                "the loop has no propose command",
                hint,
            ));
        }
        if !self.request.fresh {
            return Ok(());
        }
        if let Some((_, caps)) = pinned(&self.store, &self.loop_name)? {
            self.check_drift(&caps, watcher)?;
        }
        let user = &self.project.user;
        self.objects.import_base(user, &user.head)?;
        preflight::check_secrets(&self.request.spec)?;
        let tree = self.objects.read_commit(&user.head)?.tree;
        let listing = self.objects.checkout_listing(&tree)?;
        let spec = &self.request.spec;
        preflight::check_protect(spec, &listing)?;
        preflight::check_commands(spec, &user.top, &self.request.workdir, &listing)?;
        if let Some(words) = preflight::unseen(&user.dirty()?) {
            watcher.notice(&words);
        }
        if user.sparse {
            watcher.notice("this checkout is sparse; the loop works on the whole commit");
        }
        Ok(())
    }

    /// A changed metric or goal is another loop; what else changed is said.
    fn check_drift(&self, caps: &Caps, watcher: &mut dyn Watcher) -> Result<(), EngineError> {
        let old: ExperimentSpec = serde_json::from_value(caps.specification.clone())
            .map_err(|error| EngineError::refused(format!("the pinned specification: {error}")))?;
        let drift = ExperimentSpec::drift(&old, &self.request.spec);
        if !drift.refused.is_empty() {
            let fields: Vec<String> = drift.refused.iter().map(ToString::to_string).collect();
            return Err(EngineError::refused_with(
                format!(
                    "loop {} is another one with this change: {}",
                    self.loop_name,
                    fields.join("; ")
                ),
                "start it under a new name: --loop NAME, or [loop.NAME] in loopwright.toml",
            ));
        }
        for change in &drift.harness {
            watcher.notice(&format!(
                "changed since the last invocation, a new segment starts: {change}"
            ));
        }
        Ok(())
    }

    /// Takes the lease of the loop's run, or of a new one.
    fn take_run(&self) -> Result<(RunId, Lease), EngineError> {
        let _start = StartLock::acquire(&self.store, &self.loop_name, START_PATIENCE)?;
        let run = match self.store.latest_run(&self.loop_name)? {
            Some(summary) => summary.run,
            None if self.request.fresh => new_run_id(),
            None => {
                return Err(EngineError::refused_with(
                    format!("loop {} has never been run here", self.loop_name),
                    "start it: loopwright run",
                ));
            }
        };
        let holder = Holder::current(&format!("loopwright, loop {}", self.loop_name));
        let terms = Terms {
            now: now(),
            ttl: LEASE_TTL,
            force: self.request.force,
        };
        let lease = Lease::acquire(&self.store, &run, &holder, terms)?;
        Ok((run, lease))
    }

    /// Ends what a dead holder left running.
    fn end_left_running(&self, run: &RunId, watcher: &mut dyn Watcher) -> Result<(), EngineError> {
        for left in self.store.running().list(run)? {
            let id = SupervisorId {
                pid: left.pid,
                start_time: left.start_time,
                boot_id: left.boot_id.clone(),
            };
            if id.is_alive() {
                watcher.notice(&format!("ending what was left running of {}", left.effect));
            }
            end_orphans(&id, ORPHAN_PATIENCE)
                .map_err(|error| EngineError::refused(error.to_string()))?;
            self.store
                .running()
                .remove(run, &left.effect, left.attempt)?;
        }
        Ok(())
    }

    fn invoke(
        mut self,
        run_id: RunId,
        lease: Lease,
        happenings: Happenings,
        watcher: &mut dyn Watcher,
    ) -> Result<SessionReport, EngineError> {
        let mut run: Run<Experiment> = match self.store.run(&run_id)? {
            Some(_) => loopwright_record::load(&self.store, &run_id)?,
            None => Run::new(run_id.clone()),
        };
        let started = run.state.is_some();
        self.check_in_place(&run)?;
        let harness = self.harness_start(&run)?;
        let caps = self.caps(&run_id, harness.clone())?;
        let branch = self.loop_branch(&harness, &run)?;
        let workshop = self.workshop(&run_id, branch)?;
        let epoch = lease.epoch();
        let renew = renewal(&self.project.store, lease);
        let mut hands = WorkerHands::new(happenings, Box::new(workshop), renew)
            .map_err(EngineError::io("start the worker"))?;
        let mut committer = StoreCommitter::new(&mut self.store);
        let mut driver = Driver::new(&mut run, &mut hands, &mut committer, watcher, epoch, false);
        if !started {
            let given = Given::new(
                kernel::kind::RUN_STARTED,
                &run_started(&self.request.spec, &self.loop_name)?,
            );
            driver.record(vec![given])?;
        }
        let caps = serde_json::to_value(caps).expect("BUG: caps are plain data");
        let driven = driver.invoke(caps)?;
        drop(hands);
        self.store.close()?;
        Ok(SessionReport {
            run: run_id,
            ending: driven.ending,
            waiting: driven.waiting,
        })
    }

    fn harness_start(&mut self, run: &Run<Experiment>) -> Result<HarnessStart, EngineError> {
        let harness = Harness {
            spec: &self.request.spec,
            workdir: &self.request.workdir,
            links: &self.links,
        };
        let head = self.project.user.head;
        let source = self.request.fresh.then_some(head);
        let next = match &run.state {
            Some(state) => {
                let time_s = now().0 / 1_000_000;
                harness.next(&mut self.objects, state, source, &self.identity, time_s)?
            }
            None => None,
        };
        match next {
            Some(start) => Ok(start),
            None => {
                self.objects.import_base(&self.project.user, &head)?;
                harness.first(&mut self.objects, head)
            }
        }
    }

    fn caps(&self, run: &RunId, harness: HarnessStart) -> Result<Caps, EngineError> {
        let spec = &self.request.spec;
        let mode = match self.request.purpose {
            Purpose::Run => Mode::Run,
            Purpose::Baseline => Mode::Baseline,
            Purpose::Retry(trial) => Mode::Retry(self.retry_of(run, trial)?),
        };
        Ok(Caps {
            specification: serde_json::to_value(spec).expect("BUG: a specification is plain data"),
            mode,
            branch: self.branch.clone(),
            workdir: self.request.workdir.clone(),
            harness,
            trials: spec.trials,
            wall_clock_us: spec.wall_clock_us,
            give_up_after: spec.give_up_after,
        })
    }

    fn retry_of(&self, run: &RunId, trial: u64) -> Result<RetryOf, EngineError> {
        let row = trial_row(&self.store, run, trial)?
            .ok_or_else(|| EngineError::refused(format!("run {run} has no trial {trial}")))?;
        let candidate = row.candidate.ok_or_else(|| {
            EngineError::refused(format!(
                "trial {trial} left no change that could be tried again"
            ))
        })?;
        Ok(RetryOf {
            trial,
            commit: candidate.commit,
        })
    }

    /// The loop's branch in the user's repository, standing where the run stands.
    fn loop_branch(
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
        let old = incumbent
            .map(|incumbent| incumbent.commit.parse())
            .transpose()?;
        match branch.publish(&mut self.objects, &commit, old) {
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

    /// In place, the user's branch must stand where the loop left it: a commit of somebody else's
    /// was never measured.
    fn check_in_place(&self, run: &Run<Experiment>) -> Result<(), EngineError> {
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

    fn site(&mut self, work: &Path) -> Result<Site, EngineError> {
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
        Ok(Site::Apart(repository))
    }

    fn workshop(&mut self, run: &RunId, branch: UserBranch) -> Result<Workshop, EngineError> {
        let work = self.project.work_of(run);
        let desk = work.join("desk");
        fs::create_dir_all(&desk).map_err(EngineError::io(format!("make {}", desk.display())))?;
        let spec = self.request.spec.clone();
        let environment = std::env::vars_os().map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned(),
            )
        });
        let secrets = Arc::new(Secrets::new(environment));
        let objects = ObjectStore::open_or_create(&self.project.objects(), &self.project.user)?;
        let objects = std::mem::replace(&mut self.objects, objects);
        let mut reader = Store::open(&self.project.store, OpenMode::Read)?;
        reader.index_keys(KEYS)?;
        let rules = ArmRules {
            cache: Patterns::parse(&texts(&spec.cache))?,
            links: self.links.iter().map(|link| link.link.clone()).collect(),
        };
        let mut workshop = Workshop {
            workdir: self.request.workdir.clone().into(),
            site: self.site(&work)?,
            objects,
            arms: Arms::open(&work.join("arms"), rules)?,
            links: self.links.clone(),
            runner: CommandRunner {
                supervisor: self.request.supervisor.clone(),
                running: self.store.running().clone(),
                blobs: self.store.blobs().clone(),
                secrets: secrets.clone(),
                spill_folder: desk.clone(),
                output_bytes_max: spec.max_output_bytes,
            },
            reader,
            secrets,
            identity: self.identity.clone(),
            branch,
            desk,
            protected: spec.protected(),
            setup_inputs: Patterns::parse(&texts(&spec.setup_inputs))?,
            metrics: metrics_of(&spec),
            history: History::default(),
            spec,
        };
        workshop.metrics.dedup();
        Ok(workshop)
    }
}

/// Where notes for putting the user's checkout back lie.
fn in_place_notes(project: &Project) -> PathBuf {
    project.store.join("in-place")
}

/// The project after what an interrupted proposal in place did to it was undone.
fn recovered(
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

fn texts(patterns: &[loopwright_core::spec::Pattern]) -> Vec<String> {
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

fn new_run_id() -> RunId {
    RunId::new(&Uuid::now_v7().to_string()).expect("BUG: a UUID is a fit name")
}

fn run_started(spec: &ExperimentSpec, loop_name: &LoopName) -> Result<RunStarted, EngineError> {
    let settings = Settings::of_spec(spec).map_err(EngineError::refused)?;
    let budget = &spec.budget;
    Ok(RunStarted {
        loop_name: loop_name.clone(),
        kind: Experiment::KIND.to_owned(),
        machine: Experiment::VERSION,
        policies: vec![settings.rule.policy().to_owned()],
        release: env!("CARGO_PKG_VERSION").to_owned(),
        limits: Limits {
            steps: budget.steps,
            time_us: budget.time_us,
            tokens: budget.tokens,
            money_micros: budget.money.as_ref().map(|money| money.micros),
        },
        parent: None,
        basis: None,
        specification: serde_json::to_value(spec).expect("BUG: a specification is plain data"),
    })
}

/// Renews the lease over a connection of its own; gives it up when it is dropped.
fn renewal(store: &Path, lease: Lease) -> Box<dyn FnMut() -> Result<(), String>> {
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
