//! Blobs: big values, kept as compressed files under the SHA-256 of their content.
//!
//! A blob is written to a file of another name, synced, renamed, and the folder synced, so that a
//! name that an event tells never stands for half a content. All lie in one folder: file systems
//! find one name among a hundred thousand as fast as among ten, and one folder is one sync however
//! many blobs a trial leaves.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loopwright_core::digest::Digest;
use sha2::{Digest as _, Sha256};
use tempfile::{NamedTempFile, TempPath};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::crash_point;
use crate::error::{BlobError, StorageError};
use crate::plain;
use crate::store::sync_folder;

const COMPRESSION_LEVEL: i32 = 3;
const CHUNK_BYTES: usize = 64 * 1024;
const EXTENSION: &str = "zst";
/// The folder of files that are being written. What a process that died leaves there is swept.
const INCOMING: &str = "incoming";
const INCOMING_PREFIX: &str = "blob-";
/// Files of a batch that are open at once; the others are synced and closed early.
const OPEN_FILES_MAX: usize = 32;

/// The blobs of a store.
#[derive(Clone, Debug)]
pub struct Blobs {
    folder: PathBuf,
}

/// A blob that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobInfo {
    /// Its name: the plain SHA-256 of its content.
    pub digest: Digest,
    /// The content's length.
    pub bytes: u64,
}

impl Blobs {
    /// The blobs in `folder`, which is made when the first one is put.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Puts a blob; durable on return. Putting one again costs a sync at most.
    pub fn put_bytes(&self, content: &[u8]) -> Result<Digest, BlobError> {
        let mut batch = self.batch();
        let info = batch.add_bytes(content)?;
        batch.finish()?;
        Ok(info.digest)
    }

    /// Puts what a reader gives; durable on return.
    pub fn put_reader(&self, content: impl Read) -> Result<BlobInfo, BlobError> {
        let mut batch = self.batch();
        let info = batch.add_reader(content)?;
        batch.finish()?;
        Ok(info)
    }

    /// Several blobs that become durable together.
    pub fn batch(&self) -> BlobBatch {
        BlobBatch {
            blobs: self.clone(),
            incoming: Vec::new(),
            touched: false,
        }
    }

    /// Whether there is such a blob; its content isn't looked at.
    pub fn has(&self, digest: &Digest) -> bool {
        fs::symlink_metadata(self.path(digest)).is_ok_and(|found| found.is_file())
    }

    /// A blob's content, checked against its name.
    pub fn get(&self, digest: &Digest) -> Result<Vec<u8>, BlobError> {
        let mut content = Vec::new();
        let mut reader = self.reader(digest)?;
        reader
            .read_to_end(&mut content)
            .map_err(|error| self.unreadable(digest, &error))?;
        Ok(content)
    }

    /// A blob's content as a stream. That it isn't what its name says is known, and said as an
    /// error of kind `InvalidData`, when all of it was read.
    pub fn reader(&self, digest: &Digest) -> Result<BlobReader, BlobError> {
        let path = self.path(digest);
        let file = match plain::open(&path, OpenOptions::new().read(true)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BlobError::Missing(*digest));
            }
            Err(error) => return Err(StorageError::io(&path, &error).into()),
        };
        let decoder = Decoder::new(file).map_err(|error| self.unreadable(digest, &error))?;
        Ok(BlobReader {
            digest: *digest,
            decoder,
            hasher: Some(Sha256::new()),
        })
    }

    /// Reads a blob through and checks it against its name; its length.
    pub fn check(&self, digest: &Digest) -> Result<u64, BlobError> {
        let mut reader = self.reader(digest)?;
        io::copy(&mut reader, &mut io::sink()).map_err(|error| self.unreadable(digest, &error))
    }

    /// Removes what processes that died while putting blobs left behind, where it is older than
    /// `age`; how many files.
    pub fn sweep(&self, age: Duration) -> Result<u64, StorageError> {
        let folder = self.incoming();
        let failed = |error: io::Error| StorageError::io(&folder, &error);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            found => found.map_err(failed)?,
        };
        let mut removed = 0;
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let modified = entry.metadata().and_then(|found| found.modified());
            let old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|passed| passed >= age));
            if old && fs::remove_file(entry.path()).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn incoming(&self) -> PathBuf {
        self.folder.join(INCOMING)
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(format!("{}.{EXTENSION}", digest.hex()))
    }

    /// What a decoder says about bytes that nobody compressed has many kinds; what the system says
    /// about a disk has an error number.
    fn unreadable(&self, digest: &Digest, error: &io::Error) -> BlobError {
        if error.raw_os_error().is_some() {
            return StorageError::io(&self.path(digest), error).into();
        }
        BlobError::Damaged {
            digest: *digest,
            why: error.to_string(),
        }
    }
}

/// Blobs that are being put and become durable together. Dropped before
/// [`finish`](BlobBatch::finish), it leaves nothing.
#[derive(Debug)]
pub struct BlobBatch {
    blobs: Blobs,
    incoming: Vec<Incoming>,
    touched: bool,
}

#[derive(Debug)]
struct Incoming {
    digest: Digest,
    /// Not synced yet while the file is open.
    file: Option<File>,
    path: TempPath,
}

impl BlobBatch {
    /// Adds a blob.
    pub fn add_bytes(&mut self, content: &[u8]) -> Result<BlobInfo, BlobError> {
        let info = BlobInfo {
            digest: Digest::of_content(content),
            bytes: content.len() as u64,
        };
        if !self.is_there(&info.digest) {
            self.add_reader(content)?;
        }
        Ok(info)
    }

    /// Adds what a reader gives.
    pub fn add_reader(&mut self, content: impl Read) -> Result<BlobInfo, BlobError> {
        self.add(content, |source| BlobError::Input {
            path: PathBuf::from("the stream"),
            source,
        })
    }

    fn add(
        &mut self,
        content: impl Read,
        unreadable: impl Fn(io::Error) -> BlobError,
    ) -> Result<BlobInfo, BlobError> {
        let folder = self.blobs.incoming();
        let failed = |error: io::Error| BlobError::from(StorageError::io(&folder, &error));
        let temporary = temporary_in(&folder).map_err(failed)?;
        let mut encoder = Encoder::new(temporary, COMPRESSION_LEVEL).map_err(failed)?;
        let info = copy_hashed(content, &mut encoder, unreadable, failed)?;
        let temporary = encoder.finish().map_err(failed)?;
        crash_point!("blob.written");
        if !self.is_there(&info.digest) {
            let (file, path) = temporary.into_parts();
            self.incoming.push(Incoming {
                digest: info.digest,
                file: Some(file),
                path,
            });
            self.bound_open_files()?;
        }
        Ok(info)
    }

    /// Whether the blob needs no writing. One that another process has just renamed may not be
    /// durable yet, so the folder is synced nevertheless.
    fn is_there(&mut self, digest: &Digest) -> bool {
        self.touched = true;
        self.blobs.has(digest)
            || self
                .incoming
                .iter()
                .any(|incoming| incoming.digest == *digest)
    }

    fn bound_open_files(&mut self) -> Result<(), BlobError> {
        let open = self
            .incoming
            .iter()
            .filter(|incoming| incoming.file.is_some())
            .count();
        if open >= OPEN_FILES_MAX {
            self.sync_files()?;
        }
        Ok(())
    }

    fn sync_files(&mut self) -> Result<(), BlobError> {
        for incoming in &mut self.incoming {
            if let Some(file) = incoming.file.take() {
                file.sync_all()
                    .map_err(|error| StorageError::io(&incoming.path, &error))?;
            }
        }
        Ok(())
    }

    /// Makes them all durable under their names: one sync per new blob, and one of the folder.
    pub fn finish(mut self) -> Result<(), BlobError> {
        if !self.touched {
            return Ok(());
        }
        self.sync_files()?;
        crash_point!("blob.synced");
        for incoming in self.incoming.drain(..) {
            let path = self.blobs.path(&incoming.digest);
            incoming
                .path
                .persist(&path)
                .map_err(|error| StorageError::io(&path, &error.error))?;
        }
        crash_point!("blob.renamed");
        sync_folder(&self.blobs.folder)
            .map_err(|error| StorageError::io(&self.blobs.folder, &error))?;
        crash_point!("blob.settled");
        Ok(())
    }
}

fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    let make = || {
        tempfile::Builder::new()
            .prefix(INCOMING_PREFIX)
            .tempfile_in(folder)
    };
    match make() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder)?;
            // The folder of the blobs may be new as well, and must outlive a power loss.
            if let Some(parent) = folder.parent().and_then(Path::parent) {
                sync_folder(parent)?;
            }
            make()
        }
        made => made,
    }
}

fn copy_hashed(
    mut from: impl Read,
    to: &mut impl Write,
    unreadable: impl Fn(io::Error) -> BlobError,
    unwritable: impl Fn(io::Error) -> BlobError,
) -> Result<BlobInfo, BlobError> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(error)),
        };
        hasher.update(&chunk[..read]);
        to.write_all(&chunk[..read]).map_err(&unwritable)?;
        bytes += read as u64;
    }
    Ok(BlobInfo {
        digest: Digest::from_bytes(hasher.finalize().into()),
        bytes,
    })
}

/// A blob's content as a stream, checked against its name at its end.
pub struct BlobReader {
    digest: Digest,
    decoder: Decoder<'static, BufReader<File>>,
    /// Taken when the end was reached.
    hasher: Option<Sha256>,
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(buffer)?;
        if read > 0 {
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&buffer[..read]);
            }
            return Ok(read);
        }
        if buffer.is_empty() {
            return Ok(0);
        }
        if let Some(hasher) = self.hasher.take() {
            let found = Digest::from_bytes(hasher.finalize().into());
            if found != self.digest {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("its content has the digest {found}"),
                ));
            }
        }
        Ok(0)
    }
}
