//! Loose objects: written, read and synced by this process.
//!
//! An object is a zlib stream of its header and content in `objects/xx/…`. A file that exists
//! but that this process has not written may be the stump of a power loss: it is read before it
//! is believed, and written again if it is not whole.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use flate2::{Compress, FlushCompress, Status};

use super::ObjectStore;
use crate::disk;
use crate::error::GitError;
use crate::hash::{Hasher, ObjectKind, hash_object};
use crate::plain;
use crate::types::Oid;

/// Contents above this are hashed and stored in pieces.
const PIECE: usize = 1 << 20;

/// Objects up to this size are stored as they are: compressed they would take a block of the disk
/// all the same.
const STORED_BYTES_MAX: usize = 4096 - 16;

/// How much is compressed at once.
const IO_BYTES: usize = 16 * 1024;

/// Known-durable ids kept in memory before they are forgotten (and, if met again, re-checked).
const DURABLE_KEPT: usize = 200_000;

impl ObjectStore {
    pub(crate) fn loose_path(&self, oid: &Oid) -> PathBuf {
        let hex = oid.to_hex();
        let mut path = self.dir.join("objects");
        path.push(&hex[..2]);
        path.push(&hex[2..]);
        path
    }

    /// Stores an object that is in memory.
    pub(super) fn write(&mut self, kind: ObjectKind, content: &[u8]) -> Result<Oid, GitError> {
        let oid = hash_object(self.format, kind, content)?;
        if self.durable.contains(&oid) || self.pending.contains(&oid) {
            return Ok(oid);
        }
        let mut object = kind.header(content.len() as u64);
        object.extend_from_slice(content);
        if object.len() <= STORED_BYTES_MAX {
            self.write_small(&oid, &object)?;
        } else if !self.is_stored(&oid) {
            self.write_stream(&oid, &mut object.as_slice())?;
        }
        self.recent.remember(&oid, kind.word(), content);
        Ok(oid)
    }

    /// Writes a small object in one go. It gets its name when it is whole: whoever comes upon the
    /// name, be it a git, believes that it is.
    fn write_small(&mut self, oid: &Oid, object: &[u8]) -> Result<(), GitError> {
        if self.is_stored(oid) {
            return Ok(());
        }
        let path = self.loose_path(oid);
        let temporary = self.temporary_for(&path);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o444)
            .open(&temporary)
            .and_then(|mut file| file.write_all(&stored(object)));
        self.take_in(oid, &temporary, written)
    }

    fn temporary_for(&self, path: &Path) -> PathBuf {
        let directory = path.parent().unwrap_or(&self.dir);
        directory.join(format!("tmp_obj_{}", disk::unique()))
    }

    /// Gives an object its name, if it was `written`; else removes what there is of it.
    fn take_in(
        &mut self,
        oid: &Oid,
        temporary: &Path,
        written: io::Result<()>,
    ) -> Result<(), GitError> {
        let path = self.loose_path(oid);
        written
            .and_then(|()| fs::rename(temporary, &path))
            .map_err(|source| {
                let _ = fs::remove_file(temporary);
                GitError::io("write", &path)(source)
            })?;
        self.pending.push(*oid);
        Ok(())
    }

    /// Stores a blob from an open file of this size without holding it in memory.
    ///
    /// The file is read twice; if it changes between, that is an error.
    pub(crate) fn write_blob_from(
        &mut self,
        file: &mut File,
        size: u64,
        path: &Path,
    ) -> Result<Oid, GitError> {
        use std::io::Seek as _;
        let reading = || GitError::io("read", path);
        if size <= PIECE as u64 {
            let mut content = Vec::with_capacity(size as usize + 1);
            file.read_to_end(&mut content).map_err(reading())?;
            return self.write_blob(&content);
        }
        let oid = hash_stream(self.format, file, size, path)?;
        if self.is_stored(&oid) {
            return Ok(oid);
        }
        file.rewind().map_err(reading())?;
        let header = ObjectKind::Blob.header(size);
        self.write_stream(&oid, &mut header.as_slice().chain(file.take(size)))?;
        if self.check_loose(&oid) {
            return Ok(oid);
        }
        let _ = fs::remove_file(self.loose_path(&oid));
        Err(GitError::unexpected(format!(
            "{} changed while it was read",
            path.display()
        )))
    }

    /// True if the object needs no writing; what was not known before is to be synced.
    fn is_stored(&mut self, oid: &Oid) -> bool {
        if self.durable.contains(oid) || self.pending.contains(oid) {
            return true;
        }
        if self.loose_path(oid).exists() && self.check_loose(oid) {
            self.pending.push(*oid);
            return true;
        }
        false
    }

    /// Whether it is there as a loose object, and no stump.
    pub(super) fn is_whole(&self, oid: &Oid) -> bool {
        self.durable.contains(oid)
            || self.pending.contains(oid)
            || (self.loose_path(oid).exists() && self.check_loose(oid))
    }

    fn write_stream(&mut self, oid: &Oid, source: &mut dyn Read) -> Result<(), GitError> {
        let temporary = self.temporary_for(&self.loose_path(oid));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o444)
            .open(&temporary)
            .map_err(GitError::io("write", &temporary))?;
        let written = compress(&mut self.compressor, source, file);
        self.take_in(oid, &temporary, written)
    }

    /// Notes that git wrote this object, so that it is synced with ours. Git writes none whose name is
    /// there already: the stump of a power loss is removed, so that the next attempt writes it.
    pub(crate) fn expect_durable(&mut self, oid: Oid) -> Result<(), GitError> {
        let path = self.loose_path(&oid);
        if self.durable.contains(&oid) || !path.exists() {
            return Ok(());
        }
        if !self.check_loose(&oid) {
            fs::remove_file(&path).map_err(GitError::io("remove", &path))?;
            return Err(GitError::unexpected(format!(
                "object {oid} was not whole; it is removed, so that it can be written again"
            )));
        }
        self.pending.push(oid);
        Ok(())
    }

    pub(super) fn sync_pending(&mut self) -> Result<usize, GitError> {
        let mut directories = BTreeSet::new();
        for oid in &self.pending {
            let path = self.loose_path(oid);
            disk::sync_file(&path)?;
            if let Some(directory) = path.parent() {
                directories.insert(directory.to_path_buf());
            }
        }
        for directory in &directories {
            disk::sync_directory(directory)?;
        }
        let count = self.pending.len();
        if self.durable.len() > DURABLE_KEPT {
            self.durable.clear();
        }
        self.durable.extend(self.pending.drain(..));
        Ok(count)
    }

    /// Reads a loose object; `None` if there is none or it is not whole.
    pub(super) fn read_loose(&self, oid: &Oid) -> Result<Option<(String, Vec<u8>)>, GitError> {
        let path = self.loose_path(oid);
        let file = match plain::open_to_read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(plain::failed("read", &path)(error)),
        };
        let mut whole = Vec::new();
        if ZlibDecoder::new(file).read_to_end(&mut whole).is_err() {
            return Ok(None);
        }
        let Some(end) = whole.iter().take(64).position(|byte| *byte == 0) else {
            return Ok(None);
        };
        let word = String::from_utf8_lossy(&whole[..end]);
        let word = word.split(' ').next().unwrap_or_default().to_owned();
        whole.drain(..=end);
        Ok(Some((word, whole)))
    }

    /// Hands a loose object on in pieces; false if there is none or it is not whole (it is read
    /// through once before, so that no half of one is handed on).
    pub(super) fn loose_in_pieces(
        &self,
        oid: &Oid,
        kind: ObjectKind,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, GitError> {
        let path = self.loose_path(oid);
        if !self.durable.contains(oid) && !self.check_loose(oid) {
            return Ok(false);
        }
        let file = match plain::open_to_read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(plain::failed("read", &path)(error)),
        };
        let mut source = BufReader::with_capacity(64 * 1024, ZlibDecoder::new(file));
        let mut head = Vec::new();
        let failed = || GitError::io("read", &path);
        source
            .by_ref()
            .take(64)
            .read_until(0, &mut head)
            .map_err(failed())?;
        if !head.starts_with(kind.word().as_bytes()) {
            return Err(GitError::unexpected(format!(
                "object {oid} is not a {}",
                kind.word()
            )));
        }
        loop {
            let piece = source.fill_buf().map_err(failed())?;
            if piece.is_empty() {
                return Ok(true);
            }
            take(piece);
            let length = piece.len();
            source.consume(length);
        }
    }

    /// True if the loose file inflates to content of this id.
    fn check_loose(&self, oid: &Oid) -> bool {
        let Ok(file) = plain::open_to_read(&self.loose_path(oid)) else {
            return false;
        };
        let mut source = ZlibDecoder::new(file);
        let mut hasher = Hasher::new(self.format);
        let mut piece = vec![0; 64 * 1024];
        loop {
            match source.read(&mut piece) {
                Ok(0) => return hasher.finish().is_ok_and(|found| found == *oid),
                Ok(count) => hasher.update(&piece[..count]),
                Err(_) => return false,
            }
        }
    }
}

/// A zlib stream of one stored block (RFC 1950, RFC 1951 section 3.2.4).
fn stored(object: &[u8]) -> Vec<u8> {
    let length = object.len() as u16;
    let mut stream = Vec::with_capacity(object.len() + 16);
    stream.extend_from_slice(&[0x78, 0x01, 0x01]);
    stream.extend_from_slice(&length.to_le_bytes());
    stream.extend_from_slice(&(!length).to_le_bytes());
    stream.extend_from_slice(object);
    stream.extend_from_slice(&adler32(object).to_be_bytes());
    stream
}

/// RFC 1950, section 9. The sums of so short a piece can't overflow.
fn adler32(piece: &[u8]) -> u32 {
    debug_assert!(piece.len() <= STORED_BYTES_MAX);
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in piece {
        low += u32::from(*byte);
        high += low;
    }
    ((high % 65_521) << 16) | (low % 65_521)
}

/// Writes a zlib stream. The compressor's tables are large beside most objects, so that making
/// them anew for each would take longer than all the rest.
fn compress(compressor: &mut Compress, source: &mut dyn Read, mut file: File) -> io::Result<()> {
    compressor.reset();
    let mut input = vec![0; IO_BYTES];
    let mut output = Vec::with_capacity(IO_BYTES);
    loop {
        let count = source.read(&mut input)?;
        let flush = if count == 0 {
            FlushCompress::Finish
        } else {
            FlushCompress::None
        };
        let mut rest = &input[..count];
        loop {
            let before = compressor.total_in();
            let status = compressor
                .compress_vec(rest, &mut output, flush)
                .map_err(io::Error::other)?;
            rest = &rest[(compressor.total_in() - before) as usize..];
            let is_full = output.len() == output.capacity();
            file.write_all(&output)?;
            output.clear();
            if status == Status::StreamEnd {
                return file.flush();
            }
            if count > 0 && rest.is_empty() && !is_full {
                break;
            }
        }
    }
}

/// The id of a blob read in pieces.
pub(crate) fn hash_stream(
    format: crate::types::ObjectFormat,
    file: &mut File,
    size: u64,
    path: &Path,
) -> Result<Oid, GitError> {
    let mut hasher = Hasher::new(format);
    hasher.update(&ObjectKind::Blob.header(size));
    let mut piece = vec![0; 256 * 1024];
    let mut left = size;
    while left > 0 {
        let want = piece.len().min(left as usize);
        let count = file
            .read(&mut piece[..want])
            .map_err(GitError::io("read", path))?;
        if count == 0 {
            return Err(GitError::unexpected(format!(
                "{} shrank while it was read",
                path.display()
            )));
        }
        hasher.update(&piece[..count]);
        left -= count as u64;
    }
    hasher.finish()
}
