//! `log`: the decided trials, one line each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use loopwright_core::experiment::Outcome;
use loopwright_core::experiment::state::Origin;
use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::metric::Real;
use loopwright_core::time::Micros;
use loopwright_engine::committer::now;
use loopwright_engine::views::{Decision, status_of, visit_decisions, visit_lines};
use loopwright_record::{RunState, Select};
use serde::Serialize;

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
        let (store, run, arguments) = (&self.record.store, &self.run, self.arguments);
        let seen_seq = &mut self.seen_seq;
        let mut lines = Vec::new();
        if arguments.json {
            visit_decisions(store, run, select, |decision| {
                *seen_seq = Some(decision.seq);
                let outcome = decision.decided.outcome;
                if arguments.wants(decision.trial, &decision.branch, outcome) {
                    lines.push(json_line(&decision));
                }
                ControlFlow::Continue(())
            })?;
        } else {
            visit_lines(store, run, select, |line| {
                *seen_seq = Some(line.seq);
                if arguments.wants(line.trial, &line.branch, line.outcome) {
                    lines.push(of_line(&line, self.output) + "\n");
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(lines)
    }
}

/// A decision as `--json` shows it, with numbers as numbers; what only a trial's commands tell is
/// in `show --json`.
#[derive(Serialize)]
struct Object<'a> {
    trial: u64,
    branch: &'a str,
    segment: u64,
    origin: &'a Origin,
    outcome: Outcome,
    why: &'a str,
    value: Option<f64>,
    against: Option<f64>,
    values: BTreeMap<&'a str, f64>,
    readings: Vec<Reading>,
    policy: &'a str,
    tree: Option<&'a str>,
    decided_at: Micros,
}

/// One reading.
#[derive(Serialize)]
struct Reading {
    arm: &'static str,
    value: Option<f64>,
}

fn json_line(decision: &Decision) -> String {
    let decided = &decision.decided;
    let readings = decided.readings.iter().map(|taken| Reading {
        arm: taken.arm.name(),
        value: taken.value.map(Real::get),
    });
    let values = decided.values.iter();
    let object = Object {
        trial: decision.trial,
        branch: &decision.branch,
        segment: decided.segment,
        origin: &decided.origin,
        outcome: decided.outcome,
        why: &decided.why,
        value: decided.value.map(Real::get),
        against: decided.against.map(Real::get),
        values: values
            .map(|(name, value)| (name.as_str(), value.get()))
            .collect(),
        readings: readings.collect(),
        policy: &decided.policy,
        tree: decided.tree.as_deref(),
        decided_at: decision.decided_at,
    };
    serde_json::to_string(&object).expect("BUG: a decision is plain data") + "\n"
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
