//! The name of a metric, checked once so that nothing behind it has to ask again.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest name, in characters.
const LONGEST_CHARS: usize = 128;

/// A metric's name: not blank, one line, at most 128 characters, any characters otherwise
/// (`acc%`, `val loss`, `a.b`). Case matters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MetricName(String);

/// Why a text is not a metric's name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing, or nothing but white space.
    #[error("a metric's name must not be blank")]
    Blank,
    /// A line break or another control character.
    #[error("the metric's name {0:?} holds a control character; it must be plain text on one line")]
    Control(String),
    /// White space at an end: lines are matched without it, so it could never be found.
    #[error("the metric's name {0:?} begins or ends with white space; take it away")]
    Padded(String),
    /// More than 128 characters.
    #[error("the metric's name has {0} characters; at most {LONGEST_CHARS} are allowed")]
    Long(usize),
}

impl MetricName {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        let trimmed = name.trim();
        if trimmed.is_empty() {
            return Err(NameError::Blank);
        }
        let chars = name.chars().count();
        if chars > LONGEST_CHARS {
            return Err(NameError::Long(chars));
        }
        if name.chars().any(char::is_control) {
            return Err(NameError::Control(name));
        }
        if trimmed.len() != name.len() {
            return Err(NameError::Padded(name));
        }
        Ok(Self(name))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for MetricName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl TryFrom<String> for MetricName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl From<MetricName> for String {
    fn from(name: MetricName) -> Self {
        name.0
    }
}

impl AsRef<str> for MetricName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for MetricName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_characters_on_one_line_are_taken() {
        for name in [
            "m",
            "acc%",
            "val loss",
            "a.b",
            "loss(train)",
            "Größe",
            "a=b",
            "\"q\"",
        ] {
            assert_eq!(MetricName::new(name).unwrap().as_str(), name);
        }
        assert!(MetricName::new("é".repeat(128)).is_ok());
    }

    #[test]
    fn names_that_no_line_could_match_are_refused() {
        assert_eq!(MetricName::new(""), Err(NameError::Blank));
        assert_eq!(MetricName::new(" \t"), Err(NameError::Blank));
        assert!(matches!(
            MetricName::new("a\nb"),
            Err(NameError::Control(_))
        ));
        assert!(matches!(
            MetricName::new("a\u{1b}b"),
            Err(NameError::Control(_))
        ));
        assert!(matches!(MetricName::new(" a"), Err(NameError::Padded(_))));
        assert_eq!(MetricName::new("x".repeat(129)), Err(NameError::Long(129)));
        assert!(serde_json::from_str::<MetricName>("\"\"").is_err());
    }
}
