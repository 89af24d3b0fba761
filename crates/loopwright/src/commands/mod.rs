//! The commands, one file each: the arguments, whose documentation is the help text, and one
//! function. `drive` is what those have in common that drive a run.

pub mod adopt;
pub mod baseline;
pub mod completions;
pub mod config;
pub mod demo;
pub mod diff;
pub mod doctor;
mod drive;
pub mod init;
pub mod log;
pub mod replay;
pub mod report;
pub mod resume;
pub mod retry;
pub mod run;
pub mod show;
pub mod status;
pub mod verify;
pub mod watch;
