//! Reading back which tree the directory holds: what `git add -A` would take, and no more.

use std::io::{self, Seek as _};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::ignore::IgnoreRules;
use super::{Finding, Stamp, WorkTree};
use crate::convert::{ToClean, clean};
use crate::error::GitError;
use crate::place::{Place, names, open_directory};
use crate::store::ObjectStore;
use crate::types::{Change, Mode, Oid, RepoPath};

/// Files above this can't be part of a proposal.
const LARGEST_FILE_BYTES: u64 = 1 << 31;

/// New files above this number can't be part of a proposal; the rest is refused.
const MOST_NEW_FILES: usize = 100_000;

/// Longer paths can't be named: no checkout by git could hold them.
const LONGEST_PATH_BYTES: usize = 4095;

const CLOSED: &str = "it belongs to somebody else and can't be read";

/// Something that can't be part of a proposal, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPath {
    /// Where.
    pub path: RepoPath,
    /// In words.
    pub why: String,
}

/// What a work tree holds.
#[derive(Debug, Clone)]
pub struct Collected {
    /// The tree.
    pub tree: Oid,
    /// How it differs from the one the directory was brought to.
    pub changes: Vec<Change>,
    /// What was left out.
    pub refused: Vec<RefusedPath>,
}

/// What a snapshot gathers before anything is stored.
#[derive(Default)]
struct Gathered {
    /// Files and links to read, by path.
    present: Vec<(RepoPath, FileType, u32)>,
    removed: Vec<RepoPath>,
    refused: Vec<RefusedPath>,
}

impl Gathered {
    fn refuse(&mut self, path: RepoPath, why: impl Into<String>) {
        let why = why.into();
        self.refused.push(RefusedPath { path, why });
    }
}

impl WorkTree {
    /// Stores what the directory holds now. With `full`, no stamp is believed.
    ///
    /// `None` if there is no directory any more.
    pub(crate) fn collect(
        &mut self,
        store: &mut ObjectStore,
        full: bool,
    ) -> Result<Option<Collected>, GitError> {
        let Some(mut place) = Place::open(self.path())? else {
            return Ok(None);
        };
        let findings = self.scan(&place, full)?;
        let mut gathered = Gathered::default();
        let mut unknown = Vec::new();
        for finding in findings {
            self.sort_out(finding, &mut gathered, &mut unknown);
        }
        self.stored.clear();
        for refused in &gathered.refused {
            if is_rules(&refused.path) {
                self.clear_away(&mut place, &refused.path)?;
            }
        }
        if !unknown.is_empty() {
            self.gather_new(&mut place, store, unknown, &mut gathered)?;
        }
        let mut changes = self.store_present(&mut place, store, &mut gathered)?;
        changes.extend(gathered.removed.into_iter().map(|path| Change {
            before: self.listing.get(&path).copied(),
            after: None,
            path,
        }));
        changes.retain(|change| change.before != change.after);
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        changes.dedup_by(|later, kept| later.path == kept.path);
        gathered
            .refused
            .sort_by(|one, other| one.path.cmp(&other.path));
        gathered.refused.dedup();
        Ok(Some(Collected {
            tree: store.write_tree(&self.tree(), &changes)?,
            changes,
            refused: gathered.refused,
        }))
    }

    fn sort_out(
        &self,
        finding: Finding,
        gathered: &mut Gathered,
        unknown: &mut Vec<(RepoPath, FileType)>,
    ) {
        let path = match &finding {
            Finding::Changed { path, .. }
            | Finding::Missing { path }
            | Finding::MissingDirectory { path }
            | Finding::Extra { path, .. } => path.clone(),
            Finding::DirectoryMode { .. } => return,
        };
        if let Some(submodule) = self.submodule_of(&path) {
            return gathered.refuse(
                submodule,
                "submodules are read-only here; the change inside was left out",
            );
        }
        match finding {
            Finding::Changed { stamp, .. } => match stamp.kind() {
                kind @ (FileType::RegularFile | FileType::Symlink) => {
                    gathered.present.push((path, kind, stamp.mode));
                }
                kind => {
                    gathered.removed.push(path.clone());
                    gathered.refuse(path, special(kind));
                }
            },
            Finding::Extra { kind, .. } => unknown.push((path, kind)),
            Finding::Missing { .. } => gathered.removed.push(path),
            Finding::MissingDirectory { .. } | Finding::DirectoryMode { .. } => {}
        }
    }

    /// Walks what is new, level by level: an ignored directory is never entered.
    fn gather_new(
        &mut self,
        place: &mut Place,
        store: &ObjectStore,
        unknown: Vec<(RepoPath, FileType)>,
        gathered: &mut Gathered,
    ) -> Result<(), GitError> {
        gathered.refused.extend(self.disarm(place, &unknown)?);
        let mut rules = IgnoreRules::start(store, self.path(), &self.excludes)?;
        let mut level = unknown;
        while !level.is_empty() {
            level.retain(|(path, _)| {
                let fits = path.as_bytes().len() <= LONGEST_PATH_BYTES;
                if !fits {
                    gathered.refuse(path.clone(), "its path is too long for a checkout");
                }
                fits
            });
            let paths: Vec<RepoPath> = level.iter().map(|(path, _)| path.clone()).collect();
            let ignored = rules.ask(&paths)?;
            let mut next = Vec::new();
            for ((path, kind), ignored) in level.into_iter().zip(ignored) {
                if ignored {
                    continue;
                }
                if let Some(why) = unfit_name(&path, kind) {
                    gathered.refuse(path, why);
                } else if gathered.present.len() >= MOST_NEW_FILES {
                    gathered.refuse(path, "a proposal can't bring that many new files");
                } else {
                    match kind {
                        FileType::Directory => match listed(place, &path)? {
                            Ok(below) => next.extend(below),
                            Err(why) => gathered.refuse(path, why),
                        },
                        FileType::RegularFile | FileType::Symlink => {
                            gathered.present.push((path, kind, 0));
                        }
                        kind => gathered.refuse(path, special(kind)),
                    }
                }
            }
            // A rules file that is no file would make git wait for ever.
            gathered.refused.extend(self.disarm(place, &next)?);
            level = next;
        }
        Ok(())
    }

    fn store_present(
        &mut self,
        place: &mut Place,
        store: &mut ObjectStore,
        gathered: &mut Gathered,
    ) -> Result<Vec<Change>, GitError> {
        let mut changes = Vec::with_capacity(gathered.present.len());
        let mut to_clean = Vec::new();
        for (path, kind, _) in std::mem::take(&mut gathered.present) {
            let before = self.listing.get(&path).copied();
            let after = if kind == FileType::Symlink {
                let stamp = place.facts(path.as_bytes())?.as_ref().map(Stamp::of);
                let target = place.read_link(path.as_bytes())?;
                self.note_stored(&path, stamp);
                Some((Mode::Link, store.write_blob(&target)?))
            } else {
                self.store_file(place, store, &path, gathered, &mut to_clean)?
            };
            if after.is_some() {
                changes.push(Change {
                    path,
                    before,
                    after,
                });
            }
        }
        if !to_clean.is_empty() {
            let (work_tree, tree) = (self.path(), self.tree());
            changes.extend(clean(store, work_tree, &tree, &self.listing, to_clean)?);
        }
        Ok(changes)
    }

    fn store_file(
        &mut self,
        place: &mut Place,
        store: &mut ObjectStore,
        path: &RepoPath,
        gathered: &mut Gathered,
        to_clean: &mut Vec<ToClean>,
    ) -> Result<Option<(Mode, Oid)>, GitError> {
        let full = path.to_path(self.path());
        let mut file = match place.open_file(path.as_bytes()) {
            Ok(Some(file)) => file,
            Ok(None) => {
                gathered.refuse(path.clone(), "it is no plain file any more");
                return Ok(None);
            }
            Err(error) if is_denied(&error) => {
                gathered.refuse(path.clone(), CLOSED);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let stamp = rustix::fs::fstat(&file).ok().as_ref().map(Stamp::of);
        let facts = file.metadata().map_err(GitError::io("look at", &full))?;
        if facts.len() > LARGEST_FILE_BYTES {
            gathered.refuse(path.clone(), "it is larger than 2 GiB");
            return Ok(None);
        }
        let mode = match std::os::unix::fs::PermissionsExt::mode(&facts.permissions()) & 0o100 {
            0 => Mode::File,
            _ => Mode::Executable,
        };
        if store.conversions().may_clean() {
            let cleans = store.conversions().cleans(&mut file);
            if cleans.map_err(GitError::io("read", &full))? {
                self.note_stored(path, stamp);
                let path = path.clone();
                to_clean.push(ToClean { path, mode });
                return Ok(None);
            }
            file.rewind().map_err(GitError::io("read", &full))?;
        }
        let oid = store.write_blob_from(&mut file, facts.len(), &full)?;
        self.note_stored(path, stamp);
        Ok(Some((mode, oid)))
    }

    /// In a checkout of the user's, what is stored may be cleared away as long as it is the same.
    fn note_stored(&mut self, path: &RepoPath, stamp: Option<Stamp>) {
        if let (Some(stamp), true) = (stamp, self.aside.is_some()) {
            self.stored.insert(path.clone(), stamp);
        }
    }

    /// Takes away ignore files that are no files (git would open them), and says so.
    pub(super) fn disarm(
        &mut self,
        place: &mut Place,
        found: &[(RepoPath, FileType)],
    ) -> Result<Vec<RefusedPath>, GitError> {
        let harmless = [
            FileType::RegularFile,
            FileType::Symlink,
            FileType::Directory,
        ];
        let mut taken = Vec::new();
        for (path, kind) in found {
            if is_rules(path) && !harmless.contains(kind) {
                self.clear_away(place, path)?;
                taken.push(RefusedPath {
                    path: path.clone(),
                    why: special(*kind).to_owned(),
                });
            }
        }
        Ok(taken)
    }
}

/// What a new directory holds; why not, if it can't be looked into as a part of this tree.
#[allow(clippy::type_complexity)]
pub(super) fn listed(
    place: &mut Place,
    path: &RepoPath,
) -> Result<Result<Vec<(RepoPath, FileType)>, &'static str>, GitError> {
    let handle = match place.parent(path.as_bytes(), false)? {
        Some((at, name)) => open_directory(at, name),
        None => return Ok(Ok(Vec::new())),
    };
    let found = handle.and_then(|handle| names(std::os::fd::AsFd::as_fd(&handle)));
    let found = match found {
        Ok(found) => found,
        Err(Errno::ACCESS | Errno::PERM) => return Ok(Err(CLOSED)),
        Err(error) => return Err(place.error("read", path.as_bytes(), error)),
    };
    if found.iter().any(|(name, _)| is_dot_git(name)) {
        return Ok(Err(
            "it is a git repository of its own; what is in it can't be recorded in this one",
        ));
    }
    let below = found.into_iter();
    Ok(Ok(below
        .map(|(name, kind)| (path.join(&name), kind))
        .collect()))
}

fn is_denied(error: &GitError) -> bool {
    matches!(error, GitError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
}

/// Files git reads by itself while it works for us.
pub(super) fn is_rules(path: &RepoPath) -> bool {
    let name = path.names().next_back().unwrap_or_default();
    name == b".gitignore" || name == b".gitattributes"
}

fn unfit_name(path: &RepoPath, kind: FileType) -> Option<&'static str> {
    let name = path.names().next_back().unwrap_or_default();
    if is_dot_git(name) {
        return Some("git can't record a name like .git");
    }
    if kind == FileType::Symlink && name.eq_ignore_ascii_case(b".gitmodules") {
        return Some("git can't record .gitmodules as a link");
    }
    None
}

/// Names git refuses everywhere because some file system takes them for `.git`.
pub(super) fn is_dot_git(name: &[u8]) -> bool {
    let end = name
        .iter()
        .position(|byte| *byte == b':')
        .unwrap_or(name.len());
    let trimmed = name[..end].trim_ascii_end();
    let end = trimmed
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b' '))
        .map_or(0, |last| last + 1);
    let bare = &trimmed[..end];
    bare.eq_ignore_ascii_case(b".git") || bare.eq_ignore_ascii_case(b"git~1")
}

fn special(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "it is a named pipe; git can't record it",
        FileType::Socket => "it is a socket; git can't record it",
        FileType::CharacterDevice | FileType::BlockDevice => "it is a device; git can't record it",
        _ => "it is neither a file nor a link nor a directory; git can't record it",
    }
}
