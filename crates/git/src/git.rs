//! The one door to the git program: fixed environment, fixed settings, typed failures.
//!
//! A `Git` is hermetic unless it is asked for with [`Git::as_user`]: no configuration but the
//! repository's own, no hooks, no file-system monitor, no filters from outside, no network, no
//! prompts, no inherited `GIT_*` variable. The user's own configuration (identity, hooks,
//! signing) counts only where a commit of the user's is made.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::error::GitError;
use crate::types::Oid;
use crate::user_commands::UserCommand;

/// How much of a failing command's words is kept, in bytes.
const MESSAGE_LIMIT: usize = 4000;

/// Settings that hold in every hermetic call, whatever a repository's own configuration says.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.askPass=",
    "core.commitGraph=false",
    "core.fsync=none",
    "core.quotePath=false",
    "core.pager=cat",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "credential.helper=",
    "diff.external=",
    "safe.directory=*",
    "advice.detachedHead=false",
    "submodule.recurse=false",
    "protocol.allow=never",
];

/// A way of calling git: where, on which repository, under whose configuration.
#[derive(Debug, Clone)]
pub struct Git {
    directory: PathBuf,
    repository: Option<PathBuf>,
    work_tree: Option<PathBuf>,
    as_user: bool,
    settings: Vec<String>,
    variables: Vec<(OsString, OsString)>,
}

impl Git {
    /// Hermetic git on the repository that git finds from `directory`.
    pub fn at(directory: &Path) -> Self {
        Self {
            directory: directory.to_path_buf(),
            repository: None,
            work_tree: None,
            as_user: false,
            settings: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Hermetic git on exactly this git directory.
    pub fn on(git_dir: &Path) -> Self {
        let mut git = Self::at(git_dir);
        git.repository = Some(git_dir.to_path_buf());
        git
    }

    /// The same, working in this work tree.
    pub fn with_work_tree(mut self, work_tree: &Path) -> Self {
        self.directory = work_tree.to_path_buf();
        self.work_tree = Some(work_tree.to_path_buf());
        self
    }

    /// With one more setting, `name=value`; later ones win.
    pub fn with_setting(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// With one more environment variable.
    pub fn with_variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), value.as_ref().into()));
        self
    }

    /// With more environment variables.
    pub fn with_environment(mut self, variables: &[(String, OsString)]) -> Self {
        let variables = variables.iter();
        self.variables
            .extend(variables.map(|(name, value)| (name.into(), value.clone())));
        self
    }

    /// With git's own syncing of everything it writes (its directories are still ours to sync).
    pub fn syncing(self) -> Self {
        self.with_setting("core.fsync=all")
            .with_setting("core.fsyncMethod=fsync")
    }

    /// Under the user's whole configuration: their hooks, their signing, their filters.
    pub fn as_user(directory: &Path) -> Self {
        let mut git = Self::at(directory);
        git.as_user = true;
        git
    }

    /// The command, ready for arguments to be added.
    pub fn command(&self) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            let keep = self.as_user && keeps_identity(&name);
            if name.as_encoded_bytes().starts_with(b"GIT_") && !keep {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        if !self.as_user {
            command
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_ATTR_NOSYSTEM", "1")
                .env("GIT_ALLOW_PROTOCOL", "none")
                .env("GIT_NO_LAZY_FETCH", "1")
                .env("GIT_NO_REPLACE_OBJECTS", "1")
                .env("GIT_OPTIONAL_LOCKS", "0")
                // A Ctrl-C meant for us must not end a git we are waiting for.
                .process_group(0);
            for setting in SETTINGS {
                command.arg("-c").arg(setting);
            }
        }
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        if let Some(git_dir) = &self.repository {
            command.env("GIT_DIR", git_dir);
        }
        if let Some(work_tree) = &self.work_tree {
            command.env("GIT_WORK_TREE", work_tree);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.directory);
        command
    }

    /// The same as plain data, for somebody else to run.
    pub(crate) fn user_command(&self, arguments: &[&str], input: &[u8]) -> UserCommand {
        // No housekeeping that goes on behind: it would be ended with the command.
        let git = self.clone().with_setting("gc.auto=0");
        let mut command = git.with_setting("maintenance.auto=false").command();
        command.args(arguments);
        let program = std::iter::once(command.get_program());
        let (mut set, mut remove) = (BTreeMap::new(), BTreeSet::new());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => drop(set.insert(name.to_owned(), value.to_owned())),
                None => drop(remove.insert(name.to_owned())),
            }
        }
        UserCommand {
            words: program
                .chain(command.get_args())
                .map(OsStr::to_owned)
                .collect(),
            directory: self.directory.clone(),
            set,
            remove,
            input: input.to_vec(),
        }
    }

    /// Runs git and hands back what came out, however it ended.
    pub fn output<I, S>(&self, arguments: I, input: &[u8]) -> Result<Output, GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = self.command();
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .stdin(if input.is_empty() {
                Stdio::null()
            } else {
                Stdio::piped()
            });
        let mut child = spawn(&mut command, &self.directory)?;
        let stdin = child.stdin.take();
        std::thread::scope(|scope| {
            if let Some(mut stdin) = stdin {
                // A git that stops reading early says why on its standard error.
                scope.spawn(move || stdin.write_all(input));
            }
            child.wait_with_output()
        })
        .map_err(GitError::io("read the output of git in", &self.directory))
    }

    /// Runs git with input; it must succeed.
    pub fn run_with<I, S>(&self, arguments: I, input: &[u8]) -> Result<Vec<u8>, GitError>
    where
        I: IntoIterator<Item = S> + Clone,
        S: AsRef<OsStr>,
    {
        let output = self.output(arguments.clone(), input)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(failure(arguments, &output))
    }

    /// Runs git without input; it must succeed.
    pub fn run<I, S>(&self, arguments: I) -> Result<Vec<u8>, GitError>
    where
        I: IntoIterator<Item = S> + Clone,
        S: AsRef<OsStr>,
    {
        self.run_with(arguments, b"")
    }

    /// Runs git; its output as text without the line end.
    pub fn text<I, S>(&self, arguments: I) -> Result<String, GitError>
    where
        I: IntoIterator<Item = S> + Clone,
        S: AsRef<OsStr>,
    {
        let output = self.run(arguments)?;
        Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
    }

    /// The id a name stands for; `None` if it stands for nothing.
    pub fn resolve(&self, name: &str) -> Result<Option<Oid>, GitError> {
        let output = self.output(["rev-parse", "--verify", "--quiet", name], b"")?;
        Ok(Oid::from_hex(output.stdout.trim_ascii()))
    }
}

/// Variables of the user's that say who they are; the rest of `GIT_*` never comes through.
fn keeps_identity(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("GIT_AUTHOR_")
        || name.starts_with("GIT_COMMITTER_")
        || name.starts_with("GIT_CONFIG_GLOBAL")
        || name.starts_with("GIT_CONFIG_SYSTEM")
        || name.starts_with("GIT_CONFIG_NOSYSTEM")
        || name.starts_with("GIT_SSH")
}

/// Starts a command, telling a missing program from a missing directory.
pub(crate) fn spawn(command: &mut Command, directory: &Path) -> Result<Child, GitError> {
    command.spawn().map_err(|source| {
        if source.kind() == std::io::ErrorKind::NotFound && directory.is_dir() {
            GitError::NoGit { source }
        } else {
            GitError::io("run git in", directory)(source)
        }
    })
}

/// The error for a command that ended badly.
pub(crate) fn failure<I, S>(arguments: I, output: &Output) -> GitError
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let command = arguments
        .into_iter()
        .map(|argument| argument.as_ref().to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ");
    GitError::Command {
        command,
        status: output.status.to_string(),
        message: words(output),
    }
}

/// What a command said: its standard error, else its output; shortened.
pub(crate) fn words(output: &Output) -> String {
    let mut bytes = output.stderr.trim_ascii();
    if bytes.is_empty() {
        bytes = output.stdout.trim_ascii();
    }
    let shown = &bytes[bytes.len().saturating_sub(MESSAGE_LIMIT)..];
    String::from_utf8_lossy(shown).into_owned()
}

/// Splits output whose records end with NUL.
pub(crate) fn split_nul(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output
        .split(|byte| *byte == 0)
        .filter(|record| !record.is_empty())
}
