//! What is said about the decision rule and its settings: which rule the others imply, which of them
//! the rule in force doesn't look at, and where it would find little.

use std::collections::BTreeMap;

use super::keep::{NoiseSpec, weakness};
use super::problem::Origin;
use super::resolve::Located;
use super::value::Value;

/// The settings that only the threshold rule looks at.
const OF_THRESHOLD: [&str; 2] = ["min_delta", "confirm"];
/// Those that only the keep rule looks at.
const OF_KEEP: [&str; 7] = [
    "doubt",
    "worth",
    "max_pairs",
    "noise",
    "ratio",
    "coarse",
    "closing",
];

/// Settles which rule is meant where nobody names one, and says what is worth saying.
pub(super) fn rule_notices(entries: &mut BTreeMap<String, Located>) -> Vec<String> {
    let mut notices: Vec<String> = imply_threshold(entries).into_iter().collect();
    let is_keep = text(entries, "rule") == Some("keep");
    let (idle, in_force): (&[&str], _) = if is_keep {
        (&OF_THRESHOLD, "keep")
    } else {
        (&OF_KEEP, "threshold")
    };
    if let Some((keys, verb)) = listed(&given(entries, idle), ["changes", "change"]) {
        notices.push(format!("{keys} {verb} nothing under the {in_force} rule"));
    }
    if is_keep {
        notices.extend(weakness_of(entries));
    }
    notices
}

/// Labloop's settings without a rule mean labloop's rule.
fn imply_threshold(entries: &mut BTreeMap<String, Located>) -> Option<String> {
    let is_threshold = text(entries, "rule") == Some("threshold");
    let rule = entries.get_mut("rule")?;
    match rule.origin {
        Origin::Default => {}
        // What a run was begun with is no word of today's.
        Origin::Pinned if !is_threshold => {}
        _ => return None,
    }
    let implying = given(entries, &OF_THRESHOLD);
    let (keys, verb) = listed(&implying, ["is", "are"])?;
    let rule = entries.get_mut("rule")?;
    rule.value = Some(Value::Text("threshold".to_owned()));
    Some(format!(
        "{keys} {verb} set without `rule`: the threshold rule decides"
    ))
}

/// Which of these somebody set for this invocation.
fn given<'a>(entries: &BTreeMap<String, Located>, keys: &[&'a str]) -> Vec<&'a str> {
    let is_given = |key: &&str| {
        entries
            .get(*key)
            .is_some_and(|located| !matches!(located.origin, Origin::Default | Origin::Pinned))
    };
    keys.iter().copied().filter(is_given).collect()
}

/// Keys in a sentence, with the verb for one or for several of them; none where there are none.
fn listed(keys: &[&str], [one, several]: [&'static str; 2]) -> Option<(String, &'static str)> {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    match quoted.as_slice() {
        [] => None,
        [key] => Some((key.clone(), one)),
        [first @ .., last] => Some((format!("{} and {last}", first.join(", ")), several)),
    }
}

fn text<'a>(entries: &'a BTreeMap<String, Located>, key: &str) -> Option<&'a str> {
    match &entries.get(key)?.value {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn weakness_of(entries: &BTreeMap<String, Located>) -> Option<String> {
    let value = |key: &str| entries.get(key)?.value.clone();
    let (Some(Value::Count(pairs)), Some(Value::Number(doubt))) =
        (value("max_pairs"), value("doubt"))
    else {
        return None;
    };
    let noise = match value("noise") {
        Some(Value::Noise(noise)) => noise,
        _ => NoiseSpec::Auto,
    };
    weakness(pairs, doubt, &noise)
}
