//! What is kept of a command's output: what was asked for, what was had, and its text. How it is
//! kept is `keeper`'s.

use std::path::PathBuf;

/// How much of an output is kept, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Bytes of the beginning kept in memory.
    pub head_bytes: usize,
    /// Bytes of the end kept in memory.
    pub tail_bytes: usize,
    /// A file for the whole output, where it is more than memory keeps. With
    /// separate streams it takes standard output only.
    pub spill: Option<Spill>,
}

impl Default for Capture {
    fn default() -> Self {
        Self {
            head_bytes: 16 * 1024,
            tail_bytes: 48 * 1024,
            spill: None,
        }
    }
}

/// A file for the whole output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spill {
    /// Where. An existing file is replaced; the directory must exist.
    pub path: PathBuf,
    /// The most bytes to write there. The rest is left out and the file marked
    /// as truncated.
    pub limit_bytes: u64,
}

/// What is kept of one output stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, not overlapping the head.
    pub tail: Vec<u8>,
    /// How many bytes there were.
    pub total_bytes: u64,
    /// How many of them lay between head and tail and are not in memory.
    pub dropped_bytes: u64,
    /// The file with the whole output. `None` if none was asked for, or if head
    /// and tail are the whole already (`dropped_bytes` is 0).
    pub spilled: Option<SpillInfo>,
}

/// What became of a spill file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillInfo {
    /// Where it is.
    pub path: PathBuf,
    /// How many bytes it holds.
    pub bytes: u64,
    /// Whether output is missing from it: over the limit, or a failed write.
    pub truncated: bool,
    /// Why writing failed, in words. The command is not disturbed by that.
    pub error: Option<String>,
}

impl Captured {
    /// Whether head and tail are the whole output.
    pub fn is_whole(&self) -> bool {
        self.dropped_bytes == 0
    }

    /// The kept output as text: head, a line saying how much is left out, tail.
    /// Bytes that aren't UTF-8 become replacement characters.
    pub fn text(&self) -> String {
        if self.is_whole() {
            let mut whole = self.head.clone();
            whole.extend_from_slice(&self.tail);
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let head = &self.head[..end_of_whole_characters(&self.head)];
        let tail = &self.tail[start_of_whole_characters(&self.tail)..];
        format!(
            "{}\n[… {} bytes left out …]\n{}",
            String::from_utf8_lossy(head),
            self.total_bytes - (head.len() + tail.len()) as u64,
            String::from_utf8_lossy(tail)
        )
    }

    /// The end of the output as text, of at most `max_bytes` bytes, beginning
    /// at a whole character.
    pub fn text_tail(&self, max_bytes: usize) -> String {
        let mut bytes = Vec::new();
        if self.is_whole() && self.tail.len() < max_bytes {
            let from_head = (max_bytes - self.tail.len()).min(self.head.len());
            bytes.extend_from_slice(&self.head[self.head.len() - from_head..]);
        }
        let from_tail = max_bytes.min(self.tail.len());
        bytes.extend_from_slice(&self.tail[self.tail.len() - from_tail..]);
        let mut text = if (bytes.len() as u64) < self.total_bytes {
            String::from_utf8_lossy(&bytes[start_of_whole_characters(&bytes)..]).into_owned()
        } else {
            String::from_utf8_lossy(&bytes).into_owned()
        };
        // A replacement character is longer than the byte it stands for.
        if text.len() > max_bytes {
            let mut cut = text.len() - max_bytes;
            while !text.is_char_boundary(cut) {
                cut += 1;
            }
            text.drain(..cut);
        }
        text
    }
}

/// Where the first whole UTF-8 character begins: a cut may have left up to
/// three continuation bytes of the one before.
fn start_of_whole_characters(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0xC0 == 0x80)
        .count()
}

/// Where the last whole UTF-8 character ends.
fn end_of_whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        // `error_len` of `None` means: cut in the middle of a character.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}
