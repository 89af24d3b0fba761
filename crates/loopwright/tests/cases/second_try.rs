//! What was refused stays refused: neither a second try nor a commit hook is a way round the
//! examination of a change.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::rig::Rig;

const PROTECTED: [&str; 2] = ["--protect", "run.sh"];

/// Put together here, so that no scanner takes this file for a leak.
fn token(tail: &str) -> String {
    format!("ghp_{}{tail}", "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0z")
}

#[test]
fn a_caught_cheat_is_caught_again() {
    let rig = Rig::new();
    let trial = rig.trial("echo 'echo m=1' > run.sh", &PROTECTED);
    assert_eq!(trial["outcome"], "harness_changed", "{trial}");
    rig.loopwright(&["retry", "1"]);
    let again = rig.log().pop().unwrap();
    assert_eq!(again["outcome"], "harness_changed", "{again}");
    let why = again["why"].as_str().unwrap();
    assert_eq!(why, "the change tried again changed what judges it: run.sh");
    let kept = rig.git(&["show", "loopwright/default/main:run.sh"]);
    assert!(kept.contains("cat x"), "{kept}");
}

#[test]
fn a_caught_secret_is_caught_again() {
    let rig = Rig::new();
    fs::write(rig.path("leak"), format!("token = {}\n", token("Zabcd"))).unwrap();
    let trial = rig.trial("cat $OUTSIDE/leak > notes; echo 4 > x", &[]);
    assert_eq!(trial["outcome"], "failed", "{trial}");
    rig.loopwright(&["retry", "1"]);
    let again = rig.log().pop().unwrap();
    assert_eq!(again["outcome"], "failed", "{again}");
    let why = again["why"].as_str().unwrap();
    assert_eq!(why, "the change holds what looks like a secret: notes");
}

/// Another secret in place of one is another secret; a large file is searched as well.
#[test]
fn a_secret_in_place_of_another_and_one_far_into_a_file_are_caught() {
    let rig = Rig::with(
        "echo \"m=$(cat x)\"\n",
        &[("key", &format!("key = {}\n", token("Zabcd")))],
    );
    let moved = rig.trial("echo 9 > x; git mv key kept-key", &[]);
    assert_eq!(moved["outcome"], "kept", "it is there already: {moved}");
    fs::write(rig.path("leak"), format!("key = {}\n", token("Zefgh"))).unwrap();
    for propose in [
        "echo 8 > x; cp $OUTSIDE/leak kept-key",
        "echo 7 > x; (head -c 3000000 /dev/zero | tr '\\0' '\\n'; cat $OUTSIDE/leak) > large",
        "echo 6 > x; ln -s \"$(cut -c7- $OUTSIDE/leak)\" link",
    ] {
        let trial = rig.trial(propose, &[]);
        assert_eq!(trial["outcome"], "failed", "{propose}: {trial}");
        let why = trial["why"].as_str().unwrap();
        assert!(
            why.starts_with("the change holds what looks like a secret"),
            "{why}"
        );
    }
}

#[test]
fn a_hook_that_touches_the_referee_is_caught() {
    let rig = Rig::new();
    let hook = rig.repository().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(
        &hook,
        "#!/bin/sh\necho 'echo m=1' > run.sh\ngit add run.sh\n",
    )
    .unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let trial = rig.trial("echo 5 > x", &["--in-place", "--protect", "run.sh"]);
    assert_eq!(trial["outcome"], "harness_changed", "{trial}");
    let why = trial["why"].as_str().unwrap();
    assert_eq!(why, "the commit hook changed what judges it: run.sh");
    assert!(
        fs::read_to_string(rig.repository().join("run.sh"))
            .unwrap()
            .contains("cat x")
    );
}

/// A survivor that writes into the proposer's checkout after it was looked at.
#[test]
fn what_is_kept_is_what_was_measured() {
    let run =
        "test \"$(cat x)\" = 10 || echo 3 > \"$(cat $OUTSIDE/where)/x\"; echo \"m=$(cat x)\"\n";
    let rig = Rig::with(run, &[]);
    let trial = rig.trial("pwd > $OUTSIDE/where; echo 5 > x", &[]);
    assert_eq!(trial["outcome"], "failed", "{trial}");
    let why = trial["why"].as_str().unwrap();
    assert!(
        why.starts_with("the checkout no longer held what was measured"),
        "{why}"
    );
    assert_eq!(rig.git(&["show", "loopwright/default/main:x"]), "10\n");
}

#[test]
fn what_was_tried_again_and_kept_is_not_tried_a_third_time() {
    let slow = "[ -e \"$OUTSIDE/slow\" ] && [ \"$(cat x)\" != 10 ] && echo m=20 && exit\necho \"m=$(cat x)\"\n";
    let rig = Rig::with(slow, &[]);
    rig.touch("slow");
    assert_eq!(rig.trial("echo 5 > x", &[])["outcome"], "reverted");
    fs::remove_file(rig.path("slow")).unwrap();
    rig.loopwright(&["retry", "1"]);
    assert_eq!(rig.log().pop().unwrap()["outcome"], "kept");
    let words = rig.refusal(2, &["retry", "1"]);
    assert!(
        words.contains(
            "trial 1 was tried again and is kept, as trial 2: its change is in the incumbent"
        ),
        "{words}"
    );
    assert_eq!(rig.log().len(), 3);
}
