//! Bringing a checkout of the user's to a tree: ignored files stay, and nothing is cleared away that
//! is not stored. What is not, because git can't store it or because it came since, is moved aside.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustix::fs::FileType;

use super::collect::{is_dot_git, is_rules, listed};
use super::ignore::IgnoreRules;
use super::restore::prune;
use super::{Finding, RefusedPath, Stamp, WorkTree};
use crate::error::{GitError, Refusal};
use crate::hash::{ObjectKind, hash_object};
use crate::place::Place;
use crate::store::{ObjectStore, hash_stream};
use crate::types::{Mode, Objects as _, Oid, RepoPath, TreeListing, diff_listings};

/// What a scan found of a checkout that is to be brought to a tree.
#[derive(Default)]
struct Found {
    /// Paths of the tree it was at that don't hold what they held.
    changed: BTreeSet<RepoPath>,
    /// What that tree does not have.
    extra: Vec<(RepoPath, FileType)>,
}

impl WorkTree {
    /// Brings a checkout of the user's to `tree` (`listing` is what it holds, submodules filled in).
    /// True if files were written anew because attributes changed.
    ///
    /// Whatever can't be moved aside stops this before anything is lost by it.
    pub(crate) fn bring(
        &mut self,
        store: &mut ObjectStore,
        tree: Oid,
        listing: &TreeListing,
    ) -> Result<bool, GitError> {
        let (mut place, redraw) = self.leave(store, tree, listing)?;
        let moved = self.moved_aside();
        let brought = self.bring_place(&mut place, store, listing, redraw);
        if let (Err(GitError::Refused(Refusal::CantBeSaved(_))), Some(aside)) =
            (&brought, &mut self.aside)
        {
            aside.put_back(moved);
        }
        brought?;
        self.stored.clear();
        self.arrive(tree, listing);
        Ok(redraw)
    }

    /// Says what was moved aside since this was asked last.
    pub(crate) fn told_aside(&mut self) -> Vec<RefusedPath> {
        let aside = self.aside.as_mut();
        aside.map(super::Aside::told).unwrap_or_default()
    }

    /// All files of the tree it is at are the tree's from now on, whoever's they were.
    pub(crate) fn settle(&mut self) {
        self.theirs.clear();
    }

    fn moved_aside(&self) -> usize {
        self.aside.as_ref().map_or(0, super::Aside::count)
    }

    fn bring_place(
        &mut self,
        place: &mut Place,
        store: &mut ObjectStore,
        listing: &TreeListing,
        redraw: bool,
    ) -> Result<(), GitError> {
        let found = self.look_over(place)?;
        let mut writes = found.changed.clone();
        if redraw {
            // Files whose blobs are the same may have to look different.
            writes.extend(listing.keys().cloned());
        }
        let mut emptied = BTreeSet::new();
        let before = Arc::clone(&self.listing);
        for change in diff_listings(&before, listing) {
            if change.after.is_some() {
                writes.insert(change.path);
                continue;
            }
            let is_submodule = matches!(change.before, Some((Mode::Submodule, _)));
            if found.changed.contains(&change.path) && !is_submodule {
                self.clear_away_file(place, &change.path)?;
            } else if !is_submodule && !self.theirs.remove(&change.path) {
                place.remove(change.path.as_bytes())?;
            }
            self.mirror.remove(change.path.as_bytes());
            writes.remove(&change.path);
            if is_submodule {
                emptied.insert(change.path);
            } else {
                emptied.extend(change.path.parent());
            }
        }
        // The rules of the tree say what is ignored, not those that somebody has put in their place.
        let (rules, others): (BTreeSet<_>, BTreeSet<_>) = writes.into_iter().partition(is_rules);
        self.write_where_room(place, store, listing, rules, &found)?;
        self.clear_extra(place, store, &found, &others)?;
        self.write_where_room(place, store, listing, others, &found)?;
        for directory in emptied {
            let is_submodule = matches!(before.get(&directory), Some((Mode::Submodule, _)));
            if is_submodule && !place.remove_if_empty(directory.as_bytes())? {
                self.clear_away(place, &directory)?;
            }
            prune(place, directory, listing)?;
        }
        Ok(())
    }

    /// Scans, and puts modes of directories right.
    fn look_over(&mut self, place: &mut Place) -> Result<Found, GitError> {
        let mut found = Found::default();
        for finding in self.scan(place, false)? {
            match finding {
                Finding::DirectoryMode { path, mode } => {
                    place.set_directory_mode(path.as_bytes(), mode)?;
                }
                Finding::Changed { path, .. }
                | Finding::Missing { path }
                | Finding::MissingDirectory { path } => {
                    found.changed.insert(path);
                }
                Finding::Extra { path, kind } => {
                    self.doubt(&path);
                    found.extra.push((path, kind));
                }
            }
        }
        Ok(found)
    }

    /// Clears away what is neither of the tree nor ignored. What stands where files are to be written
    /// is dealt with there.
    fn clear_extra(
        &mut self,
        place: &mut Place,
        store: &ObjectStore,
        found: &Found,
        writes: &BTreeSet<RepoPath>,
    ) -> Result<(), GitError> {
        let mut extra = found.extra.clone();
        while !extra.is_empty() {
            let (mut loose, directories) = self.without_ignored(place, store, extra)?;
            loose.retain(|path| !writes.contains(path));
            let mut said_what_is_ignored = false;
            for path in loose {
                said_what_is_ignored |= is_rules(&path);
                self.clear_away(place, &path)?;
            }
            for path in directories.iter().rev() {
                place.remove_if_empty(path.as_bytes())?;
            }
            if !said_what_is_ignored {
                return Ok(());
            }
            // What rules that are gone now ignored is not ignored any more.
            extra = self.look_over(place)?.extra;
        }
        Ok(())
    }

    /// Splits what is not of the tree and not ignored into what is to be cleared away whole and the
    /// directories that may be left empty by that (parents first).
    fn without_ignored(
        &mut self,
        place: &mut Place,
        store: &ObjectStore,
        extra: Vec<(RepoPath, FileType)>,
    ) -> Result<(Vec<RepoPath>, Vec<RepoPath>), GitError> {
        let (mut loose, mut directories) = (Vec::new(), Vec::new());
        self.disarm(place, &extra)?;
        let mut rules = IgnoreRules::start(store, &self.path, &self.excludes)?;
        let mut level = extra;
        while !level.is_empty() {
            let paths: Vec<RepoPath> = level.iter().map(|(path, _)| path.clone()).collect();
            let ignored = rules.ask(&paths)?;
            let mut next = Vec::new();
            for ((path, kind), _) in level.into_iter().zip(ignored).filter(|(_, it)| !it) {
                let is_fit = !path.names().next_back().is_some_and(is_dot_git);
                let below = match kind {
                    FileType::Directory if is_fit => listed(place, &path)?,
                    _ => Err("it is no directory to look into"),
                };
                match below {
                    Ok(below) => {
                        next.extend(below);
                        directories.push(path);
                    }
                    Err(_) => loose.push(path),
                }
            }
            self.disarm(place, &next)?;
            level = next;
        }
        Ok((loose, directories))
    }

    /// Writes files of the tree, after what stands in their way and is stored nowhere was moved.
    fn write_where_room(
        &mut self,
        place: &mut Place,
        store: &mut ObjectStore,
        listing: &TreeListing,
        paths: BTreeSet<RepoPath>,
        found: &Found,
    ) -> Result<(), GitError> {
        for path in &paths {
            let is_new = !self.listing.contains_key(path);
            if let Some((mode, oid)) = listing.get(path)
                && (is_new || found.changed.contains(path))
            {
                let stood = self.make_room(place, store, path, *mode, oid)?;
                if stood && is_new {
                    self.theirs.insert(path.clone());
                }
            }
        }
        self.write_all(place, store, listing, paths)
    }

    /// Moves what is in the way of a file of the tree. True if a file is left there, which may be
    /// written over.
    fn make_room(
        &mut self,
        place: &mut Place,
        store: &mut ObjectStore,
        path: &RepoPath,
        mode: Mode,
        oid: &Oid,
    ) -> Result<bool, GitError> {
        let bytes = path.as_bytes();
        let ends = (0..bytes.len()).filter(|at| bytes[*at] == b'/');
        for above in ends.map(|end| RepoPath::new(&bytes[..end])) {
            match place.facts(above.as_bytes())? {
                None => return Ok(false),
                Some(stat) if Stamp::of(&stat).kind() == FileType::Directory => {}
                Some(_) => {
                    self.clear_away(place, &above)?;
                    return Ok(false);
                }
            }
        }
        let Some(stat) = place.facts(bytes)? else {
            return Ok(false);
        };
        let is_directory = Stamp::of(&stat).kind() == FileType::Directory;
        if is_directory && (mode == Mode::Submodule || place.remove_if_empty(bytes)?) {
            return Ok(false);
        }
        if mode != Mode::Submodule && self.holds(place, store, path, mode, oid)? {
            return Ok(true);
        }
        self.clear_away(place, path)?;
        Ok(false)
    }

    /// Whether a file has the content already that is to be written.
    fn holds(
        &self,
        place: &mut Place,
        store: &mut ObjectStore,
        path: &RepoPath,
        mode: Mode,
        oid: &Oid,
    ) -> Result<bool, GitError> {
        let is_converted = store.is_converted(mode) && self.submodule_of(path).is_none();
        let wanted = if is_converted {
            let content = store.checkout_bytes(path, mode, oid)?;
            hash_object(self.format, ObjectKind::Blob, &content)?
        } else {
            *oid
        };
        let Some(stat) = place.facts(path.as_bytes())? else {
            return Ok(false);
        };
        let stamp = Stamp::of(&stat);
        let found = match (mode, stamp.kind()) {
            (Mode::Link, FileType::Symlink) => {
                let target = place.read_link(path.as_bytes())?;
                hash_object(self.format, ObjectKind::Blob, &target)?
            }
            (Mode::File | Mode::Executable, FileType::RegularFile) => {
                match place.open_file(path.as_bytes()) {
                    Ok(Some(mut file)) => {
                        hash_stream(self.format, &mut file, stamp.size, &self.path)?
                    }
                    _ => return Ok(false),
                }
            }
            _ => return Ok(false),
        };
        Ok(found == wanted)
    }

    /// Takes a file away that the tree no longer has; what is in a directory there is no part of it.
    fn clear_away_file(&mut self, place: &mut Place, path: &RepoPath) -> Result<(), GitError> {
        let stat = place.facts(path.as_bytes())?;
        match stat.map(|stat| Stamp::of(&stat).kind()) {
            None | Some(FileType::Directory) => Ok(()),
            Some(_) => self.clear_away(place, path),
        }
    }

    /// Takes something away: a file as it was stored is removed, all else is moved aside. In a
    /// directory of ours it is removed.
    pub(super) fn clear_away(
        &mut self,
        place: &mut Place,
        path: &RepoPath,
    ) -> Result<(), GitError> {
        let stored = self.stored.remove(path);
        let Some(aside) = &mut self.aside else {
            return place.remove(path.as_bytes());
        };
        let Some(stat) = place.facts(path.as_bytes())? else {
            return Ok(());
        };
        if stored == Some(Stamp::of(&stat)) {
            return place.remove(path.as_bytes());
        }
        aside.take(place, path, path.clone()).map(drop)
    }
}
