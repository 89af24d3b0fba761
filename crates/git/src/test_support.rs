//! Repositories for tests: hermetic (own `HOME`, no system or global configuration), fixed clock.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::GitError;
use crate::git::Git;
use crate::store::{CommitSpec, ObjectStore, Person};
use crate::types::{ObjectFormat, Oid};
use crate::user::{Environment, UserRepository};
use crate::user_commands::{UserCommand, UserCommands, UserEnd, UserRun};

/// Runs commands of the user's as they are, with nobody to stop them.
#[derive(Debug)]
pub struct Unsupervised;

impl UserCommands for Unsupervised {
    fn run(&mut self, command: UserCommand) -> Result<UserRun, GitError> {
        let mut process = Command::new(&command.words[0]);
        process
            .args(&command.words[1..])
            .current_dir(&command.directory)
            .envs(&command.set)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in &command.remove {
            process.env_remove(name);
        }
        let mut child = process.spawn().expect("git");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A git that reads nothing says why.
        let _ = stdin.write_all(&command.input);
        drop(stdin);
        let output = child.wait_with_output().expect("git ends");
        let end = if output.status.success() {
            UserEnd::Succeeded
        } else {
            UserEnd::Failed
        };
        let said = crate::git::words(&output);
        Ok(UserRun { end, said })
    }
}

/// A temporary directory with a user's repository in it.
#[derive(Debug)]
pub struct TestRepository {
    home: tempfile::TempDir,
    /// The checkout.
    pub top: PathBuf,
}

impl TestRepository {
    /// `x` holds `10`, `run.sh` prints it, one commit, branch `main`.
    pub fn new() -> Self {
        Self::with_format(ObjectFormat::Sha1)
    }

    /// The same with this object format.
    pub fn with_format(format: ObjectFormat) -> Self {
        let repository = Self::unborn(format);
        repository.write("x", "10\n");
        repository.write("run.sh", "echo \"m=$(cat x)\"\n");
        repository.commit_all("start");
        repository
    }

    /// A repository without a commit.
    pub fn unborn(format: ObjectFormat) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let root = fs::canonicalize(home.path()).expect("its real path");
        let top = root.join("project");
        fs::create_dir(&top).expect("a directory");
        let repository = Self { home, top };
        let format = format!("--object-format={}", format.name());
        repository.git(["init", "--quiet", "--initial-branch=main", &format]);
        repository.git(["config", "user.name", "A User"]);
        repository.git(["config", "user.email", "user@example.org"]);
        repository
    }

    /// The directory around it, for stores and proposers.
    pub fn outside(&self, name: &str) -> PathBuf {
        let root = self.home.path().canonicalize().expect("its real path");
        root.join(name)
    }

    /// What makes git see no configuration but the repository's.
    pub fn environment(&self) -> Environment {
        [
            ("HOME", self.home.path().join("home").into_os_string()),
            (
                "XDG_CONFIG_HOME",
                self.home.path().join("xdg").into_os_string(),
            ),
            ("GIT_CONFIG_NOSYSTEM", OsString::from("1")),
            ("GIT_CONFIG_GLOBAL", OsString::from("/dev/null")),
            ("GIT_CONFIG_COUNT", OsString::from("1")),
            ("GIT_CONFIG_KEY_0", OsString::from("protocol.file.allow")),
            ("GIT_CONFIG_VALUE_0", OsString::from("always")),
            ("GIT_AUTHOR_DATE", OsString::from("1700000000 +0000")),
            ("GIT_COMMITTER_DATE", OsString::from("1700000000 +0000")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Runs git as the user in the checkout; it must succeed. Gives its output.
    pub fn git<const N: usize>(&self, arguments: [&str; N]) -> String {
        self.git_in(&self.top, arguments)
    }

    /// The same in another directory.
    pub fn git_in<const N: usize>(&self, directory: &Path, arguments: [&str; N]) -> String {
        Git::as_user(directory)
            .with_environment(&self.environment())
            .text(arguments)
            .expect("git succeeds")
    }

    /// Runs a shell script in a directory with the user's environment; it must succeed.
    pub fn shell(&self, directory: &Path, script: &str) {
        let status = Command::new("sh")
            .args(["-ec", script])
            .current_dir(directory)
            .envs(self.environment())
            .env("GIT_AUTHOR_NAME", "An Agent")
            .env("GIT_AUTHOR_EMAIL", "agent@example.org")
            .env("GIT_COMMITTER_NAME", "An Agent")
            .env("GIT_COMMITTER_EMAIL", "agent@example.org")
            .status()
            .expect("a shell");
        assert!(status.success(), "script failed: {script}");
    }

    /// Writes a file of the checkout.
    pub fn write(&self, path: &str, content: &str) {
        let path = self.top.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, content).expect("a file");
    }

    /// Commits everything in the checkout.
    pub fn commit_all(&self, message: &str) -> Oid {
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "--allow-empty", "-m", message]);
        self.git(["rev-parse", "HEAD"]).parse().expect("an id")
    }

    /// The repository as the crate sees it.
    pub fn discover(&self) -> UserRepository {
        UserRepository::discover_with(&self.top, self.environment()).expect("a usable repository")
    }

    /// The same, where a refusal is what the test is about.
    pub fn try_discover(&self, directory: &Path) -> Result<UserRepository, GitError> {
        UserRepository::discover_with(directory, self.environment())
    }

    /// A store holding HEAD.
    pub fn store(&self) -> (UserRepository, ObjectStore) {
        let user = self.discover();
        let mut store =
            ObjectStore::open_or_create(&self.outside("store"), &user).expect("a store");
        store.import_base(&user, &user.head).expect("the base");
        (user, store)
    }

    /// References, configuration and work tree, to compare before and after.
    pub fn fingerprint(&self) -> String {
        let references = self.git(["for-each-ref", "--format=%(refname) %(objectname)"]);
        let references: Vec<&str> = references
            .lines()
            .filter(|line| !line.starts_with("refs/heads/loopwright/"))
            .collect();
        let configuration = fs::read_to_string(self.top.join(".git/config")).expect("config");
        let status = self.git(["status", "--porcelain", "--ignored"]);
        let head = fs::read_to_string(self.top.join(".git/HEAD")).expect("HEAD");
        format!(
            "{references:?}\n{configuration}\n{status}\n{head}\n{}",
            listing(&self.top)
        )
    }
}

impl Default for TestRepository {
    fn default() -> Self {
        Self::new()
    }
}

/// Names, kinds, permission bits and content of everything below a directory but `.git`.
pub fn listing(directory: &Path) -> String {
    let script = "find . -path ./.git -prune -o -printf '%p %y %m %l\\0' | sort -z | tr '\\0' '\\n'; \
                  find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum";
    let output = Command::new("sh")
        .args(["-c", script])
        .env("LC_ALL", "C")
        .current_dir(directory)
        .output()
        .expect("a shell");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Commits a tree as a candidate or a kept commit would be.
pub fn commit_tree(store: &mut ObjectStore, tree: Oid, parents: &[Oid], message: &str) -> Oid {
    let person = Person {
        name: "A User".to_owned(),
        email: "user@example.org".to_owned(),
    };
    store
        .commit(&CommitSpec {
            tree,
            parents,
            author: &person,
            time_s: 1_700_000_000,
            message,
        })
        .expect("a commit")
}
