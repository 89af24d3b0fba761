//! Commands that kill all they can reach: what drives them goes on, and nobody else is hurt.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::common::skip;
use crate::rig::Rig;

const PROPOSE: &str = "echo $((6 - LOOPWRIGHT_TRIAL)) > x";

/// Kills everything it sees, but only where that is a world of its own.
fn kill_all() -> String {
    let ours = fs::read_link("/proc/self/ns/pid").unwrap();
    let ours = ours.to_str().unwrap();
    format!(
        "ns=$(readlink /proc/self/ns/pid)
if [ -n \"$ns\" ] && [ \"$ns\" != '{ours}' ]; then sleep 600 & kill -9 -1; else touch \"$OUTSIDE/weak\"; fi"
    )
}

fn is_weak(rig: &Rig) -> bool {
    let weak = rig.path("weak").exists();
    if weak {
        skip("commands don't have a process namespace here, so kill -9 -1 is not tried");
    }
    weak
}

/// Two trials, of which the first kills; a stranger lives on, and all is as it should be.
fn survived(rig: &Rig, run: &str, propose: &str) -> Value {
    let before = rig.users();
    let mut command = rig.tool(&["run", "--run", run, "--metric", "m", "--goal", "min"]);
    command.args(["--propose", propose, "--trials", "2"]);
    let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
    let done = command.output().unwrap();
    let lives = stranger.try_wait().unwrap().is_none();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(lives, "a stranger was killed");
    assert!(done.status.success(), "{done:?}");
    rig.await_no_process("killed");
    assert_eq!(rig.users(), before);
    rig.loopwright(&["verify"]);
    rig.loopwright(&["replay"]);
    let log = rig.log();
    assert_eq!(log.len(), 3, "{log:?}");
    // The second one is judged as if nothing had been.
    assert_eq!(log[2]["outcome"], "kept", "{log:?}");
    log[1].clone()
}

#[test]
fn a_proposal_that_kills_everything() {
    let rig = Rig::new();
    let kill = kill_all();
    let propose = format!("if [ $LOOPWRIGHT_TRIAL = 1 ]; then {kill}; fi; {PROPOSE}");
    let first = survived(&rig, "sh run.sh", &propose);
    if !is_weak(&rig) {
        // It is spared itself, as everybody is who kills so, and is judged by what it left.
        assert_eq!(first["outcome"], "kept", "{first}");
    }
}

#[test]
fn a_measurement_that_kills_everything() {
    let rig = Rig::new();
    let run = format!(
        "if [ \"$(cat x)\" = 5 ]; then {}; fi; echo \"m=$(cat x)\"",
        kill_all()
    );
    rig.write("run.sh", &run);
    rig.git(&["commit", "-qam", "a killer"]);
    let first = survived(&rig, ". ./run.sh", PROPOSE);
    if !is_weak(&rig) {
        assert_eq!(first["outcome"], "kept", "{first}");
    }
}

/// Its parent is the supervisor, or what stands for it in a namespace.
#[test]
fn a_command_that_kills_its_parent() {
    let kill = "if [ $LOOPWRIGHT_TRIAL = 1 ]; then sleep 600 & kill -9 $PPID; fi";
    let rig = Rig::new();
    let first = survived(&rig, "sh run.sh", &format!("{kill}; {PROPOSE}"));
    assert!(
        matches!(first["outcome"].as_str(), Some("kept" | "failed")),
        "{first}"
    );

    let rig = Rig::new();
    let run = "if [ \"$(cat x)\" = 5 ]; then sleep 600 & kill -9 $PPID; fi; echo \"m=$(cat x)\"";
    rig.write("run.sh", run);
    rig.git(&["commit", "-qam", "a killer"]);
    let first = survived(&rig, ". ./run.sh", PROPOSE);
    assert!(
        matches!(first["outcome"].as_str(), Some("kept" | "failed")),
        "{first}"
    );
}
