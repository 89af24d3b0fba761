//! [`Scanner`]: finds the metrics in a command's output as it streams by.

use std::collections::BTreeSet;

use super::json::{MemberValue, Progress, TopLevel};
use super::line::{Continues, Line, LineSplitter};
use super::name::MetricName;
use super::readings::{Reading, Readings};
use super::refusal::{Refusal, fits_quote, quote};
use super::tally::{Form, Mention, Tally};
use super::value::Parsed;
use crate::near::NearMisses;

/// How many near names a refusal lists.
const NEAR_MAX: usize = 5;
/// Longer lines are not looked at for hints.
const HINT_LINE_BYTES: usize = 1024;
/// So many different keys are compared with the names asked for; output that holds more is data.
const HINT_KEYS: usize = 1024;
/// Longer keys are not compared.
const HINT_KEY_BYTES: usize = 512;
/// A name with more words than this is a sentence.
const HINT_WORDS: usize = 4;

/// Reads a command's merged output in bounded memory and remembers what it says about the metrics
/// asked for.
///
/// A mention is a **whole line**, escape sequences, white space and a row of progress dots before it
/// aside: `key=value`, `key: value`, or a JSON object (on one line or pretty-printed over several)
/// with the key at its top level. Carriage returns end lines too. The last mention counts. A name
/// has to match exactly.
#[derive(Debug)]
pub struct Scanner {
    splitter: LineSplitter,
    collector: Collector,
}

impl Scanner {
    /// A scanner for these metrics. With `strict`, two mentions that differ are refused even where
    /// the later one would replace the earlier.
    pub fn new(names: &[MetricName], strict: bool) -> Self {
        Self {
            splitter: LineSplitter::new(),
            collector: Collector::new(names, strict),
        }
    }

    /// A scanner for a whole document at hand: a JSON line may be as long as the document.
    pub(super) fn for_document(names: &[MetricName], strict: bool, bytes: usize) -> Self {
        Self {
            splitter: LineSplitter::with_json_room(bytes),
            collector: Collector::new(names, strict),
        }
    }

    /// Takes the next chunk; where the chunks are cut does not matter.
    pub fn feed(&mut self, bytes: &[u8]) {
        let collector = &mut self.collector;
        self.splitter.feed(bytes, &mut |line| collector.line(line));
    }

    /// The output is over: one reading per metric asked for.
    pub fn finish(self) -> Readings {
        let Self {
            splitter,
            mut collector,
        } = self;
        splitter.finish(&mut |line| collector.line(line));
        collector.finish()
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.splitter.held_bytes()
    }
}

#[derive(Debug)]
struct Entry {
    name: MetricName,
    /// The name as a JSON key, quotes included.
    json_key: String,
    tally: Tally,
    /// Mentions in a JSON object that is not complete yet.
    pending: Tally,
    near: NearMisses,
    /// The last line that holds it and a number, but is no mention; empty if there was none.
    within: String,
}

#[derive(Debug)]
struct Collector {
    strict: bool,
    entries: Vec<Entry>,
    /// A JSON object that began on an earlier line.
    open_object: Option<TopLevel>,
    /// Keys that were compared with the names already.
    compared: BTreeSet<String>,
}

impl Collector {
    fn new(names: &[MetricName], strict: bool) -> Self {
        let mut names = names.to_vec();
        names.sort();
        names.dedup();
        let entry = |name: MetricName| Entry {
            json_key: serde_json::Value::from(name.as_str()).to_string(),
            name,
            tally: Tally::default(),
            pending: Tally::default(),
            near: NearMisses::default(),
            within: String::new(),
        };
        Self {
            strict,
            entries: names.into_iter().map(entry).collect(),
            open_object: None,
            compared: BTreeSet::new(),
        }
    }

    fn line(&mut self, line: Line<'_>) -> Continues {
        let text = line
            .text
            .trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
        if text.is_empty() {
            return self.open_object.is_some();
        }
        if let Some(object) = self.open_object.take()
            && !line.cut
            && self.object_line(object, text) != Progress::Failed
        {
            return self.open_object.is_some();
        }
        let body = text.trim_start_matches('.').trim_start();
        if self.key_value(text) || (body.len() < text.len() && self.key_value(body)) {
            return false;
        }
        if body.starts_with('{') {
            if line.cut || self.object_line(TopLevel::new(), body) == Progress::Failed {
                self.broken_object(body);
            }
            return self.open_object.is_some();
        }
        self.hint(body);
        false
    }

    /// Reads one more line of an object, and takes over what it says once it is complete.
    fn object_line(&mut self, mut object: TopLevel, text: &str) -> Progress {
        let (entries, compared) = (&mut self.entries, &mut self.compared);
        let progress = object.line(text, &mut |key, value| {
            for entry in entries
                .iter_mut()
                .filter(|entry| entry.name.as_str() == key)
            {
                entry
                    .pending
                    .add(json_mention(&entry.json_key, value, text));
            }
            if matches!(value, MemberValue::Bare(_)) {
                compare(entries, compared, key);
            }
        });
        for entry in &mut self.entries {
            match progress {
                Progress::Open => {}
                Progress::Done => entry.tally.absorb(std::mem::take(&mut entry.pending)),
                Progress::Failed => entry.pending = Tally::default(),
            }
        }
        if progress == Progress::Open {
            self.open_object = Some(object);
        }
        progress
    }

    /// A line in braces that cannot be read (damaged, or too long) but says something about the key
    /// is a malformed mention: an older value must not win because of it.
    fn broken_object(&mut self, body: &str) {
        if !body.ends_with('}') {
            return;
        }
        for entry in &mut self.entries {
            let says = body
                .match_indices(&entry.json_key)
                .any(|(at, key)| body[at + key.len()..].trim_start().starts_with(':'));
            if says {
                let line = quote(body);
                entry.tally.add(Mention {
                    form: Form::Json,
                    parsed: Parsed::Malformed,
                    line,
                });
            }
        }
    }

    /// Whether the line is `key=value` or `key: value`; of several names that fit, the longest is
    /// meant.
    fn key_value(&mut self, text: &str) -> bool {
        if !has_sign(text) {
            return false;
        }
        let mut best: Option<(usize, &str)> = None;
        for (index, entry) in self.entries.iter().enumerate() {
            let longer = best.is_none_or(|(other, _)| {
                self.entries[other].name.as_str().len() < entry.name.as_str().len()
            });
            if longer && let Some(value) = value_of(text, entry.name.as_str()) {
                best = Some((index, value));
            }
        }
        let Some((index, value)) = best else {
            return false;
        };
        let mention = Mention {
            form: Form::KeyValue,
            parsed: Parsed::plain(value),
            line: quote(text),
        };
        self.entries[index].tally.add(mention);
        true
    }

    /// The line is no mention; perhaps it explains a missing one.
    fn hint(&mut self, text: &str) {
        if text.len() > HINT_LINE_BYTES || !has_sign(text) {
            return;
        }
        if let Some(key) = key_like(text) {
            compare(&mut self.entries, &mut self.compared, key);
        }
        for entry in self
            .entries
            .iter_mut()
            .filter(|entry| entry.tally.is_empty())
        {
            if says_within(text, entry.name.as_str()) {
                // Kept as it is, in the same room; only the last one is worth quoting.
                entry.within.clear();
                entry.within.push_str(text);
            }
        }
    }

    fn finish(self) -> Readings {
        let strict = self.strict;
        let reading = |entry: Entry| {
            let missing = Refusal::Missing {
                near: entry.near.nearest(NEAR_MAX),
                within: (!entry.within.is_empty()).then(|| quote(&entry.within)),
            };
            (
                entry.name,
                entry
                    .tally
                    .judge(strict)
                    .unwrap_or(Reading::Refused(missing)),
            )
        };
        self.entries.into_iter().map(reading).collect()
    }
}

/// Compares a key that was given a number with the names that were not, once.
fn compare(entries: &mut [Entry], compared: &mut BTreeSet<String>, key: &str) {
    let all_found = entries.iter().all(|entry| !entry.tally.is_empty());
    if all_found
        || key.len() > HINT_KEY_BYTES
        || compared.len() >= HINT_KEYS
        || compared.contains(key)
    {
        return;
    }
    for entry in entries {
        entry.near.offer(entry.name.as_str(), key);
    }
    compared.insert(key.to_owned());
}

fn json_mention(json_key: &str, value: MemberValue<'_>, text: &str) -> Mention {
    let parsed = match value {
        MemberValue::Bare(token) => Parsed::json_token(token),
        MemberValue::Other => Parsed::Malformed,
    };
    // Of a long line the part that matters is quoted.
    let line = match value {
        MemberValue::Bare(token) if !fits_quote(text) => {
            quote(&format!("{{… {json_key}: {token} …}}"))
        }
        _ => quote(text),
    };
    Mention {
        form: Form::Json,
        parsed,
        line,
    }
}

fn has_sign(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'=' | b':'))
}

/// The value, if the line is `name = value` or `name: value`.
fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.strip_prefix(name)?
        .trim_start()
        .strip_prefix(['=', ':'])
        .map(str::trim)
}

/// The key of a line that looks like `key = number`.
fn key_like(text: &str) -> Option<&str> {
    let at = text.find(['=', ':'])?;
    let key = text[..at].trim();
    let words = key.split_whitespace().count();
    ((1..=HINT_WORDS).contains(&words) && starts_number(&text[at + 1..])).then_some(key)
}

/// Whether a number begins here, white space and decoration aside.
fn starts_number(text: &str) -> bool {
    let text = text.trim_start_matches(|character: char| {
        character.is_whitespace() || "\"'*`+-.".contains(character)
    });
    let lower = || text.chars().take(3).flat_map(char::to_lowercase);
    text.starts_with(|character: char| character.is_ascii_digit())
        || lower().eq("nan".chars())
        || lower().eq("inf".chars())
}

/// Whether the line holds `name = number` somewhere behind its beginning.
fn says_within(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let joined = |character: char| character.is_alphanumeric() || "_-./".contains(character);
        !text[..at].ends_with(joined) && value_of(&text[at..], name).is_some_and(starts_number)
    })
}
