//! `run`: propose, measure, decide, until the invocation has done what it is for.

use clap::Args;
use loopwright_core::spec;
use loopwright_engine::experiment::Purpose;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{Output, talk};
use crate::place::Common;
use crate::settings::{SettingFlags, settle};

use super::drive::{Drive, workdir};

/// Run a loop: propose a change, measure it, keep it or not, and again
///
/// The loop is read from loopwright.toml, or given by flags alone:
///
///   loopwright run --run 'sh bench.sh' --metric seconds --goal min --propose 'sh propose.sh' --trials 20
///
/// Trial lines go to stdout as trials are decided. Nothing of your checkout is touched: kept
/// changes are on the git branch loopwright/LOOP/main; `loopwright adopt` brings them to yours.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    settings: SettingFlags,
}

/// Runs a loop.
pub fn run(common: &Common, output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    let project = common.project()?;
    let settled = settle(
        &common.directory(),
        &project.user.top,
        common.loop_name.as_deref(),
        &arguments.settings,
    )?;
    for notice in &settled.resolved.notices {
        talk(&format!("note: {notice}"));
    }
    let spec = settled.specification(spec::Purpose::Propose)?;
    Drive {
        workdir: workdir(&project, settled.file.as_deref()),
        project: &project,
        spec,
        fresh: true,
        purpose: Purpose::Run,
        force: false,
        loop_words: common.loop_words(),
    }
    .go(output)
}
