//! The user's repository: what it is, where a loop may start in it, and what it will not see.
//!
//! Everything here reads. Conditions a loop can't start from are a [`Refusal`] with what to do,
//! found before anything is spent.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::error::{GitError, Refusal};
use crate::git::{Git, split_nul, words};
use crate::store::Person;
use crate::traps;
use crate::types::{ObjectFormat, Oid, RepoPath};

/// The oldest git whose `merge-tree --write-tree` and `cat-file --batch-command` we can use.
const OLDEST_GIT: (u32, u32) = (2, 38);

/// How deep alternates of alternates are followed, as git does.
const ALTERNATES_DEPTH: usize = 5;

/// A repository of the user's in which a loop may run.
#[derive(Debug, Clone)]
pub struct UserRepository {
    /// The top of the checkout.
    pub top: PathBuf,
    /// Its git directory (of this work tree, if it is a linked one).
    pub git_dir: PathBuf,
    /// The git directory all work trees share.
    pub common_dir: PathBuf,
    /// How objects are named.
    pub format: ObjectFormat,
    /// The commit that is checked out.
    pub head: Oid,
    /// The checked-out branch's short name; `None` if HEAD is detached.
    pub branch: Option<String>,
    /// Where below the top the command was given; empty at the top.
    pub prefix: RepoPath,
    /// A clone without its whole history.
    pub shallow: bool,
    /// A clone whose objects are fetched when needed.
    pub partial: bool,
    /// Not all files are checked out; the loop uses all of them.
    pub sparse: bool,
    /// A work tree made by `git worktree add`.
    pub linked_worktree: bool,
    configuration: HashMap<String, Vec<u8>>,
    environment: Environment,
}

/// Variables given to git on top of those of this process.
pub type Environment = Vec<(String, OsString)>;

/// What a run that starts from HEAD does not see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Tracked files that differ from HEAD (edited, staged, deleted, renamed).
    pub modified: Vec<RepoPath>,
    /// Files (or whole directories, ending in `/`) that are neither tracked nor ignored.
    pub untracked: Vec<RepoPath>,
}

impl Dirty {
    /// True if HEAD is all there is.
    pub fn is_clean(&self) -> bool {
        self.modified.is_empty() && self.untracked.is_empty()
    }
}

impl UserRepository {
    /// Finds the repository around a directory and learns what kind it is.
    pub fn discover(directory: &Path) -> Result<Self, GitError> {
        Self::discover_with(directory, Environment::new())
    }

    /// The same, with variables that say who the user is (`HOME`, `GIT_CONFIG_GLOBAL`, …).
    pub fn discover_with(directory: &Path, environment: Environment) -> Result<Self, GitError> {
        if !directory.is_dir() {
            return Err(Refusal::NotARepository(directory.to_path_buf()).into());
        }
        if let Some(trap) = traps::find(directory) {
            return Err(Refusal::Trapped(Box::new(trap)).into());
        }
        let git = quiet(Git::as_user(directory).with_environment(&environment));
        check_version(&git)?;
        let places = Places::find(&git, directory)?;
        let configuration = read_configuration(&git)?;
        let Some(head) = git.resolve("HEAD^{commit}")? else {
            return Err(match git.resolve("HEAD")? {
                Some(oid) => GitError::Missing {
                    oid,
                    place: places.common_dir.join("objects"),
                },
                None => Refusal::NoCommits(places.top).into(),
            });
        };
        let symbolic = git.output(["symbolic-ref", "--quiet", "HEAD"], b"")?;
        let symbolic = String::from_utf8_lossy(&symbolic.stdout).into_owned();
        let branch = symbolic.trim_end().strip_prefix("refs/heads/");
        let partial = configuration.contains_key("extensions.partialclone")
            || configuration
                .iter()
                .any(|(key, value)| key.ends_with(".promisor") && is_true(value));
        Ok(Self {
            shallow: places.common_dir.join("shallow").is_file(),
            partial,
            sparse: configuration
                .get("core.sparsecheckout")
                .is_some_and(|value| is_true(value)),
            linked_worktree: places.git_dir != places.common_dir,
            branch: branch.map(str::to_owned),
            head,
            format: places.format,
            top: places.top,
            git_dir: places.git_dir,
            common_dir: places.common_dir,
            prefix: places.prefix,
            configuration,
            environment,
        })
    }

    /// The same repository as it is now.
    pub fn discover_again(&self) -> Result<Self, GitError> {
        Self::discover_with(&self.top, self.environment.clone())
    }

    /// Git on this repository, hermetic.
    pub fn hermetic(&self) -> Git {
        Git::on(&self.git_dir)
    }

    /// Git in this checkout under the user's configuration.
    pub fn as_user(&self) -> Git {
        Git::as_user(&self.top).with_environment(&self.environment)
    }

    /// Who commits: the environment's and the configuration's word, as git itself would say.
    pub fn identity(&self) -> Result<Person, GitError> {
        let output = quiet(self.as_user()).output(["var", "GIT_COMMITTER_IDENT"], b"")?;
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        let person = line.rsplit_once('>').and_then(|(person, _)| {
            let (name, email) = person.rsplit_once(" <")?;
            Some(Person {
                name: name.to_owned(),
                email: email.to_owned(),
            })
        });
        match person {
            Some(person) if output.status.success() => Ok(person),
            _ => Err(Refusal::NoIdentity.into()),
        }
    }

    /// Refuses where git would wait for ever for a file of the checkout that it reads by itself.
    pub fn expect_no_trap(&self) -> Result<(), GitError> {
        match traps::find_in_checkout(&self.top) {
            Some(trap) => Err(Refusal::Trapped(Box::new(trap)).into()),
            None => Ok(()),
        }
    }

    /// What differs from HEAD in the checkout. No index is refreshed, no hook or monitor runs.
    pub fn dirty(&self) -> Result<Dirty, GitError> {
        self.expect_no_trap()?;
        let output = quiet(self.as_user()).run([
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=normal",
            "--no-renames",
        ])?;
        let mut dirty = Dirty::default();
        for record in split_nul(&output).filter(|record| record.len() > 3) {
            let path = RepoPath::new(&record[3..]);
            if record.starts_with(b"??") {
                dirty.untracked.push(path);
            } else {
                dirty.modified.push(path);
            }
        }
        Ok(dirty)
    }

    /// What the user ignores outside the tree: their global file, then `info/exclude`.
    pub fn excludes(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let global = match self.configuration.get("core.excludesfile") {
            Some(value) => Some(self.expand_home(value)),
            None => self.default_excludes(),
        };
        for path in global
            .into_iter()
            .chain([self.common_dir.join("info/exclude")])
        {
            if let Ok(content) = fs::read(path) {
                text.extend_from_slice(&content);
                text.push(b'\n');
            }
        }
        text
    }

    /// Where the repository's objects lie: its own directory and its alternates, absolute.
    pub fn object_directories(&self) -> Vec<PathBuf> {
        let mut found = vec![self.common_dir.join("objects")];
        let mut from = 0;
        for _ in 0..ALTERNATES_DEPTH {
            let until = found.len();
            for at in from..until {
                let Ok(text) = fs::read(found[at].join("info/alternates")) else {
                    continue;
                };
                for line in text.split(|byte| *byte == b'\n') {
                    if line.is_empty() || line.starts_with(b"#") {
                        continue;
                    }
                    let path = found[at].join(OsStr::from_bytes(line));
                    if !found.contains(&path) {
                        found.push(path);
                    }
                }
            }
            from = until;
        }
        found
    }

    #[cfg(test)]
    pub(crate) fn set_environment_for_test(&mut self, environment: Environment) {
        self.environment = environment;
    }

    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let given = self.environment.iter().rev().find(|(key, _)| key == name);
        match given {
            Some((_, value)) => Some(value.clone()),
            None => std::env::var_os(name),
        }
        .filter(|value| !value.is_empty())
    }

    fn expand_home(&self, value: &[u8]) -> PathBuf {
        match (value.strip_prefix(b"~/"), self.variable("HOME")) {
            (Some(rest), Some(home)) => Path::new(&home).join(OsStr::from_bytes(rest)),
            _ => path_of(value),
        }
    }

    fn default_excludes(&self) -> Option<PathBuf> {
        let configuration = match self.variable("XDG_CONFIG_HOME") {
            Some(directory) => PathBuf::from(directory),
            None => Path::new(&self.variable("HOME")?).join(".config"),
        };
        Some(configuration.join("git/ignore"))
    }

    /// A setting of the user's, by its lower-case name.
    pub fn setting(&self, name: &str) -> Option<&[u8]> {
        self.configuration.get(name).map(Vec::as_slice)
    }
}

/// Git as the user, but running nothing of theirs and writing nothing.
pub(crate) fn quiet(git: Git) -> Git {
    git.with_setting("core.fsmonitor=false")
        .with_setting("core.hooksPath=/dev/null")
        .with_variable("GIT_OPTIONAL_LOCKS", "0")
        .with_variable("GIT_ALLOW_PROTOCOL", "none")
        .with_variable("GIT_NO_LAZY_FETCH", "1")
}

/// Where things lie, and how objects are named.
struct Places {
    top: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    prefix: RepoPath,
    format: ObjectFormat,
}

impl Places {
    fn find(git: &Git, directory: &Path) -> Result<Self, GitError> {
        let asked = [
            "rev-parse",
            "--path-format=absolute",
            "--is-inside-work-tree",
            "--show-object-format",
            "--git-dir",
            "--git-common-dir",
        ];
        let output = git.output(asked, b"")?;
        if !output.status.success() {
            let message = words(&output);
            return Err(if message.contains("dubious ownership") {
                let path = directory.to_path_buf();
                Refusal::NotTrusted { path, message }.into()
            } else {
                Refusal::NotARepository(directory.to_path_buf()).into()
            });
        }
        let lines: Vec<&[u8]> = output.stdout.split(|byte| *byte == b'\n').collect();
        let [inside, format, git_dir, common_dir, rest @ ..] = lines.as_slice() else {
            return Err(GitError::unexpected("`git rev-parse` answered too little"));
        };
        let (git_dir, common_dir) = match rest {
            [] | [b""] => (path_of(git_dir), path_of(common_dir)),
            // A name on the way holds a line's end: each by itself.
            _ => (
                Self::ask(git, "--git-dir")?,
                Self::ask(git, "--git-common-dir")?,
            ),
        };
        if *inside != b"true" {
            return Err(Refusal::Bare(common_dir).into());
        }
        let top = Self::ask(git, "--show-toplevel")?;
        let prefix = git.run(["rev-parse", "--show-prefix"])?;
        let prefix = prefix.strip_suffix(b"\n").unwrap_or(&prefix);
        Ok(Self {
            top,
            git_dir,
            common_dir,
            prefix: RepoPath::new(prefix.strip_suffix(b"/").unwrap_or(prefix)),
            format: match *format {
                b"sha1" => ObjectFormat::Sha1,
                b"sha256" => ObjectFormat::Sha256,
                other => {
                    let name = String::from_utf8_lossy(other);
                    return Err(GitError::unexpected(format!(
                        "objects of this repository are named by {name}, which is not supported"
                    )));
                }
            },
        })
    }

    /// One path, whatever its name holds.
    fn ask(git: &Git, what: &str) -> Result<PathBuf, GitError> {
        let output = git.run(["rev-parse", "--path-format=absolute", what])?;
        Ok(path_of(output.strip_suffix(b"\n").unwrap_or(&output)))
    }
}

fn read_configuration(git: &Git) -> Result<HashMap<String, Vec<u8>>, GitError> {
    let output = git.run(["config", "--list", "-z"])?;
    let mut configuration = HashMap::new();
    for record in split_nul(&output) {
        let (key, value) = match record.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&record[..end], &record[end + 1..]),
            None => (record, &b"true"[..]),
        };
        let key = String::from_utf8_lossy(key).into_owned();
        configuration.insert(key, value.to_vec());
    }
    Ok(configuration)
}

fn check_version(git: &Git) -> Result<(), GitError> {
    let text = git.text(["version"])?;
    let mut numbers = text
        .split(|character: char| !character.is_ascii_digit())
        .filter_map(|number| number.parse().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= OLDEST_GIT {
        return Ok(());
    }
    Err(GitError::unexpected(format!(
        "this is {text:?}, too old; install git {}.{} or newer",
        OLDEST_GIT.0, OLDEST_GIT.1
    )))
}

fn is_true(value: &[u8]) -> bool {
    matches!(
        value.to_ascii_lowercase().as_slice(),
        b"true" | b"yes" | b"on" | b"1"
    )
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
