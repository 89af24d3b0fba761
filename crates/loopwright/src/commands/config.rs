//! `config`: the settings in force, and where each comes from.

use clap::{Args, Subcommand};
use loopwright_core::spec::render_rows;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, talk};
use crate::place::Common;
use crate::settings::{SettingFlags, settle};

/// Show the settings in force
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// What to do with the settings.
#[derive(Subcommand, Debug)]
enum Action {
    Show(Show),
}

/// Show every setting of a loop, its value, and where the value comes from
#[derive(Args, Debug)]
struct Show {
    /// Print one JSON object per setting
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

/// Shows the settings.
pub fn run(common: &Common, arguments: &Arguments) -> Result<Exit, Failure> {
    let Action::Show(show) = &arguments.action;
    let located = common.locate()?;
    let directory = common.directory();
    let top = located.top.clone().unwrap_or_else(|| directory.clone());
    let settled = settle(
        &directory,
        &top,
        common.loop_name.as_deref(),
        &show.settings,
    )?;
    for notice in &settled.resolved.notices {
        talk(&format!("note: {notice}"));
    }
    let rows = settled.resolved.rows();
    if show.json {
        for row in &rows {
            output::json(row)?;
        }
    } else {
        output::print(&render_rows(&rows))?;
    }
    Ok(Exit::Finished)
}
