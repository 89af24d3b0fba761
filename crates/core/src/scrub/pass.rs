//! One pass over a text: where the secrets are, and the text without them.

use std::ops::Range;

use super::shapes::{self, Match};

/// The kind of a known value.
pub(super) const KNOWN: &str = "known-value";
/// The kind of a value hidden because of its name.
pub(super) const BY_NAME: &str = "by-name";

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
    let exists = kind == KNOWN.as_bytes() || kind == BY_NAME.as_bytes() || shapes::is_kind(kind);
    exists.then_some(MARKER_START.len() + end + 1)
}

/// Known values, ready to be looked for.
#[derive(Debug, Default, Clone)]
pub(super) struct Known {
    /// The longest first, so that a value that begins like another is taken whole.
    values: Vec<Vec<u8>>,
}

impl Known {
    pub(super) fn new(mut values: Vec<Vec<u8>>) -> Self {
        values.sort_by(|left, right| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
        values.dedup();
        Self { values }
    }

    fn begins(&self) -> [bool; 256] {
        let mut begins = [false; 256];
        for value in &self.values {
            begins[usize::from(value[0])] = true;
        }
        begins
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
    let known_begins = known.begins();
    let begins: [bool; 256] = std::array::from_fn(|byte| {
        let byte = byte as u8;
        known_begins[usize::from(byte)] || shapes::may_begin(byte)
    });
    let mut found = Vec::new();
    // A segment lies between two replacements, made before or just now; nothing reaches over its ends.
    let mut segment_start = 0;
    let mut segment_end = next_marker(text, 0);
    let mut at = 0;
    while at < text.len() {
        if at == segment_end {
            at += marker_length(&text[at..]).unwrap_or(1);
            segment_start = at;
            segment_end = next_marker(text, at);
            continue;
        }
        let byte = usize::from(text[at]);
        let hit = if begins[byte] {
            secret_at(
                &text[at..segment_end],
                &text[segment_start..at],
                known,
                known_begins[byte],
            )
        } else {
            None
        };
        if let Some(Match { kind, kept, secret }) = hit {
            let start = at + kept;
            at = start + secret;
            segment_start = at;
            found.push(Finding {
                kind,
                range: start..at,
            });
        } else {
            at += 1;
        }
    }
    found
}

fn secret_at(rest: &[u8], before: &[u8], known: &Known, known_may_begin: bool) -> Option<Match> {
    if known_may_begin && let Some(secret) = known.at(rest) {
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
