//! What both pictures say in words: counts, axis title, and the whole in sentences.

use crate::analysis::Analysis;
use crate::model::Mark;
use crate::number::{format_number, percent};
use crate::text::clean;
use std::fmt::Write;

impl Analysis<'_> {
    /// The counts in words: `34 attempts: 6 kept, 24 rejected, ...`.
    pub(crate) fn counts_text(&self) -> String {
        let counts = self.progress.counts();
        let total = counts.attempts();
        let parts: Vec<String> = [
            Mark::Kept,
            Mark::Rejected,
            Mark::Failed,
            Mark::Refused,
            Mark::NotMeasured,
        ]
        .into_iter()
        .filter(|mark| counts.of(*mark) > 0)
        .map(|mark| format!("{} {}", counts.of(mark), mark.word()))
        .collect();
        match total {
            0 => "no attempts yet".to_owned(),
            1 => format!("1 attempt: {}", parts.join(", ")),
            _ => format!("{total} attempts: {}", parts.join(", ")),
        }
    }

    /// The picture in a few sentences, for those who can't see it.
    pub(crate) fn sentence(&self) -> String {
        let progress = self.progress;
        let mut text = format!(
            "{} ({}), {}.",
            clean(&progress.metric),
            progress.direction(),
            self.counts_text()
        );
        if let Some(head) = self.headline() {
            let from = self.value_text(head.from);
            let start = if head.from_baseline {
                "baseline"
            } else {
                "first kept value"
            };
            if head.from == head.to {
                let _ = write!(text, " The best value is the {start}, {from}.");
            } else {
                let change = head
                    .change
                    .map_or_else(String::new, |change| format!(", {}", change_words(change)));
                let _ = write!(
                    text,
                    " From the {start}, {from}, to {} at trial {}{change}.",
                    self.value_text(head.to),
                    head.trial
                );
            }
            if let Some(target) = self.target {
                let reached = !progress.better(target, head.to);
                let word = if reached { "reached" } else { "not reached" };
                let _ = write!(text, " The target {} is {word}.", self.value_text(target));
            }
        }
        if !self.boundaries.is_empty() {
            let _ = write!(
                text,
                " The harness changed {} in between: values are compared only within the last stretch.",
                if self.boundaries.len() == 1 {
                    "once".to_owned()
                } else {
                    format!("{} times", self.boundaries.len())
                }
            );
        }
        text
    }

    /// The metric's name, unit and direction, and how to read the axis's numbers.
    pub(crate) fn axis_title(&self, logarithmic: bool, offset: Option<f64>) -> String {
        let mut title = clean(&self.progress.metric);
        if let Some(unit) = self.unit.as_deref().filter(|unit| !unit.is_empty()) {
            let _ = write!(title, " ({unit})");
        }
        let _ = write!(title, ", {}", self.progress.direction());
        if logarithmic {
            title.push_str(", logarithmic");
        }
        if let Some(offset) = offset {
            let _ = write!(title, ", numbers are added to {}", format_number(offset));
        }
        title
    }
}

/// A relative change in words: `12.3 % lower`.
pub(crate) fn change_words(change: f64) -> String {
    let word = if change < 0.0 { "lower" } else { "higher" };
    format!("{} {word}", percent(change))
}
