//! [`Refusal`]: the closed list of reasons why a metric has no value, each with its words.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest quoted line, in characters.
const QUOTE_CHARS: usize = 160;

/// Why a metric has no usable value. Quoted lines are cut to 160 characters and hold no control
/// characters; they come from the command and have to be scrubbed before they are recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case", deny_unknown_fields)]
pub enum Refusal {
    /// No line gives it.
    Missing {
        /// Names that were given values and look like the one asked for, the nearest first, at most five.
        near: Vec<String>,
        /// The last line that holds the name and a number, but not on a line of their own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<String>,
    },
    /// The result file that was named for it doesn't give it.
    NotInResultFile {
        /// Names in it that look like the one asked for, the nearest first, at most five.
        near: Vec<String>,
        /// What the output says, which doesn't count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
    /// The result file holds a number without a name.
    Nameless {
        /// The number.
        line: String,
    },
    /// The last mention is not a plain number.
    Malformed {
        /// The line.
        line: String,
    },
    /// The last mention is a nan, an infinity, or too large.
    NotFinite {
        /// The line.
        line: String,
    },
    /// Two mentions contradict each other.
    Ambiguous {
        /// The earlier line.
        first: String,
        /// The later one.
        second: String,
    },
}

impl Refusal {
    /// The stable word for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::NotInResultFile { .. } => "not_in_result_file",
            Self::Nameless { .. } => "nameless",
            Self::Malformed { .. } => "malformed",
            Self::NotFinite { .. } => "not_finite",
            Self::Ambiguous { .. } => "ambiguous",
        }
    }

    /// Missing, with nothing to hint at.
    pub fn missing() -> Self {
        Self::Missing {
            near: Vec::new(),
            within: None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { near, within } => {
                formatter.write_str("no line of the output gives it")?;
                write_near(formatter, near)?;
                if let Some(line) = within {
                    write!(
                        formatter,
                        "; `{line}` holds it, but it must stand on a line of its own"
                    )?;
                }
                Ok(())
            }
            Self::NotInResultFile { near, output } => {
                formatter.write_str("the result file doesn't give it")?;
                write_near(formatter, near)?;
                if let Some(line) = output {
                    write!(
                        formatter,
                        "; `{line}` in the output doesn't count where `result_file` is set"
                    )?;
                }
                Ok(())
            }
            Self::Nameless { line } => {
                write!(
                    formatter,
                    "`{line}` in the result file has no name before it: a line `name={line}` was expected"
                )
            }
            Self::Malformed { line } => {
                write!(
                    formatter,
                    "`{line}` is malformed: a plain decimal number was expected"
                )
            }
            Self::NotFinite { line } => write!(formatter, "`{line}` is not a finite number"),
            Self::Ambiguous { first, second } => {
                write!(
                    formatter,
                    "ambiguous: `{first}` and `{second}` contradict each other"
                )
            }
        }
    }
}

fn write_near(formatter: &mut fmt::Formatter<'_>, near: &[String]) -> fmt::Result {
    let Some((nearest, others)) = near.split_first() else {
        return Ok(());
    };
    write!(formatter, "; names that look like it: `{nearest}`")?;
    for other in others {
        write!(formatter, ", `{other}`")?;
    }
    formatter.write_str(" (names are matched exactly, case included)")
}

/// A line fit to be quoted: bounded, cut in the middle, no control characters.
pub(super) fn quote(line: &str) -> String {
    let clean = |character: char| {
        if character.is_control() {
            '\u{fffd}'
        } else {
            character
        }
    };
    // The count only matters up to the bound: a line of many kilobytes is not walked twice.
    if line.chars().nth(QUOTE_CHARS).is_none() {
        return line.chars().map(clean).collect();
    }
    let half = (QUOTE_CHARS - 1) / 2;
    let tail_start = line
        .char_indices()
        .rev()
        .nth(half - 1)
        .map_or(0, |(at, _)| at);
    line.chars()
        .take(half)
        .chain(['…'])
        .chain(line[tail_start..].chars())
        .map(clean)
        .collect()
}

/// Whether a line is quoted whole.
pub(super) fn fits_quote(line: &str) -> bool {
    line.chars().nth(QUOTE_CHARS).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_bounded_and_clean() {
        assert_eq!(quote("m=1\u{7}"), "m=1\u{fffd}");
        let long = format!("m={}é", "1".repeat(5000));
        let quoted = quote(&long);
        assert!(quoted.chars().count() <= QUOTE_CHARS);
        assert!(quoted.starts_with("m=111") && quoted.ends_with("11é") && quoted.contains('…'));
    }

    #[test]
    fn codes_words_and_json() {
        let table = [
            (
                Refusal::missing(),
                r#"{"code":"missing","near":[]}"#,
                "no line of the output gives it",
            ),
            (
                Refusal::Missing {
                    near: vec!["Loss".into(), "val_loss".into()],
                    within: Some("a loss=1 b".into()),
                },
                r#"{"code":"missing","near":["Loss","val_loss"],"within":"a loss=1 b"}"#,
                "no line of the output gives it; names that look like it: `Loss`, `val_loss` (names are matched \
                 exactly, case included); `a loss=1 b` holds it, but it must stand on a line of its own",
            ),
            (
                Refusal::Malformed {
                    line: "m=12ms".into(),
                },
                r#"{"code":"malformed","line":"m=12ms"}"#,
                "`m=12ms` is malformed: a plain decimal number was expected",
            ),
            (
                Refusal::NotInResultFile {
                    near: vec!["M".into()],
                    output: Some("m=1".into()),
                },
                r#"{"code":"not_in_result_file","near":["M"],"output":"m=1"}"#,
                "the result file doesn't give it; names that look like it: `M` (names are matched exactly, case \
                 included); `m=1` in the output doesn't count where `result_file` is set",
            ),
            (
                Refusal::Nameless { line: "7".into() },
                r#"{"code":"nameless","line":"7"}"#,
                "`7` in the result file has no name before it: a line `name=7` was expected",
            ),
            (
                Refusal::NotFinite {
                    line: "m=nan".into(),
                },
                r#"{"code":"not_finite","line":"m=nan"}"#,
                "`m=nan` is not a finite number",
            ),
            (
                Refusal::Ambiguous {
                    first: "m=9".into(),
                    second: "{\"m\": 7}".into(),
                },
                r#"{"code":"ambiguous","first":"m=9","second":"{\"m\": 7}"}"#,
                "ambiguous: `m=9` and `{\"m\": 7}` contradict each other",
            ),
        ];
        for (refusal, json, words) in table {
            assert_eq!(serde_json::to_string(&refusal).unwrap(), json);
            assert_eq!(serde_json::from_str::<Refusal>(json).unwrap(), refusal);
            assert_eq!(refusal.to_string(), words);
            assert!(json.contains(&format!("\"code\":\"{}\"", refusal.code())));
        }
    }
}
