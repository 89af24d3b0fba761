//! A look at everything a run stands on, without spending or writing anything: what is fine, what
//! is worth knowing, and what a run would be refused for.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loopwright_core::spec::ExperimentSpec;
use loopwright_exec::{self as exec, Command, Containment, Ending, Supervisor};
use loopwright_git::arms::InputLink;
use loopwright_git::{Mode, Oid, RepoPath, TreeListing};
use loopwright_record::{OpenMode, Store};
use serde::Serialize;

use crate::error::EngineError;
use crate::project::Project;

use super::preflight;

/// How long the trial command of the containment check may take.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// What a finding means for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Fine,
    /// Worth knowing; stops nobody.
    Note,
    /// A run would be refused.
    Refused,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub about: &'static str,
    /// What it means.
    pub level: Level,
    /// What was found, in words.
    pub words: String,
    /// What to do about it.
    pub hints: Vec<String>,
}

impl Finding {
    fn new(about: &'static str, level: Level, words: impl Into<String>) -> Self {
        Self {
            about,
            level,
            words: words.into(),
            hints: Vec::new(),
        }
    }

    /// What an error says, as a refusal.
    pub fn of_error(about: &'static str, error: &EngineError) -> Self {
        let hints = match error {
            EngineError::Refused { hints, .. } => hints.clone(),
            _ => Vec::new(),
        };
        Self {
            hints,
            ..Self::new(about, Level::Refused, error.to_string())
        }
    }
}

/// Looks at the project and this host.
pub fn check_project(project: &Project, supervisor: &Supervisor) -> Vec<Finding> {
    let mut findings = vec![repository(project), git_version(project), identity(project)];
    findings.push(place("store", &project.store));
    findings.extend(opened_store(project));
    findings.push(place("work folder", &project.work));
    findings.push(containment(supervisor));
    findings.extend(large_files(project));
    findings
}

/// Looks at what a loop asks of the project.
pub fn check_loop(project: &Project, spec: &ExperimentSpec, workdir: &str) -> Vec<Finding> {
    let listing = match listing_of_head(project) {
        Ok(listing) => listing,
        Err(error) => return vec![Finding::of_error("commit", &error)],
    };
    let mut findings = vec![protected(spec, &listing)];
    let commands = preflight::check_commands(spec, &project.user.top, workdir, &listing);
    findings.push(match commands {
        Ok(()) => Finding::new(
            "commands",
            Level::Fine,
            "name no file that only your checkout has",
        ),
        Err(error) => Finding::of_error("commands", &error),
    });
    if spec.propose.is_none() {
        let words =
            "is not set, and `loopwright run` needs it: --propose, or `propose` in loopwright.toml";
        findings.push(Finding::new("proposer", Level::Note, words));
    }
    if let Err(error) = preflight::check_budget(spec) {
        findings.push(Finding::of_error("budget", &error));
    }
    if !spec.link.is_empty() {
        findings.push(match InputLink::resolve(&project.user.top, &spec.link) {
            Ok(links) => Finding::new("links", Level::Fine, format!("{} found", links.len())),
            Err(error) => Finding::of_error("links", &error.into()),
        });
    }
    findings.extend(submodules(&listing));
    findings.push(match project.user.dirty() {
        Ok(dirty) => match preflight::unseen(&dirty) {
            Some(words) => Finding::new("checkout", Level::Note, words),
            None => Finding::new("checkout", Level::Fine, "holds what its commit holds"),
        },
        Err(error) => Finding::of_error("checkout", &error.into()),
    });
    findings
}

fn repository(project: &Project) -> Finding {
    let user = &project.user;
    let mut kinds = vec![format!("{} objects", user.format.name())];
    for (is, words) in [
        (user.shallow, "shallow"),
        (user.partial, "a partial clone"),
        (user.sparse, "sparse: the loop works on the whole commit"),
        (user.linked_worktree, "a linked work tree"),
    ] {
        if is {
            kinds.push(words.to_owned());
        }
    }
    let branch = user.branch.as_deref().unwrap_or("no branch");
    let head = user.head.to_hex();
    let words = format!(
        "{} at {} on {branch} ({})",
        user.top.display(),
        head.get(..7).unwrap_or(&head),
        kinds.join(", ")
    );
    Finding::new("repository", Level::Fine, words)
}

fn git_version(project: &Project) -> Finding {
    match project.user.hermetic().text(["version"]) {
        Ok(version) => Finding::new("git", Level::Fine, version.trim()),
        Err(error) => Finding::of_error("git", &error.into()),
    }
}

fn identity(project: &Project) -> Finding {
    match project.user.identity() {
        Ok(person) => Finding::new(
            "identity",
            Level::Fine,
            format!("{} <{}>", person.name, person.email),
        ),
        Err(error) => Finding::of_error("identity", &error.into()),
    }
}

/// Whether a folder can be made and written; nothing is made.
fn place(about: &'static str, folder: &Path) -> Finding {
    let nearest = folder.ancestors().find(|path| path.exists());
    let shown = folder.display();
    let Some(nearest) = nearest.filter(|path| path.is_dir()) else {
        let words = format!("{shown} can't be made: a file is in its way");
        return Finding::new(about, Level::Refused, words);
    };
    let write = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    match rustix::fs::access(nearest, write) {
        Ok(()) => Finding::new(about, Level::Fine, shown.to_string()),
        Err(error) => {
            let words = format!("{shown} can't be written ({}: {error})", nearest.display());
            Finding::new(about, Level::Refused, words)
        }
    }
}

fn opened_store(project: &Project) -> Option<Finding> {
    match Store::open(&project.store, OpenMode::Read) {
        Ok(store) => {
            let runs = store.runs().map(|runs| runs.len());
            Some(match runs {
                Ok(count) => Finding::new("record", Level::Fine, format!("runs in it: {count}")),
                Err(error) => Finding::of_error("record", &error.into()),
            })
        }
        Err(loopwright_record::OpenError::Missing(_)) => None,
        Err(error) => Some(Finding::of_error("record", &error.into())),
    }
}

/// Which fence commands get here, found out by running one.
fn containment(supervisor: &Supervisor) -> Finding {
    let about = "containment";
    let mut command = Command::argv(["true"], "/");
    command.time_limit = Some(PROBE_LIMIT);
    let finished = match exec::start(command, None, supervisor) {
        Ok(running) => running.wait(),
        Err(error) => return Finding::new(about, Level::Refused, error.to_string()),
    };
    if finished.ending != Ending::Exited(0) {
        let words = format!(
            "`true` can't be run under the supervisor: {:?}",
            finished.ending
        );
        return Finding::new(about, Level::Refused, words);
    }
    let note = finished.containment_note.map(|note| format!(" ({note})"));
    let note = note.unwrap_or_default();
    match finished.containment {
        Some(Containment::PidNamespace) => Finding::new(
            about,
            Level::Fine,
            "each command has a process namespace of its own",
        ),
        Some(Containment::SubreaperScoped) => Finding::new(
            about,
            Level::Fine,
            format!("commands can't leave their family or signal others{note}"),
        ),
        Some(Containment::Subreaper) | None => Finding::new(
            about,
            Level::Note,
            format!("weak: a hostile command could end other processes of yours{note}"),
        ),
    }
}

fn large_files(project: &Project) -> Option<Finding> {
    let git = project.user.hermetic();
    // The checkout's own finding says so.
    project.user.expect_no_trap().ok()?;
    let listed = project
        .user
        .as_user()
        .run(["ls-files", "-z", "--", ":(attr:filter=lfs)"])
        .ok()?;
    let count = listed
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
        .count();
    if count == 0 {
        return None;
    }
    let installed = git
        .output(["lfs", "version"], b"")
        .is_ok_and(|output| output.status.success());
    Some(if installed {
        Finding::new(
            "large files",
            Level::Fine,
            format!("{count} stored with Git LFS"),
        )
    } else {
        let mut finding = Finding::new(
            "large files",
            Level::Refused,
            format!("{count} files are stored with Git LFS, and git-lfs is not installed"),
        );
        finding.hints = vec!["install git-lfs and run `git lfs pull`".to_owned()];
        finding
    })
}

fn protected(spec: &ExperimentSpec, listing: &TreeListing) -> Finding {
    if let Err(error) = preflight::check_protect(spec, listing) {
        return Finding::of_error("protect", &error);
    }
    let set = spec.protected();
    let count = listing
        .keys()
        .filter(|path| set.matches(path.as_bytes()))
        .count();
    if spec.protect.is_empty() {
        let words = "nothing is protected: a proposal may change what measures it";
        return Finding::new("protect", Level::Note, words);
    }
    Finding::new("protect", Level::Fine, format!("files protected: {count}"))
}

fn submodules(listing: &TreeListing) -> Option<Finding> {
    let paths: Vec<String> = listing
        .iter()
        .filter(|(_, (mode, _))| *mode == Mode::Submodule)
        .map(|(path, _)| path.to_string())
        .collect();
    if paths.is_empty() {
        return None;
    }
    let words = format!("read-only in the loop: {}", paths.join(", "));
    Some(Finding::new("submodules", Level::Note, words))
}

/// What the commit that is checked out holds, read from the user's repository.
fn listing_of_head(project: &Project) -> Result<TreeListing, EngineError> {
    let head = project.user.head.to_hex();
    let listed = project
        .user
        .hermetic()
        .run(["ls-tree", "-r", "-z", "--full-tree", &head])?;
    let mut listing = std::collections::BTreeMap::new();
    for record in listed.split(|byte| *byte == 0) {
        let Some(tab) = record.iter().position(|byte| *byte == b'\t') else {
            continue;
        };
        let mut words = record[..tab].split(|byte| *byte == b' ');
        let mode = words.next().and_then(Mode::from_octal);
        let oid = words.nth(1).and_then(Oid::from_hex);
        if let (Some(mode), Some(oid)) = (mode, oid) {
            listing.insert(RepoPath::new(&record[tab + 1..]), (mode, oid));
        }
    }
    Ok(Arc::new(listing))
}

/// Whether anything found would make a run be refused.
pub fn would_be_refused(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.level == Level::Refused)
}
