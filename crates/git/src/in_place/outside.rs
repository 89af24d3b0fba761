//! What git obeys from outside of the repository: the user's own configuration, hooks that are shared
//! by all their repositories, whatever a link in the repository leads to. A proposal can write there
//! as well as the user can, so nothing is put back; a commit is refused where any of it changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::UserSettings;
use super::guard::{HELD_BYTES_MAX, Places, real};
use super::mender::Mender;
use super::saved::{path_from, to_hex};
use crate::disk;
use crate::error::GitError;
use crate::git::split_nul;
use crate::plain;
use crate::types::TreeListing;
use crate::user::{UserRepository, quiet};

/// Settings that neither run anything during a commit nor change what is committed.
const HARMLESS: &[&str] = &[
    "advice.",
    "alias.",
    "branch.",
    "color.",
    "column.",
    "credential.",
    "diff.",
    "difftool.",
    "fetch.",
    "format.",
    "help.",
    "http.",
    "init.",
    "log.",
    "merge.",
    "mergetool.",
    "pager.",
    "pretty.",
    "pull.",
    "push.",
    "rebase.",
    "remote.",
    "rerere.",
    "safe.",
    "sendemail.",
    "stash.",
    "status.",
    "tag.",
    "url.",
];

/// In which file of the notes it is held from the start of a run on, whoever goes on with it.
const FILE: &str = "settings.json";

/// How many files of folders of hooks are looked at.
const FILES_MAX: usize = 10_000;

/// What git obeyed from outside: by file, in hexadecimal, a digest of what matters of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outside {
    digests: BTreeMap<String, String>,
}

impl Outside {
    /// What it obeys now. `mender` knows what is inside.
    pub(super) fn record(
        user: &UserRepository,
        listing: &TreeListing,
        mender: &mut Mender,
    ) -> Result<Self, GitError> {
        let mut outside = Self::default();
        // Settings count one by one: most don't matter to a commit.
        let with_settings = outside.add_settings(user, mender)?;
        let places = Places::of(user, listing, mender)?;
        for path in places.singles {
            let path = real(&path);
            if !mender.covers(&path) && !with_settings.contains(&path) {
                outside.add_file(&path)?;
            }
        }
        let mut directories = places.directories;
        while let Some(directory) = directories.pop() {
            let directory = real(&directory);
            if mender.covers(&directory) || outside.digests.len() > FILES_MAX {
                continue;
            }
            for entry in entries_of(&directory)? {
                if entry.is_dir() && !entry.is_symlink() {
                    directories.push(entry);
                } else {
                    outside.add_file(&entry)?;
                }
            }
        }
        Ok(outside)
    }

    /// What a run goes by: this, as it is now, or what was held before; and a file that differs.
    pub(super) fn held(
        self,
        state_dir: &Path,
        settings: UserSettings,
    ) -> Result<(Self, Option<PathBuf>), GitError> {
        let before = Self::load(state_dir)?;
        let changed = before.as_ref().and_then(|before| before.differs(&self));
        match (before, settings) {
            (Some(before), UserSettings::AsHeld) => Ok((before, changed)),
            (before, _) => {
                if before.as_ref() != Some(&self) {
                    self.write(state_dir)?;
                }
                Ok((self, changed))
            }
        }
    }

    fn load(state_dir: &Path) -> Result<Option<Self>, GitError> {
        let path = state_dir.join(FILE);
        match plain::read(&path) {
            // One that can't be made sense of says nothing of before.
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(GitError::io("read", &path)(error)),
        }
    }

    fn write(&self, state_dir: &Path) -> Result<(), GitError> {
        let text = serde_json::to_vec(self).map_err(|error| {
            GitError::unexpected(format!("BUG: settings can't be written: {error}"))
        })?;
        disk::replace_durably(&state_dir.join(FILE), &text)
    }

    /// A file of these that changed; `None` if all is as it was.
    pub(super) fn differs(&self, now: &Self) -> Option<PathBuf> {
        let names = self.digests.keys().chain(now.digests.keys());
        let changed = names
            .filter(|name| self.digests.get(*name) != now.digests.get(*name))
            .min()?;
        path_from(changed)
    }

    /// Of each configuration file that is outside, the settings that matter. Says which these are.
    fn add_settings(
        &mut self,
        user: &UserRepository,
        mender: &Mender,
    ) -> Result<BTreeSet<PathBuf>, GitError> {
        let listed = quiet(user.as_user()).run(["config", "--list", "--show-origin", "-z"])?;
        let records: Vec<&[u8]> = split_nul(&listed).collect();
        let mut files = BTreeSet::new();
        let mut hashers: BTreeMap<PathBuf, Sha256> = BTreeMap::new();
        for pair in records.chunks_exact(2) {
            let Some(file) = pair[0].strip_prefix(b"file:") else {
                continue;
            };
            let file = real(&user.top.join(OsStr::from_bytes(file)));
            if mender.covers(&file) {
                continue;
            }
            files.insert(file.clone());
            let name = pair[1].to_ascii_lowercase();
            let is_harmless = HARMLESS
                .iter()
                .any(|prefix| name.starts_with(prefix.as_bytes()));
            if !is_harmless {
                let hasher = hashers.entry(file).or_default();
                hasher.update(pair[1]);
                hasher.update([0]);
            }
        }
        for (file, hasher) in hashers {
            self.digests
                .insert(name_of(&file), to_hex(&hasher.finalize()));
        }
        Ok(files)
    }

    /// A file with its content, as far as it is read, its length and whether it can be run.
    fn add_file(&mut self, path: &Path) -> Result<(), GitError> {
        let flags = OFlags::NONBLOCK.union(OFlags::CLOEXEC).bits();
        let opened = fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags.cast_signed())
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(()),
            // What we can't read git can't obey either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            Err(error) => return Err(GitError::io("read", path)(error)),
        };
        let facts = file.metadata().map_err(GitError::io("look at", path))?;
        let mut hasher = Sha256::new();
        let runs = facts.permissions().mode() & 0o111 != 0;
        hasher.update(format!("{} {runs} {}\n", facts.is_file(), facts.len()));
        if facts.is_file() {
            let mut content = file.take(HELD_BYTES_MAX);
            let mut piece = [0; 8192];
            loop {
                match content.read(&mut piece) {
                    Ok(0) => break,
                    Ok(count) => hasher.update(&piece[..count]),
                    Err(error) => return Err(GitError::io("read", path)(error)),
                }
            }
        }
        self.digests
            .insert(name_of(path), to_hex(&hasher.finalize()));
        Ok(())
    }
}

fn name_of(path: &Path) -> String {
    to_hex(path.as_os_str().as_bytes())
}

fn entries_of(directory: &Path) -> Result<Vec<PathBuf>, GitError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(GitError::io("read", directory)(error)),
    };
    let entries = entries.take(FILES_MAX).map(|entry| Ok(entry?.path()));
    let entries: io::Result<_> = entries.collect();
    entries.map_err(GitError::io("read", directory))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
