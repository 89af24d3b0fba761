//! [`Secrets`]: the rules together with the values known to be secret, applied to texts, bytes, JSON
//! documents and environments.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::names::is_secret_name;
use super::pass::{self, Finding, Known, marker_length};

/// Known values shorter than this are not looked for: they would be found in innocent text
/// everywhere. The same holds for a few common words (`password`, `postgres`, …). A map still hides
/// them by name.
pub const SHORTEST_KNOWN_BYTES: usize = 8;

/// Values that stand in for a secret and are common words: looking for them would spoil innocent text.
const STAND_INS: [&str; 12] = [
    "password",
    "postgres",
    "changeme",
    "localhost",
    "disabled",
    "required",
    "optional",
    "undefined",
    "12345678",
    "username",
    "testtest",
    "anonymous",
];

/// What to scrub with. Its debug form shows no value.
#[derive(Clone)]
pub struct Secrets {
    known: Known,
    count: usize,
}

impl Default for Secrets {
    /// The shapes alone, no known values.
    fn default() -> Self {
        Self::from_values::<&str>([])
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Secrets")
            .field("known", &self.count)
            .finish()
    }
}

impl Secrets {
    /// Takes the whole environment (or any list of names and values) and remembers the values whose
    /// names are secret and which are long enough, without white space round them.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(known: impl IntoIterator<Item = (N, V)>) -> Self {
        let secret = known
            .into_iter()
            .filter(|(name, _)| is_secret_name(name.as_ref()));
        Self::from_values(secret.map(|(_, value)| value))
    }

    /// Takes values that are secret whatever they are called.
    pub fn from_values<V: AsRef<str>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut forms: Vec<Vec<u8>> = Vec::new();
        let mut count = 0;
        for value in values {
            let value = value.as_ref().trim();
            // A value that is itself a replacement says nothing.
            let stand_in = STAND_INS
                .iter()
                .any(|word| word.eq_ignore_ascii_case(value));
            if stand_in
                || value.len() < SHORTEST_KNOWN_BYTES
                || marker_length(value.as_bytes()) == Some(value.len())
            {
                continue;
            }
            count += 1;
            // In a JSON text the same value is written with escapes.
            let escaped = Value::from(value).to_string();
            forms.push(escaped.as_bytes()[1..escaped.len() - 1].to_vec());
            forms.push(value.as_bytes().to_vec());
        }
        Self {
            known: Known::new(forms),
            count,
        }
    }

    /// Where the secrets of these bytes are.
    pub fn findings(&self, bytes: &[u8]) -> Vec<Finding> {
        pass::findings(bytes, &self.known)
    }

    /// The bytes without secrets, and how many were taken out.
    pub fn scrub_bytes<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, usize) {
        let mut clean = Cow::Borrowed(bytes);
        let mut count = 0;
        loop {
            // Once more after each change, because a replacement may bound what had no bound before.
            // What is left outside replacements shrinks each time, so this ends.
            let found = self.findings(&clean);
            if found.is_empty() {
                return (clean, count);
            }
            count += found.len();
            clean = Cow::Owned(pass::replaced(&clean, &found));
        }
    }

    /// The text without secrets, and how many were taken out.
    pub fn scrub_text<'a>(&self, text: &'a str) -> (Cow<'a, str>, usize) {
        match self.scrub_bytes(text.as_bytes()) {
            (Cow::Borrowed(_), count) => (Cow::Borrowed(text), count),
            // Secrets begin and end between characters, so nothing is lost here.
            (Cow::Owned(bytes), count) => (
                Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
                count,
            ),
        }
    }

    /// Takes the secrets out of every text and key of a document; the number of those taken out.
    pub fn scrub_json(&self, document: &mut Value) -> usize {
        match document {
            Value::String(text) => self.scrub_string(text),
            Value::Array(items) => items.iter_mut().map(|item| self.scrub_json(item)).sum(),
            Value::Object(members) => {
                let inside: usize = members
                    .values_mut()
                    .map(|value| self.scrub_json(value))
                    .sum();
                inside + self.scrub_keys(members)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }

    fn scrub_string(&self, text: &mut String) -> usize {
        let (clean, count) = self.scrub_text(text);
        if count > 0 {
            *text = clean.into_owned();
        }
        count
    }

    fn scrub_keys(&self, members: &mut Map<String, Value>) -> usize {
        if members
            .keys()
            .all(|key| self.findings(key.as_bytes()).is_empty())
        {
            return 0;
        }
        let mut count = 0;
        for (mut key, value) in std::mem::take(members) {
            count += self.scrub_string(&mut key);
            // Two secrets of a kind become one key: the later one is numbered rather than lost.
            let mut free = key.clone();
            let mut number = 2;
            while members.contains_key(&free) {
                free = format!("{key} ({number})");
                number += 1;
            }
            members.insert(free, value);
        }
        count
    }
}
