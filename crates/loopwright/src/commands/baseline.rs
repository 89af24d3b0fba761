//! `baseline`: measure the project as it stands.

use clap::Args;
use loopwright_core::spec;
use loopwright_engine::experiment::Purpose;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::place::Common;
use crate::settings::SettingFlags;

use super::drive::start;

/// Measure the project as it stands, and record it as what the loop starts from
///
/// Not required: the first `loopwright run` measures the baseline by itself. Measured again, it
/// never moves the bar.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    settings: SettingFlags,
}

/// Measures the baseline.
pub fn run(common: &Common, output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    let settings = &arguments.settings;
    start(
        common,
        output,
        settings,
        spec::Purpose::Measure,
        Purpose::Baseline,
    )
}
