//! One pass over a text: where the secrets are, and the text without them.

use std::ops::Range;

use super::shapes::{self, Match};
use super::table::Beginnings;

/// The kind of a known value.
pub(super) const KNOWN: &str = "known-value";

const MARKER_START: &[u8] = b"[redacted:";
const LONGEST_KIND_BYTES: usize = 32;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is, as in `[redacted:KIND]`.
    pub kind: &'static str,
    /// Where it is, in bytes.
    pub range: Range<usize>,
}

/// The replacement of a secret of that kind.
pub(super) fn marker(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// The length of a replacement that begins at the start of `text`. Only kinds that exist count, so
/// that nothing hides between such brackets.
pub(super) fn marker_length(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(MARKER_START)?;
    let end = rest
        .iter()
        .take(LONGEST_KIND_BYTES + 1)
        .position(|byte| *byte == b']')?;
    let kind = &rest[..end];
    let exists = kind == KNOWN.as_bytes() || shapes::is_kind(kind);
    exists.then_some(MARKER_START.len() + end + 1)
}

/// Known values, ready to be looked for.
#[derive(Clone)]
pub(super) struct Known {
    /// The longest first, so that a value that begins like another is taken whole.
    values: Vec<Vec<u8>>,
    /// What they and the shapes begin with.
    beginnings: Beginnings,
}

impl Known {
    /// Takes values of at least two bytes.
    pub(super) fn new(mut values: Vec<Vec<u8>>) -> Self {
        values.sort_by(|left, right| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
        values.dedup();
        let mut beginnings = Beginnings::of_shapes();
        for value in &values {
            beginnings.insert(value);
        }
        Self { values, beginnings }
    }

    fn at(&self, text: &[u8]) -> Option<usize> {
        self.values
            .iter()
            .find(|value| text.starts_with(value))
            .map(Vec::len)
    }
}

/// Finds the secrets of a text, from left to right, none overlapping another. What is already
/// replaced is stepped over and bounds what stands beside it.
pub(super) fn findings(text: &[u8], known: &Known) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        // Nothing reaches over the ends of the segment between two replacements.
        let segment_end = next_marker(text, at);
        segment(text, at..segment_end, known, &mut found);
        let Some(length) = marker_length(&text[segment_end..]) else {
            return found;
        };
        at = segment_end + length;
    }
}

fn segment(text: &[u8], place: Range<usize>, known: &Known, found: &mut Vec<Finding>) {
    let Range { mut start, end } = place;
    let mut at = start;
    while at + 1 < end {
        if !known.beginnings.holds(text[at], text[at + 1]) {
            at += 1;
            continue;
        }
        if let Some(Match { kind, kept, secret }) =
            secret_at(&text[at..end], &text[start..at], known)
        {
            let secret_start = at + kept;
            at = secret_start + secret;
            // What is replaced just now bounds its neighbours as well.
            start = at;
            found.push(Finding {
                kind,
                range: secret_start..at,
            });
        } else {
            at += 1;
        }
    }
}

fn secret_at(rest: &[u8], before: &[u8], known: &Known) -> Option<Match> {
    if let Some(secret) = known.at(rest) {
        return Some(Match {
            kind: KNOWN,
            kept: 0,
            secret,
        });
    }
    shapes::at(rest, before).or_else(|| match rest[0] {
        b's' | b'S' => shapes::named_aws_secret(rest),
        _ => None,
    })
}

/// Where the next replacement begins, from `from` on; the text's end if there is none.
fn next_marker(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(bracket) = text[at..].iter().position(|byte| *byte == b'[') {
        at += bracket;
        if marker_length(&text[at..]).is_some() {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// The text with every finding replaced.
pub(super) fn replaced(text: &[u8], found: &[Finding]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(text.len());
    let mut at = 0;
    for finding in found {
        clean.extend_from_slice(&text[at..finding.range.start]);
        clean.extend_from_slice(marker(finding.kind).as_bytes());
        at = finding.range.end;
    }
    clean.extend_from_slice(&text[at..]);
    clean
}
