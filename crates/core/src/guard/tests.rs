//! Tables and properties of guards.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::metric::{MetricName, Readings, Real, Refusal};

fn name(text: &str) -> MetricName {
    MetricName::new(text).unwrap()
}

fn real(value: f64) -> Real {
    Real::new(value).unwrap()
}

fn values(list: &[(&str, f64)]) -> BTreeMap<MetricName, Real> {
    list.iter()
        .map(|(metric, value)| (name(metric), real(*value)))
        .collect()
}

fn readings(list: &[(&str, f64)]) -> Readings {
    values(list)
        .into_iter()
        .map(|(metric, value)| (metric, value.into()))
        .collect()
}

fn guards(texts: &[&str]) -> Vec<Guard> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// One guard on `size` against an incumbent and a baseline, in words.
fn say(guard: &str, value: f64, incumbent: Option<f64>, baseline: Option<f64>) -> String {
    let reference =
        |value: Option<f64>| value.map_or_else(BTreeMap::new, |value| values(&[("size", value)]));
    judge(
        &guards(&[guard]),
        &readings(&[("size", value)]),
        &reference(incumbent),
        &reference(baseline),
    )
    .to_string()
}

#[test]
fn guards_with_tolerance() {
    let guards = guards(&["size: max_rise=5%", "acc: floor=0.90"]);
    let incumbent = values(&[("m", 10.0), ("size", 100.0), ("acc", 0.95)]);
    let rule = |list: &[(&str, f64)]| judge(&guards, &readings(list), &incumbent, &incumbent);

    assert!(rule(&[("m", 9.0), ("size", 104.0), ("acc", 0.95)]).holds());
    assert!(rule(&[("m", 9.0), ("size", 105.0), ("acc", 0.90)]).holds());
    let size = rule(&[("m", 8.0), ("size", 112.0), ("acc", 0.95)]);
    assert_eq!(size.outcome(), GuardOutcome::Breached);
    assert_eq!(
        size.to_string(),
        "size 112 is 12 % over the incumbent's 100; at most 5 % allowed"
    );
    let acc = rule(&[("m", 7.0), ("size", 104.0), ("acc", 0.89)]);
    assert_eq!(acc.to_string(), "acc 0.89 is under the floor 0.9");
    let incomplete = rule(&[("m", 8.5), ("size", 103.0)]);
    assert_eq!(incomplete.outcome(), GuardOutcome::Incomplete);
    assert_eq!(
        incomplete.to_string(),
        "acc has no value: no line of the output gives it"
    );
    let both = rule(&[("size", 112.0)]);
    assert_eq!(both.outcome(), GuardOutcome::Incomplete);
    assert_eq!((both.missing.len(), both.breaches.len()), (1, 1));
}

#[test]
fn small_steps_do_not_slip_past_the_baseline() {
    let guards = guards(&["size: max_rise=5%, max_rise_from_baseline=20%"]);
    let baseline = values(&[("size", 100.0)]);
    let mut incumbent = baseline.clone();
    let mut kept = 0;
    for _ in 0..10 {
        let grown = incumbent["size"].get() * 1.04;
        let verdict = judge(
            &guards,
            &readings(&[("size", grown)]),
            &incumbent,
            &baseline,
        );
        if verdict.holds() {
            kept += 1;
            incumbent = values(&[("size", grown)]);
        } else {
            assert!(
                verdict
                    .to_string()
                    .contains("over the baseline's 100; at most 20 % allowed"),
                "{verdict}"
            );
        }
    }
    assert_eq!(kept, 4);
}

#[test]
fn every_rule_in_words() {
    let held = "every guard holds";
    let table = [
        (
            "size: max_drop=10%",
            80.0,
            Some(100.0),
            None,
            "size 80 is 20 % under the incumbent's 100; at most 10 % allowed",
        ),
        ("size: max_drop=10%", 900.0, Some(100.0), None, held),
        (
            "size: max_rise=3",
            104.0,
            Some(100.0),
            None,
            "size 104 is 4 over the incumbent's 100; at most 3 allowed",
        ),
        ("size: max_rise=3", 103.0, Some(100.0), None, held),
        (
            "size: max_drop_from_baseline=0.5",
            1.0,
            None,
            Some(2.0),
            "size 1 is 1 under the baseline's 2; at most 0.5 allowed",
        ),
        (
            "size: ceiling=5",
            5.5,
            None,
            None,
            "size 5.5 is over the ceiling 5",
        ),
        ("size: ceiling=5", 5.0, None, None, held),
        (
            "size: floor=-1",
            -1.5,
            None,
            None,
            "size -1.5 is under the floor -1",
        ),
        ("size: max_rise=0%", 100.0, Some(100.0), None, held),
        (
            "size: max_rise=0%",
            101.0,
            Some(100.0),
            None,
            "size 101 is 1 % over the incumbent's 100; at most 0 % allowed",
        ),
        // An unknown reference judges nothing.
        (
            "size: max_rise=0%, max_rise_from_baseline=0",
            1e9,
            None,
            None,
            held,
        ),
        // Below zero, a percentage is one of the magnitude.
        ("size: max_rise=5%", -96.0, Some(-100.0), None, held),
        (
            "size: max_rise=5%",
            -90.0,
            Some(-100.0),
            None,
            "size -90 is 10 % over the incumbent's -100; at most 5 % allowed",
        ),
        (
            "size: max_drop=5%",
            -110.0,
            Some(-100.0),
            None,
            "size -110 is 10 % under the incumbent's -100; at most 5 % allowed",
        ),
        // Of nothing it is nothing.
        ("size: max_rise=5%", 0.0, Some(0.0), None, held),
        (
            "size: max_rise=5%",
            3.0,
            Some(0.0),
            None,
            "size 3 is over the incumbent's 0, of which no percentage allows a move; give an amount instead",
        ),
        // Rounding decides nothing.
        ("size: max_rise=10%", 0.77, Some(0.7), None, held),
        ("size: max_rise=0.1", 0.3, Some(0.2), None, held),
        ("size: max_drop=0.1", 0.2, Some(0.3), None, held),
        // Nor do numbers near the end of the range.
        ("size: max_rise=500%", 1e308, Some(1e308), None, held),
        (
            "size: max_rise=5%",
            1.7e308,
            Some(-1.7e308),
            None,
            "size 1.7e+308 is 200 % over the incumbent's -1.7e+308; at most 5 % allowed",
        ),
    ];
    for (guard, value, incumbent, baseline, words) in table {
        assert_eq!(
            say(guard, value, incumbent, baseline),
            words,
            "{guard} {value}"
        );
    }
}

#[test]
fn a_refused_reading_says_why() {
    let mut refused = Readings::default();
    refused.insert(
        name("size"),
        Refusal::NotFinite {
            line: "size=nan".into(),
        },
    );
    let twice = guards(&["size: max_rise=5%", "size: ceiling=9"]);
    let verdict = judge(&twice, &refused, &BTreeMap::new(), &BTreeMap::new());
    assert_eq!(
        verdict.to_string(),
        "size has no value: `size=nan` is not a finite number"
    );
    let json = serde_json::to_string(&verdict).unwrap();
    assert_eq!(
        serde_json::from_str::<GuardVerdict>(&json).unwrap(),
        verdict
    );
}

#[test]
fn guards_are_read_from_text_and_toml() {
    let toml = "metric = \"size\"\nmax_rise = \"5 %\"\nmax_rise_from_baseline = 20\nceiling = 4096\nfloor = \"0.5\"\n";
    let guard: Guard = toml::from_str(toml).unwrap();
    assert_eq!(
        guard.to_string(),
        "size: max_rise=5%, max_rise_from_baseline=20, floor=0.5, ceiling=4096"
    );
    assert_eq!(guard.to_string().parse::<Guard>().unwrap(), guard);
    let json = serde_json::to_string(&guard).unwrap();
    let expected = r#"{"metric":"size","max_rise":"5%","max_drop":null,"max_rise_from_baseline":"20","max_drop_from_baseline":null,"floor":"0.5","ceiling":"4096"}"#;
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_str::<Guard>(&json).unwrap(), guard);
    assert_eq!(
        "a: b: floor=1".parse::<Guard>().unwrap().metric().as_str(),
        "a: b"
    );
}

#[test]
fn guards_that_make_no_sense_are_refused() {
    let table = [
        (
            "size",
            "the guard of `size` has no limit: give one of max_rise, max_drop",
        ),
        (
            "size: floor",
            "`floor` has no `=`: write a guard as `METRIC: limit=value, …`",
        ),
        (
            "size: max_rize=5%",
            "unknown limit `max_rize` of a guard; did you mean `max_rise`",
        ),
        (
            "size: max_rise=-5%",
            "the tolerance `-5%` is negative: the rule's name already says the direction",
        ),
        ("size: max_rise=five", "`five` is not a tolerance"),
        ("size: max_rise=nan", "`nan` is not a tolerance"),
        ("size: floor=inf", "`inf` is not a finite number"),
        (
            "size: floor=2, ceiling=1",
            "the guard of `size` has its floor 2 above its ceiling 1",
        ),
        ("size: floor=2, floor=1", "the limit `floor` is given twice"),
        (
            "size:",
            "the guard of `size` has no limit: give one of max_rise, max_drop",
        ),
        (": floor=2", "write a guard as `METRIC: limit=value, …`"),
    ];
    for (text, words) in table {
        let error = text.parse::<Guard>().unwrap_err().to_string();
        assert!(error.starts_with(words), "{text}: {error}");
    }
    for toml in [
        "metric = \"size\"",
        "max_rise = 1",
        "metric = \"size\"\nmax_rize = 1",
        "metric = \"size\"\nmax_rise = -1",
        "metric = \"size\"\nmax_rise = true",
        "metric = \"size\"\nfloor = nan",
        "metric = \" \"\nfloor = 1",
    ] {
        assert!(toml::from_str::<Guard>(toml).is_err(), "{toml}");
    }
}

proptest! {
    #[test]
    fn tolerances_are_monotone(reference in -1e6_f64..1e6, step in 0_f64..1e6, percent in 0_f64..50.0, more in 0_f64..50.0) {
        let narrow = say(&format!("size: max_rise={}%", real(percent)), reference + step, Some(reference), None);
        let wide = say(&format!("size: max_rise={}%", real(percent + more)), reference + step, Some(reference), None);
        prop_assert!(!(narrow == "every guard holds" && wide != narrow));
        let other_way = say(&format!("size: max_drop={}%", real(percent)), reference + step, Some(reference), None);
        prop_assert_eq!(other_way, "every guard holds");
    }

    #[test]
    fn nothing_panics(bits in prop::array::uniform3(any::<u64>()), text in "[a-z_:=,%0-9. ]{0,40}") {
        let _ = text.parse::<Guard>();
        let [value, incumbent, amount] = bits.map(f64::from_bits);
        prop_assume!(value.is_finite() && incumbent.is_finite() && amount.is_finite());
        for unit in ["", "%"] {
            say(&format!("size: max_rise={}{unit}, max_drop=1%", real(amount.abs())), value, Some(incumbent), Some(value));
        }
    }
}
