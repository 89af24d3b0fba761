//! `diff`: a trial's change as a patch.

use clap::Args;
use loopwright_engine::EngineError;
use loopwright_engine::views::trial_that_is_there;
use loopwright_git::{ObjectStore, Oid};

use crate::cli::whole_number;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output;
use crate::place::Common;

/// Print a trial's change as a patch against what it was made from; `git apply` takes it
#[derive(Args, Debug)]
pub struct Arguments {
    /// The trial
    #[arg(value_name = "N", value_parser = whole_number)]
    trial: u64,

    /// Only how much changed in which files
    #[arg(long)]
    stat: bool,
}

/// Prints the patch.
pub fn run(common: &Common, arguments: &Arguments) -> Result<Exit, Failure> {
    let trial = arguments.trial;
    let record = common.read()?;
    let (name, run) = common.choose_run(&record)?;
    let row = trial_that_is_there(&record.store, &run, &name, trial)?;
    let Some(candidate) = row.candidate else {
        return Err(Failure::refused(format!("trial {trial} left no change"))
            .hint(format!("loopwright show {trial} says how it ended")));
    };
    let project = common.project()?;
    let mut objects = ObjectStore::open_or_create(&project.objects(), &project.user)?;
    let commit: Oid = candidate.commit.parse().map_err(EngineError::from)?;
    let facts = objects.read_commit(&commit)?;
    let parent = match facts.parents.first() {
        Some(parent) => *parent,
        None => objects.empty_tree()?,
    };
    if arguments.stat {
        let text = objects.summary(&parent, &commit)?;
        output::line(text.trim_end())?;
    } else {
        output::print_bytes(&objects.patch(&parent, &commit)?)?;
    }
    Ok(Exit::Finished)
}
