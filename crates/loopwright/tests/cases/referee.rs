//! C13, a to d and g: who touches the referee, or speaks in its place, gains nothing; the user may
//! change it, and starts a new segment.

use crate::rig::Rig;

const TRICKS: &[(&str, &str)] = &[
    ("edit", "echo 'echo m=1' > eval/score.sh"),
    (
        "link",
        "echo 'echo m=1' > mine.sh; rm eval/score.sh; ln -s ../mine.sh eval/score.sh",
    ),
    (
        "edit and restore",
        "cp eval/score.sh ../saved; echo 'echo m=1' > eval/score.sh; echo '# note' >> run.sh
         (sleep 1; cp ../saved eval/score.sh) >/dev/null 2>&1 &",
    ),
];

fn rig() -> Rig {
    let score = ("eval/score.sh", "echo \"m=$(cat x)\"\n");
    Rig::with("sh eval/score.sh\n", &[score])
}

#[test]
fn a_touched_referee_is_named_and_an_honest_proposal_judged() {
    let rules = ["--protect", "eval/**"];
    for (name, propose) in TRICKS {
        let rig = rig();
        let before = rig.users();
        let trial = rig.trial(propose, &rules);
        assert_eq!(trial["outcome"], "harness_changed", "{name}: {trial}");
        let why = trial["why"].as_str().unwrap();
        assert!(why.contains("eval/score.sh"), "{name}: {trial}");
        let honest = rig.trial("echo 5 > x", &rules);
        assert_eq!(honest["outcome"], "kept", "{name}: {honest}");
        before.expect_same(&rig.users(), name);
        rig.loopwright(&["verify"]);
    }
}

#[test]
fn a_change_of_the_users_starts_a_new_segment() {
    let rules = ["--protect", "eval/**"];
    let rig = rig();
    assert_eq!(rig.trial("echo 5 > x", &rules)["outcome"], "kept");
    rig.loopwright(&["adopt"]);
    rig.write("eval/score.sh", "echo \"m=$(($(cat x) * 100))\"\n");
    rig.git(&["commit", "-qam", "another scale"]);
    // 400 would not beat 5; in the new segment it beats 500.
    let trial = rig.trial("echo 4 > x", &rules);
    assert_eq!(trial["segment"], 2, "{trial}");
    assert_eq!(trial["outcome"], "kept", "{trial}");
    assert_eq!(trial["against"], 500.0, "{trial}");
}

/// Beside a protected script, a new file would be imported in place of what it means.
#[test]
fn a_module_put_before_the_referees_is_named() {
    let files = [
        ("eval/score.py", "import json\n"),
        ("eval/score.sh", "echo \"m=$(cat x)\"\n"),
    ];
    let rig = Rig::with("sh eval/score.sh\n", &files);
    for module in ["json.py", "eval/json.py", "eval/json/__init__.py"] {
        let propose = format!("mkdir -p eval/json; echo 'print(\"m=1\")' > {module}; echo 5 > x");
        let trial = rig.trial(&propose, &["--protect", "eval/**"]);
        assert_eq!(trial["outcome"], "harness_changed", "{module}: {trial}");
        assert!(trial["why"].as_str().unwrap().contains(module), "{trial}");
    }
    let honest = rig.trial("echo 5 > x", &["--protect", "eval/**"]);
    assert_eq!(honest["outcome"], "kept", "{honest}");
    rig.loopwright(&["verify"]);
}

/// Said from an exit hook after the referee has spoken: strictly read, that is a contradiction, and so
/// is a result file that says something else; what stands in one that is named is not talked over.
#[test]
fn a_second_better_number_buys_nothing() {
    let spoken = "set +e; . ./helper.sh; echo \"m=$(cat x)\"\n";
    let filed = "set +e; . ./helper.sh; echo \"m=$(cat x)\" > \"$LOOPWRIGHT_RESULT\"\n";
    let named = "set +e; . ./helper.sh; echo \"m=$(cat x)\" > m.txt\n";
    let propose = "echo \"trap 'echo m=1' EXIT\" > helper.sh";
    let cases = [
        (
            spoken,
            &["--protect", "run.sh", "--strict-metric"][..],
            "ambiguous",
        ),
        (filed, &["--protect", "run.sh"], "ambiguous"),
        (
            named,
            &["--protect", "run.sh", "--result-file", "m.txt"],
            "reverted",
        ),
    ];
    for (run, rules, outcome) in cases {
        let rig = Rig::with(run, &[("helper.sh", "true\n")]);
        let trial = rig.trial(propose, rules);
        assert_eq!(trial["outcome"], outcome, "{trial}");
        if outcome == "ambiguous" {
            let why = trial["why"].as_str().unwrap();
            assert!(why.contains("10") && why.contains('1'), "{trial}");
        } else {
            assert_eq!(trial["value"], 10.0, "{trial}");
        }
        let honest = rig.trial("echo 5 > x", rules);
        assert_eq!(honest["outcome"], "kept", "{honest}");
        rig.loopwright(&["verify"]);
    }
}
