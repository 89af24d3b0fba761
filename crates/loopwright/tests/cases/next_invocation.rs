//! What one invocation leaves to the next: arms that need no checking out again.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::rig::Rig;

/// The arms' directories of the one run.
fn arms(rig: &Rig) -> PathBuf {
    let only = |folder: PathBuf| {
        fs::read_dir(folder)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    };
    only(only(rig.path("work"))).join("arms")
}

/// The inode of a file in each arm that is parked.
fn inodes(arms: &Path, name: &str) -> BTreeMap<&'static str, u64> {
    let of = |slot| {
        Some((
            slot,
            fs::metadata(arms.join(slot).join("tree").join(name))
                .ok()?
                .ino(),
        ))
    };
    ["a", "b"].into_iter().filter_map(of).collect()
}

#[test]
fn the_next_invocation_believes_both_arms() {
    let rig = Rig::with("echo \"m=$(cat x)\"\n", &[("big", "as it was\n")]);
    assert_eq!(rig.trial("echo 11 > x", &[])["outcome"], "reverted");
    let arms = arms(&rig);
    let before = inodes(&arms, "big");
    assert_eq!(before.len(), 2, "both are put away: {before:?}");
    assert_eq!(rig.trial("echo 12 > x", &[])["outcome"], "reverted");
    assert_eq!(
        inodes(&arms, "big"),
        before,
        "a file that nobody changed was written anew"
    );

    // What somebody does to an arm between two invocations is not believed.
    for slot in ["a", "b"] {
        fs::write(arms.join(slot).join("tree/run.sh"), "echo m=1\n").unwrap();
    }
    assert_eq!(rig.trial("echo 13 > x", &[])["outcome"], "reverted");
    let trial = rig.log().pop().unwrap();
    assert_eq!(trial["value"], 13.0, "{trial}");
    rig.loopwright(&["verify"]);
}
