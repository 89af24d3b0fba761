//! Where a setting came from, and what is wrong with one: refusals with a place and a way out.

use std::fmt;

use serde::Serialize;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The run's own record: what was pinned when it started.
    Pinned,
    /// A line of a file.
    File {
        /// The file as the user would name it.
        path: String,
        /// Its line, from one.
        line: u32,
        /// The character in that line, from one.
        column: u32,
    },
    /// An environment variable.
    Environment {
        /// The variable's name.
        name: String,
    },
    /// A flag of the command line.
    CommandLine {
        /// The flag with its dashes.
        flag: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Pinned => f.write_str("pinned by the run"),
            Self::File { path, line, .. } => write!(f, "{path}:{line}"),
            Self::Environment { name } => write!(f, "env {name}"),
            Self::CommandLine { flag } => write!(f, "{flag}"),
        }
    }
}

/// One thing that is wrong with a specification.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// Where it was written; [`Origin::Default`] when it was written nowhere.
    pub origin: Origin,
    /// The setting, as a path (`loop.speed.run_limit` in a file, else `run_limit`); may be empty.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Problem {
    /// A problem without advice.
    pub fn new(origin: Origin, key: impl Into<String>, message: impl fmt::Display) -> Self {
        Self {
            origin,
            key: key.into(),
            message: message.to_string(),
            help: None,
        }
    }

    /// The same problem with advice.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same problem with advice where there is some.
    pub(crate) fn with_help_if(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File { path, line, column } => write!(f, "{path}:{line}:{column}: ")?,
            Origin::Default => {}
            other => write!(f, "{other}: ")?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

/// Everything that is wrong, at once; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// The problems in the order of their places, or nothing when there are none.
    pub fn from_list(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort();
        problems.dedup();
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// Just one.
    pub fn one(problem: Problem) -> Self {
        Self(vec![problem])
    }

    /// Each of them.
    pub fn list(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The value when nothing was wrong, else all that was.
pub(crate) fn unless<T>(problems: Vec<Problem>, value: T) -> Result<T, Problems> {
    match Problems::from_list(problems) {
        Some(problems) => Err(problems),
        None => Ok(value),
    }
}
