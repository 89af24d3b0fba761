//! The command line from outside: one file per command, one test binary.

#[path = "../common/mod.rs"]
mod common;

mod adopt;
mod bad_input;
mod baseline;
mod completions;
mod config;
mod demo;
mod diff;
mod doctor;
mod help;
mod init;
mod keep_rule;
mod log;
mod replay;
mod report;
mod resume;
mod retry;
mod run;
mod show;
mod signals;
mod status;
mod support;
mod verify;
mod watch;

use std::collections::BTreeSet;
use std::path::Path;

/// The names of the `.rs` files in a folder.
fn modules_in(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Some(name.strip_suffix(".rs")?.to_owned())
        })
        .collect()
}

#[test]
fn no_test_file_is_forgotten_and_every_command_has_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = modules_in(&root.join("tests/cli"));
    let source = std::fs::read_to_string(root.join("tests/cli/main.rs")).unwrap();
    for name in tests.iter().filter(|name| *name != "main") {
        assert!(
            source.contains(&format!("\nmod {name};\n")),
            "{name} is not in main.rs"
        );
    }
    // `drive` is no command, but what several have in common.
    let commands = modules_in(&root.join("src/commands"));
    for name in commands
        .iter()
        .filter(|name| !["mod", "drive"].contains(&name.as_str()))
    {
        assert!(tests.contains(name), "no test file for `{name}`");
    }
}
