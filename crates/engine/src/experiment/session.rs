//! A session: one invocation of an experiment loop, from what was asked to how it ended.
//!
//! The order matters. The claim (lease, and the user's checkout in place) is taken before anything
//! is touched; what a dead holder left running is ended before what it left behind is put right;
//! only then is the repository looked at under the user's own settings. Everything that can be
//! refused is refused before the first effect; then the person is told what the run will be like, and
//! only then does the driver begin.

use loopwright_core::experiment::{Caps, Experiment, HarnessStart, Mode, Settings};
use loopwright_core::ids::{BranchName, LoopName, RunId};
use loopwright_core::kernel::{self, RunStarted};
use loopwright_core::machine::Machine as _;
use loopwright_core::spec::ExperimentSpec;
use loopwright_core::turn::{Given, Run};
use loopwright_git::arms::{InputLink, LinkFingerprint};
use loopwright_git::{ObjectStore, Oid, Person};
use loopwright_record::{OpenMode, Store};

use crate::driver::{Driver, Watcher};
use crate::error::EngineError;
use crate::hands::{Happenings, WorkerHands};
use crate::project::{Project, check_not_lost};
use crate::views::LISTING;

use super::assembly::{interrupted_run, judging_tree, recovered};
use super::claim::{Claim, Starting, Tenure, end_left_running, pinned_spec};
use super::environment::known_secrets;
use super::fence::Fence;
use super::harness::Harness;
use super::notices::{Notices, settings_changed};
use super::preflight;
use super::request::{KEYS, Purpose, Request, SessionReport, pinned};

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
    /// Whether a proposal in the user's checkout had been interrupted, and was undone just now.
    pub(super) was_interrupted: bool,
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
        let refuse = |error: &dyn std::fmt::Display| EngineError::refused(error.to_string());
        let loop_name = LoopName::new(&request.spec.name).map_err(|error| refuse(&error))?;
        let store = Store::open(&project.store, OpenMode::Create)?;
        check_not_lost(store.folder(), store.runs()?.len())?;
        let mut claim = Claim::take(&store, &loop_name, &request)?;
        let interrupted = interrupted_run(project, &request.spec)?;
        let mut left_behind = vec![claim.run.clone()];
        left_behind.extend(claim.replaced.iter().cloned().chain(interrupted));
        for run in &left_behind {
            end_left_running(&store, run, &mut |words| watcher.notice(words))?;
        }
        let (project, was_interrupted) = recovered(project, &request.spec, &claim.run, watcher)?;
        let starts_over = claim.replaced.is_some();
        let mut session = Self::open(store, project, request, loop_name, starts_over)?;
        session.was_interrupted = was_interrupted;
        for path in session.objects.mended() {
            let path = path.display();
            watcher.notice(&format!("{path} was damaged, and was made anew"));
        }
        let mut notices = std::mem::take(&mut session.request.notices);
        session.preflight(&mut notices)?;
        let tenure = claim.hold(&session.store, &session.loop_name, session.request.force)?;
        // Said only now: whoever can't have the run isn't told what it would be like.
        for words in &notices {
            watcher.notice(words);
        }
        session.invoke(claim, tenure, happenings, watcher)
    }

    fn open(
        mut store: Store,
        project: Project,
        request: Request,
        loop_name: LoopName,
        starts_over: bool,
    ) -> Result<Self, EngineError> {
        let branch = BranchName::new(&request.spec.branch)
            .map_err(|error| EngineError::refused(error.to_string()))?;
        // Refused here rather than by the machine in the middle of a run.
        Settings::of_spec(&request.spec).map_err(EngineError::refused)?;
        let identity = project.user.identity()?;
        store.index_keys(KEYS)?;
        store.keep_listing(LISTING)?;
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
            starts_over,
            was_interrupted: false,
        })
    }

    fn preflight(&mut self, notices: &mut Vec<String>) -> Result<(), EngineError> {
        if self.request.purpose == Purpose::Run && self.request.spec.propose.is_none() {
            let hint = "give one: --propose CMD, or propose = \"CMD\" in loopwright.toml";
            return Err(EngineError::refused_with(
                "the loop has no propose command",
                hint,
            ));
        }
        if !self.request.fresh {
            return self.check_changed_settings();
        }
        preflight::check_secrets(&self.request.spec, &known_secrets())?;
        if let Some((_, caps)) = pinned(&self.store, &self.loop_name)? {
            self.check_drift(&caps, notices)?;
        }
        let user = &self.project.user;
        self.objects.import_base(user, &user.head)?;
        let tree = self.objects.read_commit(&user.head)?.tree;
        let listing = self.objects.checkout_listing(&tree)?;
        let spec = &self.request.spec;
        preflight::check_protect(spec, &listing)?;
        preflight::check_links(spec, &listing)?;
        preflight::check_commands(spec, &user.top, &self.request.workdir, &listing)?;
        notices.extend(preflight::unseen(&user.dirty()?));
        if user.sparse {
            notices.push("this checkout is sparse; the loop works on the whole commit".to_owned());
        }
        Ok(())
    }

    /// What flags changed of the pinned settings is held against the tree that they are for.
    fn check_changed_settings(&mut self) -> Result<(), EngineError> {
        let Some((_, caps)) = pinned(&self.store, &self.loop_name)? else {
            return Ok(());
        };
        let old = pinned_spec(&caps.specification)?;
        let new = &self.request.spec;
        // What is pinned already is in the record as it is.
        if preflight::check_secrets(&old, &known_secrets()).is_ok() {
            preflight::check_secrets(new, &known_secrets())?;
        }
        if (&old.protect, &old.run, &old.propose, &old.setup)
            == (&new.protect, &new.run, &new.propose, &new.setup)
        {
            return Ok(());
        }
        let listing = self
            .objects
            .checkout_listing(&caps.harness.tree.parse::<Oid>()?)?;
        preflight::check_protect(new, &listing)?;
        preflight::check_links(new, &listing)?;
        let top = &self.project.user.top;
        preflight::check_commands(new, top, &self.request.workdir, &listing)
    }

    /// A changed metric or goal is another loop; what else changed is said.
    fn check_drift(&self, caps: &Caps, notices: &mut Vec<String>) -> Result<(), EngineError> {
        if self.starts_over {
            // Nothing was ever measured under the old names, so nothing is lost.
            return Ok(());
        }
        let old = pinned_spec(&caps.specification)?;
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
            notices.push(format!(
                "changed since the last invocation, a new segment starts: {change}"
            ));
        }
        Ok(())
    }

    fn invoke(
        mut self,
        claim: Claim,
        mut tenure: Tenure,
        happenings: Happenings,
        watcher: &mut dyn Watcher,
    ) -> Result<SessionReport, EngineError> {
        let run_id = claim.run;
        let mut run: Run<Experiment> = match self.store.run(&run_id)? {
            Some(_) => loopwright_record::load_to_drive(&self.store, &run_id)?,
            None => Run::new(run_id.clone()),
        };
        self.mend_chain(&run, watcher)?;
        let first = self.recorded_first(&run, watcher)?;
        let then = self.said_of_unknown(&run)?;
        let moved = self.is_moved_in_place(&run, watcher)?;
        self.say_left_out(&run, watcher)?;
        let harness = self.harness_start(&run, moved)?;
        let caps = self.caps(&run_id, harness.clone())?;
        let branch = self.loop_branch(&harness, &run, claim.replaced.as_ref())?;
        let epoch = tenure.epoch();
        let fence = Fence::new(run_id.clone(), epoch, claim.checkout);
        let judging = judging_tree(&run, &harness)?;
        let settings = self.settings(&run);
        let workshop = self.workshop(&run_id, branch, fence, judging, settings)?;
        if let Some(file) = workshop.site.settings_changed() {
            watcher.notice(&settings_changed(file, settings));
        }
        let told: Notices = workshop.notices.clone();
        let renew = Box::new(move || tenure.renew());
        let mut hands = WorkerHands::new(happenings, Box::new(workshop), renew)
            .map_err(EngineError::io("start the worker"))?;
        let mut committer = Starting::new(&mut self.store, claim.start);
        let mut driver = Driver::new(&mut run, &mut hands, &mut committer, watcher, epoch, true);
        let caps = serde_json::to_value(caps).expect("BUG: caps are plain data");
        let driven = driver.invoke_with(first, caps, then);
        drop(committer);
        if driven.is_ok() {
            // While the lease is ours. What can't be removed is empty and harms nobody.
            let _ = self.store.running().clear(&run_id);
        }
        drop(hands);
        for words in told.take() {
            watcher.notice(&words);
        }
        let driven = driven?;
        self.store.close()?;
        Ok(SessionReport {
            run: run_id,
            ending: driven.ending,
            waiting: driven.waiting,
        })
    }

    /// What keeps the candidates alive has to name the newest, or the next would stand alone.
    fn mend_chain(
        &mut self,
        run: &Run<Experiment>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), EngineError> {
        let state = run.state.as_ref();
        let recorded = state.and_then(|state| state.chain_commit.as_ref());
        let recorded = recorded.map(|link| link.parse()).transpose()?;
        let id = run.kernel.run.as_str();
        if self.objects.mend_chain(id, recorded)? {
            watcher.notice(
                "the reference of the run's candidates was lost or damaged, and was put back",
            );
        }
        Ok(())
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

    /// The harness as it is now. Where the user has `moved` the branch of a run in place, everything
    /// begins anew from there.
    fn harness_start(
        &mut self,
        run: &Run<Experiment>,
        moved: bool,
    ) -> Result<HarnessStart, EngineError> {
        let head = self.project.user.head;
        let mut harness = Harness {
            spec: &self.request.spec,
            workdir: &self.request.workdir,
            links: &self.links,
            moved: None,
        };
        let segment = run.state.as_ref().and_then(|state| state.segment.as_ref());
        if let (Some(state), false) = (&run.state, moved) {
            let source = self.request.fresh.then_some(head);
            let mut next = |harness: &Harness<'_>| {
                let (objects, branch) = (&mut self.objects, &self.branch);
                harness.next(objects, state, branch, source, &self.identity)
            };
            let start = next(&harness)?;
            // A segment that began where the user had moved the branch goes on as such.
            harness.moved = segment
                .filter(|_| self.request.spec.in_place)
                .map(|segment| (segment.commit.clone(), segment.number));
            if harness.moved.is_some()
                && let Some(as_moved) = next(&harness)?
                && segment.is_some_and(|segment| segment.harness == as_moved.digest)
            {
                return Ok(as_moved);
            }
            harness.moved = None;
            if let Some(start) = start {
                return Ok(start);
            }
        }
        let number = segment.map(|segment| segment.number + 1);
        harness.moved = number
            .filter(|_| moved)
            .map(|number| (head.to_hex(), number));
        self.objects.import_base(&self.project.user, &head)?;
        harness.first(&mut self.objects, head)
    }

    fn caps(&mut self, run: &RunId, harness: HarnessStart) -> Result<Caps, EngineError> {
        let mode = match self.request.purpose {
            Purpose::Run => Mode::Run,
            Purpose::Baseline => Mode::Baseline,
            Purpose::Retry(trial) => Mode::Retry(self.retry_of(run, trial)?),
        };
        let spec = &self.request.spec;
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
