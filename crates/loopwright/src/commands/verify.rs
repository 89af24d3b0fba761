//! `verify`: check the record against everything it names.

use std::fmt::Write as _;

use clap::Args;
use loopwright_engine::project::objects_of;
use loopwright_engine::verify;
use loopwright_git::ObjectStore;
use loopwright_record::Report;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, counted, one_line};
use crate::place::Common;

/// Check a run's record: the chain of events, the fold, the blobs, the git objects it names
///
/// Says what was checked, what is wrong, and what no check here can prove. The exit status is 7
/// where anything is wrong.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Leave out the git objects: for a copy of a record that was made without them
    #[arg(long)]
    without_objects: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Verifies the newest run of a loop.
pub fn run(common: &Common, arguments: &Arguments) -> Result<Exit, Failure> {
    let record = common.read()?;
    let (_, run) = common.choose_run(&record)?;
    let objects = objects_of(record.store.folder());
    let objects = (!arguments.without_objects).then(|| ObjectStore::open_to_verify(&objects));
    let report = verify(&record.store, &run, objects)?;
    if arguments.json {
        output::json(&report)?;
    } else {
        output::print(&text_of(&report))?;
    }
    Ok(if report.is_sound() {
        Exit::Finished
    } else {
        Exit::Damaged
    })
}

/// A report as lines.
pub fn text_of(report: &Report) -> String {
    let counts = &report.counts;
    let mut text = format!("run {}, head {}\n", report.run, report.head);
    let mut row = |what: String| {
        let _ = writeln!(text, "  checked  {what}");
    };
    row(format!(
        "{} batches, {} in one chain",
        counts.batches,
        counted(counts.events, "event")
    ));
    row(format!(
        "{} of the folded state",
        counted(counts.snapshots, "snapshot")
    ));
    row(format!(
        "{}, {} bytes",
        counted(counts.blobs, "blob"),
        counts.blob_bytes
    ));
    row(format!(
        "{} and all they hold",
        counted(counts.git_objects, "git object")
    ));
    for skipped in &report.skipped {
        let _ = writeln!(text, "  skipped  {}", one_line(skipped));
    }
    for finding in &report.findings {
        let _ = writeln!(text, "  WRONG    {}", one_line(&finding.words));
    }
    text.push_str("not proved by this:\n");
    for words in &report.not_proved {
        let _ = writeln!(text, "  {}", one_line(words));
    }
    let verdict = if report.is_sound() {
        "sound: nothing is wrong with the record".to_owned()
    } else {
        format!(
            "damaged: {}",
            counted(report.findings.len() as u64, "finding")
        )
    };
    let _ = writeln!(text, "{verdict}");
    text
}
