//! Reading what a command printed without the secrets in it, however long it is.

use std::io::{self, Read};

use loopwright_core::scrub::{Pieces, Secrets};

/// How much is asked of the source at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A reader without the secrets of its source.
pub struct ScrubbingReader<'a, R> {
    source: R,
    secrets: &'a Secrets,
    /// None once the source is read to its end.
    pieces: Option<Pieces<'a>>,
    clean: Vec<u8>,
    given: usize,
    scrubbed: u64,
}

impl<'a, R: Read> ScrubbingReader<'a, R> {
    /// Reads from `source` what is left of it without `secrets`.
    pub fn new(source: R, secrets: &'a Secrets) -> Self {
        Self {
            source,
            secrets,
            pieces: Some(Pieces::new(secrets)),
            clean: Vec::new(),
            given: 0,
            scrubbed: 0,
        }
    }

    /// How many values were taken out so far.
    pub fn scrubbed(&self) -> u64 {
        self.scrubbed
    }

    /// Reads on until something clean is there, or the source ends.
    fn fill(&mut self) -> io::Result<()> {
        self.clean.clear();
        self.given = 0;
        let mut buffer = vec![0; PIECE_BYTES];
        while self.clean.is_empty() {
            let Some(pieces) = &mut self.pieces else {
                return Ok(());
            };
            let (secrets, clean, scrubbed) = (self.secrets, &mut self.clean, &mut self.scrubbed);
            let mut take = |piece: &[u8]| {
                let (text, count) = secrets.scrub_bytes(piece);
                clean.extend_from_slice(&text);
                *scrubbed += count as u64;
            };
            match self.source.read(&mut buffer)? {
                0 => {
                    if let Some(pieces) = self.pieces.take() {
                        pieces.finish(&mut take);
                    }
                }
                count => pieces.feed(&buffer[..count], &mut take),
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for ScrubbingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.clean.len() {
            self.fill()?;
        }
        let count = buffer.len().min(self.clean.len() - self.given);
        buffer[..count].copy_from_slice(&self.clean[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of outputs used to end where the buffer did, in the middle of a line.
    #[test]
    fn a_secret_is_taken_out_wherever_it_lies() {
        let secrets = Secrets::from_values(["zzq8fK2mPq91LxTTw03"]);
        for before in [(1 << 20) - 30, (1 << 20) - 10, (1 << 20) - 3, 1 << 20] {
            let mut output = "some line of the output\n".repeat(before / 24);
            output.push_str("key zzq8fK2mPq91LxTTw03 and more\n");
            output.push_str(&"a line after it\n".repeat(100_000));
            let mut reader = ScrubbingReader::new(output.as_bytes(), &secrets);
            let mut clean = String::new();
            reader.read_to_string(&mut clean).unwrap();
            let expected = output.replace("zzq8fK2mPq91LxTTw03", "[redacted:known-value]");
            assert!(clean == expected, "{before}");
            assert_eq!(reader.scrubbed(), 1);
        }
    }
}
