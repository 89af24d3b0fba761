//! C1: a proposer that takes its own repository or directory apart, or puts the user's in its place.

use crate::rig::Rig;

/// What stands in the place of its `.git`; each leaves 5 in `x`.
const PLACES: &[(&str, &str)] = &[
    ("nothing", ":"),
    ("a file", "echo \"gitdir: $OUTSIDE/repository/.git\" > .git"),
    ("a link", "ln -s \"$OUTSIDE/repository/.git\" .git"),
    ("a broken link", "ln -s nowhere .git"),
    ("a pipe", "mkfifo .git"),
    (
        "another repository",
        "git init -q . ; git add -A; git commit -qm mine",
    ),
];

#[test]
fn whatever_stands_in_the_place_of_its_repository_is_left_alone() {
    let rig = Rig::new();
    let before = rig.users();
    let mut x = 10;
    for (name, place) in PLACES {
        x -= 1;
        let propose = format!("echo {x} > x; rm -rf .git; {place}");
        let kept = rig.trial(&propose, &[]);
        assert_eq!(kept["outcome"], "kept", "{name}: {kept}");
        assert_eq!(kept["value"], f64::from(x), "{name}: {kept}");
        // The next proposer finds a repository of its own.
        let honest = "git rev-parse --verify -q HEAD && git diff --quiet HEAD && test -d .git";
        let next = rig.trial(honest, &[]);
        assert_eq!(next["outcome"], "no_change", "{name}: {next}");
        before.expect_same(&rig.users(), name);
    }
    rig.loopwright(&["verify"]);
}

#[test]
fn a_directory_that_was_removed_is_no_proposal_and_the_loop_goes_on() {
    let ways = [
        ("removed", ":"),
        (
            "the user's in its place",
            "ln -s \"$OUTSIDE/repository\" \"$own\"",
        ),
        ("a file in its place", "echo file > \"$own\""),
        (
            "closed",
            "mkdir \"$own\"; echo 9 > \"$own/x\"; chmod 0 \"$own\"",
        ),
        ("moved away", "mkdir \"$own\"; mv \"$own\" \"$own-old\""),
    ];
    for (name, then) in ways {
        let rig = Rig::new();
        let before = rig.users();
        let propose = format!("own=$PWD; cd /; rm -rf \"$own\"; {then}");
        let gone = rig.trial(&propose, &[]);
        assert_ne!(gone["outcome"], "kept", "{name}: {gone}");
        if name != "closed" {
            assert_eq!(gone["outcome"], "failed", "{name}: {gone}");
            let why = gone["why"].as_str().unwrap();
            assert!(why.contains("removed its own directory"), "{name}: {gone}");
        }
        let kept = rig.trial("echo 5 > x; git commit -qam mine", &[]);
        assert_eq!(kept["outcome"], "kept", "{name}: {kept}");
        before.expect_same(&rig.users(), name);
        rig.loopwright(&["verify"]);
    }
}
