//! What a change means for a run that has begun.

use super::*;

fn keys(changes: &[FieldChange]) -> Vec<&str> {
    changes.iter().map(|change| change.key.as_str()).collect()
}

#[test]
fn changes_are_told_apart_by_what_they_mean() {
    let old = spec(&format!("{LEAST}env = {{ A = \"1\" }}\n"));
    let new = spec(
        "[loop.speed]\nrun = \"sh b.sh\"\nmetric = \"score\"\ngoal = \"max\"\npropose = \"p\"\n\
         protect = [\"x\"]\ntrials = 9\nenv = { B = \"2\" }\nrun_limit = \"6m\"\n\
         guard = [{ metric = \"size\", ceiling = 5 }]\n",
    );
    let drift = ExperimentSpec::drift(&old, &new);
    assert_eq!(keys(&drift.refused), ["goal", "metric"]);
    assert_eq!(
        keys(&drift.harness),
        [
            "env.A",
            "env.B",
            "guard.size",
            "protect",
            "run",
            "run_limit"
        ]
    );
    assert_eq!(keys(&drift.free), ["propose", "trials"]);
    assert_eq!(
        drift.refused[0].to_string(),
        "goal was `minimize`, now `maximize`"
    );
    assert_eq!(drift.harness[0].to_string(), "env.A was `1`, now not set");
    assert_eq!(drift.harness[5].to_string(), "run_limit was `5m`, now `6m`");
    assert_eq!(drift.free[0].to_string(), "propose was not set, now `p`");
}

#[test]
fn order_and_spelling_are_no_change() {
    let old = spec(&format!(
        "{LEAST}protect = [\"b\", \"a\"]\nrun_limit = \"300\"\n"
    ));
    let new = spec(&format!(
        "{LEAST}protect = [\"a\", \"b\", \"a\"]\nrun_limit = \"5m\"\n"
    ));
    assert!(ExperimentSpec::drift(&old, &new).is_empty());
    assert_eq!(old, new);
}

#[test]
fn another_loop_is_another_loop() {
    let old = spec(LEAST);
    let mut new = old.clone();
    new.name = "other".to_owned();
    assert_eq!(keys(&ExperimentSpec::drift(&old, &new).refused), ["name"]);
}
