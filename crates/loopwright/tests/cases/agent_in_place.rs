//! C1 in place: whatever a proposer does to the user's own repository is undone before git is run.

use crate::rig::Rig;

/// What a keep in place changes, and nothing else.
const OF_A_KEEP: [&str; 6] = [
    "(refs)",
    ".git/index",
    ".git/logs/HEAD",
    ".git/logs/refs/heads/main",
    ".git/refs/heads/main",
    "x",
];

/// Each leaves 5 in `x`.
const WAYS: &[(&str, &str)] = &[
    ("nothing", ":"),
    ("commit", "git commit -qam mine"),
    ("another branch", "git checkout -qb side; git commit -qam mine"),
    ("amend", "git commit -qa --amend -m mine"),
    (
        "a true rebase",
        "git checkout -qb side; git commit -qam mine; git checkout -q main
         git commit -q --allow-empty -m between; git rebase -q main side",
    ),
    (
        "configuration",
        "for word in fsmonitor clean hook; do
           printf '#!/bin/sh\\ntouch %s/ran-%s\\ncat\\n' \"$OUTSIDE\" $word > .git/$word.sh
           chmod +x .git/$word.sh
         done
         mkdir -p .git/hooks .git/info
         for hook in pre-commit post-checkout post-index-change reference-transaction; do
           cp .git/hook.sh .git/hooks/$hook
         done
         echo '* filter=evil' > .git/info/attributes
         { echo '[core]'; echo \"fsmonitor = $PWD/.git/fsmonitor.sh\"; echo '[filter \"evil\"]'
           echo \"clean = $PWD/.git/clean.sh\"; echo \"smudge = $PWD/.git/clean.sh\"; } >> .git/config
         echo /nowhere > .git/objects/info/alternates; rm -f .git/*.sh",
    ),
    ("no HEAD, no index", "rm .git/HEAD .git/index"),
    ("a pipe for HEAD", "rm .git/HEAD; mkfifo .git/HEAD"),
    ("junk for HEAD", "echo junk > .git/HEAD"),
    ("a pipe for the index", "rm .git/index; mkfifo .git/index"),
    ("junk for the index", "echo junk > .git/index"),
    ("a lying index", "git update-index --assume-unchanged x run.sh"),
    ("junk for packed references", "echo junk > .git/packed-refs"),
    ("a pipe for packed references", "mkfifo .git/packed-refs"),
    ("no references", "rm -rf .git/refs"),
    ("references elsewhere", "mv .git/refs \"$OUTSIDE/refs\"; ln -s \"$OUTSIDE/refs\" .git/refs"),
    ("references to others", "echo 'ref: refs/heads/main' > .git/refs/heads/side
         rm .git/refs/heads/main; echo 'ref: refs/heads/other' > .git/refs/heads/main"),
    ("a reference below another", "id=$(git rev-parse HEAD); rm .git/refs/heads/main
         mkdir .git/refs/heads/main; echo $id > .git/refs/heads/main/below"),
    ("a lock", "touch .git/refs/heads/main.lock .git/index.lock"),
    ("a pipe for a history", "rm -f .git/logs/HEAD; mkfifo .git/logs/HEAD"),
    ("rules elsewhere", "mkdir \"$OUTSIDE/info\"; echo precious > \"$OUTSIDE/info/attributes\"
         rm -rf .git/info; ln -s \"$OUTSIDE/info\" .git/info"),
    ("gc", "git pack-refs --all; git gc -q"),
];

/// Where references stand once they are packed.
const PACKED: [&str; 2] = [".git/packed-refs", ".git/refs/heads/other"];

/// All references but the branch that a keep moves.
fn references(rig: &Rig) -> Vec<String> {
    let format = "--format=%(refname) %(objectname) %(symref)";
    let all = rig.git(&["for-each-ref", format]);
    let others = all.lines().filter(|it| !it.starts_with("refs/heads/main "));
    others.map(str::to_owned).collect()
}

#[test]
fn the_starting_branch_has_the_result_and_nothing_else_is_changed() {
    for (name, propose) in WAYS {
        let rig = Rig::new();
        rig.git(&["branch", "other"]);
        let symbolic = [
            "symbolic-ref",
            "refs/remotes/origin/HEAD",
            "refs/heads/other",
        ];
        rig.git(&symbolic);
        let before = rig.users();
        let references_before = references(&rig);
        let kept = rig.trial(&format!("echo 5 > x\n{propose}"), &["--in-place"]);
        assert_eq!(kept["outcome"], "kept", "{name}: {kept}");
        assert_eq!(kept["value"], 5.0, "{name}: {kept}");
        assert_eq!(rig.git(&["branch", "--show-current"]), "main\n", "{name}");
        assert_eq!(rig.git(&["show", "main:x"]), "5\n", "{name}");
        assert_eq!(rig.git(&["rev-list", "--count", "main"]), "2\n", "{name}");
        assert_eq!(rig.git(&["status", "--porcelain"]), "", "{name}");
        let now = rig.users();
        let mut changed = before.differing(&now);
        // What git notes beside of references that were put back is no part of the result.
        let is_note = |entry: &str| {
            entry.starts_with(".git/logs/") || [".git/ORIG_HEAD", ".git/info/refs"].contains(&entry)
        };
        changed.retain(|entry| !OF_A_KEEP.contains(entry) && !is_note(entry));
        assert_eq!(references(&rig), references_before, "{name}");
        if *name == "gc" {
            // Anybody may pack references: what they are is the same.
            changed.retain(|entry| !PACKED.contains(entry));
        }
        assert!(changed.is_empty(), "{name}: {changed:?}");
        for word in ["fsmonitor", "clean", "hook"] {
            assert!(
                !rig.path(&format!("ran-{word}")).exists(),
                "{name}: {word} ran"
            );
        }
        rig.write("x", "6\n");
        assert_eq!(rig.git(&["status", "--porcelain"]), " M x\n", "{name}");
        rig.git(&["fsck", "--full"]);
        if name == &"rules elsewhere" {
            let precious = std::fs::read_to_string(rig.path("info/attributes")).unwrap();
            assert_eq!(precious, "precious\n");
        }
    }
}

#[test]
fn a_git_directory_that_was_carried_off_ends_the_run_and_is_named() {
    let rig = Rig::new();
    let propose = "echo 5 > x; mv .git \"$OUTSIDE/moved\"; ln -s \"$OUTSIDE/moved\" .git";
    let arguments = crate::rig::run_arguments(propose, &["--in-place"]);
    let words = rig.refusal(1, &arguments);
    assert!(words.contains(".git was removed or replaced"), "{words}");
    // Brought back, the run goes on.
    rig.shell("rm .git; mv \"$OUTSIDE/moved\" .git");
    let kept = rig.trial("echo 4 > x", &["--in-place"]);
    assert_eq!(kept["outcome"], "kept", "{kept}");
    assert_eq!(rig.git(&["status", "--porcelain"]), "");
}

#[test]
fn files_that_git_converts_by_settings_outside_the_tree_are_refused_in_place() {
    let rig = Rig::new();
    rig.git(&["config", "core.autocrlf", "true"]);
    rig.shell("rm x; git checkout -q x");
    let before = rig.users();
    let arguments = crate::rig::run_arguments("echo 5 > x", &["--in-place"]);
    let words = rig.refusal(2, &arguments);
    assert!(words.contains("core.autocrlf"), "{words}");
    before.expect_same(&rig.users(), "refused");
}
