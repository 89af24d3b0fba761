//! Adopting a result: the loop's branch, or one trial's change, comes to the branch the user has
//! checked out. A person's act, so the run's journal says that it was asked for and what came of it.

use loopwright_core::experiment::Experiment;
use loopwright_core::ids::{BranchName, LoopName, RunId};
use loopwright_core::kernel::{OperatorAct, kind as kernel_kind};
use loopwright_core::turn::{Given, Run, Turn};
use loopwright_git::{Adopted, ObjectStore, UserBranch, adopt_branch, adopt_candidate};
use loopwright_record::{Holder, Lease, OpenMode, Store, Terms};
use serde_json::{Value, json};

use crate::committer::{LEASE_TTL, StoreCommitter, now};
use crate::driver::{Committer as _, DriveError};
use crate::error::EngineError;
use crate::project::Project;
use crate::views::trial_row;

use super::request::KEYS;

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
}

/// Brings a result of the loop's newest run to the branch the user has checked out.
pub fn adopt(
    project: &Project,
    loop_name: &LoopName,
    wanted: &Wanted,
) -> Result<Adoption, EngineError> {
    let mut store = Store::open(&project.store, OpenMode::Write)?;
    store.index_keys(KEYS)?;
    let Some(summary) = store.latest_run(loop_name)? else {
        return Err(EngineError::refused(format!(
            "loop {loop_name} was never run here"
        )));
    };
    let run = summary.run;
    let plan = Plan::new(project, &store, loop_name, &run, wanted)?;
    let onto = project.user.branch.clone().unwrap_or_default();
    let holder = Holder::current(&format!("loopwright adopt, loop {loop_name}"));
    let terms = Terms {
        now: now(),
        ttl: LEASE_TTL,
        force: false,
    };
    let lease = Lease::acquire(&store, &run, &holder, terms)?;
    let epoch = lease.epoch();
    let asked = json!({"source": plan.source(), "onto": onto});
    record(&mut store, &run, epoch, ACT_ADOPT, asked)?;
    let adopted = plan.perform(project);
    let came = match &adopted {
        Ok(adopted) => result_of(adopted),
        Err(error) => json!({"result": "failed", "why": error.to_string()}),
    };
    record(&mut store, &run, epoch, ACT_ADOPTED, came)?;
    lease.release(&store)?;
    let source = plan.source().to_owned();
    store.close()?;
    Ok(Adoption {
        run,
        source,
        onto,
        adopted: adopted?,
    })
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
                if branch.current()?.is_none() {
                    return Err(EngineError::refused(format!(
                        "there is no branch {}",
                        branch.short_name()
                    )));
                }
                let message = format!("Adopt {}\n\nRun: {run}\n", branch.short_name());
                Ok(Self::Branch { branch, message })
            }
            Wanted::Trial(trial) => {
                let row = trial_row(store, run, *trial)?.ok_or_else(|| {
                    EngineError::refused(format!("loop {loop_name} has no trial {trial}"))
                })?;
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

    fn perform(&self, project: &Project) -> Result<Adopted, EngineError> {
        match self {
            Self::Branch { branch, message } => Ok(adopt_branch(&project.user, branch, message)?),
            Self::Candidate { commit, message } => {
                let mut objects = ObjectStore::open_or_create(&project.objects(), &project.user)?;
                let commit = commit.parse()?;
                Ok(adopt_candidate(
                    &project.user,
                    &mut objects,
                    &commit,
                    message,
                )?)
            }
        }
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
        Adopted::Rewritten {
            commit,
            expected,
            tree,
        } => json!({
            "result": "rewritten",
            "commit_id": commit.to_hex(),
            "expected_tree_id": expected.to_hex(),
            "tree_id": tree.to_hex(),
        }),
        Adopted::NotAdopted(obstacle) => {
            json!({"result": "not_adopted", "why": obstacle.to_string()})
        }
    }
}

/// Records a person's act as a batch of its own.
fn record(
    store: &mut Store,
    run: &RunId,
    epoch: u64,
    act: &str,
    arguments: Value,
) -> Result<(), EngineError> {
    let mut run: Run<Experiment> = loopwright_record::load_to_drive(store, run)?;
    let act = OperatorAct {
        act: act.to_owned(),
        arguments,
    };
    let mut turn = Turn::new(&mut run, now(), epoch);
    turn.give(Given::new(kernel_kind::OPERATOR_ACT, &act))
        .map_err(DriveError::Turn)?;
    let outcome = turn.finish().map_err(DriveError::Turn)?;
    if let Some(batch) = &outcome.batch {
        StoreCommitter::new(store)
            .commit(batch, &run)
            .map_err(DriveError::Append)?;
    }
    Ok(())
}
