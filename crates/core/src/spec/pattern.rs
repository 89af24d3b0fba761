//! Path patterns: relative globs over bytes, the language of `protect`, `cache` and `setup_inputs`.
//!
//! Written here instead of taken from a library because what a pattern covers decides which files
//! are protected, is part of every harness digest, and must mean the same in every later release.
//!
//! | written | covers |
//! |---|---|
//! | `bench.sh` | that file; a directory of that name with everything below it |
//! | `tests/` and `tests/**` | everything below the directory `tests`, hidden files too |
//! | `*.py` | in the top directory only: `*` and `?` never cross a `/` |
//! | `**/*.py` | at any depth |
//! | `[a-c]`, `[!a-c]` | one character of, or not of, the set |
//! | `\*` | the character itself |
//!
//! Paths are bytes with `/` between their parts; what is not UTF-8 in them is matched by `?`, `*`
//! and `[!…]` byte by byte. Nothing below a `.git` is ever covered.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A relative glob; see the module's table for what it covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Nothing was written.
    #[error("a pattern can't be empty")]
    Empty,
    /// Begins with `/` or a drive letter.
    #[error("pattern `{0}` is absolute: write it relative to the repository's top directory")]
    Absolute(String),
    /// Begins with `~`.
    #[error("pattern `{0}` begins with `~`: only files of the repository can be named")]
    Home(String),
    /// Has a `..` part.
    #[error("pattern `{0}` has a `..` part: only files of the repository can be named")]
    Parent(String),
    /// Names the repository itself.
    #[error("pattern `{0}` names `.git`, which is never part of a candidate")]
    GitDirectory(String),
    /// Has `**` inside a part.
    #[error("pattern `{0}`: `**` must stand alone between slashes, as in `**/*.py`")]
    DeepInside(String),
    /// Has a `[` without its `]`, or a range that runs backwards.
    #[error("pattern `{0}` has a broken `[…]` set")]
    Set(String),
    /// Ends with a lone `\`, or holds a control character.
    #[error("pattern `{0}` has a stray `\\` or a control character")]
    Character(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `**`: any number of directories, none included.
    Deep,
    /// One part of a path.
    One(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Exactly(char),
    AnyOne,
    AnyRun,
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let named = || text.to_owned();
        if text.trim().is_empty() {
            return Err(PatternError::Empty);
        }
        let drive =
            text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
        if text.starts_with('/') || drive {
            return Err(PatternError::Absolute(named()));
        }
        if text.starts_with('~') {
            return Err(PatternError::Home(named()));
        }
        if text.chars().any(char::is_control) {
            return Err(PatternError::Character(named()));
        }
        let mut parts = Vec::new();
        for part in text.split('/').filter(|part| !matches!(*part, "" | ".")) {
            parts.push(read_part(part, text)?);
        }
        // "Everything below" asks for one more part, whatever it is called.
        if text.ends_with('/') || parts.last() == Some(&Part::Deep) {
            parts.push(Part::One(vec![Token::AnyRun]));
        }
        if parts.is_empty() {
            // `.` and `./` mean the whole tree.
            parts.push(Part::One(vec![Token::AnyRun]));
        }
        Ok(Self {
            text: named(),
            parts,
        })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the path is covered, itself or by one of the directories it lies in.
    pub fn matches(&self, path: &[u8]) -> bool {
        names_of(path).is_some_and(|names| self.covers(&names))
    }

    /// The path this pattern names if it holds no wildcard, without a closing slash.
    pub fn literal(&self) -> Option<String> {
        let ends = self.text.ends_with('/');
        let parts = if ends {
            &self.parts[..self.parts.len() - 1]
        } else {
            &self.parts[..]
        };
        let names: Option<Vec<String>> = parts.iter().map(Part::literal).collect();
        names
            .filter(|names| !names.is_empty())
            .map(|names| names.join("/"))
    }

    /// The names before the first part with a wildcard: the directory everything covered lies in.
    pub fn literal_prefix(&self) -> String {
        let names: Vec<String> = self.parts.iter().map_while(Part::literal).collect();
        names.join("/")
    }

    /// Whether the two may cover one path. Exact where one of them holds no wildcard; two globs
    /// are held apart by their literal directories only, so `true` may be too careful there.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self.literal(), other.literal()) {
            (Some(mine), Some(theirs)) => within(&mine, &theirs) || within(&theirs, &mine),
            (Some(mine), None) => other.reaches(&mine),
            (None, Some(theirs)) => self.reaches(&theirs),
            (None, None) => {
                let (mine, theirs) = (self.literal_prefix(), other.literal_prefix());
                let apart = mine.is_empty() || theirs.is_empty();
                self.parts == other.parts
                    || !apart && (within(&mine, &theirs) || within(&theirs, &mine))
            }
        }
    }

    /// Whether this glob covers the path or, by its literal directories, something below it.
    fn reaches(&self, path: &str) -> bool {
        let prefix = self.literal_prefix();
        self.matches(path.as_bytes()) || !prefix.is_empty() && within(&prefix, path)
    }

    /// Matches parts against names. Only the last `**` needs to be tried again: an earlier one that
    /// took as little as it could leaves the most room for the rest.
    pub(crate) fn covers(&self, names: &[&[u8]]) -> bool {
        let (mut part, mut name) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while let Some(wanted) = self.parts.get(part) {
            match wanted {
                Part::Deep => {
                    part += 1;
                    retry = Some((part, name));
                    continue;
                }
                Part::One(tokens) => {
                    if names
                        .get(name)
                        .is_some_and(|found| part_matches(tokens, found))
                    {
                        part += 1;
                        name += 1;
                        continue;
                    }
                }
            }
            let Some((after_deep, taken)) = retry.filter(|(_, taken)| *taken < names.len()) else {
                return false;
            };
            part = after_deep;
            name = taken + 1;
            retry = Some((after_deep, name));
        }
        // Names may be left: a directory was matched, and covers its whole subtree.
        name > 0
    }
}

impl Part {
    fn literal(&self) -> Option<String> {
        let Self::One(tokens) = self else { return None };
        tokens
            .iter()
            .map(|token| match token {
                Token::Exactly(character) => Some(*character),
                _ => None,
            })
            .collect()
    }
}

/// A path's names, unless one of them is `.git`: nothing in there is ever covered.
pub(crate) fn names_of(path: &[u8]) -> Option<Vec<&[u8]>> {
    let names: Vec<&[u8]> = path
        .split(|b| *b == b'/')
        .filter(|name| !name.is_empty())
        .collect();
    (!names.iter().any(|name| name.eq_ignore_ascii_case(b".git"))).then_some(names)
}

/// Whether `path` is `directory` or lies in it.
pub(crate) fn within(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn read_part(part: &str, whole: &str) -> Result<Part, PatternError> {
    let named = || whole.to_owned();
    match part {
        "**" => return Ok(Part::Deep),
        ".." => return Err(PatternError::Parent(named())),
        _ if part.eq_ignore_ascii_case(".git") => return Err(PatternError::GitDirectory(named())),
        _ if part.contains("**") => return Err(PatternError::DeepInside(named())),
        _ => {}
    }
    let mut tokens = Vec::new();
    let mut characters = part.chars();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' => Token::AnyRun,
            '?' => Token::AnyOne,
            '\\' => Token::Exactly(
                characters
                    .next()
                    .ok_or_else(|| PatternError::Character(named()))?,
            ),
            '[' => read_set(&mut characters).ok_or_else(|| PatternError::Set(named()))?,
            other => Token::Exactly(other),
        });
    }
    Ok(Part::One(tokens))
}

/// Reads a set after its `[`; a `]` that comes first is a member.
fn read_set(characters: &mut std::str::Chars<'_>) -> Option<Token> {
    let mut next = characters.next()?;
    let negated = matches!(next, '!' | '^');
    if negated {
        next = characters.next()?;
    }
    let mut ranges: Vec<(char, char)> = Vec::new();
    loop {
        if next == ']' && !ranges.is_empty() {
            return Some(Token::Set { negated, ranges });
        }
        let low = if next == '\\' {
            characters.next()?
        } else {
            next
        };
        let mut ahead = characters.clone();
        let range_end = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => Some(high),
            _ => None,
        };
        let high = match range_end {
            Some('\\') => {
                *characters = ahead;
                characters.next()?
            }
            Some(high) => {
                *characters = ahead;
                high
            }
            None => low,
        };
        if high < low {
            return None;
        }
        ranges.push((low, high));
        next = characters.next()?;
    }
}

/// One character of a name, or a byte that belongs to none.
fn first_unit(name: &[u8]) -> Option<(Option<char>, usize)> {
    let first = *name.first()?;
    if first.is_ascii() {
        return Some((Some(char::from(first)), 1));
    }
    let end = name.len().min(4);
    let character =
        (2..=end).find_map(|length| std::str::from_utf8(&name[..length]).ok()?.chars().next());
    Some((character, character.map_or(1, char::len_utf8)))
}

fn part_matches(tokens: &[Token], name: &[u8]) -> bool {
    let (mut token, mut at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if tokens.get(token) == Some(&Token::AnyRun) {
            token += 1;
            retry = Some((token, at));
            continue;
        }
        let unit = first_unit(&name[at..]);
        match (tokens.get(token), unit) {
            (None, None) => return true,
            (Some(wanted), Some((character, length))) if wanted.takes(character) => {
                token += 1;
                at += length;
                continue;
            }
            _ => {}
        }
        let Some((after_run, taken)) = retry else {
            return false;
        };
        let Some((_, length)) = first_unit(&name[taken..]) else {
            return false;
        };
        token = after_run;
        at = taken + length;
        retry = Some((after_run, at));
    }
}

impl Token {
    /// Whether this token, no `*`, takes the character (`None`: a byte that is no character).
    fn takes(&self, character: Option<char>) -> bool {
        match self {
            Self::Exactly(wanted) => character == Some(*wanted),
            Self::AnyOne => true,
            Self::AnyRun => false,
            Self::Set { negated, ranges } => {
                let member = character
                    .is_some_and(|c| ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)));
                member != *negated
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::new(text)
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::new(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}
