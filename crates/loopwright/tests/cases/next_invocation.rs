//! What one invocation leaves to the next: arms that need no checking out again.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::rig::{Rig, run_arguments, words_of};

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

#[test]
fn what_is_said_to_be_next_after_a_baseline_can_be_typed() {
    let rig = Rig::new();
    let settings = ["--run", "sh run.sh", "--metric", "m", "--goal", "min"];
    let done = rig.try_loopwright(&[&["baseline"], &settings[..]].concat());
    let words = words_of(&done, 0);
    assert!(
        words.contains("next: loopwright run --propose CMD --trials N"),
        "{words}"
    );
    let run = ["run", "--propose", "echo 5 > x", "--trials", "1"];
    words_of(&rig.try_loopwright(&[&run[..], &settings].concat()), 0);
}

/// In place, who proposes works where the file is.
#[test]
fn in_place_a_proposer_may_be_a_file_that_git_ignores() {
    let rig = Rig::with(
        "",
        &[(".gitignore", "prop.sh\n"), ("run.sh", "echo m=$(cat x)\n")],
    );
    rig.write("prop.sh", "echo 5 > x\n");
    let words = rig.refusal(2, &run_arguments("sh prop.sh", &["--trials", "1"]));
    assert!(words.contains("prop.sh"), "{words}");
    assert_eq!(rig.trial("sh prop.sh", &["--in-place"])["outcome"], "kept");
}
