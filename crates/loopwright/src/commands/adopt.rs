//! `adopt`: bring a result to the branch the user has checked out.

use std::time::Duration;

use clap::Args;
use loopwright_core::ids::BranchName;
use loopwright_core::spec::parse_duration_us;
use loopwright_engine::experiment::{Means, Wanted, adopt};
use loopwright_exec::Supervisor;
use loopwright_git::{Adopted, Obstacle};

use crate::cli::whole_number;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, one_line, talk};
use crate::place::Common;
use crate::signals;
use crate::trial_line::short_commit;

/// Bring what the loop kept to the branch you have checked out
///
/// Your branch is moved forward where that is possible, else the loop's branch is merged; with N,
/// the one trial's change becomes one commit, kept or not. Your hooks and your signing apply. Where
/// it doesn't work out, your checkout is as it was.
///
/// This may be done while the loop is driven, unless that is done in place; only the act itself is
/// not recorded then.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Only this trial's change
    #[arg(value_name = "N", value_parser = whole_number)]
    trial: Option<u64>,

    /// The loop's branch that is adopted
    #[arg(
        long,
        value_name = "NAME",
        default_value = "main",
        conflicts_with = "trial"
    )]
    branch: String,

    /// How long your git may take, with your hooks and your signing
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    limit: Duration,
}

fn duration(text: &str) -> Result<Duration, String> {
    let limit_us = parse_duration_us(text).map_err(|error| error.to_string())?;
    Ok(Duration::from_micros(limit_us))
}

/// Adopts a result.
pub fn run(common: &Common, arguments: &Arguments) -> Result<Exit, Failure> {
    // First of all: what an interrupted proposal left may hide the record.
    let project = common.project_to_drive()?;
    let record = common.read()?;
    let name = common.choose_loop(&record)?;
    drop(record);
    let wanted = match arguments.trial {
        Some(trial) => Wanted::Trial(trial),
        None => Wanted::Branch(BranchName::new(&arguments.branch).map_err(Failure::refused)?),
    };
    let control = Means::control();
    let stopped = control.clone();
    let caught = signals::forward(move |_| stopped.interrupt(), talk)?;
    let means = Means {
        supervisor: &Supervisor::this_program(),
        limit: arguments.limit,
        control: &control,
    };
    let adoption = adopt(&project, &name, &wanted, &means)?;
    let (source, onto) = (
        match arguments.trial {
            Some(trial) => format!("trial {trial}"),
            None => adoption.source.clone(),
        },
        &adoption.onto,
    );
    match &adoption.adopted {
        Adopted::AlreadyThere => output::line(&format!("{onto} has {source} already"))?,
        Adopted::FastForwarded { commit } => {
            let commit = commit.to_hex();
            output::line(&format!(
                "{onto} moved forward to {source}, {}",
                short_commit(&commit)
            ))?;
        }
        Adopted::Committed { commit } => {
            let commit = commit.to_hex();
            output::line(&format!(
                "{onto} has {source} now, as commit {}",
                short_commit(&commit)
            ))?;
        }
        Adopted::NotAdopted(obstacle) => {
            let failure = not_adopted(&source, obstacle);
            // At a terminal, a git of ours may have had the signal, too, and died of it by itself.
            return Err(match caught.signal() {
                Some(signal) => failure.exiting(Exit::Signal(signal)),
                None => failure,
            });
        }
    }
    if let Err(why) = &adoption.recorded {
        talk(&format!(
            "note: the record doesn't say that this was adopted: {}",
            one_line(why)
        ));
    }
    Ok(Exit::Finished)
}

fn not_adopted(source: &str, obstacle: &Obstacle) -> Failure {
    let failure = Failure::refused(format!(
        "{source} was not adopted: {}",
        one_line(&obstacle.to_string())
    ));
    match obstacle {
        Obstacle::Conflict(_) => failure.hint(
            "nothing was changed; loopwright diff N | git apply --3way brings a trial by hand",
        ),
        Obstacle::Rewritten { .. } => failure.hint(
            "nothing was changed: what the hook makes of it was not measured; to have it all the same, apply and commit it by hand: loopwright diff N | git apply --3way",
        ),
        Obstacle::Stopped => failure.hint("nothing was changed; adopt again when you like"),
        Obstacle::Dirty(_) => {
            failure.hint("nothing was changed; commit or stash them, then adopt again")
        }
        Obstacle::HookRefused(_) | Obstacle::SigningFailed(_) | Obstacle::Failed(_) => {
            failure.hint("nothing was changed; the result is still in the loop's branch and record")
        }
    }
}
