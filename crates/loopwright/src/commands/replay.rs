//! `replay`: make every decision again from the record.

use clap::Args;
use loopwright_engine::replay;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, counted};
use crate::place::Common;

/// Make every decision of a run again from its record, and compare
///
/// Nothing is called: no proposal, no measurement, no git. Every event must come out byte for byte
/// as it was recorded; else the first one that differs is named, and the exit status is 7.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Replays the newest run of a loop.
pub fn run(common: &Common, arguments: &Arguments) -> Result<Exit, Failure> {
    let record = common.read()?;
    let (_, run) = common.choose_run(&record)?;
    let replayed = replay(&record.store, &run)?;
    if arguments.json {
        output::json(&replayed)?;
    } else if let Some(difference) = &replayed.difference {
        let or_nothing =
            |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
        output::line(&format!(
            "run {run} differs at event {} (batch {})\n  recorded: {}\n  replayed: {}",
            difference.seq,
            difference.batch,
            output::one_line(&or_nothing(&difference.recorded)),
            output::one_line(&or_nothing(&difference.replayed)),
        ))?;
    } else {
        output::line(&format!(
            "identical: {} in {}, decisions {}",
            counted(replayed.events, "event"),
            counted_batches(replayed.batches),
            replayed.decisions,
        ))?;
    }
    Ok(match replayed.difference {
        None => Exit::Finished,
        Some(_) => Exit::Damaged,
    })
}

fn counted_batches(batches: u64) -> String {
    if batches == 1 {
        "1 batch".to_owned()
    } else {
        format!("{batches} batches")
    }
}
