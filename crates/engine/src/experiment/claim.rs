//! The claim of one process on a run and, in place, on the user's checkout: what has to be held
//! before anything is touched.
//!
//! Two that start a loop at once would make two runs of it, so the right to start is held until
//! the first batch is written. The lease of a run that exists is taken first of all; a run that is
//! only about to be made has no holder to be kept out, and gets its lease once nothing can be
//! refused any more.

use std::path::PathBuf;
use std::time::Duration;

use loopwright_core::batch::Batch;
use loopwright_core::experiment::Experiment;
use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::machine::Machine;
use loopwright_core::spec::ExperimentSpec;
use loopwright_core::turn::Run;
use loopwright_exec::{SupervisorId, end_orphans};
use loopwright_record::{
    AppendError, CheckoutLock, Holder, Lease, OpenMode, StartLock, Store, Terms,
};
use uuid::Uuid;

use crate::committer::{LEASE_TTL, StoreCommitter, now};
use crate::driver::Committer;
use crate::error::EngineError;

use super::fence::take_checkout;
use super::request::{Request, pinned};

/// How long a start waits for another one of the same loop to come through.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How long what a dead holder left running may take to end.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(10);

/// What a process holds of a run.
pub(super) struct Claim {
    pub run: RunId,
    pub start: StartLock,
    pub tenure: Option<Tenure>,
    pub checkout: Option<CheckoutLock>,
    /// The run whose place this one takes, because it never measured anything.
    pub replaced: Option<RunId>,
}

impl Claim {
    /// Claims the loop's run, or a new one.
    pub fn take(
        store: &Store,
        loop_name: &LoopName,
        request: &Request,
    ) -> Result<Self, EngineError> {
        let start = StartLock::acquire(store, loop_name, START_PATIENCE)?;
        let newest = store.latest_run(loop_name)?.map(|summary| summary.run);
        let mut replaced = None;
        let mut tenure = None;
        let run = match newest {
            Some(newest) => {
                let held = Tenure::take(store, &newest, loop_name, request.force)?;
                if starts_over(store, loop_name, request)? {
                    // Nobody drives it; that is all there is to know.
                    drop(held);
                    replaced = Some(newest);
                    new_run_id()
                } else {
                    tenure = Some(held);
                    newest
                }
            }
            None if request.fresh => new_run_id(),
            None => {
                return Err(EngineError::refused_with(
                    format!("loop {loop_name} has never been run here"),
                    "start it: loopwright run",
                ));
            }
        };
        let in_place = request.spec.in_place;
        let checkout = in_place
            .then(|| take_checkout(store, request.force))
            .transpose()?;
        Ok(Self {
            run,
            start,
            tenure,
            checkout,
            replaced,
        })
    }

    /// The lease, taken now where the run is new.
    pub fn hold(
        &mut self,
        store: &Store,
        loop_name: &LoopName,
        force: bool,
    ) -> Result<Tenure, EngineError> {
        match self.tenure.take() {
            Some(tenure) => Ok(tenure),
            None => Tenure::take(store, &self.run, loop_name, force),
        }
    }
}

/// A lease that is given up when it is dropped.
pub(super) struct Tenure {
    folder: PathBuf,
    epoch: u64,
    lease: Option<Lease>,
}

impl Tenure {
    fn take(
        store: &Store,
        run: &RunId,
        loop_name: &LoopName,
        force: bool,
    ) -> Result<Self, EngineError> {
        let holder = Holder::current(&format!("loopwright, loop {loop_name}"));
        let terms = Terms {
            now: now(),
            ttl: LEASE_TTL,
            force,
        };
        let lease = Lease::acquire(store, run, &holder, terms)?;
        Ok(Self {
            folder: store.folder().to_path_buf(),
            epoch: lease.epoch(),
            lease: Some(lease),
        })
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Renews it, over a connection of its own.
    pub fn renew(&mut self) -> Result<(), EngineError> {
        let store = Store::open(&self.folder, OpenMode::Write)?;
        let Some(lease) = &mut self.lease else {
            return Ok(());
        };
        Ok(lease.renew(&store, now(), LEASE_TTL)?)
    }
}

impl Drop for Tenure {
    fn drop(&mut self) {
        let store = Store::open(&self.folder, OpenMode::Write);
        if let (Ok(store), Some(lease)) = (store, self.lease.take()) {
            // A lease that can't be given up ends with this process.
            let _ = lease.release(&store);
        }
    }
}

/// Commits, and lets the next one start once the first batch is there.
pub(super) struct Starting<'a> {
    committer: StoreCommitter<'a>,
    start: Option<StartLock>,
}

impl<'a> Starting<'a> {
    pub fn new(store: &'a mut Store, start: StartLock) -> Self {
        Self {
            committer: StoreCommitter::new(store),
            start: Some(start),
        }
    }
}

impl<M: Machine> Committer<M> for Starting<'_> {
    fn commit(&mut self, batch: &Batch, run: &Run<M>) -> Result<(), AppendError> {
        self.committer.commit(batch, run)?;
        self.start = None;
        Ok(())
    }
}

/// Whether a new run takes the place of the loop's newest: it asks for another metric or goal, and
/// nothing was ever measured under the old ones.
fn starts_over(
    store: &Store,
    loop_name: &LoopName,
    request: &Request,
) -> Result<bool, EngineError> {
    if !request.fresh {
        return Ok(false);
    }
    let Some((run, caps)) = pinned(store, loop_name)? else {
        return Ok(false);
    };
    let old = pinned_spec(&caps.specification)?;
    if ExperimentSpec::drift(&old, &request.spec)
        .refused
        .is_empty()
    {
        return Ok(false);
    }
    let run: Run<Experiment> = loopwright_record::load(store, &run)?;
    let incumbent = run.state.as_ref().and_then(|state| state.incumbent());
    Ok(incumbent.is_none_or(|incumbent| incumbent.value.is_none()))
}

/// The specification that an invocation pinned.
pub(super) fn pinned_spec(value: &serde_json::Value) -> Result<ExperimentSpec, EngineError> {
    serde_json::from_value(value.clone())
        .map_err(|error| EngineError::refused(format!("the pinned specification: {error}")))
}

/// Ends what a dead holder of `run` left running.
pub(super) fn end_left_running(
    store: &Store,
    run: &RunId,
    say: &mut dyn FnMut(&str),
) -> Result<(), EngineError> {
    for left in store.running().list(run)? {
        let id = SupervisorId {
            pid: left.pid,
            start_time: left.start_time,
            boot_id: left.boot_id.clone(),
        };
        if id.is_alive() {
            say(&format!("ending what was left running of {}", left.effect));
        }
        end_orphans(&id, ORPHAN_PATIENCE)
            .map_err(|error| EngineError::refused(error.to_string()))?;
        store.running().remove(run, &left.effect, left.attempt)?;
    }
    Ok(())
}

fn new_run_id() -> RunId {
    RunId::new(&Uuid::now_v7().to_string()).expect("BUG: a UUID is a fit name")
}
