//! `log`: the decided trials, one line each.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use loopwright_core::experiment::Outcome;
use loopwright_core::ids::{LoopName, RunId};
use loopwright_engine::committer::now;
use loopwright_engine::views::{TrialRow, decided_rows, status_of, visit_lines};
use loopwright_record::{RunState, Select};

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::place::{Common, Record};
use crate::trial_line::{best_text, counts_text, of_line};

/// How often a run that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// List the decided trials, one line each, with counts and the best at the end
///
/// The marks: B baseline, + kept, s simplified, - reverted, u undecided, x unstable, ! failed,
/// T timed out, ? no metric, ~ not finite, A ambiguous, = no change, d duplicate, H harness
/// changed, G guard failed, h holdout failed, C conflict. `loopwright show N` shows everything
/// about one of them.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Print one JSON object per trial
    #[arg(long)]
    json: bool,

    /// Go on printing trials as they are decided, until nobody drives the run any more
    #[arg(long, short)]
    follow: bool,

    /// Only trials that ended like this; may be given several times
    #[arg(long, value_name = "OUTCOME", value_parser = outcomes())]
    outcome: Vec<String>,

    /// Only trials of this branch
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// Only trials from this number on
    #[arg(long, value_name = "N")]
    since_trial: Option<u64>,

    /// Only the newest N of them
    #[arg(short = 'n', long = "newest", value_name = "N")]
    newest: Option<usize>,
}

fn outcomes() -> PossibleValuesParser {
    PossibleValuesParser::new(Outcome::ALL.map(Outcome::name))
}

impl Arguments {
    fn wants(&self, trial: u64, branch: &str, outcome: Outcome) -> bool {
        self.since_trial.is_none_or(|since| trial >= since)
            && self.branch.as_deref().is_none_or(|wanted| wanted == branch)
            && (self.outcome.is_empty() || self.outcome.iter().any(|name| name == outcome.name()))
    }
}

/// Lists the trials.
pub fn run(common: &Common, output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    let record = common.read()?;
    let (name, run) = common.choose_run(&record)?;
    let mut lister = Lister {
        record: &record,
        run,
        output,
        arguments,
        seen_seq: None,
    };
    let mut lines = lister.newer()?;
    if let Some(newest) = arguments.newest {
        lines.drain(..lines.len().saturating_sub(newest));
    }
    output::print(&lines.concat())?;
    if arguments.follow {
        follow(&mut lister, &name)?;
    }
    if arguments.json {
        return Ok(Exit::Finished);
    }
    let mut footer = String::new();
    if let Some(status) = status_of(&record.store, &name)? {
        let counts = counts_text(&status);
        let counts = if counts.is_empty() {
            "no trial was decided yet".to_owned()
        } else {
            counts
        };
        let _ = write!(footer, "\n{counts}\n");
        if let Some(best) = best_text(&status) {
            let _ = writeln!(footer, "{best}");
        }
    }
    output::print(&footer)?;
    Ok(Exit::Finished)
}

fn follow(lister: &mut Lister<'_>, name: &LoopName) -> Result<(), Failure> {
    loop {
        // Asked before looking, so that what was decided last is seen.
        let driven = is_driven(lister.record, name)?;
        output::print(&lister.newer()?.concat())?;
        if !driven {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether somebody drives the newest run of a loop.
pub fn is_driven(record: &Record, name: &LoopName) -> Result<bool, Failure> {
    let Some(summary) = record.store.latest_run(name)? else {
        return Ok(false);
    };
    Ok(matches!(
        record.store.state_of(&summary, now())?,
        RunState::Driven(_)
    ))
}

struct Lister<'a> {
    record: &'a Record,
    run: RunId,
    output: &'a Output,
    arguments: &'a Arguments,
    seen_seq: Option<u64>,
}

impl Lister<'_> {
    /// The lines of what was decided since the last look.
    fn newer(&mut self) -> Result<Vec<String>, Failure> {
        let select = self.seen_seq.map_or_else(Select::all, Select::after);
        let (store, run) = (&self.record.store, &self.run);
        let mut lines = Vec::new();
        let mut seen_seq = self.seen_seq;
        visit_lines(store, run, select, |line| {
            seen_seq = Some(line.seq);
            if !self.arguments.json && self.arguments.wants(line.trial, &line.branch, line.outcome)
            {
                lines.push(of_line(&line, self.output) + "\n");
            }
            ControlFlow::Continue(())
        })?;
        if self.arguments.json && seen_seq != self.seen_seq {
            for row in decided_rows(store, run, select)? {
                let wanted = row
                    .outcome
                    .is_some_and(|outcome| self.arguments.wants(row.trial, &row.branch, outcome));
                if wanted {
                    lines.push(json_line(&row));
                }
            }
        }
        self.seen_seq = seen_seq;
        Ok(lines)
    }
}

/// The fields of a trial that are numbers of the metric.
pub const TRIAL_NUMBERS: [&str; 4] = ["value", "against", "values", "readings"];

/// A decision's fields; what only a trial's commands tell is in `show --json`.
fn json_line(row: &TrialRow) -> String {
    let object = serde_json::json!({
        "trial": row.trial,
        "branch": row.branch,
        "segment": row.segment,
        "origin": row.origin,
        "outcome": row.outcome,
        "why": row.why,
        "value": row.value,
        "against": row.against,
        "values": row.values,
        "readings": row.readings,
        "policy": row.policy,
        "tree": row.tree,
        "decided_at": row.decided_at,
    });
    format!("{}\n", output::with_numbers(object, &TRIAL_NUMBERS))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use loopwright_core::experiment::Outcome;

    #[test]
    fn the_help_explains_every_mark() {
        let mut command = crate::cli::Cli::command();
        let log = command.find_subcommand_mut("log").unwrap();
        let help = log.render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        // Marks of outcomes that only imported ledgers have are left out.
        for outcome in Outcome::ALL
            .into_iter()
            .filter(|outcome| *outcome != Outcome::Interrupted)
        {
            let words = format!("{} {}", outcome.mark(), outcome.name().replace('_', " "));
            assert!(help.contains(&words), "{words}");
        }
    }
}
