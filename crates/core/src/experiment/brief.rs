//! The brief: what a proposer is told, as JSON and as Markdown.
//!
//! The JSON carries the field names that labloop's proposers read (`history`, `counts`,
//! `direction`, `budget_seconds`, …) beside ours, so that they run unchanged. It is a read-only
//! file outside the tree; values of a hidden holdout never appear in it. It holds no clock but the
//! amounts left, which are fixed when the proposal is announced.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::budget::{Limits, amount};
use crate::metric::Real;
use crate::spec::Goal;
use crate::usage::Dimension;

use super::outcome::Outcome;

/// How many trials of the history a brief shows.
pub const HISTORY_MAX: usize = 20;

/// The budgets of an experiment loop, and what they are amounts of.
const BUDGETS: [(Dimension, &str); 4] = [
    (Dimension::Steps, "proposals"),
    (Dimension::Time, "in commands"),
    (Dimension::Tokens, "tokens"),
    (Dimension::Money, "to spend"),
];

/// How much of an output's end it shows, in characters.
pub const OUTPUT_TAIL_CHARS_MAX: usize = 800;

/// One trial of the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// Its number.
    pub trial: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its value.
    pub value: Option<Real>,
    /// Why, in words.
    pub why: String,
    /// The commit, where it was kept.
    pub commit: Option<String>,
    /// The paths it changed, the first ones.
    pub paths: Vec<String>,
    /// The end of the output, where something failed.
    pub output_tail: Option<String>,
}

/// All that a proposer is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    /// The loop.
    pub loop_name: String,
    /// The run.
    pub run: String,
    /// The branch.
    pub branch: String,
    /// The trial it proposes for.
    pub trial: u64,
    /// The number that is optimised.
    pub metric: String,
    /// Which way is better.
    pub goal: Goal,
    /// The value to beat.
    pub incumbent: Option<Real>,
    /// The value at the start of the segment.
    pub baseline: Option<Real>,
    /// Where the work is done.
    pub target: Option<Real>,
    /// The decision rule, in words.
    pub rule: String,
    /// The measuring command.
    pub run_command: String,
    /// Guards, in words.
    pub guards: Vec<String>,
    /// Patterns it must not touch.
    pub protected: Vec<String>,
    /// How many trials ended how.
    pub counts: BTreeMap<Outcome, u64>,
    /// The newest trials, oldest first.
    pub history: Vec<Past>,
    /// Trials left in this invocation, this one included.
    pub trials_left: Option<u64>,
    /// Wall clock left in this invocation.
    pub wall_clock_left_us: Option<u64>,
    /// What is left of the loop's budgets, this proposal included.
    pub budget_left: Limits,
    /// The proposer's time limit.
    pub propose_limit_us: u64,
    /// The measurement's time limit.
    pub run_limit_us: u64,
}

impl Brief {
    /// The JSON form, indented, keys sorted, with a final newline.
    pub fn to_json(&self) -> String {
        let history: Vec<Value> = self.history.iter().map(past_json).collect();
        let counts: BTreeMap<&str, u64> = self
            .counts
            .iter()
            .map(|(outcome, count)| (outcome.name(), *count))
            .collect();
        let value = json!({
            "baseline": number(self.baseline),
            "branch": self.branch,
            "budget_left": budget_json(self.budget_left),
            "budget_seconds": seconds(self.run_limit_us),
            "counts": counts,
            "direction": self.branch,
            "goal": self.goal.name(),
            "guards": self.guards,
            "history": history,
            "incumbent": number(self.incumbent),
            "loop": self.loop_name,
            "metric": self.metric,
            "propose_limit_seconds": seconds(self.propose_limit_us),
            "protected": self.protected,
            "rule": self.rule,
            "run": self.run,
            "run_command": self.run_command,
            "target": number(self.target),
            "trial": self.trial,
            "trials_left": self.trials_left,
            "wall_clock_left_seconds": self.wall_clock_left_us.map(seconds),
        });
        // serde_json sorts the keys of its maps.
        format!("{value:#}\n")
    }

    /// The Markdown form, for an agent's prompt.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        let better = match self.goal {
            Goal::Minimize => "lower is better",
            Goal::Maximize => "higher is better",
        };
        // Writing to a String can't fail.
        let _ = writeln!(text, "# Trial {} of `{}`\n", self.trial, self.loop_name);
        let _ = writeln!(
            text,
            "Change this repository so that **{}** improves ({better}).",
            self.metric
        );
        let _ = writeln!(text, "It is measured by `{}`.\n", self.run_command);
        let facts = [
            ("to beat", self.incumbent),
            ("at the start", self.baseline),
            ("target", self.target),
        ];
        for (name, value) in facts {
            if let Some(value) = value {
                let _ = writeln!(text, "- {name}: {}", value.short());
            }
        }
        let _ = writeln!(text, "- rule: {}", self.rule);
        for guard in &self.guards {
            let _ = writeln!(text, "- must hold: {guard}");
        }
        if !self.protected.is_empty() {
            let _ = writeln!(text, "- do not touch: {}", self.protected.join(", "));
        }
        let _ = writeln!(text, "- time for you: {} s", seconds(self.propose_limit_us));
        if let Some(left) = self.trials_left {
            let _ = writeln!(text, "- trials left, this one included: {left}");
        }
        if let Some(left_us) = self.wall_clock_left_us {
            let _ = writeln!(text, "- time left in all: {} s", seconds(left_us));
        }
        for (dimension, of) in BUDGETS {
            if let Some(left) = self.budget_left.of(dimension) {
                let _ = writeln!(text, "- budget left: {} {of}", amount(dimension, left));
            }
        }
        self.write_history(&mut text);
        text
    }

    fn write_history(&self, text: &mut String) {
        if self.history.is_empty() {
            return;
        }
        let _ = writeln!(text, "\n## What was tried\n");
        for past in &self.history {
            let value = past
                .value
                .map_or_else(|| "no value".to_owned(), Real::short);
            let _ = writeln!(
                text,
                "- trial {}: **{}** ({value}): {}",
                past.trial,
                past.outcome.name(),
                past.why
            );
            if !past.paths.is_empty() {
                let _ = writeln!(text, "  - changed: {}", past.paths.join(", "));
            }
            for line in past.output_tail.iter().flat_map(|tail| tail.lines()) {
                let _ = writeln!(text, "  > {line}");
            }
        }
    }
}

/// The budgets with a limit, by name.
fn budget_json(left: Limits) -> Value {
    let mut json = serde_json::Map::new();
    let whole = [
        ("proposals", left.steps),
        ("tokens", left.tokens),
        ("money_micros", left.money_micros),
    ];
    json.extend(
        whole
            .into_iter()
            .filter_map(|(name, left)| Some((name.to_owned(), json!(left?)))),
    );
    if let Some(left_us) = left.time_us {
        json.insert("seconds".to_owned(), json!(seconds(left_us)));
    }
    Value::Object(json)
}

fn past_json(past: &Past) -> Value {
    let why = match past.outcome {
        Outcome::Kept | Outcome::Simplified => format!("kept: {}", past.why),
        Outcome::NoChange | Outcome::Interrupted | Outcome::Duplicate => {
            format!("not measured: {}", past.why)
        }
        _ => format!("reverted: {}", past.why),
    };
    let mut entry = json!({
        "index": past.trial,
        "metric": number(past.value),
        "outcome": past.outcome.name(),
        "why": why,
    });
    if let Some(commit) = &past.commit {
        entry["commit"] = json!(commit);
    }
    if !past.paths.is_empty() {
        entry["paths"] = json!(past.paths);
    }
    if let Some(tail) = &past.output_tail {
        entry["output_tail"] = json!(tail);
    }
    entry
}

fn number(value: Option<Real>) -> Value {
    value.map_or(Value::Null, |value| json!(value.get()))
}

fn seconds(duration_us: u64) -> f64 {
    duration_us as f64 / 1e6
}

/// The last [`OUTPUT_TAIL_CHARS_MAX`] characters of an output.
pub fn output_tail(text: &str) -> String {
    let skip = text.chars().count().saturating_sub(OUTPUT_TAIL_CHARS_MAX);
    text.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Brief {
        let real = |value| Some(Real::new(value).unwrap());
        let past = |trial, outcome, value: Option<Real>, why: &str| Past {
            trial,
            outcome,
            value,
            why: why.to_owned(),
            commit: None,
            paths: Vec::new(),
            output_tail: None,
        };
        Brief {
            loop_name: "speed".to_owned(),
            run: "r1".to_owned(),
            branch: "main".to_owned(),
            trial: 3,
            metric: "m".to_owned(),
            goal: Goal::Minimize,
            incumbent: real(8.0),
            baseline: real(10.0),
            target: None,
            rule: "beat the incumbent".to_owned(),
            run_command: "sh run.sh".to_owned(),
            guards: vec![],
            protected: vec!["ref".to_owned()],
            counts: [(Outcome::Kept, 2), (Outcome::Failed, 1)].into(),
            history: vec![
                past(0, Outcome::Kept, real(10.0), "baseline"),
                Past {
                    commit: Some("342cf35".to_owned()),
                    ..past(1, Outcome::Kept, real(8.0), "8 beat 10")
                },
                Past {
                    output_tail: Some("boom\n".to_owned()),
                    ..past(
                        2,
                        Outcome::Failed,
                        None,
                        "the measurement exited with status 1",
                    )
                },
            ],
            trials_left: Some(4),
            wall_clock_left_us: None,
            budget_left: Limits {
                steps: Some(7),
                time_us: Some(90_000_000),
                ..Limits::default()
            },
            propose_limit_us: 60_000_000,
            run_limit_us: 1_000_000,
        }
    }

    #[test]
    fn carries_what_labloops_proposers_read() {
        let json: Value = serde_json::from_str(&sample().to_json()).unwrap();
        assert_eq!(json["incumbent"], json!(8.0));
        assert_eq!(json["goal"], "minimize");
        assert_eq!(json["counts"], json!({"kept": 2, "failed": 1}));
        assert_eq!(json["history"][1]["commit"], "342cf35");
        assert_eq!(json["history"][2]["metric"], Value::Null);
        assert_eq!(json["history"][2]["output_tail"], "boom\n");
        assert!(
            json["history"][2]["why"]
                .as_str()
                .unwrap()
                .starts_with("reverted:")
        );
        assert_eq!(json["budget_seconds"], json!(1.0));
        assert_eq!(
            json["budget_left"],
            json!({"proposals": 7, "seconds": 90.0})
        );
    }

    #[test]
    fn reads_well_as_markdown() {
        let text = sample().to_markdown();
        for part in [
            "# Trial 3 of `speed`",
            "lower is better",
            "- to beat: 8",
            "do not touch: ref",
            "> boom",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
