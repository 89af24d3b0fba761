//! A session: one invocation of an experiment loop, from what was asked to how it ended.
//!
//! The order matters. Everything that can be refused is refused before the first effect; the lease
//! is taken before anything of the run is touched; what a dead holder left running is ended before
//! the first effect; and only then does the driver begin.

use std::time::Duration;

use loopwright_core::experiment::{Caps, Experiment, HarnessStart, Mode, RetryOf, Settings};
use loopwright_core::ids::{BranchName, LoopName, RunId};
use loopwright_core::kernel::{self, RunStarted};
use loopwright_core::machine::Machine as _;
use loopwright_core::spec::ExperimentSpec;
use loopwright_core::turn::{Given, Run};
use loopwright_exec::{SupervisorId, end_orphans};
use loopwright_git::arms::{InputLink, LinkFingerprint};
use loopwright_git::{ObjectStore, Person};
use loopwright_record::{CheckoutLock, Holder, Lease, OpenMode, StartLock, Store, Terms};
use uuid::Uuid;

use crate::committer::{LEASE_TTL, StoreCommitter, now};
use crate::driver::{DriveError, Driver, Watcher};
use crate::error::EngineError;
use crate::hands::{Happenings, WorkerHands};
use crate::project::{Project, check_not_lost};
use crate::views::trial_row;

use super::assembly::{recovered, renewal};
use super::fence::{Fence, take_checkout};
use super::harness::Harness;
use super::preflight;
use super::request::{KEYS, Purpose, Request, SessionReport, pinned};

/// How long a start waits for another one of the same loop to come through.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How long what a dead holder left running may take to end.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(10);

/// One invocation of an experiment loop.
pub struct Session {
    pub(super) project: Project,
    pub(super) request: Request,
    pub(super) store: Store,
    pub(super) objects: ObjectStore,
    pub(super) identity: Person,
    pub(super) loop_name: LoopName,
    pub(super) branch: BranchName,
    pub(super) links: Vec<LinkFingerprint>,
    /// Whether a new run takes the place of one that never measured anything.
    pub(super) starts_over: bool,
}

impl Session {
    /// Drives one invocation to its end.
    pub fn drive(
        project: &Project,
        request: Request,
        happenings: Happenings,
        watcher: &mut dyn Watcher,
    ) -> Result<SessionReport, EngineError> {
        preflight::check_budget(&request.spec)?;
        // Before anything is put back in it: somebody else's proposal may be in the making there.
        let checkout = if request.spec.in_place {
            let store = Store::open(&project.store, OpenMode::Create)?;
            Some(take_checkout(&store, request.force)?)
        } else {
            None
        };
        let project = recovered(project, &request.spec, watcher)?;
        let mut session = Self::open(project, request)?;
        session.preflight(watcher)?;
        let (run_id, lease) = session.take_run()?;
        session.end_left_running(&run_id, watcher)?;
        session.invoke(run_id, lease, checkout, happenings, watcher)
    }

    fn open(project: Project, request: Request) -> Result<Self, EngineError> {
        let refuse = |error: &dyn std::fmt::Display| EngineError::refused(error.to_string());
        let loop_name = LoopName::new(&request.spec.name).map_err(|error| refuse(&error))?;
        let branch = BranchName::new(&request.spec.branch).map_err(|error| refuse(&error))?;
        // Refused here rather than by the machine in the middle of a run.
        Settings::of_spec(&request.spec).map_err(EngineError::refused)?;
        let identity = project.user.identity()?;
        let mut store = Store::open(&project.store, OpenMode::Create)?;
        check_not_lost(store.folder(), store.runs()?.len())?;
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
            starts_over: false,
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
    fn check_drift(&mut self, caps: &Caps, watcher: &mut dyn Watcher) -> Result<(), EngineError> {
        let old: ExperimentSpec = serde_json::from_value(caps.specification.clone())
            .map_err(|error| EngineError::refused(format!("the pinned specification: {error}")))?;
        let drift = ExperimentSpec::drift(&old, &self.request.spec);
        if !drift.refused.is_empty() && !self.has_measured()? {
            // Nothing was ever measured under the old names, so nothing is lost by starting over.
            self.starts_over = true;
            return Ok(());
        }
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

    /// Whether the loop's newest run has a measured incumbent.
    fn has_measured(&self) -> Result<bool, EngineError> {
        let Some(summary) = self.store.latest_run(&self.loop_name)? else {
            return Ok(false);
        };
        let run: Run<Experiment> = loopwright_record::load(&self.store, &summary.run)?;
        let incumbent = run.state.as_ref().and_then(|state| state.incumbent());
        Ok(incumbent.is_some_and(|incumbent| incumbent.value.is_some()))
    }

    /// Takes the lease of the loop's run, or of a new one.
    fn take_run(&self) -> Result<(RunId, Lease), EngineError> {
        let _start = StartLock::acquire(&self.store, &self.loop_name, START_PATIENCE)?;
        let run = match self.store.latest_run(&self.loop_name)? {
            Some(summary) if !self.starts_over => summary.run,
            _ if self.request.fresh => new_run_id(),
            _ => {
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
        checkout: Option<CheckoutLock>,
        happenings: Happenings,
        watcher: &mut dyn Watcher,
    ) -> Result<SessionReport, EngineError> {
        let mut run: Run<Experiment> = match self.store.run(&run_id)? {
            Some(_) => loopwright_record::load_to_drive(&self.store, &run_id)?,
            None => Run::new(run_id.clone()),
        };
        let first = self.recorded_first(&run, watcher)?;
        let then = self.said_of_unknown(&run)?;
        self.check_in_place(&run)?;
        self.say_left_out(&run, watcher)?;
        let harness = self.harness_start(&run)?;
        let caps = self.caps(&run_id, harness.clone())?;
        let branch = self.loop_branch(&harness, &run)?;
        let epoch = lease.epoch();
        let fence = Fence::new(run_id.clone(), epoch, checkout);
        let workshop = self.workshop(&run_id, branch, fence)?;
        let renew = renewal(&self.project.store, lease);
        let mut hands = WorkerHands::new(happenings, Box::new(workshop), renew)
            .map_err(EngineError::io("start the worker"))?;
        let mut committer = StoreCommitter::new(&mut self.store);
        let mut driver = Driver::new(&mut run, &mut hands, &mut committer, watcher, epoch, true);
        let caps = serde_json::to_value(caps).expect("BUG: caps are plain data");
        let driven = driver.invoke_with(first, caps, then);
        drop(hands);
        if let Err(DriveError::Host(_)) = &driven {
            // Where it is the record itself that is broken, that is what has to be said.
            let store = Store::open(&self.project.store, OpenMode::Read)?;
            loopwright_record::load::<Experiment>(&store, &run_id)?;
        }
        let driven = driven?;
        self.store.close()?;
        Ok(SessionReport {
            run: run_id,
            ending: driven.ending,
            waiting: driven.waiting,
        })
    }

    /// What is recorded with the invocation's beginning: the start of a new run, or the limits that
    /// are others from now on.
    fn recorded_first(
        &self,
        run: &Run<Experiment>,
        watcher: &mut dyn Watcher,
    ) -> Result<Vec<Given>, EngineError> {
        let spec = &self.request.spec;
        if run.state.is_none() {
            let started = run_started(spec, &self.loop_name)?;
            return Ok(vec![Given::new(kernel::kind::RUN_STARTED, &started)]);
        }
        let limits = spec.budget.limits();
        let changes = run.kernel.account.limits.changes(limits);
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        watcher.notice(&format!("the loop's budget: {}", changes.join(", ")));
        let set = kernel::LimitsSet { limits };
        Ok(vec![Given::new(kernel::kind::LIMITS_SET, &set)])
    }

    /// What a person says about effects whose outcome is unknown: of all that are asked about, of
    /// which there is at most one.
    fn said_of_unknown(&self, run: &Run<Experiment>) -> Result<Vec<Given>, EngineError> {
        let Some(resolution) = self.request.unknown else {
            return Ok(Vec::new());
        };
        let asked = run.asks_about();
        if asked.is_empty() {
            return Err(EngineError::refused(
                "nothing waits for an answer: no effect's outcome is unknown and asked about",
            ));
        }
        let acts = asked.iter().map(|effect| resolution.act(effect));
        Ok(acts
            .map(|act| Given::new(kernel::kind::OPERATOR_ACT, &act))
            .collect())
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
        if let Some(start) = next {
            return Ok(start);
        }
        self.objects.import_base(&self.project.user, &head)?;
        harness.first(&mut self.objects, head)
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
}

fn new_run_id() -> RunId {
    RunId::new(&Uuid::now_v7().to_string()).expect("BUG: a UUID is a fit name")
}

fn run_started(spec: &ExperimentSpec, loop_name: &LoopName) -> Result<RunStarted, EngineError> {
    let settings = Settings::of_spec(spec).map_err(EngineError::refused)?;
    Ok(RunStarted {
        loop_name: loop_name.clone(),
        kind: Experiment::KIND.to_owned(),
        machine: Experiment::VERSION,
        policies: vec![settings.rule.policy().to_owned()],
        release: env!("CARGO_PKG_VERSION").to_owned(),
        limits: spec.budget.limits(),
        parent: None,
        basis: None,
        specification: serde_json::to_value(spec).expect("BUG: a specification is plain data"),
    })
}
