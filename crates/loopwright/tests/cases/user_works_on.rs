//! C20: the user goes on working while the loop runs.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::rig::Rig;

#[test]
fn the_run_goes_on_with_what_it_pinned() {
    let rig = Rig::new();
    let propose = "touch \"$OUTSIDE/begun\"; while [ ! -e \"$OUTSIDE/go\" ]; do sleep 0.02; done
                   echo $((10 - LOOPWRIGHT_TRIAL)) > x";
    let arguments = [
        "run",
        "--run",
        "sh run.sh",
        "--metric",
        "m",
        "--goal",
        "min",
        "--trials",
        "2",
        "--propose",
        propose,
    ];
    let mut child = rig
        .command(env!("CARGO_BIN_EXE_loopwright"), &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !rig.path("begun").exists() {
        assert!(Instant::now() < deadline, "no proposal began");
        std::thread::sleep(Duration::from_millis(5));
    }
    rig.write("mine", "of the user\n");
    rig.write("loopwright.toml", "[loop.other]\nrun = \"false\"\n");
    rig.git(&["add", "-A"]);
    rig.git(&["commit", "-qm", "mine"]);
    rig.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    rig.git(&["checkout", "-qb", "side"]);
    rig.git(&["reflog", "expire", "--expire=now", "--all"]);
    rig.git(&["gc", "-q", "--prune=now"]);
    rig.git(&["worktree", "prune"]);
    rig.write("unsaved", "too\n");
    let before = rig.users();
    std::fs::write(rig.path("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(rig.users(), before);
    std::fs::remove_file(rig.repository().join("unsaved")).unwrap();
    let branch = "loopwright/default/main";
    assert_eq!(rig.git(&["show", &format!("{branch}:x")]), "8\n");
    rig.loopwright(&["--loop", "default", "verify"]);
    rig.loopwright(&["--loop", "default", "adopt"]);
    assert_eq!(rig.git(&["show", "HEAD:x"]), "8\n");
    assert_eq!(rig.git(&["show", "HEAD:mine"]), "of the user\n");
}
