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
    assert_eq!(rig.users(), before);
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
