//! What a command is about: the project, its store, and which loop and run are meant.

use std::path::PathBuf;

use clap::Args;
use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::spec::{did_you_mean, near_misses};
use loopwright_engine::experiment::{KEYS, project_to_drive};
use loopwright_engine::project::check_not_lost;
use loopwright_engine::views::{LISTING, loops_of};
use loopwright_engine::{Located, Project, locate};
use loopwright_record::{OpenError, OpenMode, Store};

use crate::failure::Failure;
use crate::output::talk;
use crate::settings::find_file;

/// Options every command has.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Work as if started in this directory
    #[arg(
        short = 'C',
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Common options"
    )]
    pub directory: Option<PathBuf>,

    /// Keep the record here instead of in the repository's git directory
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Common options"
    )]
    pub store: Option<PathBuf>,

    /// The loop that is meant, where there are several
    #[arg(
        long = "loop",
        global = true,
        value_name = "NAME",
        help_heading = "Common options"
    )]
    pub loop_name: Option<String>,
}

impl Common {
    /// The directory the command is about.
    pub fn directory(&self) -> PathBuf {
        let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        self.directory.clone().unwrap_or_else(here)
    }

    fn existing_directory(&self) -> Result<PathBuf, Failure> {
        let directory = self.directory();
        if directory.is_dir() {
            return Ok(directory);
        }
        Err(Failure::refused(format!(
            "there is no directory {}",
            directory.display()
        )))
    }

    /// The whole project, as git knows it.
    pub fn project(&self) -> Result<Project, Failure> {
        // A store is named from where the user stands, not from -C.
        let store = self.store_path()?;
        Ok(Project::find(
            &self.existing_directory()?,
            store.as_deref(),
        )?)
    }

    /// The same for whoever drives a run in it, or works in its checkout: what an interrupted
    /// proposal left in git's way is undone first, and said.
    pub fn project_to_drive(&self) -> Result<Project, Failure> {
        let store = self.store_path()?;
        let (project, undone) = project_to_drive(&self.existing_directory()?, store.as_deref())?;
        for words in undone {
            talk(&format!("undone in your checkout: {words}"));
        }
        Ok(project)
    }

    fn store_path(&self) -> Result<Option<PathBuf>, Failure> {
        self.store
            .as_deref()
            .map(std::path::absolute)
            .transpose()
            .map_err(Failure::io("find the store"))
    }

    /// Where the store is, without asking git.
    pub fn locate(&self) -> Result<Located, Failure> {
        let store = self.store_path()?;
        Ok(locate(&self.existing_directory()?, store.as_deref())?)
    }

    /// The record, to read.
    pub fn read(&self) -> Result<Record, Failure> {
        let located = self.locate()?;
        let opened = Store::open(&located.store, OpenMode::Read);
        if let Err(OpenError::Missing(_)) = opened {
            check_not_lost(&located.store, 0)?;
        }
        let mut store = opened?;
        check_not_lost(&located.store, store.runs()?.len())?;
        store.index_keys(KEYS)?;
        store.keep_listing(LISTING)?;
        Ok(Record {
            store,
            top: located.top,
        })
    }

    /// The loop that is meant, among those that were run.
    pub fn choose_loop(&self, record: &Record) -> Result<LoopName, Failure> {
        let known = loops_of(&record.store)?;
        if let Some(name) = &self.loop_name {
            return named(name, &known);
        }
        if let [only] = known.as_slice() {
            return Ok(only.clone());
        }
        if known.is_empty() {
            return Err(Failure::nothing_was_run());
        }
        // The file's only loop is the one meant, where several were run once.
        let file = match &record.top {
            Some(top) => find_file(&self.directory(), top).ok().flatten(),
            None => None,
        };
        let entry = file
            .as_ref()
            .and_then(|found| found.content.choose(None).ok());
        if let Some(entry) = entry
            && let Some(name) = known.iter().find(|name| name.as_str() == entry.name)
        {
            return Ok(name.clone());
        }
        Err(several(&known))
    }

    /// The newest run of the loop that is meant.
    pub fn choose_run(&self, record: &Record) -> Result<(LoopName, RunId), Failure> {
        let name = self.choose_loop(record)?;
        match record.store.latest_run(&name)? {
            Some(summary) => Ok((name, summary.run)),
            None => Err(Failure::refused(format!("loop {name} was never run here"))),
        }
    }

    /// ` --loop NAME`, where the user said so: for commands that are shown to be typed.
    pub fn loop_words(&self) -> String {
        let name = self.loop_name.as_ref();
        name.map(|name| format!(" --loop {name}"))
            .unwrap_or_default()
    }
}

/// An open record.
pub struct Record {
    /// The store, open to read.
    pub store: Store,
    /// The top of the checkout, where there is one.
    pub top: Option<PathBuf>,
}

fn named(name: &str, known: &[LoopName]) -> Result<LoopName, Failure> {
    if let Some(found) = known.iter().find(|known| known.as_str() == name) {
        return Ok(found.clone());
    }
    let near = near_misses(name, known.iter().map(LoopName::as_str));
    let failure = Failure::refused(format!("loop {name} was never run here"));
    Err(match did_you_mean(&near) {
        Some(help) => failure.hint(help),
        None if known.is_empty() => failure.hint("start: loopwright run"),
        None => failure.hint(format!("there are: {}", list(known))),
    })
}

/// Several loops, and none was named.
pub fn several(known: &[LoopName]) -> Failure {
    Failure::refused("several loops were run here, and none was named")
        .hint(format!("name one: --loop NAME, of {}", list(known)))
}

fn list(known: &[LoopName]) -> String {
    let names: Vec<&str> = known.iter().map(LoopName::as_str).collect();
    names.join(", ")
}
