//! What a power loss does to SQLite's write-ahead log.
//!
//! A commit writes frames and syncs the file. Until that sync is back, any of the frames written
//! since the last one may be there, missing, half there or garbled; everything before is safe.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::random::Random;

const HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// How far the log reaches: the end of its last frame, and the salts that tell its frames from
/// those of the log before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    salts: [u8; 8],
    end: u64,
}

impl Extent {
    /// The extent of a log as it is now; nothing where there is none.
    pub fn of(path: &Path) -> Self {
        fs::read(path)
            .ok()
            .and_then(|bytes| extent(&bytes))
            .unwrap_or_default()
    }
}

fn extent(bytes: &[u8]) -> Option<Extent> {
    let page_bytes = u32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
    let salts: [u8; 8] = bytes.get(16..24)?.try_into().ok()?;
    let frame_bytes = u64::from(page_bytes) + FRAME_HEADER_BYTES;
    let mut end = HEADER_BYTES;
    loop {
        let frame = bytes.get(end as usize..(end + frame_bytes) as usize);
        match frame {
            // A frame of the log before has other salts.
            Some(frame) if frame.get(8..16)? == salts => end += frame_bytes,
            _ => return Some(Extent { salts, end }),
        }
    }
}

/// Does to the frames after `synced` what a power loss may: `seed` says what.
pub fn tear(path: &Path, synced: Extent, seed: u32) -> io::Result<()> {
    let Ok(bytes) = fs::read(path) else {
        return Ok(());
    };
    let Some(now) = extent(&bytes) else {
        return Ok(());
    };
    // A log that was begun anew stands on a database that was synced before.
    let safe = if now.salts == synced.salts {
        synced.end.min(now.end)
    } else {
        0
    };
    let unsynced = now.end - safe;
    if unsynced == 0 {
        return Ok(());
    }
    let mut random = Random::of(u64::from(seed), "tear");
    let file = OpenOptions::new().write(true).open(path)?;
    let at = safe + random.below(unsynced);
    match random.below(4) {
        0 => file.set_len(at)?,
        1 => file.set_len(safe)?,
        2 => {
            // A stretch of it never came.
            let length = random.between(1, now.end - at);
            file.write_all_at(&vec![0; length as usize], at)?;
        }
        _ => {
            let length = random.between(1, (now.end - at).min(64));
            let noise: Vec<u8> = (0..length).map(|_| random.draw() as u8).collect();
            file.write_all_at(&noise, at)?;
        }
    }
    Ok(())
}
