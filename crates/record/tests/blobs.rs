//! Blobs: put, got, damaged, many at once, huge.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use loopwright_core::digest::Digest;
use loopwright_record::{BlobError, Blobs};

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "incoming")
        .collect();
    names.sort();
    names
}

fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect()
}

#[test]
fn what_was_put_is_got_under_its_sha256() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::new(folder.path().join("blobs"));
    for content in [
        Vec::new(),
        b"x".to_vec(),
        noise(300_000, 1),
        vec![b'a'; 1_000_000],
    ] {
        let digest = blobs.put_bytes(&content).unwrap();
        assert_eq!(digest, Digest::of_content(&content));
        assert!(blobs.has(&digest));
        assert_eq!(blobs.get(&digest).unwrap(), content);
        assert_eq!(blobs.check(&digest).unwrap(), content.len() as u64);
        // Again, by another way.
        let info = blobs.put_reader(&content[..]).unwrap();
        assert_eq!((info.digest, info.bytes), (digest, content.len() as u64));
    }
    assert_eq!(files(&folder.path().join("blobs")).len(), 4);
    let small = fs::metadata(folder.path().join("blobs").join(format!(
        "{}.zst",
        Digest::of_content(&vec![b'a'; 1_000_000]).hex()
    )));
    assert!(small.unwrap().len() < 1000, "it is compressed");
}

#[test]
fn what_was_never_put_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::new(folder.path().join("blobs"));
    let digest = Digest::of_content(b"never put");
    assert!(!blobs.has(&digest));
    assert!(matches!(blobs.get(&digest), Err(BlobError::Missing(_))));
}

#[test]
fn every_changed_or_missing_byte_of_a_blob_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::new(folder.path().to_owned());
    let content = noise(300, 3);
    let digest = blobs.put_bytes(&content).unwrap();
    let path = folder.path().join(format!("{}.zst", digest.hex()));
    let sound = fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, &bytes).unwrap();
        match blobs.get(&digest) {
            Err(BlobError::Damaged { .. }) => {}
            // Some bits of a compressed frame carry no content; then the content is right.
            Ok(read) => assert_eq!(read, content, "byte {at}"),
            Err(error) => panic!("byte {at}: {error}"),
        }
        fs::write(&path, &sound[..at]).unwrap();
        assert!(
            matches!(blobs.get(&digest), Err(BlobError::Damaged { .. })),
            "cut at {at}"
        );
    }
    let other = blobs.put_bytes(b"another").unwrap();
    fs::copy(folder.path().join(format!("{}.zst", other.hex())), &path).unwrap();
    let refused = blobs.get(&digest).unwrap_err().to_string();
    assert!(
        refused.starts_with(&format!("blob {digest} is damaged: ")),
        "{refused}"
    );
}

#[test]
fn a_batch_appears_as_a_whole_and_leaves_nothing_when_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::new(folder.path().to_owned());
    let mut batch = blobs.batch();
    let mut digests = Vec::new();
    for number in 0..100_u32 {
        let content = format!("blob {}", number % 80);
        digests.push(batch.add_bytes(content.as_bytes()).unwrap().digest);
    }
    assert!(digests.iter().all(|digest| !blobs.has(digest)));
    batch.finish().unwrap();
    assert!(digests.iter().all(|digest| blobs.check(digest).is_ok()));
    assert_eq!(files(folder.path()).len(), 80);
    let mut batch = blobs.batch();
    batch.add_bytes(b"dropped").unwrap();
    assert_eq!(files(&folder.path().join("incoming")).len(), 1);
    drop(batch);
    assert_eq!(files(&folder.path().join("incoming")).len(), 0);
    assert_eq!(files(folder.path()).len(), 80);
    blobs.batch().finish().unwrap();
}

#[test]
fn what_a_dead_writer_left_is_swept_when_it_is_old() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::new(folder.path().to_owned());
    let digest = blobs.put_bytes(b"kept").unwrap();
    fs::write(folder.path().join("incoming/blob-x"), "half").unwrap();
    assert_eq!(blobs.sweep(Duration::from_secs(3600)).unwrap(), 0);
    assert_eq!(blobs.sweep(Duration::ZERO).unwrap(), 1);
    assert_eq!(blobs.get(&digest).unwrap(), b"kept");
}

/// As much as a command may print, without being in memory at any time.
#[test]
fn a_huge_blob_streams_in_bounded_memory() {
    const BYTES: u64 = 40 << 20;
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::new(folder.path().to_owned());
    let before = peak_kib();
    let info = blobs.put_reader(std::io::repeat(b'z').take(BYTES)).unwrap();
    assert_eq!(info.bytes, BYTES);
    assert_eq!(blobs.check(&info.digest).unwrap(), BYTES);
    let grown = peak_kib() - before;
    assert!(grown < 20 << 10, "the peak grew by {grown} KiB");
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
