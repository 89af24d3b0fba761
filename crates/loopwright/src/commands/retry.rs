//! `retry`: try an old trial's change again.

use clap::Args;
use loopwright_engine::experiment::{Purpose, pinned};

use crate::cli::whole_number;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::place::Common;

use super::drive::Drive;
use super::resume::pinned_spec;

/// Try an old trial's change again, brought to the best the loop has now
///
/// Nothing is proposed: the change is applied to the incumbent, measured and decided as a new
/// trial. For a trial that failed by bad luck, or that may help now.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The trial
    #[arg(value_name = "N", value_parser = whole_number)]
    trial: u64,

    /// Take the run over from a holder that still lives
    #[arg(long)]
    force: bool,
}

/// Tries a trial again.
pub fn run(common: &Common, output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    // First of all: what an interrupted proposal left may hide the record.
    let project = common.project_to_drive()?;
    let record = common.read()?;
    let name = common.choose_loop(&record)?;
    let Some((_, caps)) = pinned(&record.store, &name)? else {
        return Err(Failure::refused(format!(
            "loop {name} was never driven here"
        )));
    };
    drop(record);
    Drive {
        project: &project,
        spec: pinned_spec(&caps)?,
        fresh: false,
        purpose: Purpose::Retry(arguments.trial),
        workdir: caps.workdir,
        force: arguments.force,
        notices: Vec::new(),
        unknown: None,
        loop_words: common.loop_words(),
    }
    .go(output)
}
