//! `init`: propose a `loopwright.toml` for the project.

use std::io::Write as _;
use std::path::Path;

use clap::Args;
use loopwright_core::spec::detect::{Proposal, render_toml};
use loopwright_core::spec::{DEFAULT_LOOP_NAME, SPEC_FILE_NAME, is_plain_name};
use loopwright_engine::propose_loop;

use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{self, talk};
use crate::place::Common;

/// Look at the project and write a loopwright.toml to start from
///
/// Proposes the measuring command, the metric, what to protect, link and cache, and the setup; what
/// was not found stands in the file as a comment. An existing file is left alone.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Replace a loopwright.toml that is there
    #[arg(long)]
    force: bool,
}

/// Writes the file.
pub fn run(common: &Common, arguments: &Arguments) -> Result<Exit, Failure> {
    let project = common.project()?;
    let path = project.user.top.join(SPEC_FILE_NAME);
    let name = common.loop_name.as_deref().unwrap_or(DEFAULT_LOOP_NAME);
    if !is_plain_name(name) {
        return Err(Failure::refused(format!("`{name}` can't name a loop"))
            .hint("use letters, digits, `-`, `_` and `.`"));
    }
    let proposal = propose_loop(&project)?;
    write(&path, &render_toml(&proposal, name), arguments.force)?;
    output::line(&path.display().to_string())?;
    say(&proposal);
    Ok(Exit::Finished)
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(force)
        .create_new(!force);
    let mut file = options.open(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return Failure::refused(format!("{SPEC_FILE_NAME} is there already"))
                .hint("edit it, or replace it: loopwright init --force");
        }
        Failure::io(format!("write {}", path.display()))(error)
    })?;
    file.write_all(text.as_bytes())
        .map_err(Failure::io(format!("write {}", path.display())))
}

/// What was found, what is missing, and what to type next.
fn say(proposal: &Proposal) {
    if !proposal.kinds.is_empty() {
        talk(&format!("this looks like {}", proposal.kinds.join(", ")));
    }
    let list = |name: &str, items: &[String]| {
        if !items.is_empty() {
            talk(&format!("  {name}: {}", items.join(", ")));
        }
    };
    let one = |name: &str, item: Option<&str>| {
        if let Some(item) = item {
            talk(&format!("  {name}: {item}"));
        }
    };
    one("run", proposal.run.as_deref());
    one("metric", proposal.metric.as_deref());
    one("goal", proposal.goal.map(loopwright_core::spec::Goal::name));
    one("setup", proposal.setup.as_deref());
    list("protect", &proposal.protect);
    list("link", &proposal.link);
    list("cache", &proposal.cache);
    for note in &proposal.notes {
        talk(&format!("note: {note}"));
    }
    let missing: Vec<&str> = [
        ("run", proposal.run.is_none()),
        ("metric", proposal.metric.is_none()),
        ("goal", proposal.goal.is_none()),
        ("propose", true),
    ]
    .into_iter()
    .filter_map(|(key, is_missing)| is_missing.then_some(key))
    .collect();
    talk("");
    talk(&format!(
        "fill in {}: $EDITOR {SPEC_FILE_NAME}",
        missing.join(", ")
    ));
    talk("then look, measure, and run:");
    talk("  loopwright doctor");
    talk("  loopwright baseline");
    talk("  loopwright run --trials 10");
}
