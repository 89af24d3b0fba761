//! One setting's value: its type, and how it is read from text and from TOML.

use std::fmt;

use toml::Spanned;
use toml::de::DeValue;

use crate::guard::{GuardSpec, Tolerance};
use crate::metric::Real;
use crate::near::{did_you_mean, near_misses};

use super::keep::NoiseSpec;
use super::units::{
    INTEGER_MAX, Money, format_duration_us, format_size_bytes, parse_duration_us, parse_size_bytes,
};

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Any text.
    Text,
    /// A command line for `sh`.
    Command,
    /// One of some words, each with the word it stands for.
    Choice(&'static [(&'static str, &'static str)]),
    /// True or false.
    Switch,
    /// A whole number.
    Count,
    /// A finite number.
    Number,
    /// A finite number, or one of some words for one.
    Graded(&'static [(&'static str, &'static str)]),
    /// An amount, in the metric's unit or in percent.
    Amount,
    /// What is known of a metric's noise.
    Noise,
    /// A span of time.
    Duration,
    /// A number of bytes.
    Size,
    /// An amount in a currency.
    Money,
    /// Several texts.
    List,
    /// Named texts, each a setting of its own (`env.NAME`).
    Entries,
    /// Guards, each a setting of its own (`guard.METRIC`).
    Guards,
}

/// A setting's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text, a command, or the word chosen.
    Text(String),
    /// True or false.
    Switch(bool),
    /// A whole number.
    Count(u64),
    /// A finite number.
    Number(Real),
    /// An amount, in the metric's unit or in percent.
    Amount(Tolerance),
    /// What is known of a metric's noise.
    Noise(NoiseSpec),
    /// Microseconds.
    DurationUs(u64),
    /// Bytes.
    Bytes(u64),
    /// An amount in a currency.
    Money(Money),
    /// Several texts.
    List(Vec<String>),
    /// One guard.
    Guard(GuardSpec),
}

/// As people would write it; reads back by [`Value::parse`] but for lists, which are shown in
/// brackets.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Switch(on) => write!(f, "{on}"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Amount(amount) => write!(f, "{amount}"),
            Self::Noise(noise) => write!(f, "{noise}"),
            Self::DurationUs(duration_us) => f.write_str(&format_duration_us(*duration_us)),
            Self::Bytes(bytes) => f.write_str(&format_size_bytes(*bytes)),
            Self::Money(money) => write!(f, "{money}"),
            Self::List(items) => write!(f, "{items:?}"),
            Self::Guard(guard) => write!(f, "{guard}"),
        }
    }
}

impl ValueType {
    /// What to call the type in a sentence and in the reference.
    pub fn words(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Command => "command".to_owned(),
            Self::Choice(words) => {
                let words: Vec<String> =
                    words.iter().map(|(word, _)| format!("`{word}`")).collect();
                words.join(", ")
            }
            Self::Switch => "`true` or `false`".to_owned(),
            Self::Count => "whole number".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Graded(words) => {
                let words: Vec<String> = words
                    .iter()
                    .map(|(word, number)| format!("`{word}` ({number})"))
                    .collect();
                format!("{} or a number", words.join(", "))
            }
            Self::Amount => "number or percentage".to_owned(),
            Self::Noise => "`auto`, `none` or readings".to_owned(),
            Self::Duration => "duration".to_owned(),
            Self::Size => "size".to_owned(),
            Self::Money => "money".to_owned(),
            Self::List => "list of texts".to_owned(),
            Self::Entries => "table of texts".to_owned(),
            Self::Guards => "tables of limits".to_owned(),
        }
    }

    /// Whether values of this type are themselves words, so that `none` can't mean "no value".
    fn holds_text(self) -> bool {
        matches!(
            self,
            Self::Text | Self::Command | Self::List | Self::Entries | Self::Guards | Self::Noise
        )
    }
}

impl Value {
    /// Reads a value from text. `Ok(None)` is the word `none` where a number may be left out.
    pub fn parse(kind: ValueType, text: &str) -> Result<Option<Self>, String> {
        if text.trim() == "none" && !kind.holds_text() && !matches!(kind, ValueType::Choice(_)) {
            return Ok(None);
        }
        let value = match kind {
            ValueType::Text | ValueType::Command | ValueType::Entries => {
                Self::Text(text.to_owned())
            }
            ValueType::Choice(words) => Self::Text(choose(words, text)?),
            ValueType::Switch => match text.trim() {
                "true" => Self::Switch(true),
                "false" => Self::Switch(false),
                other => return Err(format!("`{other}` is neither `true` nor `false`")),
            },
            ValueType::Count => {
                let digits = text.trim();
                let count = digits
                    .parse::<u64>()
                    .ok()
                    .filter(|count| *count <= INTEGER_MAX);
                let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                Self::Count(count.ok_or_else(|| {
                    if is_number {
                        format!("`{digits}` is too large: at most {INTEGER_MAX}")
                    } else {
                        format!("`{digits}` is not a whole number")
                    }
                })?)
            }
            ValueType::Number => Self::Number(text.trim().parse().map_err(display)?),
            ValueType::Graded(words) => {
                let meant = words.iter().find(|(word, _)| *word == text.trim());
                let number = meant.map_or(text.trim(), |(_, number)| number);
                Self::Number(number.parse().map_err(|error| {
                    let words: Vec<String> =
                        words.iter().map(|(word, _)| format!("`{word}`")).collect();
                    format!("{error}, nor one of {}", words.join(", "))
                })?)
            }
            ValueType::Amount => Self::Amount(text.parse().map_err(|_| {
                format!("`{text}` is no amount: give a number such as `3`, or a percentage such as `5%`; 0 or more")
            })?),
            ValueType::Noise => Self::Noise(text.parse()?),
            ValueType::Duration => Self::DurationUs(parse_duration_us(text).map_err(display)?),
            ValueType::Size => Self::Bytes(parse_size_bytes(text).map_err(display)?),
            ValueType::Money => Self::Money(text.parse().map_err(display)?),
            ValueType::List => Self::List(vec![text.to_owned()]),
            ValueType::Guards => Self::Guard(text.parse()?),
        };
        Ok(Some(value))
    }

    /// Reads a value from TOML. Tables ([`ValueType::Entries`], [`ValueType::Guards`]) are taken
    /// apart by the file's reader, which calls this for what is in them.
    pub fn from_toml(kind: ValueType, found: &DeValue<'_>) -> Result<Option<Self>, String> {
        match (kind, found) {
            (ValueType::List, DeValue::Array(items)) => {
                let texts: Result<Vec<String>, String> = items.iter().map(list_item).collect();
                return texts.map(Self::List).map(Some);
            }
            (ValueType::Switch, DeValue::Boolean(on)) => return Ok(Some(Self::Switch(*on))),
            (ValueType::Switch, _) => {}
            (_, DeValue::String(text)) => return Self::parse(kind, text),
            (ValueType::Noise, DeValue::Array(items)) => {
                let texts: Result<Vec<String>, String> = items.iter().map(number_item).collect();
                return Self::parse(kind, &texts?.join(","));
            }
            (
                ValueType::Count
                | ValueType::Number
                | ValueType::Graded(_)
                | ValueType::Amount
                | ValueType::Noise
                | ValueType::Duration
                | ValueType::Size,
                DeValue::Integer(integer),
            ) => {
                let number = i64::from_str_radix(integer.as_str(), integer.radix())
                    .map_err(|_| format!("`{}` is too large", integer.as_str()))?;
                return Self::parse(kind, &number.to_string());
            }
            (
                ValueType::Number
                | ValueType::Graded(_)
                | ValueType::Amount
                | ValueType::Noise
                | ValueType::Duration,
                DeValue::Float(float),
            ) => return Self::parse(kind, float.as_str()),
            (ValueType::Money, DeValue::Integer(_) | DeValue::Float(_)) => {
                return Err("an amount of money needs its currency: \"12.50 USD\"".to_owned());
            }
            _ => {}
        }
        Err(format!(
            "expected {}, found {}",
            kind.words(),
            toml_words(found)
        ))
    }
}

fn number_item(item: &Spanned<DeValue<'_>>) -> Result<String, String> {
    match item.get_ref() {
        DeValue::Integer(integer) if integer.radix() == 10 => Ok(integer.as_str().to_owned()),
        DeValue::Float(float) => Ok(float.as_str().to_owned()),
        other => Err(format!(
            "expected numbers in the list, found {}",
            toml_words(other)
        )),
    }
}

fn list_item(item: &Spanned<DeValue<'_>>) -> Result<String, String> {
    match item.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        other => Err(format!(
            "expected texts in the list, found {}",
            toml_words(other)
        )),
    }
}

/// What a TOML value is, in a sentence.
pub(crate) fn toml_words(found: &DeValue<'_>) -> &'static str {
    match found {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn choose(words: &[(&str, &str)], text: &str) -> Result<String, String> {
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text.trim()) {
        return Ok((*meaning).to_owned());
    }
    let all: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
    let near = near_misses(text.trim(), words.iter().map(|(word, _)| *word));
    let help = did_you_mean(&near)
        .map(|help| format!("; {help}"))
        .unwrap_or_default();
    Err(format!("`{text}` is not one of {}{help}", all.join(", ")))
}

fn display(error: impl fmt::Display) -> String {
    error.to_string()
}
