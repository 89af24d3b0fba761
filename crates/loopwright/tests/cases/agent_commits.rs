//! C1: the proposer commits by itself, or leaves its repository in any other state.

use crate::rig::Rig;

/// What a proposer may do to its repository, each ending with 5 in `x`.
const WAYS: &[(&str, &str)] = &[
    ("commit", "echo 5 > x; git commit -qam mine"),
    (
        "another branch",
        "git checkout -qb side; echo 5 > x; git commit -qam mine",
    ),
    ("amend", "echo 5 > x; git commit -qa --amend -m mine"),
    (
        "a true rebase",
        "git checkout -qb side; echo note > note; git add note; git commit -qm note
         git checkout -q -; echo 5 > x; git commit -qam mine; git rebase -q side",
    ),
    (
        "a rebase that stopped midway",
        "git checkout -qb side; echo 6 > x; git commit -qam six; git checkout -q -
         echo 7 > x; git commit -qam seven; git rebase side >/dev/null 2>&1 || true
         test -d .git/rebase-merge; echo 5 > x",
    ),
    (
        "objects written through the alternates",
        "store=$(head -n 1 .git/objects/info/alternates); echo 5 > x
         GIT_OBJECT_DIRECTORY=$store git hash-object -w x; git commit -qam mine",
    ),
    (
        "junk where the objects will be",
        "store=$(head -n 1 .git/objects/info/alternates); echo 5 > x
         id=$(git hash-object x); file=$store/$(echo $id | sed 's,^..,&/,')
         mkdir -p \"$(dirname \"$file\")\"; echo junk > \"$file\"",
    ),
    (
        "its alternates",
        "echo /nowhere > .git/objects/info/alternates; echo 5 > x",
    ),
    (
        "its references",
        "echo 5 > x; git tag five; git pack-refs --all; echo junk >> .git/packed-refs
         rm -rf .git/refs; ln -s /nowhere .git/refs; rm .git/HEAD; mkfifo .git/HEAD",
    ),
    (
        "configuration",
        "cd \"$(git rev-parse --show-toplevel)\"
         for word in fsmonitor clean hook; do
           printf '#!/bin/sh\\ntouch %s/ran-%s\\ncat\\n' \"$OUTSIDE\" $word > .git/$word.sh
           chmod +x .git/$word.sh
         done
         mkdir -p .git/hooks .git/info
         for hook in pre-commit post-checkout post-index-change reference-transaction; do
           cp .git/hook.sh .git/hooks/$hook
         done
         echo 5 > x
         echo '* filter=evil' > .git/info/attributes
         git config core.fsmonitor \"$PWD/.git/fsmonitor.sh\"
         git config filter.evil.clean \"$PWD/.git/clean.sh\"
         git config filter.evil.smudge \"$PWD/.git/clean.sh\"",
    ),
];

#[test]
fn a_rejected_commit_can_be_shown_and_a_better_one_is_kept_once() {
    let rig = Rig::new();
    let before = rig.users();
    let rejected = rig.trial("echo 99 > x; git commit -qam mine", &[]);
    assert_eq!(rejected["outcome"], "reverted", "{rejected}");
    assert_eq!(rejected["value"], 99.0, "{rejected}");
    assert!(rig.loopwright(&["show", "1"]).contains("99"));
    assert!(rig.loopwright(&["diff", "1"]).contains("+99"));
    let kept = rig.trial("echo 5 > x; git commit -qam mine", &[]);
    assert_eq!(kept["outcome"], "kept", "{kept}");
    let branch = "loopwright/default/main";
    assert_eq!(rig.git(&["show", &format!("{branch}:x")]), "5\n");
    let commits = rig.git(&["rev-list", "--count", &format!("main..{branch}")]);
    assert_eq!(commits.trim(), "1");
    before.expect_same(&rig.users(), "the user's");
}

#[test]
fn nothing_of_its_configuration_runs_in_the_engine() {
    for (name, propose) in WAYS {
        let rig = Rig::new();
        let before = rig.users();
        let kept = rig.trial(propose, &[]);
        assert_eq!(kept["outcome"], "kept", "{name}: {kept}");
        assert_eq!(kept["value"], 5.0, "{name}: {kept}");
        before.expect_same(&rig.users(), name);
        for word in ["fsmonitor", "clean", "hook"] {
            let marker = rig.path(&format!("ran-{word}"));
            assert!(!marker.exists(), "{name}: {word} ran");
        }
    }
}

#[test]
fn its_configuration_would_run_if_git_obeyed_it() {
    let rig = Rig::new();
    let (_, propose) = WAYS.last().unwrap();
    rig.trial(
        &format!("{propose}\ngit add x\ngit commit -qm mine || true"),
        &[],
    );
    for word in ["clean", "hook"] {
        let marker = rig.path(&format!("ran-{word}"));
        assert!(
            marker.exists(),
            "{word} did not run: the other test shows nothing"
        );
    }
}

#[test]
fn a_commit_without_its_objects_fails_with_gits_words_and_the_loop_goes_on() {
    let rig = Rig::new();
    let before = rig.users();
    // Its own git finds neither the project's objects nor the commit it stands on.
    let propose = "echo /nowhere > .git/objects/info/alternates; echo 5 > x; git commit -qam mine";
    let failed = rig.trial(propose, &[]);
    assert_eq!(failed["outcome"], "failed", "{failed}");
    let why = failed["why"].as_str().unwrap();
    assert_eq!(why, "the proposal exited with status 128");
    assert!(
        rig.loopwright(&["show", "1"])
            .contains("/nowhere does not exist")
    );
    // What was never measured is no reason to refuse the same change.
    let kept = rig.trial("echo 5 > x; git commit -qam mine", &[]);
    assert_eq!(kept["outcome"], "kept", "{kept}");
    before.expect_same(&rig.users(), "the user's");
    rig.loopwright(&["verify"]);
}
