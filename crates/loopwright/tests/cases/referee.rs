//! C13, a to c: who touches the referee is not measured; the user may, and starts a new segment.

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
