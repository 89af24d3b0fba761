//! The `loopwright` binary: a surface over the engine. What it shows is derived in the engine's
//! views; what it asks is asked of the engine's sessions. Here are words, lines and exit codes.
//!
//! | module | subject |
//! |---|---|
//! | `cli` | the commands and the options they share |
//! | `commands` | one file per command |
//! | `exit_code`, `failure` | how a command ends, and what it says when it can't |
//! | `output`, `trial_line` | what is printed, and how |
//! | `live`, `progress` | a run as it goes on |
//! | `place` | the project, store, loop and run that are meant |
//! | `settings` | files, environment and flags, layered |
//! | `signals` | ending cleanly when asked to |

mod cli;
mod commands;
mod exit_code;
mod failure;
mod live;
mod output;
mod place;
mod progress;
mod settings;
mod signals;
mod trial_line;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Every outside command runs under this binary as its supervisor. That comes before anything
    // that costs time or memory.
    let mut arguments = std::env::args_os();
    if arguments
        .nth(1)
        .is_some_and(|first| first == loopwright_exec::SUPERVISE_ARGUMENT)
    {
        return loopwright_exec::supervisor_main();
    }
    cli::main()
}
