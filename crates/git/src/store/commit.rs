//! Commit objects: written from given identities and times, so that redoing one after a crash
//! gives the same id.

use serde::{Deserialize, Serialize};

use super::ObjectStore;
use crate::error::GitError;
use crate::hash::ObjectKind;
use crate::types::Oid;

/// A name and an address, as commits have them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The mail address.
    pub email: String,
}

impl Person {
    /// Loopwright itself, for commits nobody but it will see.
    pub fn loopwright() -> Self {
        Self {
            name: "Loopwright".to_owned(),
            email: "loopwright@localhost".to_owned(),
        }
    }

    /// As a commit has it; what would break the line is left out, as git does.
    fn line(&self) -> String {
        let clean = |text: &str| {
            text.chars()
                .filter(|character| !matches!(character, '<' | '>' | '\n' | '\0'))
                .collect::<String>()
                .trim()
                .to_owned()
        };
        format!("{} <{}>", clean(&self.name), clean(&self.email))
    }
}

/// Everything a commit's id depends on.
#[derive(Debug, Clone)]
pub struct CommitSpec<'a> {
    /// Its tree.
    pub tree: Oid,
    /// Its parents, in order.
    pub parents: &'a [Oid],
    /// Who wrote and committed it.
    pub author: &'a Person,
    /// When, in seconds since 1970 (UTC).
    pub time_s: i64,
    /// What it says.
    pub message: &'a str,
}

/// What a commit says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFacts {
    /// Its tree.
    pub tree: Oid,
    /// Its parents, in order.
    pub parents: Vec<Oid>,
    /// When it was committed, in seconds since 1970 (UTC); 0 where it doesn't say.
    pub time_s: i64,
    /// Its message, lossily decoded.
    pub message: String,
}

impl CommitFacts {
    /// Whether it still says what `message` ends with. A hook of the user's may write round that.
    pub fn is_worded_as(&self, message: &str) -> bool {
        let paragraphs = message.trim_end().rsplit("\n\n");
        let last = paragraphs.take(1).flat_map(str::lines);
        let mut wanted = last.filter(|line| !line.trim().is_empty());
        wanted.all(|line| self.message.lines().any(|found| found == line))
    }
}

impl CommitSpec<'_> {
    /// The commit's content, made by whom `line` names.
    fn text_by(&self, line: &str) -> String {
        use std::fmt::Write as _;
        let mut text = format!("tree {}\n", self.tree);
        for parent in self.parents {
            let _ = writeln!(text, "parent {parent}");
        }
        let time_s = self.time_s.max(0);
        let _ = write!(
            text,
            "author {line} {time_s} +0000\ncommitter {line} {time_s} +0000\n\n"
        );
        text.push_str(&self.message.replace('\0', " "));
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }
}

impl ObjectStore {
    /// Stores a commit.
    pub fn commit(&mut self, spec: &CommitSpec<'_>) -> Result<Oid, GitError> {
        let text = spec.text_by(&spec.author.line());
        self.write(ObjectKind::Commit, text.as_bytes())
    }

    /// Whether `oid` is the commit that `spec` makes, to the byte; but for the name of whoever made
    /// it, which may have been set otherwise since.
    pub fn is_made_as(&mut self, oid: &Oid, spec: &CommitSpec<'_>) -> Result<bool, GitError> {
        if !self.has(oid)? {
            return Ok(false);
        }
        let content = self.read_kind(oid, ObjectKind::Commit)?;
        let by = header(&content, b"author ").and_then(without_time);
        let by = by.and_then(|line| std::str::from_utf8(line).ok());
        Ok(by.is_some_and(|line| spec.text_by(line).as_bytes() == &content[..]))
    }

    /// Reads a commit.
    pub fn read_commit(&mut self, oid: &Oid) -> Result<CommitFacts, GitError> {
        let content = self.read_kind(oid, ObjectKind::Commit)?;
        parse_commit(&content)
            .ok_or_else(|| GitError::unexpected(format!("commit {oid} can't be read")))
    }
}

pub(crate) fn parse_commit(content: &[u8]) -> Option<CommitFacts> {
    let (head, message) = parts(content);
    let mut tree = None;
    let mut parents = Vec::new();
    for line in head.split(|byte| *byte == b'\n') {
        if let Some(hex) = line.strip_prefix(b"tree ") {
            tree = Oid::from_hex(hex);
        } else if let Some(hex) = line.strip_prefix(b"parent ") {
            parents.push(Oid::from_hex(hex)?);
        }
    }
    Some(CommitFacts {
        tree: tree?,
        parents,
        time_s: header(content, b"committer ")
            .and_then(time_of)
            .unwrap_or(0),
        message: String::from_utf8_lossy(message).into_owned(),
    })
}

/// The header of a commit, and its message.
fn parts(content: &[u8]) -> (&[u8], &[u8]) {
    let end = content
        .windows(2)
        .position(|pair| pair == b"\n\n")
        .unwrap_or(content.len());
    (&content[..end], content.get(end + 2..).unwrap_or_default())
}

/// The first line of the header that begins so, less that beginning.
fn header<'a>(content: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut lines = parts(content).0.split(|byte| *byte == b'\n');
    lines.find_map(|line| line.strip_prefix(name))
}

/// `name <mail> time zone` less time and zone.
fn without_time(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().rposition(|byte| *byte == b'>')?;
    Some(&line[..=end])
}

/// The time of `name <mail> time zone`.
fn time_of(line: &[u8]) -> Option<i64> {
    let after = &line[without_time(line)?.len()..];
    let mut words = std::str::from_utf8(after).ok()?.split_ascii_whitespace();
    words.next()?.parse().ok()
}
