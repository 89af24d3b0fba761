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
use loopwright_engine::views::{More, TrialLine, status_of, visit_decisions, visit_lines};
use loopwright_record::{RunState, Select};
use serde::Serialize;

use crate::cli::whole_number;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::place::{Common, Record};
use crate::trial_line::{best_text, counts_text, write_line};

/// Lines are printed when there are so many bytes of them.
const PRINTED_AT_ONCE: usize = 1 << 16;

/// How often a run that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// List the decided trials, one line each, with counts and the best at the end
///
/// A line has the mark, the trial, the value, the wall clock of its commands, the commit (on the
/// loop's branch where it was kept, else the one that keeps the candidate in the record), and why.
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
    #[arg(long, value_name = "N", value_parser = whole_number)]
    since_trial: Option<u64>,

    /// Only the newest N of them
    #[arg(short = 'n', long = "newest", value_name = "N", value_parser = whole_number)]
    newest: Option<u64>,
}

fn outcomes() -> PossibleValuesParser {
    PossibleValuesParser::new(Outcome::ALL.map(Outcome::name))
}

impl Arguments {
    fn wants(&self, line: &TrialLine<'_>) -> bool {
        let outcome = line.outcome.name();
        self.since_trial.is_none_or(|since| line.trial >= since)
            && (self.branch.as_deref()).is_none_or(|wanted| wanted == line.branch)
            && (self.outcome.is_empty() || self.outcome.iter().any(|name| name == outcome))
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
    lister.first()?;
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
        lister.newer()?;
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

/// Takes what writes a line, and says whether more are wanted.
type Show<'a> = &'a mut dyn FnMut(&dyn Fn(&mut String)) -> ControlFlow<()>;

impl Lister<'_> {
    /// Prints what was decided until now.
    fn first(&mut self) -> Result<(), Failure> {
        let Some(newest) = self.arguments.newest else {
            return self.newer();
        };
        let backwards = Select {
            newest_first: true,
            ..Select::all()
        };
        let mut lines = Vec::new();
        self.visit(backwards, &mut |write| {
            if lines.len() as u64 == newest {
                return ControlFlow::Break(());
            }
            let mut line = String::new();
            write(&mut line);
            lines.push(line);
            ControlFlow::Continue(())
        })?;
        lines.reverse();
        output::print(&lines.concat())
    }

    /// Prints what was decided since the last look.
    fn newer(&mut self) -> Result<(), Failure> {
        let select = self.seen_seq.map_or_else(Select::all, Select::after);
        let (mut text, mut printed) = (String::new(), Ok(()));
        self.visit(select, &mut |write| {
            write(&mut text);
            if text.len() < PRINTED_AT_ONCE {
                return ControlFlow::Continue(());
            }
            printed = output::print(&text);
            text.clear();
            match printed {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        printed?;
        output::print(&text)
    }

    /// Shows the lines that are wanted.
    fn visit(&mut self, select: Select, show: Show<'_>) -> Result<(), Failure> {
        let (arguments, output) = (self.arguments, self.output);
        let seen_seq = &mut self.seen_seq;
        let mut take = |seq: u64, line: &TrialLine<'_>, more: Option<&More>| {
            *seen_seq = Some(seen_seq.map_or(seq, |seen| seen.max(seq)));
            if !arguments.wants(line) {
                return ControlFlow::Continue(());
            }
            show(&|text| {
                match more {
                    Some(more) => text.push_str(&json_line(line, more)),
                    None => write_line(text, line, output),
                }
                text.push('\n');
            })
        };
        let (store, run) = (&self.record.store, &self.run);
        if arguments.json {
            visit_decisions(store, run, select, |seq, line, more| {
                take(seq, line, Some(more))
            })?;
        } else {
            visit_lines(store, run, select, |seq, line| take(seq, line, None))?;
        }
        Ok(())
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
    candidate: Option<&'a str>,
    commit: Option<&'a str>,
    duration_us: Option<u64>,
    decided_at: Micros,
}

/// One reading.
#[derive(Serialize)]
struct Reading {
    arm: &'static str,
    value: Option<f64>,
}

fn json_line(line: &TrialLine<'_>, more: &More) -> String {
    let readings = more.readings.iter().map(|taken| Reading {
        arm: taken.arm.name(),
        value: taken.value.map(Real::get),
    });
    let values = more.values.iter();
    let object = Object {
        trial: line.trial,
        branch: line.branch,
        segment: line.segment,
        origin: &line.origin,
        outcome: line.outcome,
        why: line.why,
        value: line.value.map(Real::get),
        against: more.against.map(Real::get),
        values: values
            .map(|(name, value)| (name.as_str(), value.get()))
            .collect(),
        readings: readings.collect(),
        policy: &more.policy,
        tree: more.tree.as_deref(),
        candidate: line.candidate,
        commit: line.commit,
        duration_us: line.duration_us,
        decided_at: line.decided_at,
    };
    serde_json::to_string(&object).expect("BUG: a decision is plain data")
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
