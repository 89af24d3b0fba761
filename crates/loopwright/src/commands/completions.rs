//! `completions`: what a shell needs to complete command lines.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::output;

/// Print a completion script for a shell
///
/// For bash: loopwright completions bash > ~/.local/share/bash-completion/completions/loopwright
#[derive(Args, Debug)]
pub struct Arguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Cli::command(),
        "loopwright",
        &mut script,
    );
    output::print_bytes(&script)?;
    Ok(Exit::Finished)
}
