//! The decision rule and its settings: what is meant, what is refused, what is said.

use super::*;
use crate::metric::Real;

fn real(value: f64) -> Real {
    Real::new(value).unwrap()
}

fn keep(lines: &str) -> KeepSpec {
    match spec(&format!("{LEAST}rule = \"keep\"\n{lines}")).rule {
        RuleSpec::Keep(keep) => keep,
        rule @ RuleSpec::Threshold { .. } => panic!("{rule:?}"),
    }
}

/// What is wrong with a loop under the keep rule that has these lines.
fn fault(lines: &str) -> String {
    let text = format!("{LEAST}rule = \"keep\"\n{lines}\n");
    let problems = resolved(&text).experiment(Purpose::Measure).unwrap_err();
    let list: Vec<String> = problems.list().iter().map(ToString::to_string).collect();
    assert_eq!(list.len(), 1, "{list:#?}");
    list[0].clone()
}

fn notices(lines: &str) -> Vec<String> {
    resolved(&format!("{LEAST}{lines}\n")).notices
}

#[test]
fn the_keep_rule_has_its_settings_by_plain_words() {
    let default = keep("");
    assert_eq!(
        (default.doubt, default.max_pairs, default.closing),
        (real(0.1), 24, 6)
    );
    assert_eq!(default.worth, Tolerance::Absolute(Real::ZERO));
    assert_eq!(default.noise, NoiseSpec::Auto);
    assert!(!default.ratio && !default.coarse);
    let other = keep(
        "doubt = \"strict\"\nworth = \"2%\"\nmax_pairs = 16\nnoise = [9.9, 10, 10.5]\nratio = true\n\
         coarse = true\nclosing = 0\n",
    );
    assert_eq!(
        (other.doubt, other.max_pairs, other.closing),
        (real(0.02), 16, 0)
    );
    assert_eq!(other.worth, Tolerance::Percent(real(2.0)));
    let readings = vec![real(9.9), real(10.0), real(10.5)];
    assert_eq!(other.noise, NoiseSpec::Readings(readings));
    assert!(other.ratio && other.coarse);
    assert_eq!(keep("doubt = \"quick\"\n").doubt, real(0.4));
    assert_eq!(keep("doubt = 0.3\n").doubt, real(0.3));
    assert_eq!(keep("noise = \"none\"\n").noise, NoiseSpec::None);
    assert_eq!(keep("worth = 3\n").worth, Tolerance::Absolute(real(3.0)));
}

#[test]
fn settings_that_make_no_sense_are_refused_with_words() {
    for (lines, says) in [
        ("doubt = 0", "has to be above 0 and at most 1"),
        ("doubt = 1.5", "has to be above 0 and at most 1"),
        ("max_pairs = 0", "has to be 1 to 100"),
        ("max_pairs = 101", "has to be 1 to 100"),
        ("closing = 101", "is at most 100"),
        ("worth = 0.5\nratio = true", "write it in percent"),
        ("worth = \"100%\"\nratio = true", "nothing falls by 100%"),
        ("noise = [1]", "takes 2 to 1000 readings"),
        (
            "noise = [1, -1]\nratio = true",
            "holds -1, which is not above zero",
        ),
        (
            "noise = [1, 1e200]",
            "holds 1e+200, which is too large to be judged",
        ),
        ("max_runs = 0", "is 0"),
    ] {
        let found = fault(lines);
        assert!(found.contains(says), "{lines}: {found}");
    }
    let unread = LoopFile::parse("f", &format!("{LEAST}doubt = \"hasty\"\n")).unwrap_err();
    assert!(
        unread
            .to_string()
            .contains("nor one of `strict`, `normal`, `quick`"),
        "{unread}"
    );
    let unread = LoopFile::parse("f", &format!("{LEAST}worth = \"-1%\"\n")).unwrap_err();
    assert!(unread.to_string().contains("is no amount"), "{unread}");
    let unread = LoopFile::parse("f", &format!("{LEAST}noise = [\"a\"]\n")).unwrap_err();
    assert!(
        unread.to_string().contains("expected numbers in the list"),
        "{unread}"
    );
}

#[test]
fn what_the_rule_in_force_does_not_look_at_is_noticed() {
    assert_eq!(
        notices("rule = \"keep\"\nmin_delta = 1\nconfirm = true"),
        ["`min_delta` and `confirm` change nothing under the keep rule"]
    );
    assert_eq!(
        notices("rule = \"threshold\"\nworth = 1"),
        ["`worth` changes nothing under the threshold rule"]
    );
    assert!(notices("rule = \"keep\"\nworth = 1").is_empty());
    assert!(
        notices("max_runs = 100").is_empty(),
        "it holds under every rule"
    );
}

#[test]
fn too_few_repeats_are_noticed_with_what_would_help() {
    let said = notices("rule = \"keep\"\nmax_pairs = 2");
    assert_eq!(said.len(), 1);
    assert!(
        said[0].starts_with(
            "2 pairs of runs a candidate hardly ever prove anything at a doubt of 0.1"
        ),
        "{said:?}"
    );
    assert!(said[0].contains("`confirm`"));
    assert!(notices("rule = \"keep\"\nmax_pairs = 8").is_empty());
    assert!(notices("rule = \"keep\"\nmax_pairs = 2\nnoise = \"none\"").is_empty());
}

/// Flags laid over a run that was begun under that rule.
fn over(pinned: &str, flags: &[(&str, &str)]) -> Resolved {
    let pinned = spec(&format!("{LEAST}{pinned}"));
    let environment = BTreeMap::new();
    let mut given = Flags::new();
    for (flag, value) in flags {
        given.push(*flag, *value);
    }
    resolve(&Layers {
        name: None,
        pinned: Some(&pinned),
        file: None,
        environment: &environment,
        flags: &given,
    })
    .unwrap()
}

/// Labloop's flags mean labloop's rule, whatever a run was begun with; a rule that somebody names
/// today stands.
#[test]
fn confirm_on_a_run_under_the_keep_rule_means_the_threshold_rule_and_is_said() {
    let resumed = over("rule = \"keep\"\n", &[("--confirm", "true")]);
    assert_eq!(
        resumed.notices,
        ["`confirm` is set without `rule`: the threshold rule decides"]
    );
    let rule = resumed.experiment(Purpose::Measure).unwrap().rule;
    assert!(
        matches!(rule, RuleSpec::Threshold { confirm: true, .. }),
        "{rule:?}"
    );

    let named = over(
        "rule = \"threshold\"\n",
        &[("--confirm", "true"), ("--rule", "keep")],
    );
    assert_eq!(
        named.notices,
        ["`confirm` changes nothing under the keep rule"]
    );
    let rule = named.experiment(Purpose::Measure).unwrap().rule;
    assert!(matches!(rule, RuleSpec::Keep(_)), "{rule:?}");

    assert!(
        over("rule = \"threshold\"\n", &[("--confirm", "true")])
            .notices
            .is_empty()
    );
    assert!(over("rule = \"keep\"\nworth = 2\n", &[]).notices.is_empty());
}
