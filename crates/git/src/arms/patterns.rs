//! Path patterns: which paths of an arm are cache, and which are inputs of the setup.
//!
//! A pattern is a path relative to the top of the project. `*` and `?` match inside one name,
//! `**` matches any number of directories. Everything below a matching directory belongs to it;
//! a trailing `/` changes nothing. There is no way to leave the project or to name a `.git`.

use crate::arms::error::ArmsError;
use crate::types::RepoPath;

/// A list of path patterns; the empty list matches nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patterns {
    list: Vec<Vec<Part>>,
    text: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Name(Vec<u8>),
    Glob(Vec<u8>),
    AnyDepth,
}

/// What a setup depends on: where any of it is other than it was, the setup runs again.
#[derive(Debug, Clone, Default)]
pub struct SetupInputs {
    /// Files of the tree; without any, all of them.
    pub files: Patterns,
    /// Everything else (the command, its environment, what is linked in), by a digest.
    pub surroundings: String,
}

impl Patterns {
    /// Reads patterns as they stand in a specification.
    pub fn parse<S: AsRef<str>>(patterns: &[S]) -> Result<Self, ArmsError> {
        let mut parsed = Self::default();
        for pattern in patterns {
            let pattern = pattern.as_ref();
            parsed.list.push(parse_one(pattern)?);
            parsed.text.push(pattern.to_owned());
        }
        Ok(parsed)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The patterns as they were written.
    pub fn as_written(&self) -> &[String] {
        &self.text
    }

    /// True if `path` or a directory above it matches.
    pub fn cover(&self, path: &RepoPath) -> bool {
        if self.list.is_empty() {
            return false;
        }
        let names: Vec<&[u8]> = path.names().collect();
        (1..=names.len()).any(|depth| self.matches(&names[..depth]))
    }

    /// True if exactly `path` matches (not: something above it).
    pub(crate) fn name_exactly(&self, path: &RepoPath) -> bool {
        if self.list.is_empty() {
            return false;
        }
        let names: Vec<&[u8]> = path.names().collect();
        self.matches(&names)
    }

    /// True if a directory git does not know is there for a pattern's sake: the pattern spells
    /// it out. (`build/out` keeps `build`; `**/__pycache__` keeps no directory whose sources
    /// are gone, or a deleted Python package would still be importable.)
    pub(crate) fn lead_through(&self, directory: &RepoPath) -> bool {
        let names: Vec<&[u8]> = directory.names().collect();
        self.list.iter().any(|parts| {
            parts.len() > names.len()
                && names
                    .iter()
                    .zip(parts)
                    .all(|(name, part)| matches!(part, Part::Name(literal) if literal == name))
        })
    }

    /// True if something below `directory` could match.
    pub(crate) fn may_match_below(&self, directory: &RepoPath) -> bool {
        let names: Vec<&[u8]> = directory.names().collect();
        self.list.iter().any(
            |parts| match parts.iter().position(|part| *part == Part::AnyDepth) {
                Some(deep) if deep <= names.len() => prefix_matches(&parts[..deep], &names),
                _ => parts.len() > names.len() && prefix_matches(parts, &names),
            },
        )
    }

    fn matches(&self, names: &[&[u8]]) -> bool {
        self.list.iter().any(|parts| names_match(parts, names))
    }
}

fn parse_one(pattern: &str) -> Result<Vec<Part>, ArmsError> {
    let refuse = |problem| {
        Err(ArmsError::Pattern {
            pattern: pattern.to_owned(),
            problem,
        })
    };
    let trimmed = pattern.trim_end_matches('/');
    let trimmed = trimmed.strip_prefix("./").unwrap_or(trimmed);
    if trimmed.is_empty() || trimmed == "." {
        return refuse("names the whole project");
    }
    let mut parts = Vec::new();
    for name in trimmed.split('/') {
        match name {
            "" => return refuse("is not a relative path"),
            "." | ".." => return refuse("has \".\" or \"..\" in it"),
            _ if name.eq_ignore_ascii_case(".git") => return refuse("reaches into a \".git\""),
            _ if name.contains('\0') => return refuse("holds a NUL"),
            "**" => parts.push(Part::AnyDepth),
            _ if name.contains(['*', '?']) => parts.push(Part::Glob(name.as_bytes().to_vec())),
            _ => parts.push(Part::Name(name.as_bytes().to_vec())),
        }
    }
    if parts.iter().all(|part| *part == Part::AnyDepth) {
        return refuse("names the whole project");
    }
    Ok(parts)
}

fn prefix_matches(parts: &[Part], names: &[&[u8]]) -> bool {
    parts
        .iter()
        .zip(names)
        .all(|(part, name)| part_matches(part, name))
}

fn part_matches(part: &Part, name: &[u8]) -> bool {
    match part {
        Part::Name(literal) => literal == name,
        Part::Glob(glob) => glob_matches(glob, name),
        Part::AnyDepth => true,
    }
}

fn names_match(parts: &[Part], names: &[&[u8]]) -> bool {
    match (parts.split_first(), names.split_first()) {
        (None, None) => true,
        (Some((Part::AnyDepth, rest)), _) => {
            (0..=names.len()).any(|skipped| names_match(rest, &names[skipped..]))
        }
        (Some((part, parts)), Some((name, names))) => {
            part_matches(part, name) && names_match(parts, names)
        }
        _ => false,
    }
}

/// `*` and `?` inside one name, without recursion: on a mismatch the last star takes one more.
fn glob_matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        if at < glob.len() && glob[at] == b'*' {
            star = Some((at, read));
            at += 1;
        } else if at < glob.len() && (glob[at] == b'?' || glob[at] == name[read]) {
            at += 1;
            read += 1;
        } else if let Some((after, taken)) = star {
            at = after + 1;
            read = taken + 1;
            star = Some((after, taken + 1));
        } else {
            return false;
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(list: &[&str]) -> Patterns {
        Patterns::parse(list).unwrap()
    }

    #[test]
    fn covers_paths_and_what_is_below() {
        let cases = [
            ("target", "target", true),
            ("target/", "target/debug/x", true),
            ("target", "targets", false),
            ("target", "sub/target", false),
            ("a/b", "a", false),
            ("a/b", "a/b/c", true),
            ("**/__pycache__", "__pycache__/x.pyc", true),
            ("**/__pycache__", "p/q/__pycache__/x.pyc", true),
            ("**/__pycache__", "p/q/x.pyc", false),
            ("a/**/z", "a/z", true),
            ("a/**/z", "a/b/c/z/d", true),
            ("*.o", "x.o", true),
            ("*.o", "d/x.o", false),
            ("*.o", "x.oo", false),
            ("b?ild-*-x*", "build-1-2-xy", true),
            ("*a*b", "aab", true),
            ("*a*b", "aaba", false),
            ("./out", "out", true),
        ];
        for (pattern, path, expected) in cases {
            let found = patterns(&[pattern]).cover(&RepoPath::from(path));
            assert_eq!(found, expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn knows_where_to_look() {
        let list = patterns(&["build/out", "x*/y", "deep/**/z"]);
        for (path, leads, below) in [
            ("build", true, true),
            ("build/out", false, false),
            ("build/other", false, false),
            ("xa", false, true),
            ("xa/b", false, false),
            ("deep", true, true),
            ("deep/q", false, true),
            ("none", false, false),
        ] {
            let path = RepoPath::from(path);
            assert_eq!(list.lead_through(&path), leads, "{path}");
            assert_eq!(list.may_match_below(&path), below, "{path}");
        }
    }

    #[test]
    fn refuses_what_leaves_the_project() {
        for pattern in [
            "", "/", ".", "..", "a/../b", "/a", "a//b", ".git", "a/.GIT", "**", "**/",
        ] {
            assert!(Patterns::parse(&[pattern]).is_err(), "{pattern:?}");
        }
    }
}
