//! `run`: propose, measure, decide, until the invocation has done what it is for.

use clap::Args;
use loopwright_core::spec;
use loopwright_engine::experiment::Purpose;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::place::Common;
use crate::settings::SettingFlags;

use super::drive::start;

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
    let settings = &arguments.settings;
    start(
        common,
        output,
        settings,
        spec::Purpose::Propose,
        Purpose::Run,
    )
}
