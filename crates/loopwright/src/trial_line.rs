//! A trial on one line: mark, number, value, seconds, commit, why.

use loopwright_core::experiment::Outcome;
use loopwright_core::experiment::state::Origin;
use loopwright_core::metric::Real;
use loopwright_engine::views::{LoopStatus, TrialLine, TrialRow};

use crate::output::{Output, Tone, one_line, push_one_line};

/// From so many columns on, a line's are padded to stand below each other.
const WIDE: usize = 72;
/// Below so many, seconds and commit are left out; `show` says them.
const NARROW: usize = 40;

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
    let candidate = row.candidate.as_ref();
    let head = Head {
        mark: mark(row.origin.as_ref(), outcome),
        trial: row.trial,
        value: row.value,
        duration_us: row.commands_us(),
        commit: (row.commit.as_deref()).or(candidate.map(|candidate| candidate.commit.as_str())),
    };
    let mut text = String::new();
    write_finished(&mut text, &head, &row.branch, &row.why, outcome, output);
    Some(text)
}

/// A decided trial of a long listing, without its line's end.
pub fn write_line(text: &mut String, line: &TrialLine<'_>, output: &Output) {
    let head = Head {
        mark: mark(Some(&line.origin), line.outcome),
        trial: line.trial,
        value: line.value,
        duration_us: line.duration_us,
        commit: line.commit.or(line.candidate),
    };
    write_finished(text, &head, line.branch, line.why, line.outcome, output);
}

/// What stands before the reason.
#[derive(Clone, Copy)]
struct Head<'a> {
    mark: char,
    trial: u64,
    value: Option<Real>,
    duration_us: Option<u64>,
    /// The commit on the loop's branch; of what wasn't kept, the one that keeps the candidate.
    commit: Option<&'a str>,
}

impl Head<'_> {
    /// Writes it for so many columns; any number where it isn't for a terminal. Written by hand:
    /// what formats in general takes longer than reading the row, and listings have thousands.
    fn write(&self, text: &mut String, columns: Option<usize>) {
        let value = value_text(self.value);
        let commit = self.commit.map_or("", short_commit);
        let is_wide = columns.is_none_or(|columns| columns >= WIDE);
        text.push('[');
        text.push(self.mark);
        text.push_str(if is_wide { "] trial " } else { "] " });
        let pad = |width: usize| if is_wide { width } else { 0 };
        push_right(text, &self.trial.to_string(), pad(3));
        text.push(' ');
        push_right(text, &value, pad(13));
        if columns.is_some_and(|columns| columns < NARROW) {
            return;
        }
        text.push(' ');
        push_right(text, &self.seconds(), pad(8));
        if is_wide || !commit.is_empty() {
            text.push_str(if is_wide { "  " } else { " " });
            text.push_str(commit);
            push_right(
                text,
                "",
                pad(COMMIT_CHARACTERS.saturating_sub(commit.len())),
            );
        }
    }

    /// Seconds with a tenth.
    fn seconds(&self) -> String {
        let Some(duration_us) = self.duration_us else {
            return "--".to_owned();
        };
        let tenths = duration_us.saturating_add(50_000) / 100_000;
        let mut text = (tenths / 10).to_string();
        text.push('.');
        text.push(char::from(b'0' + (tenths % 10) as u8));
        text.push('s');
        text
    }
}

/// Writes a text of ASCII at the right end of so many columns.
fn push_right(text: &mut String, column: &str, width: usize) {
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(column.len())));
    text.push_str(column);
}

fn write_finished(
    text: &mut String,
    head: &Head<'_>,
    branch: &str,
    why: &str,
    outcome: Outcome,
    output: &Output,
) {
    let tone = tone(outcome);
    if tone == Tone::Plain {
        head.write(text, output.columns);
    } else {
        let mut painted = String::new();
        head.write(&mut painted, output.columns);
        text.push_str(&output.paint(tone, &painted));
    }
    if branch != "main" {
        text.extend(["  [", branch, "]"]);
    }
    text.push_str("  (");
    push_one_line(text, why);
    text.push(')');
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_the_terminal_it_is_for() {
        let head = Head {
            mark: '-',
            trial: 7,
            value: Real::new(9.5).ok(),
            duration_us: Some(1_240_000),
            commit: Some("0123456789"),
        };
        let text = |head: &Head<'_>, columns| {
            let mut text = String::new();
            head.write(&mut text, columns);
            text
        };
        let wide = "[-] trial   7           9.5     1.2s  0123456";
        assert_eq!(text(&head, None), wide);
        assert_eq!(text(&head, Some(80)), wide);
        assert_eq!(text(&head, Some(60)), "[-] 7 9.5 1.2s 0123456");
        assert_eq!(text(&head, Some(20)), "[-] 7 9.5");
        let unknown = Head {
            value: None,
            duration_us: None,
            commit: None,
            ..head
        };
        assert_eq!(text(&unknown, Some(60)), "[-] 7 -- --");
        let wide = "[-] trial   7            --       --         ";
        assert_eq!(text(&unknown, None), wide);
        for (duration_us, seconds) in [(0, "0.0s"), (49_999, "0.0s"), (61_950_000, "62.0s")] {
            let head = Head {
                duration_us: Some(duration_us),
                ..head
            };
            assert_eq!(head.seconds(), seconds);
        }
    }
}
