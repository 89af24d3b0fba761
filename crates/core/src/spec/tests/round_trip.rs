//! What is pinned reads back as the same specification, by every way there is.

use proptest::prelude::*;

use super::*;
use crate::metric::Real;

/// A specification with anything in it that may differ.
fn any_spec() -> impl Strategy<Value = ExperimentSpec> {
    let words = || prop::collection::btree_set("[a-z]{1,6}", 0..3);
    let number = || (-1e6..1e6_f64).prop_map(|number| Real::new(number).unwrap());
    let paths = (
        words(),
        words(),
        words(),
        prop::option::of("[a-z]{1,5} [a-z]{0,5}"),
    );
    let limits = (
        1..=INTEGER_MAX,
        1..=INTEGER_MAX,
        prop::option::of(1..=INTEGER_MAX),
        0..99_u64,
    );
    let env = prop::collection::btree_map("[A-Z]{1,5}", "\\PC{0,8}", 0..3);
    let judging = (
        prop::option::of(number()),
        0.0..1e9_f64,
        any::<bool>(),
        any::<bool>(),
    );
    let guard = (
        "[a-z][ a-z:.%]{0,3}[a-z%]",
        prop::option::of(0.0..1e3_f64),
        any::<bool>(),
        number(),
    );
    (
        paths,
        limits,
        env,
        judging,
        prop::collection::vec(guard, 0..3),
    )
        .prop_map(|(paths, limits, env, judging, guards)| {
            let mut spec = spec(LEAST);
            let pattern =
                |prefix: &str, name: &String| Pattern::new(&format!("{prefix}/{name}/**")).unwrap();
            spec.protect = paths.0.iter().map(|name| pattern("p", name)).collect();
            spec.cache = paths.1.iter().map(|name| pattern("c", name)).collect();
            spec.link = paths.2.iter().map(|name| format!("l/{name}")).collect();
            spec.propose = paths.3;
            spec.run_limit_us = limits.0;
            spec.max_output_bytes = limits.1;
            spec.trials = limits.2;
            spec.wall_clock_us = limits.2;
            spec.budget.tokens = limits.2;
            spec.budget.money = limits.2.map(|micros| Money {
                micros,
                currency: "EUR".to_owned(),
            });
            spec.give_up_after = limits.3;
            spec.env = env;
            spec.target = judging.0;
            let min_delta = Real::new(judging.1).unwrap();
            spec.max_runs = limits.2;
            spec.rule = if judging.3 {
                let amount = Real::new(judging.1 % 50.0).unwrap();
                RuleSpec::Keep(KeepSpec {
                    doubt: Real::new(0.25).unwrap(),
                    worth: if judging.2 {
                        Tolerance::Percent(amount)
                    } else {
                        Tolerance::Absolute(amount)
                    },
                    max_pairs: 1 + limits.3 % 100,
                    noise: match limits.3 % 3 {
                        0 => NoiseSpec::Auto,
                        1 => NoiseSpec::None,
                        _ => NoiseSpec::Readings(vec![Real::ZERO, min_delta]),
                    },
                    ratio: false,
                    coarse: judging.2,
                    closing: limits.3 % 101,
                })
            } else {
                RuleSpec::Threshold {
                    min_delta,
                    confirm: judging.2,
                }
            };
            spec.brief = judging.3;
            spec.in_place = judging.2;
            spec.goal = if judging.3 {
                Goal::Maximize
            } else {
                Goal::Minimize
            };
            let mut by_metric = BTreeMap::new();
            for (metric, rise, percent, floor) in guards {
                let mut guard = GuardSpec::new(&metric);
                guard.max_rise = rise.and_then(|rise| Real::new(rise).ok()).map(|rise| {
                    if percent {
                        Tolerance::Percent(rise)
                    } else {
                        Tolerance::Absolute(rise)
                    }
                });
                guard.floor = Some(floor);
                by_metric.insert(metric, guard);
            }
            spec.guards = by_metric.into_values().collect();
            spec
        })
}

fn over_pinned(pinned: &ExperimentSpec, flags: &Flags) -> ExperimentSpec {
    let (name, environment) = (None, BTreeMap::new());
    let pinned = Some(pinned);
    let layers = Layers {
        name,
        pinned,
        file: None,
        environment: &environment,
        flags,
    };
    resolve(&layers)
        .unwrap()
        .experiment(Purpose::Measure)
        .unwrap()
}

/// The value as TOML; the test's own writer.
fn toml_value(value: &Value) -> toml::Value {
    match value {
        Value::Switch(on) => toml::Value::Boolean(*on),
        Value::Count(count) => toml::Value::Integer(i64::try_from(*count).unwrap()),
        Value::List(items) => items.clone().into(),
        Value::Guard(guard) => {
            let mut table = toml::Table::new();
            table.insert("metric".to_owned(), guard.metric.clone().into());
            for (name, text) in guard.limits() {
                table.insert(name.to_owned(), text.into());
            }
            table.into()
        }
        other => other.to_string().into(),
    }
}

/// A whole file with one loop.
fn toml_file(spec: &ExperimentSpec) -> String {
    let mut entries = toml::Table::new();
    let mut guards = Vec::new();
    for (key, value) in spec.entries() {
        let value = value.as_ref().map_or_else(|| "none".into(), toml_value);
        match key.split_once('.') {
            Some(("guard", _)) => guards.push(value),
            Some((table, name)) => {
                let table = entries
                    .entry(table)
                    .or_insert_with(|| toml::Table::new().into());
                table.as_table_mut().unwrap().insert(name.to_owned(), value);
            }
            None if value.as_str() == Some("none") && holds_text(&key) => {}
            None => {
                entries.insert(key, value);
            }
        }
    }
    if !guards.is_empty() {
        entries.insert("guard".to_owned(), toml::Value::Array(guards));
    }
    let loops = toml::Table::from_iter([(spec.name.clone(), toml::Value::Table(entries))]);
    toml::Table::from_iter([("loop".to_owned(), toml::Value::Table(loops))]).to_string()
}

/// Settings for which `none` would be a text like any other: they are left out instead.
fn holds_text(key: &str) -> bool {
    let kind = setting(key).unwrap().kind;
    matches!(kind, ValueType::Text | ValueType::Command | ValueType::List)
}

proptest! {
    #[test]
    fn pinned_specifications_come_back(spec in any_spec()) {
        let json = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(&serde_json::from_str::<ExperimentSpec>(&json).unwrap(), &spec);
        prop_assert_eq!(&over_pinned(&spec, &Flags::new()), &spec);
        prop_assert!(ExperimentSpec::drift(&spec, &spec).is_empty());
    }

    #[test]
    fn written_as_a_file_they_come_back(expected in any_spec()) {
        prop_assert_eq!(&spec(&toml_file(&expected)), &expected);
    }

    #[test]
    fn drift_is_empty_for_equals_only_and_turns_around(a in any_spec(), b in any_spec()) {
        let (there, back) = (ExperimentSpec::drift(&a, &b), ExperimentSpec::drift(&b, &a));
        prop_assert_eq!(there.is_empty(), a == b);
        let turned = |changes: &[FieldChange]| -> Vec<FieldChange> {
            changes.iter().cloned().map(|FieldChange { key, old, new }| {
                FieldChange { key, old: new, new: old }
            }).collect()
        };
        prop_assert_eq!(turned(&there.refused), back.refused);
        prop_assert_eq!(turned(&there.harness), back.harness);
        prop_assert_eq!(turned(&there.free), back.free);
        let same_harness = there.harness.is_empty() && there.refused.is_empty();
        prop_assert_eq!(a.harness_texts() == b.harness_texts(), same_harness);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]a-z.=\"\n {},0-9-]{0,60}") {
        let _ = LoopFile::parse("f", &text);
    }
}

#[test]
fn pinned_values_give_way_to_flags() {
    let mut flags = Flags::new();
    flags.push("--trials", "2");
    let mut expected = spec(&format!("{LEAST}trials = 50\nprotect = [\"a\"]\n"));
    let resumed = over_pinned(&expected, &flags);
    expected.trials = Some(2);
    assert_eq!(resumed, expected);
}

fn no_floats(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(number) => number.is_u64(),
        serde_json::Value::Array(items) => items.iter().all(no_floats),
        serde_json::Value::Object(items) => items.values().all(no_floats),
        _ => true,
    }
}

#[test]
fn the_pinned_form_is_canonical_and_known() {
    let json = serde_json::to_value(spec(&format!("{LEAST}min_delta = 0.50\n"))).unwrap();
    assert!(no_floats(&json));
    assert_eq!(json["schema"], 1);
    assert_eq!(json["rule"]["min_delta"], "0.5");
    // A field of a later release must not be dropped unseen.
    let mut later = json;
    later["surprise"] = 1.into();
    assert!(serde_json::from_value::<ExperimentSpec>(later).is_err());
}
