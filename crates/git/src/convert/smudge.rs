//! From the tree to the checkout: a long-lived `cat-file --batch --filters`.
//!
//! Its answers carry the size of the blob, not of what comes out, so each question is followed
//! by one for a name that can't exist: the answer to that marks the end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::error::GitError;
use crate::git::{Git, spawn};
use crate::types::{Oid, RepoPath};

/// Converts files of one set of attributes.
#[derive(Debug)]
pub(super) struct Smudger {
    git: Git,
    mark: String,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Smudger {
    pub(super) fn new(git: Git) -> Self {
        let unguessable = crate::worktree::now_ns();
        Self {
            git,
            mark: format!("loopwright-end-{}-{unguessable}", std::process::id()),
            running: None,
        }
    }

    pub(super) fn convert(&mut self, path: &RepoPath, oid: &Oid) -> Result<Vec<u8>, GitError> {
        let name = path.as_bytes();
        // The line of a question ends at a newline and begins after blanks.
        if name.contains(&b'\n') || name.first().is_some_and(u8::is_ascii_whitespace) {
            return self.convert_alone(path, oid);
        }
        if let Ok(content) = self.ask(name, oid) {
            return Ok(content);
        }
        self.running = None;
        self.convert_alone(path, oid)
    }

    fn convert_alone(&self, path: &RepoPath, oid: &Oid) -> Result<Vec<u8>, GitError> {
        use std::os::unix::ffi::OsStrExt as _;
        let mut option = std::ffi::OsString::from("--path=");
        option.push(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let hex = std::ffi::OsString::from(oid.to_hex());
        self.git
            .run(&["cat-file".into(), "--filters".into(), option, hex])
    }

    fn ask(&mut self, name: &[u8], oid: &Oid) -> Result<Vec<u8>, GitError> {
        let mut question = oid.to_hex().into_bytes();
        question.push(b' ');
        question.extend_from_slice(name);
        question.extend_from_slice(format!("\n{} x\n", self.mark).as_bytes());
        let end = format!("\n{} missing\n", self.mark).into_bytes();
        let running = self.start()?;
        let stopped =
            |source| GitError::unexpected(format!("git cat-file stopped answering: {source}"));
        if let Some(input) = &mut running.input {
            input.write_all(&question).map_err(stopped)?;
        }
        let mut head = Vec::new();
        running
            .output
            .read_until(b'\n', &mut head)
            .map_err(stopped)?;
        if !head.starts_with(oid.to_hex().as_bytes()) || head.ends_with(b" missing\n") {
            return Err(stopped(std::io::ErrorKind::InvalidData.into()));
        }
        let mut content = Vec::new();
        while !content.ends_with(&end) {
            let count = running
                .output
                .read_until(b'\n', &mut content)
                .map_err(stopped)?;
            if count == 0 {
                return Err(stopped(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
        content.truncate(content.len() - end.len());
        Ok(content)
    }

    fn start(&mut self) -> Result<&mut Running, GitError> {
        if self.running.is_none() {
            let mut command = self.git.command();
            command
                .args(["cat-file", "--batch", "--filters"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            let mut child = spawn(&mut command, std::path::Path::new("/"))?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err(GitError::unexpected("BUG: git was started without pipes"));
            };
            self.running = Some(Running {
                child,
                input: Some(input),
                output: BufReader::new(output),
            });
        }
        self.running
            .as_mut()
            .ok_or_else(|| GitError::unexpected("BUG: git cat-file is not running"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
