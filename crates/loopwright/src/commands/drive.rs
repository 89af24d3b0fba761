//! Driving a run in the foreground: signals caught, progress shown, and how it ended said.

use std::path::Path;

use loopwright_core::ids::LoopName;
use loopwright_core::spec::ExperimentSpec;
use loopwright_engine::experiment::{KEYS, Purpose, Request, Session, SessionReport};
use loopwright_engine::views::{LoopStatus, TrialRow, status_of, trial_row};
use loopwright_engine::{Happenings, Project};
use loopwright_exec::Supervisor;
use loopwright_record::{OpenMode, Store};

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::live::Live;
use crate::output::{Output, one_line, talk};
use crate::progress::Progress;
use crate::signals;
use crate::trial_line::{best_text, counts_text};

/// What to drive.
pub struct Drive<'a> {
    /// The project.
    pub project: &'a Project,
    /// The loop.
    pub spec: ExperimentSpec,
    /// Whether settings and commit were read anew.
    pub fresh: bool,
    /// What for.
    pub purpose: Purpose,
    /// Where below the top commands run.
    pub workdir: String,
    /// Whether to take the run from a holder that lives.
    pub force: bool,
    /// ` --loop NAME` where the user said so, for commands to be typed.
    pub loop_words: String,
}

/// Where below the top of the checkout commands run: beside the file that names them, else where
/// the user stands.
pub fn workdir(project: &Project, file: Option<&Path>) -> String {
    let folder = file.and_then(Path::parent);
    match folder.and_then(|folder| folder.strip_prefix(&project.user.top).ok()) {
        Some(below) => below.to_string_lossy().into_owned(),
        None => project.user.prefix.to_string(),
    }
}

impl Drive<'_> {
    /// Drives it to the end of the invocation.
    pub fn go(self, output: &Output) -> Result<Exit, Failure> {
        let happenings = Happenings::default();
        let live = Live::new(output);
        let speaker = live.speaker();
        let caught = signals::forward(happenings.interrupter(), move |text| speaker.say(text))?;
        let metric = self.spec.metric.clone();
        let name = LoopName::new(&self.spec.name).map_err(Failure::refused)?;
        let mut progress = Progress::new(output, &live, &metric, open_trial(self.project, &name));
        let is_baseline = self.purpose == Purpose::Baseline;
        let request = Request {
            spec: self.spec,
            fresh: self.fresh,
            purpose: self.purpose,
            workdir: self.workdir,
            force: self.force,
            supervisor: Supervisor::this_program(),
        };
        let driven = Session::drive(self.project, request, happenings, &mut progress);
        drop(live);
        let report = driven?;
        let exit = Exit::of_ending(&report.ending.reason, caught.signal());
        say_end(self.project, &name, &report, &self.loop_words, is_baseline);
        Ok(exit)
    }
}

/// What is known of the trial that is open, so that its line is whole when it is decided.
fn open_trial(project: &Project, name: &LoopName) -> Option<TrialRow> {
    let mut store = Store::open(&project.store, OpenMode::Read).ok()?;
    store.index_keys(KEYS).ok()?;
    let status = status_of(&store, name).ok().flatten()?;
    let run = store.latest_run(name).ok().flatten()?.run;
    trial_row(&store, &run, status.open_trial?).ok().flatten()
}

fn say_end(
    project: &Project,
    name: &LoopName,
    report: &SessionReport,
    loop_words: &str,
    is_baseline: bool,
) {
    // What was driven is recorded; a record that can't be read back now says so elsewhere.
    let status = Store::open(&project.store, OpenMode::Read)
        .ok()
        .and_then(|store| status_of(&store, name).ok().flatten());
    talk("");
    if let Some(status) = &status {
        let counts = counts_text(status);
        if !counts.is_empty() {
            talk(&counts);
        }
        if let Some(best) = best_text(status) {
            talk(&best);
        }
    }
    talk(&format!("{}: {}", report.ending.reason.replace('_', " "), one_line(&report.ending.words)));
    if let Some(question) = &report.waiting {
        talk(&format!("it waits for you: {}", one_line(question)));
    }
    if let Some(next) = next_command(&report.ending.reason, status.as_ref(), is_baseline) {
        talk(&format!("next: loopwright {}{loop_words}", next.0));
        if !next.1.is_empty() {
            talk(&format!("      {}", next.1));
        }
    }
}

/// The command to type next, and why.
fn next_command(
    reason: &str,
    status: Option<&LoopStatus>,
    is_baseline: bool,
) -> Option<(String, String)> {
    let status = status?;
    let trials: u64 = status.counts.values().sum();
    let kept: u64 = status
        .counts
        .iter()
        .filter(|(outcome, _)| outcome.is_keep())
        .map(|(_, count)| count)
        .sum();
    let next = |command: &str, why: String| Some((command.to_owned(), why));
    match reason {
        "interrupted" | "storage" | "host_died" => next("resume", String::new()),
        "baseline_failed" => {
            next("log -n 1", "says what the measurement printed: loopwright show N".to_owned())
        }
        "gave_up" => next("log", "says what went wrong with them".to_owned()),
        "budget" => next("status", "says what was spent".to_owned()),
        _ if is_baseline => next("run", String::new()),
        _ if kept > 0 && !status.is_baseline => next(
            "adopt",
            "brings what was kept to the branch you have checked out".to_owned(),
        ),
        _ if trials > 0 => next("log", String::new()),
        _ => None,
    }
}
