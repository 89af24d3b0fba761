//! A trial on one line: mark, number, value, seconds, commit, why.

use loopwright_core::experiment::Outcome;
use loopwright_core::experiment::state::Origin;
use loopwright_core::metric::Real;
use loopwright_engine::views::{LoopStatus, TrialLine, TrialRow};

use crate::output::{Output, Tone, one_line};

/// The most characters of a failure's last output line.
const TAIL_CHARACTERS_MAX: usize = 200;

/// A listing's legend for the baseline, which has no outcome of its own.
const BASELINE_MARK: char = 'B';

/// The characters of a commit that are shown.
const COMMIT_CHARACTERS: usize = 7;

/// The start of a commit's name.
pub fn short_commit(commit: &str) -> &str {
    commit.get(..COMMIT_CHARACTERS).unwrap_or(commit)
}

/// A value, or the dashes for none.
pub fn value_text(value: Option<Real>) -> String {
    value.map_or_else(|| "--".to_owned(), Real::short)
}

fn mark(origin: Option<&Origin>, outcome: Outcome) -> char {
    match origin {
        Some(Origin::Baseline) if outcome.is_keep() => BASELINE_MARK,
        _ => outcome.mark(),
    }
}

/// How an outcome is coloured.
pub fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Kept | Outcome::Simplified => Tone::Good,
        Outcome::Reverted | Outcome::NoChange | Outcome::Duplicate | Outcome::Undecided => {
            Tone::Plain
        }
        _ => Tone::Bad,
    }
}

/// A decided trial in full, as it is printed while it is decided.
pub fn of_row(row: &TrialRow, output: &Output) -> Option<String> {
    let outcome = row.outcome?;
    let seconds = row.commands_us().map_or_else(
        || "--".to_owned(),
        |wall_us| format!("{:.1}s", wall_us as f64 / 1e6),
    );
    let commit = row.commit.as_deref().map_or("", short_commit);
    let head = format!(
        "[{}] trial {:>3} {:>13} {:>8}  {:COMMIT_CHARACTERS$}",
        mark(row.origin.as_ref(), outcome),
        row.trial,
        value_text(row.value),
        seconds,
        commit,
    );
    Some(finish(&head, &row.branch, &row.why, outcome, output))
}

/// A decided trial of a long listing.
pub fn of_line(line: &TrialLine, output: &Output) -> String {
    let head = format!(
        "[{}] trial {:>3} {:>13}",
        mark(Some(&line.origin), line.outcome),
        line.trial,
        value_text(line.value),
    );
    finish(&head, &line.branch, &line.why, line.outcome, output)
}

fn finish(head: &str, branch: &str, why: &str, outcome: Outcome, output: &Output) -> String {
    let branch = if branch == "main" {
        String::new()
    } else {
        format!("  [{branch}]")
    };
    let head = output.paint(tone(outcome), head);
    format!("{head}{branch}  ({})", one_line(why))
}

/// The last line of what a failed trial printed, to be shown below its own.
pub fn tail_of(row: &TrialRow) -> Option<String> {
    let failed = matches!(
        row.outcome?,
        Outcome::Failed
            | Outcome::TimedOut
            | Outcome::NoMetric
            | Outcome::NotFinite
            | Outcome::Ambiguous
            | Outcome::Unstable
    );
    let last = row
        .tail()
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty());
    let last = last.filter(|_| failed)?;
    let text: String = one_line(last).chars().take(TAIL_CHARACTERS_MAX).collect();
    Some(format!("      {text}"))
}

/// `kept=3  reverted=2`, in the order of summaries.
pub fn counts_text(status: &LoopStatus) -> String {
    let counts: Vec<String> = Outcome::ALL
        .into_iter()
        .filter_map(|outcome| {
            let count = status.counts.get(&outcome).filter(|count| **count > 0)?;
            Some(format!("{}={count}", outcome.name()))
        })
        .collect();
    counts.join("  ")
}

/// `best m: 8.5 (trial 6)`.
pub fn best_text(status: &LoopStatus) -> Option<String> {
    let value = status.incumbent?;
    let from = match (status.is_baseline, status.incumbent_trial) {
        (false, Some(trial)) => format!("trial {trial}"),
        _ => "baseline".to_owned(),
    };
    Some(format!(
        "best {}: {} ({from})",
        status.metric,
        value.short()
    ))
}
