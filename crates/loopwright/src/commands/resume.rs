//! `resume`: go on where a run stands, with what it pinned.

use clap::{Args, ValueEnum};
use loopwright_core::experiment::Caps;
use loopwright_core::ids::LoopName;
use loopwright_core::kernel::Resolution;
use loopwright_core::spec::{self, ExperimentSpec};
use loopwright_engine::committer::now;
use loopwright_engine::experiment::{Purpose, Unfinished, pinned, unfinished};
use loopwright_engine::views::loops_of;
use loopwright_record::RunState;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{Output, one_line, talk};
use crate::place::{Common, Record, several};
use crate::settings::{SettingFlags, settle_pinned};

use super::drive::Drive;

/// Go on with a run: after an interruption, a crash or a full disk, or with more trials
///
/// Settings and the commit to work from are those that the run pinned, whatever loopwright.toml
/// and your checkout say now; flags change them for this invocation. The trials that the last
/// invocation had left are done, and its open trial is carried on; where it had none left, --trials N
/// asks for more. Without --loop, the one loop that was interrupted is taken up.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Take the run over from a holder that still lives; what it does is shut out from then on
    #[arg(long)]
    force: bool,

    /// What to do about the effect that was cut off and that the loop asks about (on_unknown =
    /// "ask"): do it again, or count it as failed
    #[arg(long, value_name = "WORD")]
    unknown: Option<Unknown>,

    #[command(flatten)]
    settings: SettingFlags,
}

/// An answer about an effect whose outcome is unknown.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Unknown {
    /// Do it again
    Retry,
    /// Count it as failed
    Fail,
}

impl Unknown {
    fn resolution(self) -> Resolution {
        match self {
            Self::Retry => Resolution::Retry,
            Self::Fail => Resolution::Fail,
        }
    }
}

/// Resumes a run.
pub fn run(common: &Common, output: &Output, arguments: &Arguments) -> Result<Exit, Failure> {
    // First of all: what an interrupted proposal left may hide the record.
    let project = common.project_to_drive()?;
    let record = common.read()?;
    let name = choose(common, &record)?;
    let Some((run_id, caps)) = pinned(&record.store, &name)? else {
        return Err(
            Failure::refused(format!("loop {name} has nothing to go on with"))
                .hint("start it: loopwright run"),
        );
    };
    let left = unfinished(&record.store, &run_id)?;
    drop(record);
    if let Some(ending) = left.as_ref().and_then(Unfinished::done)
        && arguments.settings.is_empty()
        && arguments.unknown.is_none()
    {
        talk(&format!(
            "nothing is left to do: {}",
            one_line(&ending.words)
        ));
        talk(&format!(
            "for more: loopwright resume --trials N{}",
            common.loop_words()
        ));
        return Ok(Exit::of_ending(ending, None));
    }
    let (spec, purpose, notices) = goes_on(&caps, left, &arguments.settings)?;
    Drive {
        project: &project,
        spec,
        fresh: false,
        purpose,
        workdir: caps.workdir,
        force: arguments.force,
        notices,
        unknown: arguments.unknown.map(Unknown::resolution),
        loop_words: common.loop_words(),
    }
    .go(output)
}

/// The specification and the purpose with which the run goes on, and what is to be said about it.
fn goes_on(
    caps: &Caps,
    left: Option<Unfinished>,
    flags: &SettingFlags,
) -> Result<(ExperimentSpec, Purpose, Vec<String>), Failure> {
    let old = pinned_spec(caps)?;
    let resolved = settle_pinned(&old, flags)?;
    let mut notices = resolved.notices.clone();
    let mut spec = resolved.experiment(spec::Purpose::Measure)?;
    let drift = ExperimentSpec::drift(&old, &spec);
    if !drift.refused.is_empty() {
        let fields: Vec<String> = drift.refused.iter().map(ToString::to_string).collect();
        let what = format!(
            "the loop would be another one with this change: {}",
            fields.join("; ")
        );
        return Err(
            Failure::refused(what).hint("start it under a new name: loopwright run --loop NAME")
        );
    }
    for change in &drift.harness {
        notices.push(format!("a new segment starts: {change}"));
    }
    let asked = flags.is_given("--trials");
    let purpose = match left {
        Some(left) if !asked && left.done().is_none() => {
            if left.purpose == Purpose::Run {
                spec.trials = left.trials_left;
            }
            left.purpose
        }
        _ => Purpose::Run,
    };
    Ok((spec, purpose, notices))
}

/// The specification that a run was driven with last.
pub fn pinned_spec(caps: &Caps) -> Result<ExperimentSpec, Failure> {
    serde_json::from_value(caps.specification.clone())
        .map_err(|error| Failure::new(Exit::Damaged, format!("the pinned specification: {error}")))
}

/// The loop named; else the only interrupted one; else the only one.
fn choose(common: &Common, record: &Record) -> Result<LoopName, Failure> {
    if common.loop_name.is_some() {
        return common.choose_loop(record);
    }
    let mut interrupted = Vec::new();
    for name in loops_of(&record.store)? {
        if let Some(summary) = record.store.latest_run(&name)?
            && record.store.state_of(&summary, now())? == RunState::Interrupted
        {
            interrupted.push(name);
        }
    }
    match interrupted.as_slice() {
        [only] => Ok(only.clone()),
        [] => common.choose_loop(record),
        more => Err(several(more)),
    }
}
