//! Bounded memory for a command's output.
//!
//! The head and the tail of a stream stay in memory, the middle is dropped.
//! If a spill file is asked for, the whole output goes there too, up to a
//! limit, but only from the moment memory no longer holds all of it: a command
//! that prints little costs no file.

use std::fs::File;
use std::io::{self, Write};

use crate::capture::{Capture, Captured, Spill, SpillInfo};

/// Takes a stream in chunks and keeps what [`Capture`] says.
pub(crate) struct Keeper {
    head: Vec<u8>,
    head_bytes: usize,
    tail: Ring,
    total_bytes: u64,
    spill: Option<Spilling>,
}

impl Keeper {
    pub(crate) fn new(capture: &Capture) -> Self {
        Self {
            head: Vec::new(),
            head_bytes: capture.head_bytes,
            tail: Ring::new(capture.tail_bytes),
            total_bytes: 0,
            spill: capture.spill.clone().map(Spilling::new),
        }
    }

    /// Keeps nothing: in place of one that has been taken away.
    pub(crate) fn nothing() -> Self {
        Self::new(&Capture {
            head_bytes: 0,
            tail_bytes: 0,
            spill: None,
        })
    }

    /// The same bounds, no file: for a second stream.
    pub(crate) fn without_spill(capture: &Capture) -> Self {
        let mut keeper = Self::new(capture);
        keeper.spill = None;
        keeper
    }

    pub(crate) fn take(&mut self, chunk: &[u8]) {
        let kept_bytes = (self.head_bytes + self.tail.capacity) as u64;
        let was_whole = self.total_bytes <= kept_bytes;
        self.total_bytes += chunk.len() as u64;
        if let Some(spill) = &mut self.spill
            && self.total_bytes > kept_bytes
        {
            if was_whole {
                // Memory is about to lose something: the file begins with
                // everything so far.
                let (older, newer) = self.tail.slices();
                spill.begin();
                spill.write(&self.head);
                spill.write(older);
                spill.write(newer);
            }
            spill.write(chunk);
        }
        let to_head = (self.head_bytes - self.head.len()).min(chunk.len());
        self.head.extend_from_slice(&chunk[..to_head]);
        self.tail.push(&chunk[to_head..]);
    }

    pub(crate) fn finish(self) -> Captured {
        let tail = self.tail.into_vec();
        let dropped_bytes = self.total_bytes - (self.head.len() + tail.len()) as u64;
        Captured {
            head: self.head,
            tail,
            total_bytes: self.total_bytes,
            dropped_bytes,
            spilled: self.spill.and_then(Spilling::finish),
        }
    }
}

/// The last `capacity` bytes of what was pushed.
struct Ring {
    bytes: Vec<u8>,
    capacity: usize,
    /// Where the oldest byte is, once the ring is full.
    oldest: usize,
}

impl Ring {
    fn new(capacity: usize) -> Self {
        Self {
            bytes: Vec::new(),
            capacity,
            oldest: 0,
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        if chunk.len() >= self.capacity {
            self.bytes.clear();
            self.bytes
                .extend_from_slice(&chunk[chunk.len() - self.capacity..]);
            self.oldest = 0;
            return;
        }
        let (growing, replacing) =
            chunk.split_at(chunk.len().min(self.capacity - self.bytes.len()));
        self.bytes.extend_from_slice(growing);
        let (first, second) = replacing.split_at(replacing.len().min(self.capacity - self.oldest));
        self.bytes[self.oldest..self.oldest + first.len()].copy_from_slice(first);
        self.bytes[..second.len()].copy_from_slice(second);
        if !replacing.is_empty() {
            self.oldest = (self.oldest + replacing.len()) % self.capacity;
        }
    }

    /// The bytes in order: the older part, then the newer.
    fn slices(&self) -> (&[u8], &[u8]) {
        let (newer, older) = self.bytes.split_at(self.oldest);
        (older, newer)
    }

    fn into_vec(mut self) -> Vec<u8> {
        self.bytes.rotate_left(self.oldest);
        self.bytes
    }
}

/// A spill file on its way.
struct Spilling {
    spill: Spill,
    file: Option<File>,
    begun: bool,
    bytes: u64,
    truncated: bool,
    error: Option<io::Error>,
}

impl Spilling {
    fn new(spill: Spill) -> Self {
        Self {
            spill,
            file: None,
            begun: false,
            bytes: 0,
            truncated: false,
            error: None,
        }
    }

    fn begin(&mut self) {
        self.begun = true;
        match create_private(&self.spill.path) {
            Ok(file) => self.file = Some(file),
            Err(error) => self.fail(error),
        }
    }

    fn write(&mut self, chunk: &[u8]) {
        let room = self.spill.limit_bytes - self.bytes;
        let writable = chunk.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.truncated |= writable < chunk.len();
        let Some(file) = &mut self.file else { return };
        match file.write_all(&chunk[..writable]) {
            Ok(()) => self.bytes += writable as u64,
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: io::Error) {
        // How much of the failed write arrived is unknown: ask the file.
        if let Some(metadata) = self.file.take().and_then(|file| file.metadata().ok()) {
            self.bytes = metadata.len();
        }
        self.truncated = true;
        self.error = Some(error);
    }

    fn finish(self) -> Option<SpillInfo> {
        self.begun.then(|| SpillInfo {
            path: self.spill.path,
            bytes: self.bytes,
            truncated: self.truncated,
            error: self.error.map(|error| error.to_string()),
        })
    }
}

/// Outputs may hold secrets: nobody else reads them. What stands there already may be a pipe or a
/// link of the command's: it is not opened.
fn create_private(path: &std::path::Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    fn capture(head_bytes: usize, tail_bytes: usize) -> Capture {
        Capture {
            head_bytes,
            tail_bytes,
            spill: None,
        }
    }

    fn keep(capture: &Capture, chunks: &[&[u8]]) -> Captured {
        let mut keeper = Keeper::new(capture);
        for chunk in chunks {
            keeper.take(chunk);
        }
        keeper.finish()
    }

    #[test]
    fn a_short_output_is_whole_and_makes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spill");
        let mut wanted = capture(4, 4);
        wanted.spill = Some(Spill {
            path: path.clone(),
            limit_bytes: 100,
        });
        let captured = keep(&wanted, &[b"abc", b"defgh"]);
        assert!(captured.is_whole());
        assert_eq!(captured.text(), "abcdefgh");
        assert_eq!(captured.spilled, None);
        assert!(!path.exists());
    }

    #[test]
    fn a_long_output_spills_whole_and_keeps_both_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spill");
        let mut wanted = capture(4, 4);
        wanted.spill = Some(Spill {
            path: path.clone(),
            limit_bytes: 100,
        });
        let captured = keep(&wanted, &[b"abc", b"defgh", b"ij"]);
        assert_eq!(
            (captured.head.as_slice(), captured.tail.as_slice()),
            (&b"abcd"[..], &b"ghij"[..])
        );
        assert_eq!((captured.total_bytes, captured.dropped_bytes), (10, 2));
        let spilled = captured.spilled.unwrap();
        assert_eq!((spilled.bytes, spilled.truncated), (10, false));
        assert_eq!(std::fs::read(&path).unwrap(), b"abcdefghij");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others can read the output");
    }

    #[test]
    fn a_spill_file_stops_at_its_limit_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spill");
        let mut wanted = capture(1, 1);
        wanted.spill = Some(Spill {
            path: path.clone(),
            limit_bytes: 5,
        });
        let spilled = keep(&wanted, &[b"abc", b"defgh", b"ij"]).spilled.unwrap();
        assert_eq!((spilled.bytes, spilled.truncated), (5, true));
        assert_eq!(spilled.error, None);
        assert_eq!(std::fs::read(&path).unwrap(), b"abcde");
    }

    #[test]
    fn a_spill_file_that_cannot_be_written_disturbs_nothing() {
        let mut wanted = capture(1, 1);
        wanted.spill = Some(Spill {
            path: PathBuf::from("/nonexistent-directory/spill"),
            limit_bytes: 5,
        });
        let captured = keep(&wanted, &[b"abc"]);
        assert_eq!(captured.total_bytes, 3);
        let spilled = captured.spilled.unwrap();
        assert!(spilled.truncated && spilled.error.is_some());
        assert_eq!(spilled.bytes, 0);
    }

    #[test]
    fn texts_are_cut_at_whole_characters() {
        let captured = keep(&capture(1000, 1000), &["aäöü".as_bytes()]);
        assert_eq!(captured.text_tail(3), "ü");
        assert_eq!(captured.text_tail(4), "öü");
        assert_eq!(captured.text_tail(7), "aäöü");
        assert_eq!(captured.text_tail(0), "");
    }

    #[test]
    fn text_names_what_is_left_out() {
        let captured = keep(&capture(2, 2), &["aäöü".as_bytes()]);
        assert_eq!(captured.text(), "a\n[… 4 bytes left out …]\nü");
    }

    proptest! {
        #[test]
        fn head_and_tail_are_the_ends_of_the_stream(
            head_bytes in 0usize..20,
            tail_bytes in 0usize..20,
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..12),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut wanted = capture(head_bytes, tail_bytes);
            wanted.spill = Some(Spill { path: folder.path().join("s"), limit_bytes: 150 });
            let whole: Vec<u8> = chunks.concat();
            let parts: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let captured = keep(&wanted, &parts);
            let head_end = head_bytes.min(whole.len());
            let tail_start = head_end.max(whole.len().saturating_sub(tail_bytes));
            prop_assert_eq!(&captured.head, &whole[..head_end]);
            prop_assert_eq!(&captured.tail, &whole[tail_start..]);
            prop_assert_eq!(captured.total_bytes, whole.len() as u64);
            prop_assert_eq!(captured.dropped_bytes, (tail_start - head_end) as u64);
            prop_assert_eq!(captured.spilled.is_some(), captured.dropped_bytes > 0);
            if let Some(spilled) = &captured.spilled {
                let file = std::fs::read(&spilled.path).unwrap();
                prop_assert_eq!(&file, &whole[..whole.len().min(150)]);
                prop_assert_eq!(spilled.bytes, file.len() as u64);
                prop_assert_eq!(spilled.truncated, whole.len() > 150);
            }
        }

        #[test]
        fn text_ends_never_exceed_their_bound(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            max_bytes in 0usize..50,
        ) {
            let captured = keep(&capture(7, 9), &[&bytes]);
            prop_assert!(captured.text_tail(max_bytes).len() <= max_bytes);
            let _ = captured.text();
        }
    }
}
