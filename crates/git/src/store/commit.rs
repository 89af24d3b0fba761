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
    /// Its message, lossily decoded.
    pub message: String,
}

impl ObjectStore {
    /// Stores a commit.
    pub fn commit(&mut self, spec: &CommitSpec<'_>) -> Result<Oid, GitError> {
        use std::fmt::Write as _;
        let mut text = format!("tree {}\n", spec.tree);
        for parent in spec.parents {
            let _ = writeln!(text, "parent {parent}");
        }
        let line = spec.author.line();
        let time_s = spec.time_s.max(0);
        let _ = write!(
            text,
            "author {line} {time_s} +0000\ncommitter {line} {time_s} +0000\n\n"
        );
        text.push_str(&spec.message.replace('\0', " "));
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.write(ObjectKind::Commit, text.as_bytes())
    }

    /// Reads a commit.
    pub fn read_commit(&mut self, oid: &Oid) -> Result<CommitFacts, GitError> {
        let content = self.read_kind(oid, ObjectKind::Commit)?;
        parse_commit(&content)
            .ok_or_else(|| GitError::unexpected(format!("commit {oid} can't be read")))
    }
}

pub(crate) fn parse_commit(content: &[u8]) -> Option<CommitFacts> {
    let end = content
        .windows(2)
        .position(|pair| pair == b"\n\n")
        .unwrap_or(content.len());
    let mut tree = None;
    let mut parents = Vec::new();
    for line in content[..end].split(|byte| *byte == b'\n') {
        if let Some(hex) = line.strip_prefix(b"tree ") {
            tree = Oid::from_hex(hex);
        } else if let Some(hex) = line.strip_prefix(b"parent ") {
            parents.push(Oid::from_hex(hex)?);
        }
    }
    let message = content.get(end + 2..).unwrap_or_default();
    Some(CommitFacts {
        tree: tree?,
        parents,
        message: String::from_utf8_lossy(message).into_owned(),
    })
}
