//! C16 d: the disk is full at whatever step of a commit, and room is made afterwards.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use crate::common::skip;
use crate::rig::Rig;

/// A disk that holds the repository, its record and a few trials.
const SIZE: &str = "4m";

/// How much room is left when the disk is filled: from nothing on, so that each step in its turn is
/// the first that has none.
const LEFT_BYTES: [u64; 7] = [
    0,
    4 << 10,
    12 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
];

/// A measurement of the candidate that fills the disk but for `$OUTSIDE/left` kilobytes, once.
const FILL: &str = "if [ \"$(cat x)\" != 10 ] && [ -e \"$OUTSIDE/left\" ]; then
  room=$(df -k -P \"$DISK\" | awk 'NR == 2 { print $4 }')
  left=$(cat \"$OUTSIDE/left\"); rm \"$OUTSIDE/left\"
  head -c $(((room - left) * 1024)) /dev/zero > \"$DISK/.git/filler\"
fi
echo \"m=$(cat x)\"
";

fn on_a_disk(run: &str) -> Option<Rig> {
    let rig = Rig::on_a_disk(SIZE, run);
    if rig.is_none() {
        skip("nothing may be mounted here, so no disk is filled");
    }
    rig
}

fn words(done: &Output) -> String {
    let both = [done.stdout.as_slice(), done.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// Ended as things do that a full disk ends, or not hit at all.
fn expect_full_or_well(done: &Output) {
    let (code, words) = (done.status.code(), words(done));
    assert!(matches!(code, Some(0..=2)), "{:?}: {words}", done.status);
    let is_told = ["full", "No space left", "resume"];
    let told = is_told.iter().any(|part| words.contains(part));
    assert!(code == Some(0) || told, "{words}");
}

/// One trial with a disk that fills up while it is measured; resumed once there is room.
fn filled_and_resumed(left_bytes: u64, more: &[&str]) -> Option<Rig> {
    let rig = on_a_disk(FILL)?;
    std::fs::write(rig.path("left"), (left_bytes >> 10).to_string()).unwrap();
    let done = rig.run("echo 5 > x", "1", more).output().unwrap();
    expect_full_or_well(&done);
    rig.free_disk();
    let resumed = rig.tool(&["resume"]).output().unwrap();
    let said = format!("{}\nthen\n{}", words(&done), words(&resumed));
    assert_eq!(resumed.status.code(), Some(0), "{left_bytes}: {said}");
    assert_eq!(rig.log().len(), 2, "{left_bytes}: {said}");
    rig.loopwright(&["verify"]);
    rig.loopwright(&["replay"]);
    Some(rig)
}

#[test]
fn a_keep_on_a_full_disk_is_made_once_there_is_room() {
    for left_bytes in LEFT_BYTES {
        let Some(rig) = filled_and_resumed(left_bytes, &[]) else {
            return;
        };
        let trial = rig.log().pop().unwrap();
        assert_eq!(trial["outcome"], "kept", "{left_bytes}: {trial}");
        assert_eq!(rig.git(&["show", "loopwright/default/main:x"]), "5\n");
        assert_eq!(rig.git(&["show", "main:x"]), "10\n");
        rig.git(&["fsck", "--strict"]);
    }
}

#[test]
fn in_place_a_commit_on_a_full_disk_loses_nothing() {
    for left_bytes in LEFT_BYTES {
        let Some(rig) = filled_and_resumed(left_bytes, &["--in-place"]) else {
            return;
        };
        let trial = rig.log().pop().unwrap();
        assert_eq!(trial["outcome"], "kept", "{left_bytes}: {trial}");
        assert_eq!(rig.git(&["show", "main:x"]), "5\n", "{left_bytes}");
        assert_eq!(rig.git(&["status", "--porcelain"]), "", "{left_bytes}");
        rig.git(&["fsck", "--strict"]);
    }
}

#[test]
fn in_place_what_a_full_disk_kept_git_from_committing_is_kept_once_there_is_room() {
    let Some(rig) = on_a_disk("echo \"m=$(cat x)\"\n") else {
        return;
    };
    let hook = rig.repository().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let fills =
        "#!/bin/sh\n[ ! -e \"$OUTSIDE/full\" ] || head -c 9m /dev/zero > .git/filler\ntrue\n";
    std::fs::write(&hook, fills).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    rig.touch("full");
    let done = rig
        .run("echo 5 > x", "1", &["--in-place"])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", words(&done));
    expect_full_or_well(&done);
    std::fs::remove_file(rig.path("full")).unwrap();
    rig.free_disk();
    rig.loopwright(&["resume"]);
    let trial = rig.log().pop().unwrap();
    assert_eq!(trial["outcome"], "kept", "{trial}");
    assert_eq!(rig.git(&["show", "main:x"]), "5\n");
    rig.loopwright(&["verify"]);
    rig.git(&["fsck", "--strict"]);
}

#[test]
fn an_adoption_on_a_full_disk_is_made_once_there_is_room() {
    for (left_bytes, wanted) in LEFT_BYTES
        .into_iter()
        .zip([&["adopt"][..], &["adopt", "1"]].into_iter().cycle())
    {
        let Some(rig) = on_a_disk("echo \"m=$(cat x)\"\n") else {
            return;
        };
        assert_eq!(rig.trial("echo 5 > x", &[])["outcome"], "kept");
        rig.fill_disk(left_bytes);
        let done = rig.tool(wanted).output().unwrap();
        expect_full_or_well(&done);
        rig.free_disk();
        let again = rig.tool(wanted).output().unwrap();
        let said = format!("{}\nthen\n{}", words(&done), words(&again));
        assert_eq!(again.status.code(), Some(0), "{left_bytes}: {said}");
        assert_eq!(rig.git(&["show", "main:x"]), "5\n", "{left_bytes}: {said}");
        assert_eq!(
            rig.git(&["status", "--porcelain"]),
            "",
            "{left_bytes}: {said}"
        );
        rig.loopwright(&["verify"]);
        rig.loopwright(&["replay"]);
        rig.git(&["fsck", "--strict"]);
    }
}
