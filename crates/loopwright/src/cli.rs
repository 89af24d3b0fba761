//! The command line: the commands, the options they share, and how a command ends the process.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::commands;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output::{Output, talk};
use crate::place::Common;

/// Loop engineering you can trust overnight: try, measure, decide, repeat.
///
/// A loop changes a project, measures it, and keeps what helps, in checkouts of its own: what you
/// have checked out is not touched. Begin with `loopwright demo`, or with `loopwright init` in a
/// project of yours.
#[derive(Parser, Debug)]
#[command(
    name = "loopwright",
    version,
    infer_subcommands = false,
    infer_long_args = false,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = Exit::TABLE
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Where.
    #[command(flatten)]
    pub common: Common,
}

/// The commands, in the order of a user's way.
#[derive(Subcommand, Debug)]
pub enum Command {
    Init(commands::init::Arguments),
    Demo(commands::demo::Arguments),
    Doctor(commands::doctor::Arguments),
    Baseline(commands::baseline::Arguments),
    Run(commands::run::Arguments),
    Resume(commands::resume::Arguments),
    Status(commands::status::Arguments),
    Watch(commands::watch::Arguments),
    Log(commands::log::Arguments),
    Show(commands::show::Arguments),
    Diff(commands::diff::Arguments),
    Retry(commands::retry::Arguments),
    Adopt(commands::adopt::Arguments),
    Report(commands::report::Arguments),
    Verify(commands::verify::Arguments),
    Replay(commands::replay::Arguments),
    Config(commands::config::Arguments),
    Completions(commands::completions::Arguments),
}

/// Parses, does, and says how it ended.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage(&error).code()),
    };
    let exit = match dispatch(&cli) {
        Ok(exit) => exit,
        Err(failure) => {
            let (lines, exit) = failure.report();
            for line in lines {
                talk(&line);
            }
            exit
        }
    };
    ExitCode::from(exit.code())
}

/// Help and version are data; everything else is wrong usage.
fn usage(error: &clap::Error) -> Exit {
    let printed = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match printed {
            // Nobody may be reading any more.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                talk(&format!("error: write the output: {error}"));
                Exit::Failure
            }
            _ => Exit::Finished,
        },
        _ => Exit::Refused,
    }
}

/// A number of trials, or a trial's.
pub fn whole_number(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err("that is larger than any there can be".to_owned())
        }
        Err(_) => Err("a whole number is wanted".to_owned()),
    }
}

fn dispatch(cli: &Cli) -> Result<Exit, Failure> {
    let output = Output::of_process();
    let common = &cli.common;
    match &cli.command {
        Command::Init(arguments) => commands::init::run(common, arguments),
        Command::Demo(arguments) => commands::demo::run(common, &output, arguments),
        Command::Doctor(arguments) => commands::doctor::run(common, &output, arguments),
        Command::Baseline(arguments) => commands::baseline::run(common, &output, arguments),
        Command::Run(arguments) => commands::run::run(common, &output, arguments),
        Command::Resume(arguments) => commands::resume::run(common, &output, arguments),
        Command::Status(arguments) => commands::status::run(common, &output, arguments),
        Command::Watch(arguments) => commands::watch::run(common, &output, arguments),
        Command::Log(arguments) => commands::log::run(common, &output, arguments),
        Command::Show(arguments) => commands::show::run(common, &output, arguments),
        Command::Diff(arguments) => commands::diff::run(common, arguments),
        Command::Retry(arguments) => commands::retry::run(common, &output, arguments),
        Command::Adopt(arguments) => commands::adopt::run(common, arguments),
        Command::Report(arguments) => commands::report::run(common, &output, arguments),
        Command::Verify(arguments) => commands::verify::run(common, arguments),
        Command::Replay(arguments) => commands::replay::run(common, arguments),
        Command::Config(arguments) => commands::config::run(common, arguments),
        Command::Completions(arguments) => commands::completions::run(arguments),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn numbers_are_refused_in_words() {
        assert_eq!(super::whole_number("7"), Ok(7));
        for (text, words) in [
            ("x", "whole number"),
            ("", "whole number"),
            ("1.5", "whole number"),
            ("99999999999999999999", "larger"),
        ] {
            let refused = super::whole_number(text).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }
}
