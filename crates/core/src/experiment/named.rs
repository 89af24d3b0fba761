//! Names in a record: the first of them, and how many there are. What a stranger leaves can be sixty
//! thousand paths, and an event is not the place for them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many stand in the record by name.
pub const NAMES_MAX: usize = 20;

/// Longer names are cut.
const NAME_BYTES_MAX: usize = 512;

/// The first few of a list of names, and how many it has. In a record a list that is whole is a
/// plain list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Recorded", into = "Recorded")]
pub struct Named {
    names: Vec<String>,
    count: u64,
}

impl Named {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Those that are known by name.
    pub fn first(&self) -> &[String] {
        &self.names
    }

    /// Adds one.
    pub fn push(&mut self, name: impl Into<String>) {
        self.count += 1;
        if self.names.len() < NAMES_MAX {
            self.names.push(cut(name.into()));
        }
    }
}

/// In words: the first ones, and how many more there are.
impl fmt::Display for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.names.join(", "))?;
        match self.count - self.names.len() as u64 {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

impl<T: Into<String>> FromIterator<T> for Named {
    fn from_iter<I: IntoIterator<Item = T>>(names: I) -> Self {
        let mut named = Self::default();
        named.extend(names);
        named
    }
}

impl<T: Into<String>> Extend<T> for Named {
    fn extend<I: IntoIterator<Item = T>>(&mut self, names: I) {
        for name in names {
            self.push(name);
        }
    }
}

fn cut(mut name: String) -> String {
    if name.len() > NAME_BYTES_MAX {
        let end = (0..=NAME_BYTES_MAX).rfind(|at| name.is_char_boundary(*at));
        name.truncate(end.unwrap_or(0));
        name.push('…');
    }
    name
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Recorded {
    Whole(Vec<String>),
    Cut { first: Vec<String>, count: u64 },
}

impl From<Recorded> for Named {
    fn from(recorded: Recorded) -> Self {
        match recorded {
            Recorded::Whole(names) => Self {
                count: names.len() as u64,
                names,
            },
            Recorded::Cut { first, count } => Self {
                count: count.max(first.len() as u64),
                names: first,
            },
        }
    }
}

impl From<Named> for Recorded {
    fn from(named: Named) -> Self {
        if named.count == named.names.len() as u64 {
            return Self::Whole(named.names);
        }
        Self::Cut {
            first: named.names,
            count: named.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_short_list_is_recorded_whole_and_a_long_one_with_its_count() {
        let short: Named = ["a", "b"].into_iter().collect();
        assert_eq!(serde_json::to_value(&short).unwrap(), json!(["a", "b"]));
        assert_eq!(short.to_string(), "a, b");

        let long: Named = (0..60_000).map(|at| at.to_string()).collect();
        let recorded = serde_json::to_value(&long).unwrap();
        assert_eq!(recorded["count"], 60_000);
        assert_eq!(recorded["first"].as_array().unwrap().len(), NAMES_MAX);
        assert_eq!(serde_json::from_value::<Named>(recorded).unwrap(), long);
        assert!(long.to_string().ends_with("19 and 59980 more"), "{long}");
    }

    #[test]
    fn a_list_of_an_older_record_is_read_whole_however_long() {
        let names: Vec<String> = (0..100).map(|at| at.to_string()).collect();
        let named: Named = serde_json::from_value(json!(names)).unwrap();
        assert_eq!(named.count(), 100);
        assert_eq!(serde_json::to_value(named).unwrap(), json!(names));
    }

    #[test]
    fn a_name_is_cut_between_characters() {
        let named: Named = ["ä".repeat(1000)].into_iter().collect();
        assert_eq!(named.first()[0], format!("{}…", "ä".repeat(256)));
    }
}
