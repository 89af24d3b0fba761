//! In place, permissions that a proposal takes away in the git directory end nothing: not the run that
//! asked for it, and not the one that goes on after both were killed. (Root may do everything.)

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::skip;
use crate::rig::{Rig, words_of};

const CLOSED: [&str; 9] = [
    "chmod 000 .git/config",
    "chmod 000 .git/objects",
    "chmod 000 .git/refs",
    "chmod a-w .git",
    "chmod 000 .git/HEAD .git/index .git/logs",
    "chmod 000 .git",
    "chmod -R a-w .git",
    "find .git -depth -exec chmod 000 {} +",
    "chmod 000 .",
];

/// What has the permissions it had, afterwards.
const LOOKED_AT: [&str; 6] = [
    "",
    ".git",
    ".git/config",
    ".git/objects",
    ".git/refs",
    ".git/logs",
];

fn modes(rig: &Rig) -> Vec<u32> {
    let mode = |name: &&str| {
        let path = rig.repository().join(name);
        fs::metadata(path).unwrap().permissions().mode()
    };
    LOOKED_AT.iter().map(mode).collect()
}

#[test]
fn what_a_proposal_closes_is_opened_again() {
    for close in CLOSED {
        let Some(rig) = Rig::of_nobody() else {
            return skip("nothing can be run by another user than root here");
        };
        let before = modes(&rig);
        let trial = rig.trial(&format!("echo 5 > x; {close}"), &["--in-place"]);
        assert_eq!(trial["outcome"], "kept", "{close}: {trial}");
        assert_eq!(modes(&rig), before, "{close}");
        assert_eq!(rig.git(&["status", "--porcelain"]), "", "{close}");
        rig.git(&["fsck", "--full"]);
    }
}

#[test]
fn what_a_killed_proposal_has_closed_is_opened_again() {
    for close in CLOSED {
        let Some(rig) = Rig::of_nobody() else {
            return skip("nothing can be run by another user than root here");
        };
        let before = modes(&rig);
        let propose = format!(
            "[ -e \"$OUTSIDE/go\" ] || {{ {close}; touch \"$OUTSIDE/begun\"; sleep 1000; }}; echo 5 > x"
        );
        let child = rig.start(&rig.repository(), "a", &propose, &["--in-place"]);
        rig.await_file("begun");
        rig.kill(child);
        rig.touch("go");
        let done = rig.tool(&[
            "-C",
            rig.repository().to_str().unwrap(),
            "resume",
            "--loop",
            "a",
        ]);
        let mut done = done;
        // A directory that is closed can't be stood in.
        let done = done.current_dir(rig.path("")).output().unwrap();
        words_of(&done, 0);
        assert_eq!(rig.git(&["show", "main:x"]), "5\n", "{close}");
        assert_eq!(modes(&rig), before, "{close}");
        rig.git(&["fsck", "--full"]);
    }
}
