//! `watch`: follow a run that somebody else drives.

use std::time::{Duration, Instant};

use clap::Args;
use loopwright_core::ids::{EffectId, RunId};
use loopwright_engine::committer::now;
use loopwright_engine::views::{LoopStatus, effect_words, status_of, trial_row, visit_lines};
use loopwright_record::Select;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::live::{Doing, Live};
use crate::output::{self, Output, one_line, span, talk};
use crate::place::{Common, Record};
use crate::trial_line::{best_text, counts_text, of_row, tail_of};

/// How often the record is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Watch a run that is being driven elsewhere: what runs now, for how long, and what is decided
///
/// Ends when nobody drives the run any more. On a terminal what runs now is redrawn in place; in a
/// pipe each new thing is a line on stderr. Trial lines go to stdout.
#[derive(Args, Debug)]
pub struct Arguments {}

/// Watches the newest run of a loop.
pub fn run(common: &Common, output: &Output, _arguments: &Arguments) -> Result<Exit, Failure> {
    let record = common.read()?;
    let (name, run) = common.choose_run(&record)?;
    let live = Live::new(output);
    let mut viewer = Viewer {
        record: &record,
        run,
        output,
        live: &live,
        // What was decided before is for `log`.
        seen_seq: None,
        shown: None,
    };
    viewer.skip_past()?;
    let last = loop {
        let Some(status) = status_of(&record.store, &name)? else {
            return Ok(Exit::Finished);
        };
        viewer.decided()?;
        if status.state != "running" {
            break status;
        }
        viewer.doing(&status);
        std::thread::sleep(LOOK_EVERY);
    };
    drop(live);
    say_end(&last);
    Ok(Exit::Finished)
}

fn say_end(status: &LoopStatus) {
    talk("");
    let counts = counts_text(status);
    if !counts.is_empty() {
        talk(&counts);
    }
    if let Some(best) = best_text(status) {
        talk(&best);
    }
    let words = one_line(&status.words);
    talk(&format!(
        "{}{}{words}",
        status.state,
        if words.is_empty() { "" } else { ": " }
    ));
}

struct Viewer<'a> {
    record: &'a Record,
    run: RunId,
    output: &'a Output,
    live: &'a Live,
    seen_seq: Option<u64>,
    /// The effect and attempt that were shown last, with the moment they were first seen.
    shown: Option<(String, u32)>,
}

impl Viewer<'_> {
    fn skip_past(&mut self) -> Result<(), Failure> {
        let newest = Select::newest(1);
        visit_lines(&self.record.store, &self.run, newest, |seq, _| {
            self.seen_seq = Some(seq);
            std::ops::ControlFlow::Break(())
        })?;
        Ok(())
    }

    /// Prints what was decided since the last look.
    fn decided(&mut self) -> Result<(), Failure> {
        let select = self.seen_seq.map_or_else(Select::all, Select::after);
        let mut trials = Vec::new();
        visit_lines(&self.record.store, &self.run, select, |seq, line| {
            self.seen_seq = Some(seq);
            trials.push(line.trial);
            std::ops::ControlFlow::Continue(())
        })?;
        for trial in trials {
            let Some(row) = trial_row(&self.record.store, &self.run, trial)? else {
                continue;
            };
            let lines = of_row(&row, self.output).into_iter().chain(tail_of(&row));
            for line in lines {
                self.live.aside(|| output::line(&line))?;
            }
        }
        Ok(())
    }

    fn doing(&mut self, status: &LoopStatus) {
        self.live.best(best_text(status).unwrap_or_default());
        let Some((effect, attempt, since)) = status.in_flight.first() else {
            self.live.doing(None);
            return;
        };
        let words = effect_words(&EffectId::new(effect.as_str()));
        let trial = status
            .open_trial
            .map(|trial| format!("trial {trial}: "))
            .unwrap_or_default();
        let words = format!("{trial}{words}");
        let elapsed_us = now().since(*since);
        let now_shown = (effect.clone(), *attempt);
        if self.shown.as_ref() != Some(&now_shown) {
            if !self.output.live {
                talk(&format!("{words}, for {}", span(elapsed_us)));
            }
            self.shown = Some(now_shown);
        }
        let since = Instant::now().checked_sub(Duration::from_micros(elapsed_us));
        self.live.doing(Some(Doing {
            words,
            since: since.unwrap_or_else(Instant::now),
            limit_us: None,
        }));
    }
}
