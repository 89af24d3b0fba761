//! `baseline`: measure the project as it stands.

use clap::Args;
use loopwright_core::spec;
use loopwright_engine::experiment::Purpose;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{Output, talk};
use crate::place::Common;
use crate::settings::{SettingFlags, settle};

use super::drive::{Drive, workdir};

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
    let spec = settled.specification(spec::Purpose::Measure)?;
    Drive {
        workdir: workdir(&project, settled.file.as_deref()),
        project: &project,
        spec,
        fresh: true,
        purpose: Purpose::Baseline,
        force: false,
        loop_words: common.loop_words(),
    }
    .go(output)
}
