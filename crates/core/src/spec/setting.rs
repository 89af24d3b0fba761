//! What a setting is: one row of the table that everything about settings is read from.

use super::value::ValueType;

/// What changing a setting between two invocations of one loop means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The loop would be another one: a new loop is needed.
    Identity,
    /// Measurements before and after can't be compared: a new segment with a fresh baseline.
    Harness,
    /// Takes effect at once; what was measured stays comparable.
    Free,
}

/// One setting, declared once.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in the file, dots for tables.
    pub key: &'static str,
    /// Its flag, with dashes; none where only the file has room for it.
    pub flag: Option<&'static str>,
    /// Its environment variable; only for settings that suit every loop of a person or machine.
    pub env: Option<&'static str>,
    /// Its type.
    pub kind: ValueType,
    /// Its value when nobody sets it, as text; none where there is no value then.
    pub default: Option<&'static str>,
    /// What a change means.
    pub class: Class,
    /// What it does, in a sentence or two.
    pub doc: &'static str,
    /// A value as one would write it in the file.
    pub example: &'static str,
    /// The release that first knew it.
    pub since: &'static str,
}

impl Setting {
    /// Whether each entry under this key is a value of its own.
    pub fn is_table(&self) -> bool {
        matches!(self.kind, ValueType::Entries | ValueType::Guards)
    }

    /// Whether a flag given again adds to the value instead of contradicting it.
    pub fn repeats(&self) -> bool {
        self.is_table() || self.kind == ValueType::List
    }
}
