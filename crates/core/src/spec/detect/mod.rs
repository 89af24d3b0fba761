//! Proposing a specification for a project that has none, from its file names and a few contents.
//!
//! Pure: the caller lists the files and hands in a way to read one. Nothing proposed here is
//! trusted: `init` writes it down with comments, and the user decides.

mod ecosystem;
mod protect;
mod render;
mod script;

pub use render::render_toml;

use super::experiment::Goal;
use super::paths::sorted;

/// What is known about a project.
#[derive(Clone, Copy)]
pub struct ProjectFacts<'a> {
    /// The tracked files, relative to the top directory, with `/`.
    pub tracked: &'a [String],
    /// Names in the top directory that git does not carry, ignored ones too, without a slash.
    pub untracked: &'a [String],
    /// The text of a tracked file, if it is text.
    pub read: &'a dyn Fn(&str) -> Option<String>,
}

/// A specification to start from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// What the project looks like, `Cargo`, `Python` …; empty when nothing was recognised.
    pub kinds: Vec<String>,
    /// The measuring command.
    pub run: Option<String>,
    /// The metric it seems to print.
    pub metric: Option<String>,
    /// The goal the metric's name suggests.
    pub goal: Option<Goal>,
    /// Patterns of the files a proposal must not change.
    pub protect: Vec<String>,
    /// Inputs git does not carry.
    pub link: Vec<String>,
    /// What measurements may keep.
    pub cache: Vec<String>,
    /// The command that fetches and builds what is needed.
    pub setup: Option<String>,
    /// The files it depends on.
    pub setup_inputs: Vec<String>,
    /// Whether contradicting values of the metric should be refused.
    pub strict_metric: bool,
    /// What the user should know or do, a sentence each.
    pub notes: Vec<String>,
}

/// Untracked directories that look like inputs, not like something built.
const INPUT_NAMES: [&str; 12] = [
    "assets",
    "checkpoints",
    "corpora",
    "corpus",
    "data",
    "dataset",
    "datasets",
    "fixtures",
    "inputs",
    "models",
    "weights",
    ".data",
];

impl ProjectFacts<'_> {
    fn has(&self, path: &str) -> bool {
        self.tracked.iter().any(|tracked| tracked == path)
    }

    fn has_below(&self, directory: &str) -> bool {
        self.tracked.iter().any(|path| {
            path.strip_prefix(directory)
                .is_some_and(|rest| rest.starts_with('/'))
        })
    }

    fn text(&self, path: &str) -> Option<String> {
        if self.has(path) {
            (self.read)(path)
        } else {
            None
        }
    }
}

/// Proposes a specification.
pub fn detect(facts: &ProjectFacts<'_>) -> Proposal {
    let mut proposal = Proposal::default();
    ecosystem::describe(facts, &mut proposal);
    let referee = ecosystem::measuring_command(facts, &mut proposal);
    script::find_metric(facts, referee.as_deref(), &mut proposal);
    protect::propose(facts, referee.as_deref(), &mut proposal);
    let inputs = facts
        .untracked
        .iter()
        .filter(|name| INPUT_NAMES.contains(&name.as_str()));
    proposal.link = sorted(inputs.cloned().collect());
    if !proposal.link.is_empty() {
        proposal.notes.push(format!(
            "{} is in the checkout but not in git: linked read-only, so that measurements see it.",
            proposal.link.join(", ")
        ));
    }
    if proposal.run.is_none() {
        proposal.notes.push(
            "No measuring command was found: write a script that prints a line `name=value`, and \
             name it as `run`."
                .to_owned(),
        );
    } else if proposal.metric.is_none() {
        proposal.notes.push(
            "The metric's name was not found: let the measuring command print a line `name=value`, \
             and name it as `metric`."
                .to_owned(),
        );
    } else if proposal.goal.is_none() {
        proposal.notes.push(
            "Whether less or more of the metric is better is for you to say: write `goal = \"min\"` \
             or `goal = \"max\"`."
                .to_owned(),
        );
    }
    proposal.protect = sorted(proposal.protect);
    proposal.cache = sorted(proposal.cache);
    proposal.setup_inputs = sorted(proposal.setup_inputs);
    proposal.strict_metric = !proposal.protect.is_empty() && proposal.metric.is_some();
    proposal
}
