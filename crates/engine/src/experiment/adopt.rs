//! Adopting a result: the loop's branch, or one trial's change, comes to the branch the user has
//! checked out. A person's act, so the run's journal says that it was asked for and what came of it;
//! but for one made while the run is driven, whose journal only its driver writes. Nothing else
//! stands in the way of that: a driver works away from the checkout, unless it was asked to work in
//! place, and then it has the checkout to itself.

use std::time::Duration;

use loopwright_core::event::Scrub;
use loopwright_core::experiment::Experiment;
use loopwright_core::ids::{BranchName, EffectId, LoopName, RunId};
use loopwright_core::kernel::{OperatorAct, kind as kernel_kind};
use loopwright_core::scrub;
use loopwright_core::turn::{Given, Run, Turn};
use loopwright_exec::Supervisor;
use loopwright_git::{
    Adopted, GitError, InPlace, ObjectStore, Obstacle, UserBranch, UserCommands, adopt_branch,
    adopt_candidate,
};
use loopwright_record::{Holder, Lease, LeaseError, OpenMode, Store, Terms};
use serde_json::{Value, json};

use crate::committer::{LEASE_TTL, StoreCommitter, now};
use crate::driver::{Committer as _, DriveError};
use crate::error::EngineError;
use crate::hands::Control;
use crate::project::Project;
use crate::views::{LISTING, trial_that_is_there};

use super::assembly::in_place_notes;
use super::claim::end_left_running;
use super::environment::known_secrets;
use super::fence::take_checkout;
use super::loop_branch::{left_at, publish_over};
use super::request::{KEYS, is_in_place};
use super::user_git::{ADOPTING, Foreground};

/// The act that says a result was asked for.
pub const ACT_ADOPT: &str = "result.adopt";
/// The act that says what came of it.
pub const ACT_ADOPTED: &str = "result.adopted";

/// Which result is adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Everything kept on a branch of the loop.
    Branch(BranchName),
    /// One trial's change, kept or not.
    Trial(u64),
}

/// How adopting went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// The run.
    pub run: RunId,
    /// What was brought: the loop's branch, or the candidate's commit.
    pub source: String,
    /// The user's branch.
    pub onto: String,
    /// What came of it.
    pub adopted: Adopted,
    /// Whether it is in the run's record; in words, why it isn't: the run is being driven, or the store
    /// failed.
    pub recorded: Result<(), String>,
}

/// How adopting is done.
pub struct Means<'a> {
    /// Starts supervisors.
    pub supervisor: &'a Supervisor,
    /// How long a git of the user's, with its hooks, may take.
    pub limit: Duration,
    /// Stops it.
    pub control: &'a Control,
}

impl Means<'_> {
    /// What stops an adoption.
    pub fn control() -> Control {
        Control::of(EffectId::new(ADOPTING))
    }
}

/// Brings a result of the loop's newest run to the branch the user has checked out.
pub fn adopt(
    project: &Project,
    loop_name: &LoopName,
    wanted: &Wanted,
    means: &Means<'_>,
) -> Result<Adoption, EngineError> {
    let mut store = Store::open(&project.store, OpenMode::Write)?;
    store.index_keys(KEYS)?;
    store.keep_listing(LISTING)?;
    let Some(summary) = store.latest_run(loop_name)? else {
        return Err(EngineError::refused(format!(
            "loop {loop_name} was never run here"
        )));
    };
    let run = summary.run;
    // A run in place has the checkout, its branch and its hooks to itself.
    let checkout = take_checkout(&store, false)?;
    check_not_interrupted(project)?;
    let plan = Plan::new(project, &store, loop_name, &run, wanted)?;
    let onto = project.user.branch.clone().unwrap_or_default();
    let holder = Holder::current(&format!("loopwright adopt, loop {loop_name}"));
    let terms = Terms {
        now: now(),
        ttl: LEASE_TTL,
        force: false,
    };
    let lease = match Lease::acquire(&store, &run, &holder, terms) {
        Ok(lease) => Some(lease),
        Err(LeaseError::Held(_)) => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(lease) = &lease {
        let asked = json!({"source": plan.source(), "onto": onto});
        record(&mut store, &run, lease.epoch(), ACT_ADOPT, asked)?;
        end_left_running(&store, &run, &mut |_| {})?;
    }
    // What runs is noted by whoever holds the run, and by nobody else.
    let running = lease
        .is_some()
        .then(|| (store.running().clone(), run.clone()));
    let mut commands = Foreground {
        supervisor: means.supervisor,
        running,
        limit: means.limit,
        control: means.control,
        fault: None,
    };
    let adopted = plan.perform(project, &mut commands);
    // It says better why git was not run.
    let adopted = adopted.map_err(|error| commands.fault.take().unwrap_or(error));
    let recorded = match lease {
        Some(lease) => said(&mut store, &run, lease, &adopted),
        None => Err("the loop is being driven".to_owned()),
    };
    drop(checkout);
    let source = plan.source().to_owned();
    // What is done in the user's repository is done, whatever the record says of it.
    let adopted = adopted?;
    store.close()?;
    Ok(Adoption {
        run,
        source,
        onto,
        adopted,
        recorded,
    })
}

/// Records what came of it and gives the run up; in words, why it could not.
fn said(
    store: &mut Store,
    run: &RunId,
    lease: Lease,
    adopted: &Result<Adopted, EngineError>,
) -> Result<(), String> {
    let came = match adopted {
        Ok(adopted) => result_of(adopted),
        Err(error) => json!({"result": "failed", "why": error.to_string()}),
    };
    let recorded = record(store, run, lease.epoch(), ACT_ADOPTED, came);
    recorded.map_err(|error| error.to_string())?;
    lease.release(store).map_err(|error| error.to_string())
}

/// The user's own git, hooks included, is not run where a proposal left its settings behind.
fn check_not_interrupted(project: &Project) -> Result<(), EngineError> {
    let Some(found) = InPlace::interrupted(&in_place_notes(project))? else {
        return Ok(());
    };
    let (top, name) = (found.top.display(), &found.owner.loop_name);
    Err(EngineError::refused_with(
        format!(
            "a proposal of loop {name} in {top} was interrupted, and what it did to the repository is not undone yet"
        ),
        format!("first go on there: cd {top} && loopwright resume --loop {name}"),
    ))
}

/// What is to be brought, found out before anything is recorded.
enum Plan {
    Branch { branch: UserBranch, message: String },
    Candidate { commit: String, message: String },
}

impl Plan {
    fn new(
        project: &Project,
        store: &Store,
        loop_name: &LoopName,
        run: &RunId,
        wanted: &Wanted,
    ) -> Result<Self, EngineError> {
        match wanted {
            Wanted::Branch(name) => {
                let branch = UserBranch::new(&project.user, loop_name.as_str(), name.as_str())?;
                if is_in_place(store, loop_name)? {
                    return Err(EngineError::refused_with(
                        format!(
                            "loop {loop_name} works in place: what it keeps is on your branch already"
                        ),
                        "loopwright adopt N brings the change of one trial that was not kept",
                    ));
                }
                bring_up(project, store, run, &branch, name)?;
                let message = format!("Adopt {}\n\nRun: {run}\n", branch.short_name());
                Ok(Self::Branch { branch, message })
            }
            Wanted::Trial(trial) => {
                let row = trial_that_is_there(store, run, loop_name, *trial)?;
                let candidate = row.candidate.ok_or_else(|| {
                    EngineError::refused(format!("trial {trial} left no change to adopt"))
                })?;
                Ok(Self::Candidate {
                    commit: candidate.commit,
                    message: format!(
                        "Adopt trial {trial} of loop {loop_name}\n\n{}\n\nRun: {run}\n",
                        row.why
                    ),
                })
            }
        }
    }

    fn source(&self) -> &str {
        match self {
            Self::Branch { branch, .. } => branch.short_name(),
            Self::Candidate { commit, .. } => commit,
        }
    }

    fn perform(
        &self,
        project: &Project,
        commands: &mut dyn UserCommands,
    ) -> Result<Adopted, EngineError> {
        match self {
            Self::Branch { branch, message } => {
                Ok(adopt_branch(&project.user, branch, message, commands)?)
            }
            Self::Candidate { commit, message } => {
                let mut objects = ObjectStore::open_or_create(&project.objects(), &project.user)?;
                let commit = commit.parse()?;
                Ok(adopt_candidate(
                    &project.user,
                    &mut objects,
                    &commit,
                    message,
                    commands,
                )?)
            }
        }
    }
}

/// Sees to it that the loop's branch holds what was kept on it: a move may have been missed, or undone.
fn bring_up(
    project: &Project,
    store: &Store,
    run: &RunId,
    branch: &UserBranch,
    name: &BranchName,
) -> Result<(), EngineError> {
    let state: Run<Experiment> = loopwright_record::load(store, run)?;
    let Some(kept) = left_at(&state, name.as_str())? else {
        let words = format!("nothing was kept on {} yet", branch.short_name());
        return Err(EngineError::refused(words));
    };
    let mut objects = ObjectStore::open_or_create(&project.objects(), &project.user)?;
    match publish_over(branch, &mut objects, &kept, Some(kept), |_, _| Ok(false))? {
        Ok(_) => Ok(()),
        // A keep that is not recorded yet, or somebody's work on top.
        Err(GitError::Moved {
            found: Some(found), ..
        }) if branch.holds(&found, &kept)? => Ok(()),
        Err(error) => Err(EngineError::refused_with(
            format!(
                "{} does not hold what was kept: {error}",
                branch.short_name()
            ),
            format!(
                "check out another branch, or rename it (git branch -m {} NAME), and adopt again; loopwright adopt N brings the change of one trial",
                branch.short_name()
            ),
        )),
    }
}

/// What came of it, for the record. Commits and trees made here are the user's, who may do away with
/// them: they are not named as objects that our own store holds.
fn result_of(adopted: &Adopted) -> Value {
    match adopted {
        Adopted::AlreadyThere => json!({"result": "already_there"}),
        Adopted::FastForwarded { commit } => {
            json!({"result": "fast_forwarded", "commit_id": commit.to_hex()})
        }
        Adopted::Committed { commit } => {
            json!({"result": "committed", "commit_id": commit.to_hex()})
        }
        Adopted::NotAdopted(obstacle) => {
            let mut result = json!({"result": "not_adopted", "why": obstacle.to_string()});
            if let Obstacle::Rewritten { expected, tree } = obstacle {
                result["expected_tree_id"] = json!(expected.to_hex());
                result["tree_id"] = json!(tree.to_hex());
            }
            result
        }
    }
}

/// Records a person's act as a batch of its own; a hook's words may stand in it.
fn record(
    store: &mut Store,
    run: &RunId,
    epoch: u64,
    act: &str,
    mut arguments: Value,
) -> Result<(), EngineError> {
    let values = known_secrets().scrub_json(&mut arguments) as u64;
    let mut run: Run<Experiment> = loopwright_record::load_to_drive(store, run)?;
    let act = OperatorAct {
        act: act.to_owned(),
        arguments,
    };
    let mut turn = Turn::new(&mut run, now(), epoch);
    let scrub = Scrub {
        rules: scrub::RULES_VERSION,
        values,
    };
    turn.give(Given::new(kernel_kind::OPERATOR_ACT, &act).scrubbed(scrub))
        .map_err(DriveError::Turn)?;
    let outcome = turn.finish().map_err(DriveError::Turn)?;
    if let Some(batch) = &outcome.batch {
        StoreCommitter::new(store)
            .commit(batch, &run)
            .map_err(DriveError::Append)?;
    }
    Ok(())
}
