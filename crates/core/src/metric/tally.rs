//! What has been said about one metric so far, and the judgement on it.

use super::readings::Reading;
use super::refusal::Refusal;
use super::value::Parsed;

/// The two ways of saying a value. Values in different ways that differ contradict each other;
/// within one way the later replaces the earlier, as epochs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `key=value` or `key: value`.
    KeyValue,
    /// A member of a JSON object.
    Json,
}

/// One mention of a metric.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    pub(super) form: Form,
    pub(super) parsed: Parsed,
    /// The line, fit to be quoted.
    pub(super) line: String,
}

/// All mentions, in bounded memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    first: Option<Mention>,
    /// The first mention that differs from the first.
    differing: Option<Mention>,
    last: Option<Mention>,
    /// The last mention in the other form than the last one's.
    other_form: Option<Mention>,
}

impl Tally {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn add(&mut self, mention: Mention) {
        match &self.first {
            None => self.first = Some(mention.clone()),
            Some(first) => {
                if self.differing.is_none() && first.parsed != mention.parsed {
                    self.differing = Some(mention.clone());
                }
            }
        }
        let form = mention.form;
        if let Some(previous) = self.last.replace(mention)
            && previous.form != form
        {
            self.other_form = Some(previous);
        }
    }

    /// Adds everything another tally of a single form has seen, as if it came now.
    pub(super) fn absorb(&mut self, other: Self) {
        for mention in [other.first, other.differing, other.last]
            .into_iter()
            .flatten()
        {
            self.add(mention);
        }
    }

    /// The judgement; none if there was no mention.
    ///
    /// A last mention that is no number is refused rather than replaced by an older one. With
    /// `strict`, any two mentions that differ are refused; without, only the last ones of the two
    /// forms, and an unreadable earlier one contradicts nothing.
    pub(super) fn judge(self, strict: bool) -> Option<Reading> {
        let last = self.last?;
        if last.parsed == Parsed::Malformed {
            return Some(Refusal::Malformed { line: last.line }.into());
        }
        if strict && let (Some(first), Some(differing)) = (self.first, self.differing) {
            return Some(
                Refusal::Ambiguous {
                    first: first.line,
                    second: differing.line,
                }
                .into(),
            );
        }
        let Parsed::Finite(value) = last.parsed else {
            return Some(Refusal::NotFinite { line: last.line }.into());
        };
        match self.other_form {
            Some(other)
                if !strict && other.parsed != Parsed::Malformed && other.parsed != last.parsed =>
            {
                Some(
                    Refusal::Ambiguous {
                        first: other.line,
                        second: last.line,
                    }
                    .into(),
                )
            }
            _ => Some(Reading::Value(value)),
        }
    }
}
