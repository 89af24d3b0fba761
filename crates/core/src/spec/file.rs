//! Reading `loopwright.toml`: every loop in it, each value with its place, all errors at once.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::guard::{GUARD_LIMITS, GuardSpec};
use crate::near::{did_you_mean, near_misses};

use super::problem::{Origin, Problem, Problems, unless};
use super::resolve::Located;
use super::setting::Setting;
use super::table::{RESERVED_TABLES, SETTINGS};
use super::value::{Value, ValueType, toml_words};

/// The file's name, in the repository's top directory.
pub const SPEC_FILE_NAME: &str = "loopwright.toml";

/// The longest name of a loop or a branch: it becomes part of a git ref and of file names.
const NAME_LENGTH_MAX: usize = 100;

/// A parsed `loopwright.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopFile {
    /// The file as the user would name it.
    pub path: String,
    /// Its loops, by name.
    pub loops: Vec<LoopEntry>,
}

/// One `[loop.NAME]` of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopEntry {
    /// The loop's name.
    pub name: String,
    /// `experiment`, `agent` or `search`; only an experiment's settings are read in this release.
    pub kind: String,
    /// Where the loop begins.
    pub origin: Origin,
    /// What is set, by key.
    pub values: BTreeMap<String, Located>,
}

impl LoopFile {
    /// Reads the file's text; `path` is what messages call it.
    pub fn parse(path: &str, text: &str) -> Result<Self, Problems> {
        let (document, errors) = DeTable::parse_recoverable(text);
        let mut reader = Reader {
            path,
            text,
            problems: Vec::new(),
        };
        for error in errors {
            let origin = reader.origin(error.span().map_or(0, |span| span.start));
            reader
                .problems
                .push(Problem::new(origin, "", error.message()));
        }
        // What a broken text recovers to would only bring wrong complaints.
        if !reader.problems.is_empty() {
            return unless(
                reader.problems,
                Self {
                    path: path.to_owned(),
                    loops: Vec::new(),
                },
            );
        }
        let loops = reader.document(document.get_ref());
        unless(
            reader.problems,
            Self {
                path: path.to_owned(),
                loops,
            },
        )
    }

    /// The loop of that name; without a name, the only one.
    pub fn choose(&self, name: Option<&str>) -> Result<&LoopEntry, Problems> {
        let names: Vec<&str> = self.loops.iter().map(|entry| entry.name.as_str()).collect();
        let refused = |message: String, help: String| {
            let origin = Origin::File {
                path: self.path.clone(),
                line: 1,
                column: 1,
            };
            Problems::one(Problem::new(origin, "", message).with_help(help))
        };
        let listed = || format!("it has {}", quoted(&names));
        match (name, self.loops.as_slice()) {
            (_, []) => Err(refused(
                "the file has no loop".to_owned(),
                "begin one with `[loop.NAME]`".to_owned(),
            )),
            (None, [only]) => Ok(only),
            (None, _) => Err(refused(
                "the file has several loops and none was named".to_owned(),
                format!("name one: {}", quoted(&names)),
            )),
            (Some(name), loops) => loops
                .iter()
                .find(|entry| entry.name == name)
                .ok_or_else(|| {
                    let near = near_misses(name, names.iter().copied());
                    refused(
                        format!("there is no loop `{name}`"),
                        did_you_mean(&near).unwrap_or_else(listed),
                    )
                }),
        }
    }
}

/// Whether a text can name a loop or a branch: letters, digits, `-`, `_` and `.`, as git's refs and
/// file systems take them.
pub fn is_plain_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !text.is_empty()
        && text.len() <= NAME_LENGTH_MAX
        && text.bytes().all(plain)
        && !text.starts_with(['.', '-'])
        && !text.ends_with('.')
        && !text.contains("..")
        && !text.to_ascii_lowercase().ends_with(".lock")
}

type Key<'a, 'i> = &'a Spanned<std::borrow::Cow<'i, str>>;
type Found<'a, 'i> = &'a Spanned<DeValue<'i>>;

struct Reader<'t> {
    path: &'t str,
    text: &'t str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn origin(&self, offset: usize) -> Origin {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Origin::File {
            path: self.path.to_owned(),
            line: before.matches('\n').count() as u32 + 1,
            column: before[line_start..].chars().count() as u32 + 1,
        }
    }

    fn fault(&mut self, offset: usize, key: &str, message: impl std::fmt::Display) {
        self.fault_with(offset, key, message, None);
    }

    fn fault_with(
        &mut self,
        offset: usize,
        key: &str,
        message: impl std::fmt::Display,
        help: Option<String>,
    ) {
        let problem = Problem::new(self.origin(offset), key, message).with_help_if(help);
        self.problems.push(problem);
    }

    fn document(&mut self, document: &DeTable<'_>) -> Vec<LoopEntry> {
        let mut loops = Vec::new();
        for (key, found) in document {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            match (name, found.get_ref()) {
                ("loop", DeValue::Table(table)) => {
                    loops.extend(table.iter().filter_map(|(key, found)| self.one(key, found)));
                }
                ("loop", other) => {
                    let message =
                        format!("expected tables `[loop.NAME]`, found {}", toml_words(other));
                    self.fault(at, name, message);
                }
                _ if is_known(name) => {
                    let help = "settings belong under a loop: `[loop.NAME]`".to_owned();
                    self.fault_with(at, name, "stands outside any loop", Some(help));
                }
                _ => {
                    let near = did_you_mean(&near_misses(name, ["loop"]));
                    let help =
                        near.unwrap_or_else(|| "the file holds `[loop.NAME]` tables".to_owned());
                    self.fault_with(at, name, "unknown table or setting", Some(help));
                }
            }
        }
        loops
    }

    fn one(&mut self, key: Key<'_, '_>, found: Found<'_, '_>) -> Option<LoopEntry> {
        let (name, at) = (key.get_ref().to_string(), key.span().start);
        let path = format!("loop.{name}");
        let DeValue::Table(table) = found.get_ref() else {
            let message = if is_known(&name) {
                "stands outside any loop".to_owned()
            } else {
                format!("expected a table, found {}", toml_words(found.get_ref()))
            };
            self.fault_with(
                at,
                &path,
                message,
                Some("give the loop a name: `[loop.NAME]`".to_owned()),
            );
            return None;
        };
        if !is_plain_name(&name) {
            let help = "use letters, digits, `-`, `_` and `.`".to_owned();
            self.fault_with(at, &path, "a loop can't have this name", Some(help));
        }
        let mut entry = LoopEntry {
            name,
            kind: "experiment".to_owned(),
            origin: self.origin(at),
            values: BTreeMap::new(),
        };
        if let Some(DeValue::String(kind)) = table.get("kind").map(Spanned::get_ref) {
            entry.kind = kind.to_string();
        }
        // Loops of a later kind have settings of their own; they must not spoil this one's file.
        if matches!(entry.kind.as_str(), "agent" | "search") {
            return Some(entry);
        }
        self.settings(table, &path, "", &mut entry.values);
        Some(entry)
    }

    /// Reads a loop's table, or one of the tables in it (`prefix` = `budget.`).
    fn settings(
        &mut self,
        table: &DeTable<'_>,
        path: &str,
        prefix: &str,
        values: &mut BTreeMap<String, Located>,
    ) {
        for (key, found) in table {
            let name = key.get_ref().as_ref();
            let full = format!("{prefix}{name}");
            let place = format!("{path}.{full}");
            let exact = SETTINGS.iter().find(|setting| setting.key == full);
            let nested = format!("{full}.");
            match (exact, found.get_ref()) {
                (Some(setting), _) if setting.kind == ValueType::Guards => {
                    self.guards(found, &place, values);
                }
                (Some(setting), _) if setting.kind == ValueType::Entries => {
                    self.entries(setting, found, &place, values);
                }
                (Some(setting), _) => self.value(setting.kind, key, found, &place, &full, values),
                (None, DeValue::Table(inner)) if prefix.is_empty() && is_group(&nested) => {
                    self.settings(inner, path, &nested, values);
                }
                (None, DeValue::Table(inner)) if is_reserved(&full) => {
                    for (key, _) in inner {
                        let place = format!("{place}.{}", key.get_ref());
                        let message = "this release knows no such permission";
                        self.fault(key.span().start, &place, message);
                    }
                }
                (None, other) if is_reserved(&full) || prefix.is_empty() && is_group(&nested) => {
                    let message = format!("expected a table, found {}", toml_words(other));
                    self.fault(found.span().start, &place, message);
                }
                (None, _) => self.unknown(key, &place, prefix),
            }
        }
    }

    fn unknown(&mut self, key: Key<'_, '_>, place: &str, prefix: &str) {
        let known = SETTINGS.iter().filter_map(|setting| {
            let rest = setting.key.strip_prefix(prefix)?;
            Some(rest.split('.').next().unwrap_or(rest))
        });
        let near = near_misses(key.get_ref(), known);
        self.fault_with(
            key.span().start,
            place,
            "unknown setting",
            did_you_mean(&near),
        );
    }

    fn value(
        &mut self,
        kind: ValueType,
        key: Key<'_, '_>,
        found: Found<'_, '_>,
        place: &str,
        full: &str,
        values: &mut BTreeMap<String, Located>,
    ) {
        match Value::from_toml(kind, found.get_ref()) {
            Ok(value) => {
                let origin = self.origin(key.span().start);
                values.insert(full.to_owned(), Located { value, origin });
            }
            Err(message) => self.fault(found.span().start, place, message),
        }
    }

    fn entries(
        &mut self,
        setting: &Setting,
        found: Found<'_, '_>,
        place: &str,
        values: &mut BTreeMap<String, Located>,
    ) {
        let DeValue::Table(table) = found.get_ref() else {
            let message = format!("expected a table, found {}", toml_words(found.get_ref()));
            return self.fault(found.span().start, place, message);
        };
        for (key, found) in table {
            let full = format!("{}.{}", setting.key, key.get_ref());
            let place = format!("{place}.{}", key.get_ref());
            self.value(setting.kind, key, found, &place, &full, values);
        }
    }

    fn guards(
        &mut self,
        found: Found<'_, '_>,
        place: &str,
        values: &mut BTreeMap<String, Located>,
    ) {
        let single = std::slice::from_ref(found);
        let items: &[Spanned<DeValue<'_>>] = match found.get_ref() {
            DeValue::Array(items) => items,
            _ => single,
        };
        for item in items {
            let Some((guard, at)) = self.guard(item, place) else {
                continue;
            };
            let located = Located {
                origin: self.origin(at),
                value: Some(Value::Guard(guard.clone())),
            };
            if values
                .insert(format!("guard.{}", guard.metric), located)
                .is_some()
            {
                let message = format!("there are two guards of `{}`", guard.metric);
                self.fault_with(
                    at,
                    place,
                    message,
                    Some("put the limits into one".to_owned()),
                );
            }
        }
    }

    /// One guard, and where its metric is named.
    fn guard(&mut self, item: Found<'_, '_>, place: &str) -> Option<(GuardSpec, usize)> {
        let start = item.span().start;
        let DeValue::Table(table) = item.get_ref() else {
            let message = format!(
                "expected tables `[[{place}]]`, found {}",
                toml_words(item.get_ref())
            );
            self.fault(start, place, message);
            return None;
        };
        let mut guard = GuardSpec::new("");
        let mut named_at = None;
        for (key, found) in table {
            let (name, at) = (key.get_ref().as_ref(), found.span().start);
            let place = format!("{place}.{name}");
            let text = match found.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) => number.to_string(),
                DeValue::Float(number) => number.as_str().to_owned(),
                other => {
                    let message = format!("expected a number or text, found {}", toml_words(other));
                    self.fault(at, &place, message);
                    continue;
                }
            };
            if name == "metric" {
                guard.metric = text;
                named_at = Some(key.span().start);
            } else if !GUARD_LIMITS.contains(&name) {
                let known = GUARD_LIMITS.into_iter().chain(["metric"]);
                let help = did_you_mean(&near_misses(name, known));
                self.fault_with(key.span().start, &place, "unknown setting of a guard", help);
            } else if let Err(message) = guard.set(name, &text) {
                self.fault(at, &place, message);
            }
        }
        if named_at.is_none() {
            let help = "say which metric it guards: `metric = \"size\"`".to_owned();
            self.fault_with(start, place, "the guard names no metric", Some(help));
        }
        named_at.map(|at| (guard, at))
    }
}

fn is_known(name: &str) -> bool {
    is_reserved(name)
        || SETTINGS
            .iter()
            .any(|setting| setting.key.split('.').next() == Some(name))
}

fn is_group(prefix: &str) -> bool {
    SETTINGS
        .iter()
        .any(|setting| setting.key.starts_with(prefix))
}

fn is_reserved(name: &str) -> bool {
    RESERVED_TABLES.contains(&name)
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
