//! Ignore rules, answered by git itself (`check-ignore`), one process for a whole snapshot.
//!
//! It runs on the engine's git directory with the rules of the tree and those the user has
//! outside of it, and only when there is something untracked at all.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::error::GitError;
use crate::git::spawn;
use crate::store::ObjectStore;
use crate::types::RepoPath;

/// Paths are asked in groups small enough that no pipe can fill up while nobody reads.
const GROUP_BYTES: usize = 4096;

/// A running `check-ignore`.
pub(super) struct IgnoreRules {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl IgnoreRules {
    pub(super) fn start(
        store: &ObjectStore,
        work_tree: &Path,
        excludes: &Path,
    ) -> Result<Self, GitError> {
        let mut setting = std::ffi::OsString::from("core.excludesFile=");
        setting.push(excludes);
        let git = store.git().clone().with_work_tree(work_tree);
        let mut command = git.command();
        command
            .arg("-c")
            .arg(setting)
            .args(["check-ignore", "--stdin", "-z", "--verbose"])
            .args(["--non-matching", "--no-index"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = spawn(&mut command, work_tree)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                child,
                input: Some(input),
                output: BufReader::new(output),
            }),
            _ => Err(GitError::unexpected("BUG: git was started without pipes")),
        }
    }

    /// For each path, in order: is it ignored?
    pub(super) fn ask(&mut self, paths: &[RepoPath]) -> Result<Vec<bool>, GitError> {
        let mut answers = Vec::with_capacity(paths.len());
        let mut rest = paths;
        while !rest.is_empty() {
            let mut count = 0;
            let mut group = Vec::new();
            while count < rest.len() && (count == 0 || group.len() < GROUP_BYTES) {
                group.extend_from_slice(rest[count].as_bytes());
                group.push(0);
                count += 1;
            }
            self.exchange(&group, &rest[..count], &mut answers)
                .map_err(|source| {
                    GitError::unexpected(format!("git check-ignore stopped answering: {source}"))
                })?;
            rest = &rest[count..];
        }
        Ok(answers)
    }

    fn exchange(
        &mut self,
        group: &[u8],
        paths: &[RepoPath],
        answers: &mut Vec<bool>,
    ) -> std::io::Result<()> {
        if let Some(input) = &mut self.input {
            input.write_all(group)?;
            input.flush()?;
        }
        for path in paths {
            let _source = self.field()?;
            let _line = self.field()?;
            let pattern = self.field()?;
            if self.field()? != path.as_bytes() {
                return Err(std::io::Error::other(format!("no answer for {path}")));
            }
            answers.push(!pattern.is_empty() && !pattern.starts_with(b"!"));
        }
        Ok(())
    }

    fn field(&mut self) -> std::io::Result<Vec<u8>> {
        let mut field = Vec::new();
        self.output.read_until(0, &mut field)?;
        match field.pop() {
            Some(0) => Ok(field),
            _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Drop for IgnoreRules {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
