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
        assert_eq!(rig.users(), before, "{name}");
        rig.loopwright(&["verify"]);
    }
}
