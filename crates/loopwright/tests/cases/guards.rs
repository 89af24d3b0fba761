//! C11: guards with tolerance, and no drift past a limit set against the baseline.

use std::fs;

use serde_json::Value;

use crate::rig::{Rig, run_arguments};

const RULES: &[&str] = &["--guard", "size: max_rise=5%", "--guard", "acc: floor=0.90"];

fn propose(rig: &Rig, m: &str, size: &str, more: &str, rules: &[&str]) -> Value {
    let command = format!("printf 'm={m}\\nsize={size}\\n{more}\\n' > out");
    rig.trial(&command, rules)
}

#[test]
fn each_refusal_names_its_guard() {
    let rig = Rig::with("cat out\n", &[("out", "m=10\nsize=100\nacc=.95\n")]);
    let kept = propose(&rig, "9", "104", "acc=.95", RULES);
    assert_eq!(kept["outcome"], "kept", "{kept}");
    for (m, size, acc, guard) in [("8", "112", ".95", "size"), ("7", "104", ".89", "acc")] {
        let refused = propose(&rig, m, size, &format!("acc={acc}"), RULES);
        assert_eq!(refused["outcome"], "guard_failed", "{refused}");
        assert!(
            refused["why"].as_str().unwrap().contains(guard),
            "{refused}"
        );
        let numbers = refused["values"].as_object().unwrap();
        assert_eq!(numbers.len(), 3, "{refused}");
    }
    let incomplete = propose(&rig, "8.5", "103", "", RULES);
    assert_ne!(incomplete["outcome"], "kept", "{incomplete}");
    assert!(
        incomplete["why"].as_str().unwrap().contains("acc"),
        "{incomplete}"
    );
}

#[test]
fn small_steps_do_not_slip_past_the_baseline() {
    let rules = ["--guard", "size: max_rise=5%, max_rise_from_baseline=10%"];
    let rig = Rig::with("cat out\n", &[("out", "m=20\nsize=100\n")]);
    let mut size = 100.0_f64;
    for m in (10..20).rev() {
        let larger = size * 1.04;
        let trial = propose(&rig, &m.to_string(), &larger.to_string(), "", &rules);
        if trial["outcome"] == "kept" {
            size = larger;
        }
    }
    assert!(size > 104.0 && size <= 110.0, "{size}");
}

/// A limit needs something to be held against: else the first keep sets it, or nothing ever does.
#[test]
fn a_guard_that_the_baseline_gives_no_number_for_ends_it() {
    for guard in [
        "sise: max_rise_from_baseline=5%",
        "sise: max_rise=5%",
        "sise: ceiling=5",
    ] {
        for rule in ["keep", "threshold"] {
            let rig = Rig::with("echo m=$(cat x); echo size=4\n", &[]);
            let more = ["--guard", guard, "--rule", rule, "--trials", "1"];
            let words = rig.refusal(3, &run_arguments("echo 5 > x", &more));
            assert!(words.contains("sise, which a guard watches"), "{words}");
            assert!(words.contains("`size`"), "{words}");
            // The loop is none the worse for it.
            let more = ["--guard", &guard.replace("sise", "size"), "--rule", rule];
            assert_eq!(rig.trial("echo 5 > x", &more)["outcome"], "kept", "{guard}");
        }
    }
}

#[test]
fn the_proposer_is_told_what_is_left_of_the_budgets() {
    let rig = Rig::new();
    let propose = "cp \"$LOOPWRIGHT_BRIEF\" \"$OUTSIDE/$LOOPWRIGHT_TRIAL.json\"; echo 5 > x";
    rig.trial(propose, &["--budget-steps", "20", "--budget-time", "1h"]);
    rig.trial(propose, &["--budget-steps", "20", "--budget-time", "1h"]);
    let left = |trial: u64| {
        let text = fs::read_to_string(rig.path(&format!("{trial}.json"))).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["budget_left"].clone()
    };
    assert_eq!(left(1)["proposals"], 20);
    assert_eq!(left(2)["proposals"], 19);
    assert!(left(2)["seconds"].as_f64() < left(1)["seconds"].as_f64());
}
