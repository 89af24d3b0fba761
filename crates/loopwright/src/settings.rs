//! A loop's settings from all their layers. The flags are made from the table of settings, so that
//! there is a flag for each and no other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use loopwright_core::spec::{
    ENV_PREFIX, ExperimentSpec, Flags, Layers, LoopFile, Purpose, Resolved, SETTINGS,
    SPEC_FILE_NAME, Setting, ValueType, resolve,
};

use crate::failure::Failure;

/// The settings given as flags.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags {
    layer: Flags,
    given: Vec<&'static str>,
}

impl SettingFlags {
    /// The flags as a layer.
    pub fn layer(&self) -> &Flags {
        &self.layer
    }

    /// Whether a flag is given.
    pub fn is_given(&self, flag: &str) -> bool {
        self.given.contains(&flag)
    }

    /// Whether no flag is given.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Whether the two settings without which there is no loop are given.
    fn describe_a_loop(&self) -> bool {
        self.is_given("--run") && self.is_given("--metric")
    }
}

fn flag_name(setting: &Setting) -> Option<&'static str> {
    setting.flag.map(|flag| flag.trim_start_matches('-'))
}

fn value_name(kind: ValueType) -> &'static str {
    match kind {
        ValueType::Text => "TEXT",
        ValueType::Command => "CMD",
        ValueType::Choice(_) => "WORD",
        ValueType::Switch => "true|false",
        ValueType::Count => "N",
        ValueType::Number => "NUMBER",
        ValueType::Graded(_) => "WORD|NUMBER",
        ValueType::Amount => "NUMBER|PERCENT",
        ValueType::Noise => "auto|none|READINGS",
        ValueType::Duration => "TIME",
        ValueType::Size => "SIZE",
        ValueType::Money => "AMOUNT",
        ValueType::List => "PATTERN",
        ValueType::Entries => "NAME=VALUE",
        ValueType::Guards => "'METRIC: LIMIT=N'",
    }
}

fn argument(setting: &'static Setting, name: &'static str) -> Arg {
    let mut help = setting.doc.replace('`', "");
    if let ValueType::Choice(words) = setting.kind {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        help = format!("{help} [possible values: {}]", words.join(", "));
    }
    if let ValueType::Graded(words) = setting.kind {
        let words: Vec<String> = words
            .iter()
            .map(|(word, number)| format!("{word} = {number}"))
            .collect();
        help = format!("{help} [{}]", words.join(", "));
    }
    if let Some(default) = setting.default {
        help = format!("{help} [default: {default}]");
    }
    let argument = Arg::new(name)
        .long(name)
        .value_name(value_name(setting.kind))
        .action(ArgAction::Append)
        // Values such as -1 and patterns such as -x are values.
        .allow_hyphen_values(!matches!(setting.kind, ValueType::Switch))
        .help_heading("Settings of the loop")
        .help(help);
    if setting.kind == ValueType::Switch {
        argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
    } else {
        argument
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        SETTINGS
            .iter()
            .filter_map(|setting| Some((setting, flag_name(setting)?)))
            .fold(command, |command, (setting, name)| {
                command.arg(argument(setting, name))
            })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        for setting in SETTINGS {
            let (Some(flag), Some(name)) = (setting.flag, flag_name(setting)) else {
                continue;
            };
            let Some(values) = matches.get_many::<String>(name) else {
                continue;
            };
            let values: Vec<&String> = values.collect();
            if values.len() > 1 && !setting.repeats() {
                return Err(clap::Error::raw(
                    clap::error::ErrorKind::ArgumentConflict,
                    format!("the argument '{flag}' cannot be used multiple times\n"),
                ));
            }
            flags.given.push(flag);
            for value in values {
                flags.layer.push(flag, value.as_str());
            }
        }
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A `loopwright.toml` that was found.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub content: LoopFile,
}

/// The nearest `loopwright.toml` from `directory` up to the top of the checkout.
pub fn find_file(directory: &Path, top: &Path) -> Result<Option<FoundFile>, Failure> {
    let directory = fs::canonicalize(directory)
        .map_err(Failure::io(format!("find {}", directory.display())))?;
    for (depth, folder) in directory.ancestors().enumerate() {
        let path = folder.join(SPEC_FILE_NAME);
        if path.is_file() {
            // As the user would name it from where they stand.
            let shown = format!("{}{SPEC_FILE_NAME}", "../".repeat(depth));
            let text = fs::read_to_string(&path).map_err(Failure::io(format!("read {shown}")))?;
            let content = LoopFile::parse(&shown, &text)?;
            return Ok(Some(FoundFile { path, content }));
        }
        if folder == top {
            break;
        }
    }
    Ok(None)
}

/// The variables of settings in this process's environment.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with(ENV_PREFIX))
        .collect()
}

/// Settings, and where they come from.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The settings.
    pub resolved: Resolved,
    /// The file they come from, where there is one.
    pub file: Option<PathBuf>,
}

impl Settled {
    /// The specification, or what is wrong with it.
    pub fn specification(&self, purpose: Purpose) -> Result<ExperimentSpec, Failure> {
        self.resolved.experiment(purpose).map_err(|problems| {
            let failure = Failure::from(problems);
            match &self.file {
                Some(_) => failure,
                None => failure.hint("or begin with a file: loopwright init"),
            }
        })
    }
}

/// The settings of a loop from the file, the environment and the flags.
pub fn settle(
    directory: &Path,
    top: &Path,
    loop_name: Option<&str>,
    flags: &SettingFlags,
) -> Result<Settled, Failure> {
    let found = find_file(directory, top)?;
    let entry = match &found {
        None => None,
        Some(found) => match found.content.choose(loop_name) {
            Ok(entry) => Some(entry),
            // A loop that the file doesn't know may be given by flags alone.
            Err(_) if loop_name.is_some() && flags.describe_a_loop() => None,
            Err(problems) => return Err(problems.into()),
        },
    };
    let environment = environment();
    let resolved = resolve(&Layers {
        name: loop_name,
        pinned: None,
        file: entry,
        environment: &environment,
        flags: flags.layer(),
    })?;
    let file = found
        .filter(|_| entry_is_used(&resolved))
        .map(|found| found.path);
    Ok(Settled { resolved, file })
}

/// Whether anything comes from a file.
fn entry_is_used(resolved: &Resolved) -> bool {
    resolved
        .entries
        .values()
        .any(|located| matches!(located.origin, loopwright_core::spec::Origin::File { .. }))
}

/// The settings a run pinned, with flags over them.
pub fn settle_pinned(pinned: &ExperimentSpec, flags: &SettingFlags) -> Result<Resolved, Failure> {
    let environment = BTreeMap::new();
    Ok(resolve(&Layers {
        name: None,
        pinned: Some(pinned),
        file: None,
        environment: &environment,
        flags: flags.layer(),
    })?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_setting_with_a_flag_has_an_argument_of_that_name_and_no_other_is_there() {
        let command = SettingFlags::augment_args(Command::new("test"));
        let arguments: BTreeSet<String> = command
            .get_arguments()
            .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
            .collect();
        let flags: BTreeSet<String> = SETTINGS
            .iter()
            .filter_map(|setting| Some(setting.flag?.to_owned()))
            .collect();
        assert_eq!(arguments, flags);
    }

    #[test]
    fn flags_come_out_as_they_went_in() {
        let command = SettingFlags::augment_args(Command::new("test"));
        let words = [
            "test",
            "--min-delta",
            "-1",
            "--confirm",
            "--protect",
            "a",
            "--protect",
            "b",
        ];
        let matches = command.clone().try_get_matches_from(words).unwrap();
        let flags = SettingFlags::from_arg_matches(&matches).unwrap();
        let mut expected = Flags::new();
        expected.push("--protect", "a");
        expected.push("--protect", "b");
        expected.push("--min-delta", "-1");
        expected.push("--confirm", "true");
        assert_eq!(flags.layer(), &expected);
        let words = ["test", "--metric", "a", "--metric", "b"];
        let matches = command.try_get_matches_from(words).unwrap();
        assert!(SettingFlags::from_arg_matches(&matches).is_err());
    }
}
