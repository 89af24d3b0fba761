//! A text of any length, cut where no secret is: what is looked through or scrubbed piece by piece
//! comes out as if it had been at hand whole.

use std::ops::Range;

use super::secrets::Secrets;

/// What is held at once.
const HELD_BYTES_MAX: usize = 1 << 20;

/// So much of the end is held back, because a secret may begin there that is not complete yet. No
/// shape (a private key's armour is the longest) and no variable of an environment is longer.
const MARGIN_BYTES: usize = 128 << 10;

/// So far before a secret stands what it is told by (`Bearer `, the name of a key).
const LEAD_BYTES: usize = 256;

/// Takes a text in pieces of any size and hands it on in pieces that end between secrets, at ends of
/// lines where there are any.
#[derive(Debug)]
pub struct Pieces<'a> {
    secrets: &'a Secrets,
    held: Vec<u8>,
    held_max: usize,
    margin: usize,
}

impl<'a> Pieces<'a> {
    /// For a text in which these secrets are looked for.
    pub fn new(secrets: &'a Secrets) -> Self {
        Self::with_bounds(secrets, HELD_BYTES_MAX, MARGIN_BYTES)
    }

    pub(super) fn with_bounds(secrets: &'a Secrets, held_max: usize, margin: usize) -> Self {
        Self {
            secrets,
            held: Vec::new(),
            held_max,
            margin,
        }
    }

    /// The next bytes of the text.
    pub fn feed(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(&[u8])) {
        while !bytes.is_empty() {
            let room = self.held_max - self.held.len();
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.held.extend_from_slice(now);
            bytes = later;
            if self.held.len() == self.held_max {
                let cut = self.cut();
                take(&self.held[..cut]);
                self.held.drain(..cut);
            }
        }
    }

    /// The text is over.
    pub fn finish(self, take: &mut dyn FnMut(&[u8])) {
        if !self.held.is_empty() {
            take(&self.held);
        }
    }

    /// Where what is held can be cut.
    fn cut(&self) -> usize {
        let last = self.held.len() - self.margin;
        let least = last.saturating_sub(self.margin);
        let mut cut = self.line_start(last, least);
        let mut lead = 0;
        if cut == least {
            // One line, longer than any text has: what a secret is told by may be cut, too.
            cut = last;
            lead = LEAD_BYTES;
        }
        // Nothing that reaches over the cut begins before this.
        let from = self.line_start(cut.saturating_sub(self.margin), 0);
        let found: Vec<_> = self
            .secrets
            .findings(&self.held[from..])
            .into_iter()
            .map(|finding| from + finding.range.start..from + finding.range.end)
            .collect();
        let over = |secret: &Range<usize>| secret.start < cut + lead && cut < secret.end;
        let Some(at) = found.iter().position(over) else {
            return cut;
        };
        if found[at].end < self.held.len() {
            // It is whole, and what follows it stands for itself.
            return found[at].end;
        }
        let before = at.checked_sub(1).map_or(from, |before| found[before].end);
        let least = found[at].start.saturating_sub(LEAD_BYTES).max(before);
        match self.line_start(found[at].start, least) {
            // Longer than what is held: no secret is.
            0 => last,
            start => start,
        }
    }

    /// The start of the line that holds `at`; `least` where it begins before that.
    fn line_start(&self, at: usize, least: usize) -> usize {
        let line_end = self.held[least..at].iter().rposition(|byte| *byte == b'\n');
        line_end.map_or(least, |end| least + end + 1)
    }
}
