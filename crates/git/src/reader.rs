//! A long-lived `git cat-file`: reads objects of one repository without starting git each time.
//!
//! It answers in microseconds where a new process costs more than a millisecond. It ends when
//! our end of its standard input closes, so it can't outlive us; if it dies it is started
//! again once.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::error::GitError;
use crate::git::{Git, spawn};
use crate::types::Oid;

/// Reads objects through one `cat-file --batch-command`.
#[derive(Debug)]
pub(crate) struct ObjectReader {
    git: Git,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// An object as it came: its type's word and its content.
pub(crate) type Found = (String, Vec<u8>);

impl ObjectReader {
    /// A reader of this repository; git is started at the first question.
    pub(crate) fn new(git: Git) -> Self {
        Self { git, running: None }
    }

    /// The object, or `None` if the repository does not have it.
    pub(crate) fn read(&mut self, oid: &Oid) -> Result<Option<Found>, GitError> {
        if let Ok(answer) = self.ask(oid) {
            return Ok(answer);
        }
        self.stop();
        self.ask(oid)
    }

    /// Reads an object piece by piece; its type's word, or `None` if the repository does not have
    /// it.
    pub(crate) fn read_in_pieces(
        &mut self,
        oid: &Oid,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Option<String>, GitError> {
        // A process that died meanwhile is seen before anything was handed on.
        if self.ask_head(oid).is_err() {
            self.stop();
        }
        let pieces = |running: &mut Running, take: &mut dyn FnMut(&[u8])| {
            running.ask(oid)?;
            let Some((kind, size)) = read_head(&mut running.output)? else {
                return Ok(None);
            };
            let mut left = size;
            while left > 0 {
                let piece = running.output.fill_buf()?;
                let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                if length == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                take(&piece[..length]);
                running.output.consume(length);
                left -= length as u64;
            }
            running.output.read_exact(&mut [0])?;
            Ok(Some(kind))
        };
        let running = self.start()?;
        pieces(running, take).map_err(|error| self.stopped_answering(&error))
    }

    /// Asks for an object's type and size alone.
    fn ask_head(&mut self, oid: &Oid) -> Result<(), GitError> {
        let running = self.start()?;
        let asked = running
            .input
            .write_all(format!("info {oid}\n").as_bytes())
            .and_then(|()| read_head(&mut running.output));
        asked
            .map(drop)
            .map_err(|error| self.stopped_answering(&error))
    }

    fn stopped_answering(&self, error: &std::io::Error) -> GitError {
        GitError::unexpected(format!(
            "git cat-file stopped answering ({error}); it ran on {:?}",
            self.git
        ))
    }

    /// Reads many objects in order, asking for the next while the last are on their way.
    pub(crate) fn read_many(
        &mut self,
        oids: &[Oid],
        take: &mut dyn FnMut(usize, Option<Found>) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let Running { input, output, .. } = self.start()?;
        let mut failed = None;
        let answered = std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut questions = Vec::new();
                for oid in oids {
                    questions.extend_from_slice(format!("contents {oid}\n").as_bytes());
                }
                // If git has ended, the reading side notices.
                let _ = input.write_all(&questions);
            });
            for at in 0..oids.len() {
                let Ok(found) = read_answer(output) else {
                    return at;
                };
                // After a failure the rest is read too: it would answer later questions.
                if failed.is_none() {
                    failed = take(at, found).err();
                }
            }
            oids.len()
        });
        if let Some(error) = failed {
            return Err(error);
        }
        for (at, oid) in oids.iter().enumerate().skip(answered) {
            let found = self.read(oid)?;
            take(at, found)?;
        }
        Ok(())
    }

    fn ask(&mut self, oid: &Oid) -> Result<Option<Found>, GitError> {
        let running = self.start()?;
        answer(running, oid).map_err(|error| self.stopped_answering(&error))
    }

    fn start(&mut self) -> Result<&mut Running, GitError> {
        if self.running.is_none() {
            let mut command = self.git.command();
            command
                .args(["cat-file", "--batch-command"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            let mut child = spawn(&mut command, std::path::Path::new("/"))?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err(GitError::unexpected("BUG: git was started without pipes"));
            };
            self.running = Some(Running {
                child,
                input,
                output: BufReader::new(output),
            });
        }
        self.running
            .as_mut()
            .ok_or_else(|| GitError::unexpected("BUG: git cat-file is not running"))
    }

    /// Kills the process as an accident would.
    #[cfg(test)]
    pub(crate) fn kill_for_test(&mut self) {
        if let Some(running) = &mut self.running {
            running.child.kill().unwrap();
            running.child.wait().unwrap();
        }
    }

    /// Ends the process; the next question starts another.
    pub(crate) fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            drop(running.input);
            drop(running.output);
            let mut child = running.child;
            // It ends by itself at the end of its input; waiting only takes it off the table.
            let _ = child.wait();
        }
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Running {
    fn ask(&mut self, oid: &Oid) -> std::io::Result<()> {
        self.input.write_all(format!("contents {oid}\n").as_bytes())
    }
}

fn answer(running: &mut Running, oid: &Oid) -> std::io::Result<Option<Found>> {
    running.ask(oid)?;
    read_answer(&mut running.output)
}

fn read_answer(output: &mut BufReader<ChildStdout>) -> std::io::Result<Option<Found>> {
    let Some((kind, size)) = read_head(output)? else {
        return Ok(None);
    };
    let mut content = Vec::with_capacity(size as usize + 1);
    let read = output.take(size + 1).read_to_end(&mut content)?;
    if read as u64 != size + 1 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    content.pop();
    Ok(Some((kind, content)))
}

/// The type's word and the size of an object; `None` if there is none.
fn read_head(output: &mut BufReader<ChildStdout>) -> std::io::Result<Option<(String, u64)>> {
    let mut head = String::new();
    if output.read_line(&mut head)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let mut words = head.trim_end().rsplit(' ');
    let last = words.next().unwrap_or_default();
    if last == "missing" {
        return Ok(None);
    }
    let size: u64 = last
        .parse()
        .map_err(|_| std::io::Error::other(format!("odd answer {head:?}")))?;
    let kind = words.next().unwrap_or_default().to_owned();
    Ok(Some((kind, size)))
}
