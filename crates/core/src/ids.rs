//! Names and ids, one newtype each, so that no two can be mistaken for one another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A name that may not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {name:?} can't be used: {why}")]
pub struct BadName {
    /// What the name was meant for.
    pub what: &'static str,
    /// The name as given.
    pub name: String,
    /// Which rule it breaks.
    pub why: &'static str,
}

/// The longest name anything may have, in bytes; names become file and ref names.
pub const NAME_BYTES_MAX: usize = 100;

fn check_name(what: &'static str, name: &str) -> Result<(), BadName> {
    let refuse = |why| {
        Err(BadName {
            what,
            name: name.to_owned(),
            why,
        })
    };
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.len() > NAME_BYTES_MAX {
        return refuse("it is longer than 100 bytes");
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.chars().all(allowed) {
        return refuse("only ASCII letters, digits, '-', '_' and '.' may stand in it");
    }
    if name.starts_with(['.', '-']) || name.ends_with('.') || name.contains("..") {
        return refuse("it starts with '.' or '-', ends with '.', or has '..' in it");
    }
    if name.to_ascii_lowercase().ends_with(".lock") {
        return refuse("git keeps names that end in .lock for itself");
    }
    Ok(())
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// One run; made by the engine (a time-ordered UUID), never by core.
    RunId
}
text_id! {
    /// A loop's name; part of the name of its git branch.
    LoopName
}
text_id! {
    /// A branch inside a run's family; the first one is `main`.
    BranchName
}
text_id! {
    /// An effect's id: a path computed from the state (`t12/measure/candidate/3`), unique in a run.
    EffectId
}

impl RunId {
    /// A run id from its text.
    pub fn new(text: &str) -> Result<Self, BadName> {
        check_name("run id", text)?;
        Ok(Self(text.to_owned()))
    }
}

impl LoopName {
    /// A loop's name from its text.
    pub fn new(text: &str) -> Result<Self, BadName> {
        check_name("loop name", text)?;
        Ok(Self(text.to_owned()))
    }
}

impl BranchName {
    /// A branch's name from its text.
    pub fn new(text: &str) -> Result<Self, BadName> {
        check_name("branch name", text)?;
        Ok(Self(text.to_owned()))
    }

    /// The first branch of every run.
    pub fn main() -> Self {
        Self("main".to_owned())
    }
}

impl EffectId {
    /// An effect's id from its parts, joined by `/`.
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// Whether this path is `path`, or lies under it.
    pub fn is_under(&self, path: &Self) -> bool {
        let rest = self.0.strip_prefix(&path.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_or_a_file_system_would_refuse_are_refused_here() {
        for bad in [
            "", "a b", "a/b", ".a", "a.", "a..b", "x.lock", "-a", "é", "a~1",
        ] {
            assert!(LoopName::new(bad).is_err(), "{bad:?}");
        }
        for good in ["speed", "speed-2", "a.b_c", "A1"] {
            assert!(BranchName::new(good).is_ok(), "{good:?}");
        }
        assert!(LoopName::new(&"a".repeat(101)).is_err());
    }

    #[test]
    fn a_path_lies_under_its_beginnings_and_under_nothing_that_only_looks_like_one() {
        let path = EffectId::new("l1/b2/p3");
        for (over, is_under) in [("l1", true), ("l1/b2", true), ("l1/b2/p3", true)] {
            assert_eq!(path.is_under(&EffectId::new(over)), is_under, "{over}");
        }
        for other in ["l", "l1/b", "l1/b2/p", "l1/b2/p3/q", "b2"] {
            assert!(!path.is_under(&EffectId::new(other)), "{other}");
        }
    }
}
