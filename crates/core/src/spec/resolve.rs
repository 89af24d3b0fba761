//! Laying the layers over each other: default, the run's record, file, environment, command line.
//!
//! A later layer replaces a setting's whole value. Environment entries and guards are settings of
//! their own (`env.RUST_LOG`, `guard.size`), so one can be replaced without naming the others.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::guard::GuardSpec;
use crate::near::{did_you_mean, near_misses};

use super::experiment::ExperimentSpec;
use super::file::LoopEntry;
use super::problem::{Origin, Problem, Problems, unless};
use super::rule_notices::rule_notices;
use super::setting::Setting;
use super::table::{SETTINGS, setting_by_env, setting_by_flag};
use super::value::{Value, ValueType};

/// The loop's name where neither a file nor a flag gives one.
pub const DEFAULT_LOOP_NAME: &str = "default";

/// What settings' environment variables begin with. Commands are told things under the same prefix
/// (`LOOPWRIGHT_RESULT`, `LOOPWRIGHT_BRIEF` …), so unknown names are none of our business.
pub const ENV_PREFIX: &str = "LOOPWRIGHT_";

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// The value; none where somebody wrote `none` or there is no default.
    pub value: Option<Value>,
    /// Where it came from.
    pub origin: Origin,
}

/// The settings given on the command line, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags(Vec<(String, String)>);

impl Flags {
    /// No flags.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a flag (with its dashes, as in the table) and its value; a switch's is `true`.
    pub fn push(&mut self, flag: impl Into<String>, value: impl Into<String>) {
        self.0.push((flag.into(), value.into()));
    }
}

/// What a specification is made of.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// The loop's name where there is no file entry.
    pub name: Option<&'a str>,
    /// What a run pinned when it started: the ground `resume` stands on.
    pub pinned: Option<&'a ExperimentSpec>,
    /// The loop's entry in the file.
    pub file: Option<&'a LoopEntry>,
    /// The environment; only names of the table are looked at.
    pub environment: &'a BTreeMap<String, String>,
    /// The command line.
    pub flags: &'a Flags,
}

/// Every setting with its value and its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The loop's name.
    pub name: String,
    /// Each setting of the table, and each `env.NAME` and `guard.METRIC`, by key.
    pub entries: BTreeMap<String, Located>,
    /// Things worth saying that stop nobody.
    pub notices: Vec<String>,
}

/// One line of `config show`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The setting.
    pub key: String,
    /// Its value as text; none where it has none.
    pub value: Option<String>,
    /// Where the value came from.
    pub origin: Origin,
}

/// Lays the layers over each other.
pub fn resolve(layers: &Layers<'_>) -> Result<Resolved, Problems> {
    let mut resolver = Resolver {
        entries: defaults(),
        problems: Vec::new(),
        notices: Vec::new(),
    };
    if let Some(spec) = layers.pinned {
        for (key, value) in spec.entries() {
            resolver.entries.insert(
                key,
                Located {
                    value,
                    origin: Origin::Pinned,
                },
            );
        }
    }
    if let Some(entry) = layers.file {
        resolver.entries.extend(entry.values.clone());
        if entry.kind != "experiment" {
            let message = format!("this release can't drive loops of kind `{}`", entry.kind);
            let key = format!("loop.{}.kind", entry.name);
            resolver
                .problems
                .push(Problem::new(entry.origin.clone(), key, message));
        }
    }
    resolver.environment(layers.environment);
    resolver.command_line(layers.flags);
    let said = rule_notices(&mut resolver.entries);
    resolver.notices.extend(said);
    resolver.notice_idle_pass_env();
    let pinned_name = layers.pinned.map(|spec| spec.name.as_str());
    let file_name = layers.file.map(|entry| entry.name.as_str());
    let name = file_name
        .or(layers.name)
        .or(pinned_name)
        .unwrap_or(DEFAULT_LOOP_NAME)
        .to_owned();
    let Resolver {
        entries,
        problems,
        notices,
    } = resolver;
    unless(
        problems,
        Resolved {
            name,
            entries,
            notices,
        },
    )
}

impl Resolved {
    /// A setting's value.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)?.value.as_ref()
    }

    /// Where a setting's value came from.
    pub fn origin(&self, key: &str) -> Origin {
        self.entries
            .get(key)
            .map_or(Origin::Default, |located| located.origin.clone())
    }

    /// The lines of `config show`, in the order of the table.
    pub fn rows(&self) -> Vec<Row> {
        let row = |key: &String, located: &Located| Row {
            key: key.clone(),
            value: located.value.as_ref().map(ToString::to_string),
            origin: located.origin.clone(),
        };
        SETTINGS
            .iter()
            .flat_map(|setting| {
                let table = format!("{}.", setting.key);
                self.entries.iter().filter(move |(key, _)| {
                    key.as_str() == setting.key || setting.is_table() && key.starts_with(&table)
                })
            })
            .map(|(key, located)| row(key, located))
            .collect()
    }
}

/// The rows as a table of text, one line each.
pub fn render_rows(rows: &[Row]) -> String {
    let shown = |row: &Row| row.value.clone().unwrap_or_else(|| "(not set)".to_owned());
    let width = |texts: Vec<usize>| texts.into_iter().max().unwrap_or(0).min(60);
    let key_width = width(rows.iter().map(|row| row.key.chars().count()).collect());
    let value_width = width(rows.iter().map(|row| shown(row).chars().count()).collect());
    let line = |row: &Row| {
        let value = shown(row).replace('\n', "\\n");
        format!(
            "{:key_width$}  {value:value_width$}  {}\n",
            row.key, row.origin
        )
    };
    rows.iter().map(line).collect()
}

/// The table's defaults; they are read like any other text, and a test reads them all.
fn defaults() -> BTreeMap<String, Located> {
    SETTINGS
        .iter()
        .filter(|setting| !setting.is_table())
        .map(|setting| {
            let value = setting
                .default
                .and_then(|text| Value::parse(setting.kind, text).ok()?);
            (
                setting.key.to_owned(),
                Located {
                    value,
                    origin: Origin::Default,
                },
            )
        })
        .collect()
}

struct Resolver {
    entries: BTreeMap<String, Located>,
    problems: Vec<Problem>,
    notices: Vec<String>,
}

impl Resolver {
    fn environment(&mut self, environment: &BTreeMap<String, String>) {
        for (name, text) in environment
            .iter()
            .filter(|(name, _)| name.starts_with(ENV_PREFIX))
        {
            let Some(setting) = setting_by_env(name) else {
                self.notice_misspelt(name);
                continue;
            };
            // An empty variable is how shells say "not set".
            if text.is_empty() {
                continue;
            }
            let origin = Origin::Environment { name: name.clone() };
            self.set(setting, setting.key.to_owned(), text, origin);
        }
    }

    fn notice_misspelt(&mut self, name: &str) {
        let known = SETTINGS.iter().filter_map(|setting| setting.env);
        let close = near_misses(name, known)
            .into_iter()
            .find(|near| near.len() == name.len());
        if let Some(help) = close.and_then(|near| did_you_mean(&[near])) {
            self.notices
                .push(format!("the environment's `{name}` is no setting; {help}"));
        }
    }

    fn command_line(&mut self, flags: &Flags) {
        let mut lists: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (flag, text) in &flags.0 {
            let origin = Origin::CommandLine { flag: flag.clone() };
            let Some(setting) = setting_by_flag(flag) else {
                let near = near_misses(flag, SETTINGS.iter().filter_map(|setting| setting.flag));
                let problem = Problem::new(origin, "", "unknown flag");
                self.problems
                    .push(problem.with_help_if(did_you_mean(&near)));
                continue;
            };
            match setting.kind {
                ValueType::List => lists.entry(setting.key).or_default().push(text.clone()),
                ValueType::Entries => match text.split_once('=') {
                    Some((name, text)) => {
                        self.set(setting, format!("{}.{name}", setting.key), text, origin);
                    }
                    None => self.problems.push(Problem::new(
                        origin,
                        setting.key,
                        format!("`{text}` has no `=`: write `{flag} NAME=VALUE`"),
                    )),
                },
                ValueType::Guards => {
                    // The name may hold anything; where the text can't be read there is none.
                    let metric = text.parse::<GuardSpec>().map(|guard| guard.metric);
                    let key = metric.map_or_else(
                        |_| setting.key.to_owned(),
                        |metric| format!("{}.{metric}", setting.key),
                    );
                    self.set(setting, key, text, origin);
                }
                _ => self.set(setting, setting.key.to_owned(), text, origin),
            }
        }
        for (key, items) in lists {
            let flag = super::table::setting(key).and_then(|setting| setting.flag);
            let origin = Origin::CommandLine {
                flag: flag.unwrap_or(key).to_owned(),
            };
            self.entries.insert(
                key.to_owned(),
                Located {
                    value: Some(Value::List(items)),
                    origin,
                },
            );
        }
    }

    fn set(&mut self, setting: &Setting, key: String, text: &str, origin: Origin) {
        match Value::parse(setting.kind, text) {
            Ok(value) => {
                self.entries.insert(key, Located { value, origin });
            }
            Err(message) => self.problems.push(Problem::new(origin, key, message)),
        }
    }

    fn notice_idle_pass_env(&mut self) {
        let value = |key: &str| {
            self.entries
                .get(key)
                .and_then(|located| located.value.as_ref())
        };
        let all_passed = value("env_policy") == Some(&Value::Text("inherit".to_owned()));
        if all_passed && value("pass_env").is_some() {
            let notice = "`pass_env` changes nothing while `env_policy` is `inherit`";
            self.notices.push(notice.to_owned());
        }
    }
}
