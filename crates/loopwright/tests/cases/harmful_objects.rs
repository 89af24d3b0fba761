//! A candidate that git itself takes for harmful is a refused keep, not the end of the run.

use crate::rig::{Rig, words_of};

const HARMFUL: &str =
    "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = -u./evil\\n' > .gitmodules";

#[test]
fn what_git_takes_for_harmful_fails_its_trial_and_the_run_goes_on() {
    for more in [&[][..], &["--in-place"]] {
        let rig = Rig::new();
        let propose =
            format!("[ $LOOPWRIGHT_TRIAL != 1 ] || {HARMFUL}; echo $((8 - LOOPWRIGHT_TRIAL)) > x");
        let done = rig.run(&propose, "2", more).output().unwrap();
        words_of(&done, 0);
        let log = rig.log();
        assert_eq!(log[1]["outcome"], "failed", "{more:?}: {log:?}");
        let why = log[1]["why"].as_str().unwrap();
        assert!(why.contains("disallowed submodule url"), "{more:?}: {why}");
        assert_eq!(log[2]["outcome"], "kept", "{more:?}: {log:?}");
        let branch = if more.is_empty() {
            "loopwright/default/main"
        } else {
            "main"
        };
        let kept = rig.git(&["ls-tree", "--name-only", branch]);
        assert_eq!(kept, "run.sh\nx\n", "{more:?}");
        assert_eq!(rig.git(&["status", "--porcelain"]), "");
        rig.loopwright(&["verify"]);
    }
}

#[test]
fn what_a_hook_makes_of_a_keep_and_git_takes_for_harmful_is_refused() {
    let rig = Rig::new();
    rig.write(
        ".git/hooks/pre-commit",
        &format!("#!/bin/sh\n{HARMFUL}\ngit add .gitmodules\n"),
    );
    rig.shell("chmod +x .git/hooks/pre-commit");
    let trial = rig.trial("echo 5 > x", &["--in-place"]);
    assert_eq!(trial["outcome"], "failed", "{trial}");
    let why = trial["why"].as_str().unwrap();
    assert!(why.contains("disallowed submodule url"), "{why}");
    assert_eq!(rig.git(&["rev-list", "--count", "main"]), "1\n");
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
    rig.shell("rm .git/hooks/pre-commit");
    let next = rig.trial("echo 4 > x", &["--in-place"]);
    assert_eq!(next["outcome"], "kept", "{next}");
}

#[test]
fn what_the_users_own_history_holds_is_nobodys_fault() {
    let rig = Rig::with("echo \"m=$(cat x)\"\n", &[("old/f", "1\n")]);
    // As old tools wrote modes: git warns of it, and fetches and commits all the same.
    let id = rig.git(&["rev-parse", "HEAD:old/f"]);
    let pairs = id.trim_end().as_bytes().chunks(2);
    let pairs = pairs.map(|pair| std::str::from_utf8(pair).unwrap());
    let mut tree = b"0100644 f\0".to_vec();
    tree.extend(pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()));
    let file = rig.path("tree");
    std::fs::write(&file, tree).unwrap();
    let file = file.to_str().unwrap();
    let old = rig.git(&["hash-object", "-w", "-t", "tree", "--literally", file]);
    let commit = rig.shell(&format!(
        "tree=$(git ls-tree HEAD | sed s/[0-9a-f]*.old/{}\\\\told/ | git mktree)
         git commit-tree -m old $tree",
        old.trim_end()
    ));
    rig.git(&["reset", "-q", "--hard", commit.trim_end()]);
    assert_eq!(rig.git(&["rev-parse", "HEAD:old"]), old);
    let trial = rig.trial("echo 5 > x", &["--in-place"]);
    assert_eq!(trial["outcome"], "kept", "{trial}");
}
