//! One of the two checkouts: what is known about it, and how that survives the process.
//!
//! On the disk a slot is a directory with `tree` (the checkout, unless it is in the active
//! place), `state` (below) and, from the start of a synchronisation to the end of the run after
//! it, a `busy` that says so. A slot found busy was interrupted: what it knows of single files still holds,
//! because each is proved by its own stamp, but its cache may be half-written and is dropped.
//! The same after a restart of the machine, when nobody knows what reached the disk.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::arms::disk::Digest;
use crate::arms::error::ArmsError;
use crate::arms::patterns::Patterns;
use crate::arms::plan::{Item, Plan, Wanted};
use crate::arms::scan::{Known, KnownFiles};
use crate::arms::stamp::{Stamp, now_ns};
use crate::plain;
use crate::types::{Mode, Oid, RepoPath};

const STATE_VERSION: u32 = 1;

/// What `busy` says. A file of no content is idle too.
const BUSY: [u8; 5] = *b"busy\n";
const IDLE: [u8; 5] = *b"idle\n";

/// The memory of one slot.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) home: PathBuf,
    pub(crate) known: KnownFiles,
    /// What it was last brought to.
    pub(crate) plan: Option<Arc<Plan>>,
    /// The tree its cache was built from.
    pub(crate) base: Option<Arc<Plan>>,
    /// The digest of the inputs its setup ran with.
    pub(crate) setup: Option<Digest>,
    /// When the last run in it, or in the arm its cache comes from, ended.
    pub(crate) ran_until_ns: Option<i64>,
    /// The next synchronisation gives it the incumbent's cache.
    pub(crate) take_cache: bool,
    /// The next synchronisation deletes its cache.
    pub(crate) drop_cache: bool,
    /// `busy` says so.
    pub(crate) busy: bool,
    /// A synchronisation did not finish; which conversions files were written with is unknown.
    pub(crate) torn: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct State {
    version: u32,
    boot: String,
    cache: Vec<String>,
    setup: Option<String>,
    files: Vec<FileState>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileState {
    path: String,
    mode: String,
    oid: Oid,
    stamp: Stamp,
    racy: bool,
    digest: String,
    /// For a submodule's file: the length of the submodule's path.
    submodule: Option<usize>,
}

impl Slot {
    /// Finds out what is known about the slot in `home`.
    pub(crate) fn load(home: PathBuf, cache: &Patterns) -> Self {
        let busy =
            plain::read(&home.join("busy")).is_ok_and(|mark| !mark.is_empty() && mark != IDLE);
        let mut slot = Self {
            home,
            known: KnownFiles::new(),
            plan: None,
            base: None,
            setup: None,
            ran_until_ns: None,
            take_cache: true,
            drop_cache: true,
            busy,
            torn: true,
        };
        let Some(state) = slot.read_state() else {
            return slot;
        };
        let mut items = Vec::with_capacity(state.files.len());
        for file in state.files {
            let Some((item, known)) = file.restore() else {
                slot.known.clear();
                return slot;
            };
            slot.known.insert(item.path.clone(), known);
            items.push(item);
        }
        items.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        // A state is written when a run is over: the files then are what the cache was built from.
        let plan = Arc::new(Plan::of_items(items));
        slot.torn = false;
        slot.plan = Some(Arc::clone(&plan));
        if !slot.busy && state.cache == cache.as_written() {
            slot.base = Some(plan);
            slot.setup = state.setup.as_deref().and_then(digest_from_hex);
            // When exactly is forgotten; this is late enough.
            slot.ran_until_ns = Some(now_ns());
            slot.drop_cache = false;
        }
        slot
    }

    fn read_state(&self) -> Option<State> {
        let text = plain::read(&self.home.join("state")).ok()?;
        let state: State = serde_json::from_slice(&text).ok()?;
        (state.version == STATE_VERSION && Some(state.boot.as_str()) == boot_id().as_deref())
            .then_some(state)
    }

    /// Writes down what is known, for the next process.
    pub(crate) fn save(&self, cache: &Patterns) -> Result<(), ArmsError> {
        let (Some(plan), Some(boot)) = (&self.plan, boot_id()) else {
            return Ok(());
        };
        let files = plan
            .items
            .iter()
            .filter_map(|item| Some(FileState::of(item, self.known.get(&item.path)?)))
            .collect();
        let state = State {
            version: STATE_VERSION,
            boot,
            cache: cache.as_written().to_vec(),
            setup: self.setup.map(|digest| to_hex(&digest)),
            files,
        };
        let text = serde_json::to_vec(&state).map_err(|error| ArmsError::Io {
            action: "encode",
            path: self.home.join("state"),
            source: error.into(),
        })?;
        replace_file(&self.home.join("state"), &text)
    }

    /// Where the checkout is while it is not active.
    pub(crate) fn parked(&self) -> PathBuf {
        self.home.join("tree")
    }

    /// From here on a crash costs the slot its cache.
    pub(crate) fn mark_busy(&mut self) -> Result<(), ArmsError> {
        if !self.busy {
            self.mark(BUSY)?;
            self.busy = true;
        }
        Ok(())
    }

    /// The run is over and everything about it is known.
    pub(crate) fn mark_idle(&mut self) -> Result<(), ArmsError> {
        if self.busy {
            self.mark(IDLE)?;
            self.busy = false;
        }
        Ok(())
    }

    /// Writes one mark over the other: a file that is made, cut and removed twice a trial is slow to
    /// make on some file systems.
    fn mark(&self, mark: [u8; 5]) -> Result<(), ArmsError> {
        let path = self.home.join("busy");
        plain::open_to_write(&path)
            .and_then(|mut file| file.write_all(&mark))
            .map_err(ArmsError::io("write", &path))
    }

    /// What a run left in the cache can't be trusted, whoever asks. Whatever was saved before
    /// that run is forgotten first, for a process that comes after a crash.
    pub(crate) fn discard_cache(&mut self) -> Result<(), ArmsError> {
        let path = self.home.join("state");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(ArmsError::io("remove", &path)(error));
            }
            _ => {}
        }
        self.drop_cache = true;
        self.take_cache = true;
        Ok(())
    }

    /// A cache that is going to be deleted is built from nothing.
    pub(crate) fn forget_dropped_cache(&mut self) {
        if self.drop_cache {
            self.base = None;
            self.setup = None;
        }
    }

    /// Forgets everything but where it is: the checkout is gone or not ours.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.plan = None;
        self.base = None;
        self.setup = None;
        self.take_cache = true;
        self.drop_cache = true;
        self.torn = true;
    }
}

impl FileState {
    fn of(item: &Item, known: &Known) -> Self {
        Self {
            path: path_to_text(&item.path),
            mode: known.mode.octal().to_owned(),
            oid: known.oid,
            stamp: known.stamp,
            racy: known.racy,
            digest: to_hex(&known.digest),
            submodule: match item.wanted {
                Wanted::InnerBlob(_, _, length) => Some(length),
                _ => None,
            },
        }
    }

    fn restore(self) -> Option<(Item, Known)> {
        let mode = Mode::from_octal(self.mode.as_bytes())?;
        let path = path_from_text(&self.path)?;
        let wanted = match self.submodule {
            Some(length) => Wanted::InnerBlob(mode, self.oid, length),
            None => Wanted::Blob(mode, self.oid),
        };
        let known = Known {
            mode,
            oid: self.oid,
            stamp: self.stamp,
            racy: self.racy,
            digest: digest_from_hex(&self.digest)?,
        };
        path.is_safe().then_some((Item { path, wanted }, known))
    }
}

/// Replaces a small file so that a reader finds the old or the new one, never half of one.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> Result<(), ArmsError> {
    let next = path.with_extension("next");
    plain::write(&next, content).map_err(ArmsError::io("write", &next))?;
    fs::rename(&next, path).map_err(ArmsError::io("replace", path))
}

/// Changes with every start of the machine; `None` where the system does not say.
fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Paths are bytes, JSON is text: everything unusual is written as `%XX`.
fn path_to_text(path: &RepoPath) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(path.as_bytes().len());
    for byte in path.as_bytes() {
        if byte.is_ascii_graphic() && *byte != b'%' {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02x}");
        }
    }
    text
}

fn path_from_text(text: &str) -> Option<RepoPath> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
        }
    }
    Some(RepoPath::new(bytes))
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn digest_from_hex(hex: &str) -> Option<Digest> {
    let oid = Oid::from_hex(hex.as_bytes())?;
    oid.as_bytes().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_survive_as_text() {
        for bytes in [&b"a/b"[..], b"a b\n%\xff\x00", "\u{e9}".as_bytes(), b"%41"] {
            let path = RepoPath::new(bytes);
            assert_eq!(path_from_text(&path_to_text(&path)).unwrap(), path);
        }
        assert!(path_from_text("%4").is_none());
        assert!(path_from_text("%zz").is_none());
    }
}
