//! In place, whatever a killed proposal left in the place of a repository is put right before the
//! repository is looked for.

use std::fs;

use crate::rig::{Rig, words_of};

/// Ways to leave no repository, or another one. `evil` is one that runs what it likes.
const WAYS: [&str; 8] = [
    "rm .git/HEAD",
    "echo junk > .git/HEAD",
    "rm .git/HEAD; mkdir -p .git/HEAD/deep",
    "echo '[junk' > .git/config",
    "rm -rf .git/refs",
    "rm -rf .git/objects/info .git/refs; echo x > .git/refs",
    "echo \"$OUTSIDE/evil/.git\" > .git/commondir",
    "rm .git/HEAD; ln -s /dev/zero .git/HEAD",
];

#[test]
fn what_is_no_repository_any_more_is_put_right_and_found() {
    for way in WAYS {
        let rig = Rig::new();
        let evil = rig.path("evil");
        rig.git(&["init", "-q", evil.to_str().unwrap()]);
        let monitor = format!("touch {}; false", rig.path("ran").display());
        rig.git_in(&evil, &["config", "core.fsmonitor", &monitor]);
        rig.git_in(&evil, &["commit", "-q", "--allow-empty", "-m", "evil"]);
        let _ = fs::remove_file(rig.path("ran"));
        let propose = format!(
            "[ -e \"$OUTSIDE/go\" ] || {{ {way}; touch \"$OUTSIDE/begun\"; sleep 1000; }}; echo 5 > x"
        );
        let child = rig.start(&rig.repository(), "a", &propose, &["--in-place"]);
        rig.await_file("begun");
        rig.kill(child);
        rig.touch("go");
        let done = rig.loopwright_in(&rig.repository(), &["resume", "--loop", "a"]);
        let words = words_of(&done, 0);
        assert!(
            words.contains("undone in your checkout: .git/"),
            "{way}: {words}"
        );
        assert_eq!(rig.git(&["show", "main:x"]), "5\n", "{way}");
        assert_eq!(rig.git(&["rev-list", "--count", "main"]), "2\n", "{way}");
        assert_eq!(rig.git(&["status", "--porcelain"]), "", "{way}");
        assert!(!rig.path("ran").exists(), "{way}: what evil runs ran");
        rig.git(&["fsck", "--full"]);
    }
}

/// Without an interrupted proposal nothing is opened, moved or made up.
#[test]
fn what_somebody_else_broke_is_left() {
    let rig = Rig::new();
    rig.trial("echo 5 > x", &["--in-place"]);
    let head = rig.repository().join(".git/HEAD");
    fs::write(&head, "junk\n").unwrap();
    let words = rig.refusal(2, &["resume"]);
    assert!(words.contains("is not inside a git repository"), "{words}");
    assert_eq!(fs::read_to_string(&head).unwrap(), "junk\n");
}
