//! Names of every kind through a whole loop: kept, reverted, shown, adopted.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use crate::rig::Rig;
use crate::small_loop::{BRANCH, Small};

const NAMES: [&[u8]; 14] = [
    b"two\nlines",
    b"\n",
    b"tab\there",
    b"\"quoted\"",
    b"it's",
    b"back\\slash",
    b"not utf-8 \xff",
    b"caf\xc3\xa9",
    b"-rf",
    b"--",
    b" around ",
    b"star*?[x]",
    b":(top)magic",
    b"#hash",
];

/// How those are shown that need it.
const SHOWN: [&str; 6] = [
    r#""odd/two\nlines""#,
    r#""odd/tab\there""#,
    r#""odd/\"quoted\"""#,
    r#""odd/back\\slash""#,
    r#""odd/not utf-8 \377""#,
    "odd/café",
];

/// Appends to every file with an odd name, and puts a new one beside it.
const TOUCH: &str = "find odd -type f -exec sh -c 'for f; do echo more >> \"$f\"; echo n > \"$f.new\"; done' sh {} +";

fn rig() -> Rig {
    let rig = Rig::with(
        "test -e odd && echo \"m=$(cat x)\"\n",
        &[("odd/plain", "0\n")],
    );
    for name in NAMES {
        let path = rig.repository().join("odd").join(OsStr::from_bytes(name));
        fs::write(path, "1\n").unwrap();
    }
    rig.commit_all("odd names");
    rig
}

fn listed(rig: &Rig, commit: &str) -> Vec<Vec<u8>> {
    let arguments = ["ls-tree", "-r", "-z", "--name-only", commit, "odd/"];
    let output = rig.command("git", &arguments).output().unwrap().stdout;
    let names = output
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    names.map(<[u8]>::to_vec).collect()
}

#[test]
fn they_come_through_a_whole_loop() {
    let rig = rig();
    let small = Small {
        also: TOUCH,
        ..Small::default()
    };
    small.run(&rig);
    let kept = listed(&rig, BRANCH);
    assert_eq!(kept.len(), 2 * (NAMES.len() + 1));
    for name in NAMES {
        let old = [b"odd/", name].concat();
        let new = [&old[..], b".new"].concat();
        assert!(
            kept.contains(&old) && kept.contains(&new),
            "{}",
            name.escape_ascii()
        );
    }
    Small::adopt(&rig);
    for name in NAMES {
        let path = rig.repository().join("odd").join(OsStr::from_bytes(name));
        assert_eq!(fs::read_to_string(path).unwrap(), "1\nmore\n");
    }
}

#[test]
fn a_patch_of_them_applies_and_they_are_all_told_apart() {
    let rig = rig();
    rig.trial(&format!("{TOUCH}; echo 5 > x"), &[]);
    let patch = rig.try_loopwright(&["diff", "1"]).stdout;
    fs::write(rig.path("patch"), patch).unwrap();
    rig.git(&["apply", "--check", "../patch"]);
    rig.git(&["apply", "--index", "../patch"]);
    assert_eq!(rig.git(&["diff", "--cached", "--stat", BRANCH]), "");
    rig.git(&["reset", "-q", "--hard"]);
    // Shown as git shows them, in both forms.
    let gone = rig.trial(
        "git rm -q -- odd/tab* odd/two* odd/*quo* odd/back* odd/not* odd/caf*",
        &[],
    );
    assert_eq!(gone["outcome"], "reverted", "{gone}");
    let text = rig.loopwright(&["show", "2"]);
    let object: serde_json::Value =
        serde_json::from_str(&rig.loopwright(&["show", "2", "--json"])).unwrap();
    let paths = object["candidate"]["paths"].as_array().unwrap();
    for name in SHOWN {
        assert!(text.contains(name), "{name}: {text}");
        assert!(paths.iter().any(|path| path == name), "{name}: {paths:?}");
    }
}

#[test]
fn a_refusal_names_them_as_git_does() {
    let rig = rig();
    let touched = rig.trial(
        "echo 5 > x; echo 2 > \"$(printf 'odd/not utf-8 \\377')\"",
        &["--protect", "odd/**"],
    );
    assert_eq!(touched["outcome"], "harness_changed", "{touched}");
    let why = touched["why"].as_str().unwrap();
    assert!(why.contains(r#""odd/not utf-8 \377""#), "{touched}");
}

#[test]
fn very_deep_and_very_long() {
    let rig = Rig::new();
    // As long as a path may be that a program can still name from the top.
    let long = "n".repeat(250);
    let deep = vec![long.as_str(); 13].join("/");
    let many = vec!["d"; 900].join("/");
    for directory in [&deep, &many] {
        rig.write(&format!("{directory}/f"), "1\n");
    }
    rig.commit_all("deep");
    let also = format!(
        "for d in {deep} {many}; do echo 2 > $d/f; echo 3 > $d/{}; done",
        "g".repeat(200)
    );
    Small {
        also: &also,
        more: &[],
    }
    .run_and_adopt(&rig);
    for directory in [&deep, &many] {
        assert_eq!(rig.git(&["show", &format!("HEAD:{directory}/f")]), "2\n");
    }
}

#[test]
fn a_checkout_with_an_odd_name() {
    for name in [
        &b"two\nlines \"quoted\" it's $HOME"[..],
        b"not utf-8 \xff",
        b"-rf",
    ] {
        let mut rig = Rig::new();
        let name = OsStr::from_bytes(name);
        fs::rename(rig.repository(), rig.path("").join(name)).unwrap();
        rig.move_to(name);
        Small::default().run_and_adopt(&rig);
    }
}

#[test]
fn no_name_reaches_a_terminal_as_it_is() {
    let rig = rig();
    rig.trial(
        "printf 1 > \"$(printf 'odd/no \\377')\"; printf 1 > \"$(printf 'odd/bi\\342\\200\\256di')\"; printf 1 > 'odd/end '; echo 5 > x",
        &[],
    );
    let escaped = [r"odd/no \377", r"odd/bi\342\200\256di"];
    for arguments in [&["diff", "1"][..], &["diff", "1", "--stat"], &["show", "1"]] {
        let printed = rig.try_loopwright(arguments).stdout;
        let text = String::from_utf8(printed).expect("a name that is not UTF-8");
        for name in escaped {
            assert!(text.contains(name), "{arguments:?}, {name}: {text}");
        }
        assert!(
            !text.contains('\u{202e}') && !text.contains('\u{fffd}'),
            "{text}"
        );
    }
    let shown = rig.loopwright(&["show", "1"]);
    assert!(shown.contains("odd/end , "), "{shown}");
    let words = rig.refusal(2, &["run", "--link", "da\u{1b}[31mta"]);
    assert!(!words.contains('\u{1b}'), "{words:?}");
}
