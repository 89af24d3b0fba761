//! The help texts, which are the arguments' documentation.

use crate::support::Rig;

const COMMANDS: [&str; 18] = [
    "init",
    "demo",
    "doctor",
    "baseline",
    "run",
    "resume",
    "status",
    "watch",
    "log",
    "show",
    "diff",
    "retry",
    "adopt",
    "report",
    "verify",
    "replay",
    "config",
    "completions",
];

#[test]
fn the_overview_names_every_command_and_every_exit_status() {
    let rig = Rig::bare();
    let help = rig.run(&["--help"]).success();
    for command in COMMANDS {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "{command} is missing"
        );
    }
    insta::assert_snapshot!(help);
}

#[test]
fn every_command_has_a_help_text() {
    let rig = Rig::bare();
    for command in COMMANDS {
        let help = rig.run(&[command, "--help"]).success();
        insta::assert_snapshot!(format!("help_{command}"), help);
    }
}

#[test]
fn nothing_can_be_abbreviated() {
    let rig = Rig::new();
    let stderr = rig.run(&["stat"]).failure(2);
    assert!(stderr.contains("unrecognized subcommand"), "{stderr}");
    let stderr = rig.run(&["run", "--tri", "3"]).failure(2);
    assert!(stderr.contains("unexpected argument"), "{stderr}");
}

#[test]
fn the_version_is_one_line_of_data() {
    let rig = Rig::bare();
    let version = rig.run(&["--version"]).success();
    assert_eq!(
        version,
        concat!("loopwright ", env!("CARGO_PKG_VERSION"), "\n")
    );
}
