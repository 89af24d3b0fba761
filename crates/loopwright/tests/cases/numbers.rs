//! C9: numbers that are not numbers are never kept, and the reasons differ.

use std::collections::BTreeMap;

use crate::rig::Rig;

const MALFORMED: &[&str] = &[
    "m=1,234.5",
    "m=1_000",
    "m=1.2.3",
    "m=3/4",
    "m=0x10",
    "{\"m\": true}",
    "{\"m\": \"0.5\"}",
    "m = 12ms",
    "m=",
];

#[test]
fn none_is_kept_and_the_loop_can_still_improve() {
    for goal in ["min", "max"] {
        let rig = Rig::with(
            "cat out; exit \"$(cat code)\"\n",
            &[("out", "m=10\n"), ("code", "0\n")],
        );
        let mut reasons = BTreeMap::new();
        let mut propose = |out: &str, code: u8| {
            let command = format!("printf '%s\\n' '{out}' > out; echo {code} > code");
            let trial = rig.trial(&command, &["--goal", goal]);
            assert_ne!(trial["outcome"], "kept", "{goal} {out}: {trial}");
            assert!(trial["value"].is_null(), "{goal} {out}: {trial}");
            let said = format!("{} {}", trial["outcome"], trial["why"]);
            reasons.insert((out.to_owned(), code), said.clone());
            said
        };
        for out in ["m=nan", "m=-inf", "m=1e999"] {
            let said = propose(out, 0);
            assert!(said.contains("finite"), "{out}: {said}");
        }
        for out in MALFORMED {
            let said = propose(out, 0);
            assert!(
                said.contains("malformed") || said.contains("not a number"),
                "{out}: {said}"
            );
        }
        let missing = propose("nothing", 0);
        assert!(
            missing.contains("missing") || missing.contains("no "),
            "{missing}"
        );
        let failed = propose("m=1", 3);
        assert!(
            failed.contains("failed") && failed.contains('3'),
            "{failed}"
        );
        let better = if goal == "min" { "m=9" } else { "m=11" };
        let kept = rig.trial(&format!("echo {better} > out"), &["--goal", goal]);
        assert_eq!(kept["outcome"], "kept", "{kept}");
    }
}
