//! `show`: everything about one trial.

use std::fmt::Write as _;

use clap::Args;
use loopwright_core::experiment::rule::keep::Purpose;
use loopwright_core::experiment::state::Origin;
use loopwright_engine::views::{CommandRow, TrialRow, trial_that_is_there};

use crate::cli::whole_number;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, Output, harmless, moment, one_line, span};
use crate::place::Common;
use crate::trial_line::{short_commit, tone, value_text};

/// The fields of a trial that are numbers of the metric.
const TRIAL_NUMBERS: [&str; 4] = ["value", "against", "values", "readings"];

/// Show everything about one trial: why it ended so, every reading, its commands and their output
#[derive(Args, Debug)]
pub struct Arguments {
    /// The trial
    #[arg(value_name = "N", value_parser = whole_number)]
    trial: u64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Shows a trial.
pub fn run(common: &Common, output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    let record = common.read()?;
    let (name, run) = common.choose_run(&record)?;
    let row = trial_that_is_there(&record.store, &run, &name, arguments.trial)?;
    if arguments.json {
        let object = serde_json::to_value(&row).expect("BUG: a trial is plain data");
        output::json(&output::with_numbers(object, &TRIAL_NUMBERS))?;
    } else {
        output::print(&text_of(&row, output))?;
    }
    Ok(Exit::Finished)
}

/// A trial as lines.
fn text_of(row: &TrialRow, output: &Output) -> String {
    let outcome = row.outcome.map_or_else(
        || "open".to_owned(),
        |outcome| output.paint(tone(outcome), &outcome.name().replace('_', " ")),
    );
    let mut text = format!("trial {}: {outcome}\n", row.trial);
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    if !row.why.is_empty() {
        field("why", &one_line(&row.why));
    }
    match &row.origin {
        Some(Origin::Baseline) => field("origin", "the tree as it stood"),
        Some(Origin::Retry { of }) => field("origin", &format!("trial {of}, tried again")),
        Some(Origin::Proposed) | None => {}
    }
    let against = row
        .against
        .map(|against| format!(", against {}", against.short()));
    if row.value.is_some() {
        let against = against.unwrap_or_default();
        field("value", &format!("{}{against}", value_text(row.value)));
    }
    for (metric, value) in &row.values {
        field("metric", &format!("{metric}: {}", value.short()));
    }
    for (index, taken) in row.readings.iter().enumerate() {
        let value = taken
            .value
            .map_or_else(|| "no usable value".to_owned(), |value| value.to_string());
        let purpose = match taken.purpose {
            None => "",
            Some(Purpose::Refresh) => " (a look at the incumbent)",
            Some(Purpose::First) => " (first draw, screens only)",
            Some(Purpose::Duel) => " (duel)",
        };
        field(
            "reading",
            &format!("{}: {} {value}{purpose}", index + 1, taken.arm.name()),
        );
    }
    if let Some(candidate) = &row.candidate {
        let more = usize::try_from(candidate.changes)
            .unwrap_or(usize::MAX)
            .saturating_sub(candidate.paths.len());
        let paths: Vec<String> = candidate.paths.iter().map(|path| harmless(path)).collect();
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        field("changes", &format!("{}{more}", paths.join(", ")));
        field("candidate", &format!("commit {}", candidate.commit));
    }
    if let Some(tree) = &row.tree {
        field("tree", tree);
    }
    if let Some(commit) = &row.commit {
        field("kept as", &format!("commit {commit}"));
    }
    if let Some(policy) = &row.policy {
        field("policy", policy);
    }
    if let Some(segment) = row.segment {
        field("segment", &segment.to_string());
    }
    field("branch", &row.branch);
    if let Some(at) = row.started_at {
        field("started", &moment(at));
    }
    if let Some(at) = row.decided_at {
        field("decided", &moment(at));
    }
    for note in &row.repeated {
        field("note", &one_line(note));
    }
    for command in &row.commands {
        text.push_str(&command_text(command));
    }
    if row.candidate.is_some() {
        let _ = writeln!(text, "\nits patch: loopwright diff {}", row.trial);
    }
    text
}

fn command_text(command: &CommandRow) -> String {
    let (ran, usage) = (&command.ran, &command.usage);
    let step = if command.is_setup { ", setup" } else { "" };
    let mut text = format!("\n{}{step}: {}", command.effect, ran.ended.words());
    if command.attempt > 1 {
        let _ = write!(text, " (attempt {})", command.attempt);
    }
    if let Some(wall_us) = usage.wall_us {
        let _ = write!(text, ", {}", span(wall_us));
    }
    if let Some(cpu_us) = usage.cpu_us {
        let _ = write!(text, ", {} of CPU", span(cpu_us));
    }
    if let Some(bytes) = usage.memory_bytes {
        let _ = write!(text, ", {:.1} MiB", bytes as f64 / 1_048_576.0);
    }
    text.push('\n');
    if !ran.leftovers.is_empty() {
        let _ = writeln!(
            text,
            "  left behind, and ended: {}",
            one_line(&ran.leftovers.to_string())
        );
    }
    for line in harmless(&ran.tail).lines() {
        let _ = writeln!(text, "  | {line}");
    }
    if let Some(digest) = &ran.output_blob {
        let _ = writeln!(
            text,
            "  whole output: blob {}",
            short_commit(digest.short().as_str())
        );
    }
    text
}
