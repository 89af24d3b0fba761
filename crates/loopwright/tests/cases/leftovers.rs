//! C2 and C3: rejected work leaves nothing behind, and a hidden cache buys nothing.

use crate::rig::Rig;

const MESS: &str = "echo 50 > x; git add x; printf a > 'a file
with two lines'; mkdir empty; chmod +x run.sh; echo 2 > lib/y
mkdir sub; (cd sub; git init -q; echo 1 > z; git add z; git commit -qm sub)
echo secret.txt >> .gitignore; echo s > secret.txt";

/// Improves only where something of the mess is left.
const LOOK: &str = "test ! -e sub && test ! -e empty && test ! -e secret.txt &&
test ! -e 'a file
with two lines' && test ! -x run.sh && test \"$(cat lib/y)\" = 1 || echo 1 > x";

#[test]
fn after_a_rejected_mess_nothing_has_changed() {
    let rig = Rig::with("echo \"m=$(cat x)\"\n", &[(".gitignore", "cache/\n")]);
    let library = rig.path("library");
    let library = library.to_str().unwrap();
    rig.git(&["init", "-q", library]);
    std::fs::write(rig.path("library/y"), "1\n").unwrap();
    rig.git(&["-C", library, "add", "y"]);
    rig.git(&["-C", library, "commit", "-qm", "library"]);
    rig.git(&["submodule", "--quiet", "add", library, "lib"]);
    rig.git(&["commit", "-qm", "with a library"]);
    let before = rig.users();
    let rejected = rig.trial(MESS, &[]);
    assert_ne!(rejected["outcome"], "kept", "{rejected}");
    let looked = rig.trial(LOOK, &[]);
    assert_eq!(looked["outcome"], "no_change", "{looked}");
    assert_eq!(rig.trial("true", &[])["outcome"], "no_change");
    before.expect_same(&rig.users(), "the user's");
}

#[test]
fn a_hidden_cache_cannot_buy_a_win() {
    let run = "if [ -e cache/hit ]; then echo m=1; else echo \"m=$(cat x)\"; fi\n";
    for more in [&[][..], &["--cache", "cache"]] {
        let rig = Rig::with(run, &[(".gitignore", "cache/\n")]);
        let propose = "mkdir -p cache; touch cache/hit; echo '# note' >> run.sh";
        let trial = rig.trial(propose, more);
        assert_eq!(trial["outcome"], "reverted", "{trial}");
        assert_eq!(trial["value"], 10.0, "{trial}");
    }
}

#[test]
fn a_kept_commit_stands_without_any_state_of_ours() {
    let rig = Rig::with("sh lib.sh\n", &[("lib.sh", "echo \"m=$(cat x)\"\n")]);
    let kept = rig.trial(
        "echo 5 > x; mkdir new; echo 'echo m=5' > new/lib.sh; rm lib.sh; ln -s new/lib.sh lib.sh",
        &[],
    );
    assert_eq!(kept["outcome"], "kept", "{kept}");
    let better = rig.trial("echo 4 > x; sed -i s/5/4/ new/lib.sh", &[]);
    assert_eq!(better["outcome"], "kept", "{better}");
    let shown = rig.loopwright(&["show", "2"]);
    std::fs::remove_dir_all(rig.repository().join(".git/loopwright")).unwrap();
    std::fs::remove_dir_all(rig.path("work")).unwrap();
    rig.git(&["fsck", "--full", "--strict"]);
    rig.git(&["reflog", "expire", "--expire=now", "--all"]);
    rig.git(&["gc", "-q", "--prune=now"]);
    // Over git's own protocol: a local clone would only copy files.
    let from = format!("file://{}", rig.repository().display());
    let to = rig.path("clone");
    let to = to.to_str().unwrap();
    rig.git(&["clone", "-q", "-b", "loopwright/default/main", &from, to]);
    rig.git(&["-C", to, "fsck", "--full", "--strict"]);
    let commit = rig.git(&["-C", to, "rev-parse", "HEAD"]);
    assert!(
        shown.contains(&format!("kept as    commit {commit}")),
        "{shown}"
    );
    let mut measure = rig.command("sh", &["run.sh"]);
    let measured = measure.current_dir(to).output().unwrap();
    let value = String::from_utf8(measured.stdout).unwrap();
    assert_eq!(value, format!("m={}\n", better["value"].as_f64().unwrap()));
}
