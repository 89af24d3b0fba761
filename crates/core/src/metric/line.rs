//! Cutting a stream of bytes into lines, in bounded memory.
//!
//! Line feeds and carriage returns both end a line (progress bars), terminal escape sequences are
//! taken out, and of a line that is too long the middle is dropped. What comes out does not depend
//! on how the bytes were cut into chunks.

use std::borrow::Cow;

/// What is kept of a line's beginning.
const HEAD_BYTES: usize = 32 * 1024;
/// What is kept of a line's end.
const TAIL_BYTES: usize = 32 * 1024;
/// What is kept of the beginning of a line that looks like JSON, which is only good as a whole.
const JSON_HEAD_BYTES: usize = 224 * 1024;

/// How many bytes are asked at once where nothing but text is expected.
const BLOCK_BYTES: usize = 64;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// Where inside a terminal escape sequence the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    Outside,
    /// After the escape character.
    Started,
    /// Between escape and the final character of a short sequence.
    Short,
    /// In `ESC [ … letter`.
    Control,
    /// In a text such as a window title, ended by a bell or `ESC \`.
    Text,
    /// After an escape character within such a text.
    TextEnding,
}

impl Escape {
    /// Takes one byte of a sequence. The flag says whether it belonged to it.
    fn step(self, byte: u8) -> (Self, bool) {
        match (self, byte) {
            (Self::Started, b'[') | (Self::Control, 0x20..=0x3f) => (Self::Control, true),
            (Self::Started, b']' | b'P' | b'^' | b'_' | b'X') => (Self::Text, true),
            (Self::Started | Self::Short, 0x20..=0x2f) => (Self::Short, true),
            (Self::Started | Self::Short, 0x30..=0x7e)
            | (Self::Control, 0x40..=0x7e)
            | (Self::Text, BELL)
            | (Self::TextEnding, b'\\') => (Self::Outside, true),
            (Self::Text, ESCAPE) => (Self::TextEnding, true),
            // A line's end ends even an unfinished text: one stray byte must not swallow the output.
            (Self::Text, b'\n' | b'\r') => (Self::Outside, false),
            (Self::Text, _) => (Self::Text, true),
            (Self::TextEnding, _) => (Self::Started, false),
            (Self::Outside | Self::Started | Self::Short | Self::Control, _) => {
                (Self::Outside, false)
            }
        }
    }
}

/// One line, without its end and without escape sequences.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// The text; bytes that are not UTF-8 are replaced.
    pub(super) text: Cow<'a, str>,
    /// Whether the middle is missing.
    pub(super) cut: bool,
}

/// What the reader of a line says about the next one: whether it continues a JSON document and so
/// deserves more room.
pub(super) type Continues = bool;

/// The stream so far.
#[derive(Debug)]
pub(super) struct LineSplitter {
    escape: Escape,
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: bool,
    dropped_other_than_dots: bool,
    continues: Continues,
    json_head_bytes: usize,
}

impl LineSplitter {
    pub(super) fn new() -> Self {
        Self::with_json_room(JSON_HEAD_BYTES)
    }

    /// With another limit for the beginning of a line that looks like JSON.
    pub(super) fn with_json_room(json_head_bytes: usize) -> Self {
        Self {
            escape: Escape::Outside,
            head: Vec::new(),
            tail: Vec::new(),
            dropped: false,
            dropped_other_than_dots: false,
            continues: false,
            json_head_bytes: json_head_bytes.max(JSON_HEAD_BYTES),
        }
    }

    /// Takes a chunk and hands every line that ends in it to `reader`.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        reader: &mut impl FnMut(Line<'_>) -> Continues,
    ) {
        while let Some(&first) = bytes.first() {
            if self.escape != Escape::Outside {
                let (next, consumed) = self.escape.step(first);
                self.escape = next;
                bytes = &bytes[usize::from(consumed)..];
                continue;
            }
            let stop = first_stop(bytes);
            self.push(&bytes[..stop.unwrap_or(bytes.len())]);
            let Some(stop) = stop else { return };
            if bytes[stop] == ESCAPE {
                self.escape = Escape::Started;
            } else {
                self.end_line(reader);
            }
            bytes = &bytes[stop + 1..];
        }
    }

    /// Hands over the last line, if it has no end.
    pub(super) fn finish(mut self, reader: &mut impl FnMut(Line<'_>) -> Continues) {
        if !self.head.is_empty() {
            self.end_line(reader);
        }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let limit = if self.head.len() >= HEAD_BYTES && self.is_json() {
                self.json_head_bytes
            } else {
                HEAD_BYTES
            };
            let room = limit.saturating_sub(self.head.len());
            if room == 0 {
                break;
            }
            let (taken, rest) = bytes.split_at(room.min(bytes.len()));
            self.head.extend_from_slice(taken);
            bytes = rest;
        }
        for piece in bytes.chunks(TAIL_BYTES) {
            self.tail.extend_from_slice(piece);
            // Dropping only when there is twice as much keeps the copying small.
            if self.tail.len() > 2 * TAIL_BYTES {
                self.shorten_tail();
            }
        }
    }

    /// Whether the line begun looks like (a part of) a JSON document.
    fn is_json(&self) -> bool {
        self.continues || self.head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
    }

    fn shorten_tail(&mut self) {
        let excess = self.tail.len().saturating_sub(TAIL_BYTES);
        if excess > 0 {
            self.dropped = true;
            self.dropped_other_than_dots |= self.tail[..excess].iter().any(|byte| *byte != b'.');
            self.tail.drain(..excess);
        }
    }

    fn end_line(&mut self, reader: &mut impl FnMut(Line<'_>) -> Continues) {
        self.shorten_tail();
        // A row of progress dots is as good shorter: its end still stands on a whole line.
        let cut = self.dropped && self.dropped_other_than_dots;
        if cut {
            self.head.extend_from_slice("…".as_bytes());
        }
        self.head.append(&mut self.tail);
        self.continues = reader(Line {
            text: String::from_utf8_lossy(&self.head),
            cut,
        });
        self.head.clear();
        self.dropped = false;
        self.dropped_other_than_dots = false;
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.head.capacity() + self.tail.capacity()
    }
}

/// Where the first byte is that is more than text: a line's end or an escape character.
fn first_stop(bytes: &[u8]) -> Option<usize> {
    let is_stop = |byte: &u8| matches!(*byte, b'\n' | b'\r' | ESCAPE);
    // Blocks are asked without leaving early, which lets the compiler ask many bytes at once.
    let mut blocks = bytes.chunks_exact(BLOCK_BYTES);
    let mut at = 0;
    for block in &mut blocks {
        if block.iter().fold(false, |any, byte| any | is_stop(byte)) {
            break;
        }
        at += BLOCK_BYTES;
    }
    bytes[at..].iter().position(is_stop).map(|stop| at + stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<(String, bool)> {
        let mut seen = Vec::new();
        let mut reader = |line: Line<'_>| {
            seen.push((line.text.into_owned(), line.cut));
            false
        };
        let mut splitter = LineSplitter::new();
        for chunk in chunks {
            splitter.feed(chunk, &mut reader);
            assert!(splitter.held_bytes() < 1024 * 1024);
        }
        splitter.finish(&mut reader);
        seen
    }

    fn texts(output: &str) -> Vec<String> {
        lines(&[output.as_bytes()])
            .into_iter()
            .map(|(text, _)| text)
            .collect()
    }

    #[test]
    fn both_line_ends_and_a_missing_last_one() {
        assert_eq!(texts("a\r\nb\rc\n\nd"), ["a", "", "b", "c", "", "d"]);
        assert!(texts("").is_empty());
    }

    #[test]
    fn escape_sequences_are_taken_out() {
        let table = [
            ("m=\u{1b}[32m7\u{1b}[0m", "m=7"),
            ("\u{1b}[1;38;5;200mm\u{1b}[0m = \u{1b}[K7", "m = 7"),
            ("\u{1b}]0;title m=1\u{7}m=7", "m=7"),
            ("\u{1b}]8;;http://x\u{1b}\\m\u{1b}]8;;\u{1b}\\=7", "m=7"),
            ("\u{1b}(Bm=7", "m=7"),
            ("\u{1b}cm=7", "m=7"),
            ("\u{1b}\u{1b}[1mm=7", "m=7"),
            ("m=7\u{1b}", "m=7"),
            ("m=7\u{1b}[", "m=7"),
            ("\u{1b}[3é7", "é7"),
        ];
        for (output, expected) in table {
            assert_eq!(texts(output), [expected], "{output:?}");
        }
        assert_eq!(texts("\u{1b}]never ended\nm=7"), ["", "m=7"]);
        assert_eq!(texts("\u{1b}[12\nm=7"), ["", "m=7"]);
    }

    #[test]
    fn a_long_line_keeps_both_ends() {
        let long = format!("start{}end", "x".repeat(5_000_000));
        for chunk_bytes in [1 << 20, 4096, 777] {
            let chunks: Vec<&[u8]> = long.as_bytes().chunks(chunk_bytes).collect();
            let seen = lines(&chunks);
            assert_eq!(seen.len(), 1);
            assert!(seen[0].1);
            assert_eq!(seen[0].0.len(), HEAD_BYTES + TAIL_BYTES + "…".len());
            assert!(seen[0].0.starts_with("startx") && seen[0].0.ends_with("xend"));
        }
        let dots = format!("{}m=7", ".".repeat(5_000_000));
        let seen = lines(&[dots.as_bytes()]);
        assert!(!seen[0].1);
        assert_eq!(seen[0].0.trim_start_matches('.'), "m=7");
    }

    #[test]
    fn a_long_json_line_has_more_room() {
        let long = format!("  {{\"a\": \"{}\"}}", "x".repeat(200 * 1024));
        assert_eq!(lines(&[long.as_bytes()]), [(long.clone(), false)]);
        let longer = format!("{{\"a\": \"{}\"}}", "x".repeat(500 * 1024));
        assert!(lines(&[longer.as_bytes()])[0].1);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(
            lines(&[b"\xff\xfem=1\n"]),
            [("\u{fffd}\u{fffd}m=1".to_owned(), false)]
        );
    }
}
