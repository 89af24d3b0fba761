//! `doctor`: everything a run stands on, looked at.

use std::fmt::Write as _;

use clap::Args;
use loopwright_core::spec::Purpose;
use loopwright_engine::experiment::{Finding, Level, check_loop, check_project, would_be_refused};
use loopwright_exec::Supervisor;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, Output, Tone, one_line};
use crate::place::Common;
use crate::settings::{SettingFlags, settle};

use super::drive::workdir;

/// Look at everything a run stands on, and say what it would be refused for
///
/// The repository, git, the identity, the store, the work folder, how commands are contained, and,
/// where there is a loop, its commands, protected files, links and what it will not see. Nothing
/// is spent or written. The exit status is 2 where a run would be refused.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Print one JSON object per finding
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

/// Looks at everything.
pub fn run(common: &Common, output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    let project = common.project()?;
    let mut findings = check_project(&project, &Supervisor::this_program());
    let settled = settle(
        &common.directory(),
        &project.user.top,
        common.loop_name.as_deref(),
        &arguments.settings,
    );
    let mut wrong = None;
    match settled.and_then(|settled| {
        let spec = settled.specification(Purpose::Measure)?;
        Ok((spec, workdir(&project, settled.file.as_deref())))
    }) {
        Ok((spec, workdir)) => findings.extend(check_loop(&project, &spec, &workdir)),
        Err(failure) => wrong = Some(failure),
    }
    for finding in &findings {
        if arguments.json {
            output::json(finding)?;
        } else {
            output::print(&text_of(finding, output))?;
        }
    }
    if let Some(failure) = wrong {
        return Err(failure);
    }
    Ok(if would_be_refused(&findings) {
        Exit::Refused
    } else {
        Exit::Finished
    })
}

fn text_of(finding: &Finding, output: &Output) -> String {
    let (word, tone) = match finding.level {
        Level::Fine => ("ok", Tone::Good),
        Level::Note => ("note", Tone::Plain),
        Level::Refused => ("WRONG", Tone::Bad),
    };
    let word = output.paint(tone, &format!("{word:<5}"));
    let mut text = format!(
        "{word}  {:<12} {}\n",
        finding.about,
        one_line(&finding.words)
    );
    for hint in &finding.hints {
        let _ = writeln!(text, "       {:<12} hint: {}", "", one_line(hint));
    }
    text
}
