//! Finding the metric a measuring script prints, and what its name says about the goal.

use super::{ProjectFacts, Proposal};
use crate::spec::experiment::Goal;

/// Words that print.
const PRINTING: [&str; 8] = [
    "echo",
    "print",
    "console.log",
    "puts",
    "say ",
    "stdout",
    "write",
    "Fprint",
];

/// Parts of names of things one surely wants less of. What one may want either way (a rate, a size,
/// a score) is not here: a wrong guess would send a loop the wrong way.
const LESS: [&str; 17] = [
    "time",
    "seconds",
    "second",
    "secs",
    "sec",
    "ms",
    "us",
    "ns",
    "millis",
    "latency",
    "duration",
    "elapsed",
    "loss",
    "error",
    "errors",
    "perplexity",
    "cost",
];

/// Units of time, which turn what they divide into a rate.
const TIMES: [&str; 9] = [
    "second", "seconds", "sec", "secs", "s", "ms", "us", "minute", "min",
];

/// Parts of names that turn the sense of the others around, or make it something else.
const TURNING: [&str; 14] = [
    "neg",
    "negative",
    "minus",
    "inv",
    "inverse",
    "saved",
    "saving",
    "reduction",
    "improvement",
    "gain",
    "to",
    "until",
    "before",
    "between",
];

/// Parts of names of things one surely wants more of.
const MORE: [&str; 12] = [
    "acc",
    "accuracy",
    "f1",
    "auc",
    "precision",
    "recall",
    "throughput",
    "passed",
    "qps",
    "rps",
    "fps",
    "speedup",
];

/// Files a script names are read too; more than this many would be guessing.
const FOLLOWED_MAX: usize = 8;

/// Proposes the metric and goal from what the measuring file prints.
pub(super) fn find_metric(
    facts: &ProjectFacts<'_>,
    referee: Option<&str>,
    proposal: &mut Proposal,
) {
    let Some(text) = referee.and_then(|path| facts.text(path)) else {
        return;
    };
    let mut names = printed_names(&text);
    for path in mentioned_files(facts, &text) {
        names.extend(facts.text(path).iter().flat_map(|text| printed_names(text)));
    }
    let chosen = names
        .iter()
        .find(|name| goal_of(name).is_some())
        .or(names.first());
    proposal.metric = chosen.cloned();
    proposal.goal = chosen.and_then(|name| goal_of(name));
}

/// Tracked files whose path stands in the text.
pub(super) fn mentioned_files<'a>(facts: &ProjectFacts<'a>, text: &str) -> Vec<&'a str> {
    let stands = |path: &str| {
        text.match_indices(path).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + path.len()..].chars().next();
            let part =
                |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
            !part(before) && !part(after) && before != Some('.')
        })
    };
    let found = facts
        .tracked
        .iter()
        .map(String::as_str)
        .filter(|path| stands(path));
    found.take(FOLLOWED_MAX).collect()
}

/// The goal a metric's name says, where it says one beyond doubt.
fn goal_of(name: &str) -> Option<Goal> {
    let lower = name.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let any = |words: &[&str], known: &[&str]| words.iter().any(|word| known.contains(word));
    if any(&words, &TURNING) {
        return None;
    }
    // `ns_per_op` is a time, `requests_per_second` a rate; `errors_per_second` one of errors.
    let per = words.iter().position(|word| *word == "per");
    let (counted, divisor) = words.split_at(per.unwrap_or(words.len()));
    let is_rate = divisor.get(1).is_some_and(|unit| TIMES.contains(unit));
    match (any(counted, &LESS), any(counted, &MORE) || is_rate) {
        (true, false) => Some(Goal::Minimize),
        (false, true) => Some(Goal::Maximize),
        _ => None,
    }
}

/// Names printed as `name=…`, `name: …` or `"name": …`, in order.
fn printed_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.lines().map(str::trim) {
        let comment = line.starts_with('#') || line.starts_with("//");
        if comment || !PRINTING.iter().any(|word| line.contains(word)) {
            continue;
        }
        for (at, separator) in line.match_indices(['=', ':']) {
            let before = line[..at].trim_end_matches(['"', '\'', '\\']);
            let json = before.len() < at;
            let start = before
                .rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-')))
                .map_or(0, |end| {
                    end + before[end..].chars().next().map_or(1, char::len_utf8)
                });
            let name = &before[start..];
            let opener = before[..start].chars().next_back();
            let opened = opener.is_some_and(|c| matches!(c, '"' | '\'' | '`' | ' ' | ',' | '{'));
            let named = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
            let rest = line[at + 1..].trim_start();
            let value = rest.starts_with(['$', '{', '%', '"', '\'', '`', ','])
                || rest.starts_with(|c: char| c.is_ascii_digit())
                || json && separator == ":" && !rest.is_empty();
            if opened && named && value && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_metrics_are_found() {
        for (line, expected) in [
            ("echo \"m=$(cat x)\"", "m"),
            ("echo seconds=$t", "seconds"),
            ("print(f\"val_loss: {loss:.4f}\")", "val_loss"),
            ("print(\"score=%f\" % score)", "score"),
            ("print(json.dumps({\"acc\": acc}))", "acc"),
            ("console.log(`ops=${n}`)", "ops"),
            ("println!(\"latency_ms={}\", t)", "latency_ms"),
            ("printf 'size=%d\\n' \"$n\"", "size"),
        ] {
            assert_eq!(printed_names(line), [expected], "{line}");
        }
        for nothing in ["# echo m=$x", "x = 5", "echo hello", "print(x, file=out)"] {
            assert!(printed_names(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn names_suggest_goals() {
        for name in ["latency_ms", "ns_per_op", "error_rate", "val.loss"] {
            assert_eq!(goal_of(name), Some(Goal::Minimize), "{name}");
        }
        for name in ["tokens_per_sec", "val/acc", "requests_per_second", "fps"] {
            assert_eq!(goal_of(name), Some(Goal::Maximize), "{name}");
        }
        for name in [
            "m",
            "score",
            "size",
            "rate",
            "ops",
            "errors_per_second",
            "accuracy_loss",
            "time_saved",
            "time_to_failure",
            "neg_loss",
        ] {
            assert_eq!(goal_of(name), None, "{name}");
        }
    }
}
