//! C10: which number counts, and that a flood of output costs no memory.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::common::await_that;
use crate::rig::{Rig, run_arguments};

const MEASURE: &str = "if [ \"$(cat x)\" = 10 ]; then echo m=10; else . ./out.sh; fi\n";

/// What is printed, and the two lines that are quoted where they contradict each other.
type Output = (&'static str, &'static str, Option<[&'static str; 2]>);

const OUTPUTS: &[Output] = &[
    ("a sentence", "echo m=7; echo 'next we hope for m: 1'", None),
    ("a prefix", "echo best-m=1; echo m=7", None),
    ("a prefix after", "echo m=7; echo best-m=1", None),
    ("a dotted name", "echo train.m=1; echo m=7", None),
    (
        "json last",
        "echo m=9; echo '{\"m\": 7}'",
        Some(["m=9", "{\"m\": 7}"]),
    ),
    ("colour", "printf 'm=\\033[32m7\\033[0m\\n'", None),
    (
        "indented json",
        "printf '{\\n  \"a\": 1,\\n  \"m\": 7\\n}\\n'",
        None,
    ),
    (
        "result file",
        "echo m=1; echo m=7 > \"$LOOPWRIGHT_RESULT\"",
        Some(["m=1", "m=7"]),
    ),
];

#[test]
fn seven_or_a_refusal_but_never_one() {
    for (name, output, quoted) in OUTPUTS {
        let rig = Rig::with(MEASURE, &[("out.sh", output)]);
        let trial = rig.trial("echo 7 > x", &[]);
        match quoted {
            None => {
                assert_eq!(trial["outcome"], "kept", "{name}: {trial}");
                assert_eq!(trial["value"], 7.0, "{name}: {trial}");
            }
            Some(lines) => expect_both_quoted(&trial, lines, name),
        }
    }
}

/// The program under test writes the file that is merely offered; the referee prints.
#[test]
fn a_program_that_writes_the_result_file_does_not_beat_its_referee() {
    let rules = ["--protect", "eval/**"];
    let strict = ["--protect", "eval/**", "--strict-metric"];
    for more in [rules.as_slice(), &strict] {
        let score = ("eval/score.sh", "sh ./program.sh; echo m=10\n");
        let rig = Rig::with("sh eval/score.sh\n", &[score, ("program.sh", "true\n")]);
        let trial = rig.trial(
            "echo 'echo m=1 > \"$LOOPWRIGHT_RESULT\"' > program.sh",
            more,
        );
        assert_eq!(trial["outcome"], "ambiguous", "{trial}");
        let why = trial["why"].as_str().unwrap();
        assert!(why.contains("m=1 in the result file"), "{why}");
    }
}

/// Whoever names the file wants what is in it, whatever is printed on the way.
#[test]
fn a_result_file_that_was_named_comes_first() {
    let rig = Rig::with("echo m=99; echo \"m=$(cat x)\" > best\n", &[]);
    let trial = rig.trial("echo 5 > x", &["--result-file", "best"]);
    assert_eq!(trial["outcome"], "kept", "{trial}");
    assert_eq!(trial["value"], 5.0, "{trial}");
}

/// What is measured may take the file away, and print.
#[test]
fn only_a_result_file_that_was_named_counts() {
    let run = "echo \"m=$(cat x)\" > res.json; sh ./program.sh\n";
    let protected = ["--protect", "run.sh", "--result-file", "res.json"];
    for more in [
        &protected[..],
        &[&protected[..], &["--strict-metric"]].concat(),
    ] {
        let rig = Rig::with(run, &[("program.sh", "true\n")]);
        for (left, words) in [
            ("rm res.json", "the result file doesn't give it"),
            ("echo > res.json", "the result file doesn't give it"),
            ("echo 7 > res.json", "`7` in the result file has no name"),
        ] {
            let trial = rig.trial(&format!("echo '{left}; echo m=1' > program.sh"), more);
            assert_eq!(trial["outcome"], "no_metric", "{trial}");
            let why = trial["why"].as_str().unwrap();
            assert!(why.contains(words), "{why}");
        }
        assert_eq!(rig.trial("echo 5 > x", more)["outcome"], "kept");
    }
    // One that is merely offered: a number without a name is not passed over either.
    let rig = Rig::with("echo 7 > \"$LOOPWRIGHT_RESULT\"; echo m=$(cat x)\n", &[]);
    let words = rig.refusal(3, &run_arguments("true", &["--trials", "1"]));
    assert!(
        words.contains("`7` in the result file has no name"),
        "{words}"
    );
}

#[test]
fn if_asked_for_two_values_are_a_refusal_that_quotes_both() {
    let outputs = [
        ("echo m=7; echo m=1", ["m=7", "m=1"]),
        ("echo m=1; echo other; echo 'm: 7'", ["m=1", "m: 7"]),
        ("echo m=nan; echo m=7", ["m=nan", "m=7"]),
    ];
    for (output, lines) in outputs {
        let rig = Rig::with(MEASURE, &[("out.sh", output)]);
        let trial = rig.trial("echo 7 > x", &["--strict-metric"]);
        expect_both_quoted(&trial, &lines, output);
        let same = rig.trial(
            "echo 7 > x; echo 'echo m=7; echo m=7' > out.sh",
            &["--strict-metric"],
        );
        assert_eq!(same["outcome"], "kept", "{output}: {same}");
    }
}

fn expect_both_quoted(trial: &Value, lines: &[&str; 2], name: &str) {
    assert_eq!(trial["outcome"], "ambiguous", "{name}: {trial}");
    assert!(trial["value"].is_null(), "{name}: {trial}");
    let why = trial["why"].as_str().unwrap();
    for line in lines {
        assert!(why.contains(line), "{name}: {trial}");
    }
}

#[test]
fn a_flood_of_output_stays_out_of_memory() {
    let run = "if [ \"$(cat x)\" = 7 ]; then head -c 300000000 /dev/zero | tr '\\0' .; echo; fi
echo \"m=$(cat x)\"
";
    let rig = Rig::with(run, &[]);
    let arguments = run_arguments("echo 7 > x", &[]);
    let mut child = rig
        .command(env!("CARGO_BIN_EXE_loopwright"), &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak_kib = 0_u64;
    let mut ended = None;
    await_that("the flood to end", || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
        let high = status.unwrap_or_default();
        let high = high.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(number) = high.and_then(|text| text.split_whitespace().next()) {
            peak_kib = peak_kib.max(number.parse().unwrap());
        }
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert!(ended.is_some_and(|ended| ended.success()));
    assert!(peak_kib > 0 && peak_kib < 100_000, "{peak_kib} KiB");
    let trial = rig.log().pop().unwrap();
    assert_eq!(trial["value"], 7.0, "{trial}");
    assert!(rig.loopwright(&["show", "1", "--json"]).contains("m=7"));
}
