//! Driving a run in the foreground: signals caught, progress shown, and how it ended said.

use std::ops::ControlFlow;
use std::path::Path;

use loopwright_core::budget::OverBudget;
use loopwright_core::ending::Reason;
use loopwright_core::ids::{BranchName, LoopName};
use loopwright_core::kernel::Resolution;
use loopwright_core::machine::Ending;
use loopwright_core::spec::{self, ExperimentSpec};
use loopwright_core::usage::Dimension;
use loopwright_engine::experiment::{KEYS, Purpose, Request, Session, SessionReport};
use loopwright_engine::views::{
    LoopStatus, TrialRow, refused_by_budget, status_of, trial_row, visit_lines,
};
use loopwright_engine::{Happenings, Project};
use loopwright_exec::Supervisor;
use loopwright_record::{OpenMode, Select, Store};

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::live::Live;
use crate::output::{Output, one_line, talk};
use crate::place::Common;
use crate::progress::Progress;
use crate::settings::{SettingFlags, settle};
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
    /// What is to be said once it is sure that the run can be driven.
    pub notices: Vec<String>,
    /// What is said about effects whose outcome is unknown.
    pub unknown: Option<Resolution>,
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

/// Drives a loop with settings and commit read anew: what `run` and `baseline` do.
pub fn start(
    common: &Common,
    output: &Output,
    settings: &SettingFlags,
    needs: spec::Purpose,
    purpose: Purpose,
) -> Result<Exit, Failure> {
    let project = common.project_to_drive()?;
    let settled = settle(
        &common.directory(),
        &project.user.top,
        common.loop_name.as_deref(),
        settings,
    )?;
    let spec = settled.specification(needs)?;
    Drive {
        workdir: workdir(&project, settled.file.as_deref()),
        project: &project,
        spec,
        fresh: true,
        purpose,
        force: false,
        notices: settled.resolved.notices,
        unknown: None,
        loop_words: common.loop_words(),
    }
    .go(output)
}

impl Drive<'_> {
    /// Drives it to the end of the invocation.
    pub fn go(self, output: &Output) -> Result<Exit, Failure> {
        let happenings = Happenings::default();
        let live = Live::new(output);
        let speaker = live.speaker();
        let interrupter = happenings.interrupter();
        let caught = signals::forward(
            move |name| interrupter.interrupt(name),
            move |text| speaker.say(text),
        )?;
        let metric = self.spec.metric.clone();
        let name = LoopName::new(&self.spec.name).map_err(Failure::refused)?;
        let (best, open) = before(self.project, &name);
        live.best(best.unwrap_or_default());
        let mut progress = Progress::new(output, &live, &metric, open);
        let baseline = (self.purpose == Purpose::Baseline).then(|| Baseline {
            proposes: self.spec.propose.is_some(),
        });
        let request = Request {
            spec: self.spec,
            fresh: self.fresh,
            purpose: self.purpose,
            workdir: self.workdir,
            force: self.force,
            notices: self.notices,
            unknown: self.unknown,
            supervisor: Supervisor::this_program(),
        };
        let driven = Session::drive(self.project, request, happenings, &mut progress);
        drop(live);
        let report = driven?;
        let exit = Exit::of_ending(&report.ending, caught.signal());
        say_end(self.project, &name, &report, &self.loop_words, baseline);
        Ok(exit)
    }
}

/// The best so far, and what is known of the trial that is open, so that its line is whole when it
/// is decided.
fn before(project: &Project, name: &LoopName) -> (Option<String>, Option<TrialRow>) {
    let look = || {
        let mut store = Store::open(&project.store, OpenMode::Read).ok()?;
        store.index_keys(KEYS).ok()?;
        let status = status_of(&store, name).ok().flatten()?;
        let run = store.latest_run(name).ok().flatten()?.run;
        let open = status
            .open_trial
            .and_then(|trial| trial_row(&store, &run, trial).ok().flatten());
        Some((best_text(&status), open))
    };
    // Where there is no record yet, or a damaged one, whoever drives it will say so.
    look().unwrap_or_default()
}

/// What a baseline was measured for.
#[derive(Clone, Copy)]
struct Baseline {
    /// Whether the settings say who proposes.
    proposes: bool,
}

/// The record as it stands after the invocation.
struct Aftermath {
    status: LoopStatus,
    /// The trial decided last.
    last_trial: Option<u64>,
    /// What didn't fit the budget last.
    refused: Option<OverBudget>,
}

fn aftermath(project: &Project, report: &SessionReport, name: &LoopName) -> Option<Aftermath> {
    let store = Store::open(&project.store, OpenMode::Read).ok()?;
    let status = status_of(&store, name).ok().flatten()?;
    let mut last_trial = None;
    let newest = Select::newest(1);
    visit_lines(&store, &report.run, newest, |_, line| {
        last_trial = Some(line.trial);
        ControlFlow::Break(())
    })
    .ok()?;
    // It is among the last events then; else it may be looked for in all of them.
    let is_over_budget = report.ending.known() == Some(Reason::Budget);
    let refused = is_over_budget.then(|| refused_by_budget(&store, &report.run));
    let refused = refused.and_then(|found| found.ok().flatten());
    Some(Aftermath {
        status,
        last_trial,
        refused,
    })
}

fn say_end(
    project: &Project,
    name: &LoopName,
    report: &SessionReport,
    loop_words: &str,
    baseline: Option<Baseline>,
) {
    // What was driven is recorded; a record that can't be read back now says so elsewhere.
    let after = aftermath(project, report, name);
    talk("");
    if let Some(Aftermath { status, .. }) = &after {
        let counts = counts_text(status);
        if !counts.is_empty() {
            talk(&counts);
        }
        if let Some(best) = best_text(status) {
            talk(&best);
        }
    }
    talk(&one_line(&report.ending.sentence()));
    let is_said = report.ending.known() == Some(Reason::Waiting);
    if let Some(question) = report.waiting.as_ref().filter(|_| !is_said) {
        talk(&format!("it waits for you: {}", one_line(question)));
    }
    let next = after.and_then(|after| next_command(&report.ending, &after, baseline));
    if let Some((command, why)) = next {
        talk(&format!("next: loopwright {command}{loop_words}"));
        if !why.is_empty() {
            talk(&format!("      {why}"));
        }
    }
}

/// The command that raises the limit which hindered; none where no limit would help.
fn raise(over: &OverBudget) -> Option<String> {
    let flag = spec::budget_setting(over.dimension)?.flag?;
    let value = match over.dimension {
        Dimension::Time | Dimension::Wall => "TIME",
        Dimension::Money => "AMOUNT",
        Dimension::Steps | Dimension::Tokens => "N",
    };
    (over.unknown == 0).then(|| format!("resume {flag} {value}"))
}

/// The command to type next, and why.
fn next_command(
    ending: &Ending,
    after: &Aftermath,
    baseline: Option<Baseline>,
) -> Option<(String, &'static str)> {
    let status = &after.status;
    let trials: u64 = status.counts.values().sum();
    let show = || {
        // One that failed to be measured again is open still.
        let trial = status.open_trial.or(after.last_trial)?;
        Some((format!("show {trial}"), "says what was printed"))
    };
    let next = |command: &str, why| Some((command.to_owned(), why));
    match ending.known()? {
        Reason::Interrupted | Reason::HostFailed | Reason::HostDied => next("resume", ""),
        Reason::BaselineFailed | Reason::GaveUp => show(),
        Reason::Budget => {
            // Nothing was refused where it is the measurements that are used up.
            let runs = || Some("resume --max-runs N".to_owned());
            match after.refused.as_ref().map_or_else(runs, raise) {
                Some(command) => next(
                    &command,
                    "a higher limit goes on; it is for the loop's whole life, and status says what was spent",
                ),
                None => next("status", "says what was spent"),
            }
        }
        Reason::Waiting => next(
            "resume --unknown retry",
            "does it again; with --unknown fail it counts as failed",
        ),
        Reason::Finished | Reason::TargetReached | Reason::WallClock | Reason::Idle => {
            if let Some(baseline) = baseline {
                if baseline.proposes {
                    next("run", "")
                } else {
                    let why = "with the settings given here; loopwright init writes a file to keep them in";
                    next("run --propose CMD --trials N", why)
                }
            } else if !status.is_baseline && status.incumbent.is_some() && !status.in_place {
                let why = "brings what was kept to the branch you have checked out";
                let is_main = status.branch == BranchName::main().as_str();
                let of = if is_main {
                    String::new()
                } else {
                    format!(" --branch {}", status.branch)
                };
                next(&format!("adopt{of}"), why)
            } else if trials > 0 {
                next("log", "")
            } else {
                None
            }
        }
    }
}
