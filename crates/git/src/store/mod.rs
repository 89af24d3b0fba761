//! The engine's own object store: a bare repository beside the journal.
//!
//! It holds a real copy of every base (commit, trees, blobs; not its history) and everything
//! the loop makes of it. It has no alternates, so the user may collect garbage, rebase or
//! delete as they like. Nothing here ever runs `gc`.
//!
//! Objects are written by this process, not by git: that costs no process, and it is known
//! exactly which files [`ObjectStore::make_durable`] has to sync.

mod base;
mod chain;
mod commit;
mod intact;
mod loose;
mod merge;
mod patch;
mod recent;
mod submodules;
mod trees;
mod upkeep;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::{Compress, Compression};

pub use submodules::SubmoduleContent;

pub(crate) use commit::parse_commit;
pub use commit::{CommitFacts, CommitSpec, Person};
pub(crate) use loose::hash_stream;

use crate::convert::Conversions;
use crate::error::GitError;
use crate::git::Git;
use crate::hash::ObjectKind;
use crate::reader::ObjectReader;
use crate::types::{
    Change, Mode, ObjectFormat, Objects, Oid, RepoPath, TreeListing, apply_changes,
};
use crate::user::UserRepository;
use recent::Recent;
use trees::TreeItems;

/// Whole listings kept in memory: the base, the incumbent, the candidate and one to spare.
const LISTINGS_KEPT: usize = 4;

/// Gets the content of each of many blobs, with its place among those asked for.
pub(crate) type TakeBlob<'a> = dyn FnMut(usize, &[u8]) -> Result<(), GitError> + 'a;

/// From so many objects on, reading them one after the other wastes time.
const MANY: usize = 32;

/// The engine's object store.
#[derive(Debug)]
pub struct ObjectStore {
    dir: PathBuf,
    /// Files that were damaged when it was opened, and were made anew.
    mended: Vec<PathBuf>,
    format: ObjectFormat,
    git: Git,
    reader: ObjectReader,
    /// Loose objects written (or found) since the last sync, in order.
    pending: Vec<Oid>,
    /// Objects this process knows to be whole and on the disk.
    durable: HashSet<Oid>,
    compressor: Compress,
    recent: Recent,
    trees: HashMap<Oid, Arc<TreeItems>>,
    /// How many names the trees in memory hold together.
    tree_names: usize,
    listings: VecDeque<(Oid, TreeListing)>,
    /// Listings with the content of submodules.
    expanded: VecDeque<(Oid, TreeListing)>,
    pub(crate) conversions: Conversions,
}

impl ObjectStore {
    /// Opens the store in `dir`, or makes it, with the object format of the user's repository.
    pub fn open_or_create(dir: &Path, like: &UserRepository) -> Result<Self, GitError> {
        Self::open_with_format(dir, like.format)
    }

    pub(crate) fn open_with_format(dir: &Path, format: ObjectFormat) -> Result<Self, GitError> {
        let mended = upkeep::bring_up(dir, format)?;
        Ok(Self {
            mended,
            ..Self::as_it_is(dir, format)
        })
    }

    fn as_it_is(dir: &Path, format: ObjectFormat) -> Self {
        let git = Git::on(dir);
        Self {
            dir: dir.to_path_buf(),
            mended: Vec::new(),
            format,
            reader: ObjectReader::new(git.clone()),
            git,
            pending: Vec::new(),
            durable: HashSet::new(),
            compressor: Compress::new(Compression::fast(), true),
            recent: Recent::default(),
            trees: HashMap::new(),
            tree_names: 0,
            listings: VecDeque::new(),
            expanded: VecDeque::new(),
            conversions: Conversions::default(),
        }
    }

    /// Opens the store in `dir` as it is, damaged or not: to look at it, and to write nothing.
    pub fn open_to_verify(dir: &Path) -> Self {
        Self::as_it_is(dir, upkeep::format_of(dir))
    }

    /// Another handle on the same store.
    pub fn another(&self) -> Self {
        Self::as_it_is(&self.dir, self.format)
    }

    /// What of the store's own files is not as it was made, in words; what objects hold is not looked
    /// at.
    pub fn faults(&self) -> Vec<String> {
        let faults = upkeep::faults(&self.dir, self.format).into_iter();
        let words = |fault: upkeep::Fault| format!("{}: {}", fault.path.display(), fault.what);
        faults.map(words).collect()
    }

    /// The files that were damaged and made anew when it was opened.
    pub fn mended(&self) -> &[PathBuf] {
        &self.mended
    }

    /// Where the store lies (a bare git directory).
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How its objects are named.
    pub fn format(&self) -> ObjectFormat {
        self.format
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// Stores a blob.
    pub fn write_blob(&mut self, content: &[u8]) -> Result<Oid, GitError> {
        self.write(ObjectKind::Blob, content)
    }

    /// True if the store itself has the object.
    pub fn has(&mut self, oid: &Oid) -> Result<bool, GitError> {
        Ok(self.is_whole(oid) || self.reader.read(oid)?.is_some())
    }

    /// Everything that differs between two trees, in the order of paths.
    pub fn diff(&mut self, before: &Oid, after: &Oid) -> Result<Vec<Change>, GitError> {
        let mut changes = Vec::new();
        self.diff_into(
            Some(*before),
            Some(*after),
            &RepoPath::new(""),
            &mut changes,
        )?;
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(changes)
    }

    /// Stores the tree that results from applying changes to a tree.
    pub fn write_tree(&mut self, base: &Oid, changes: &[Change]) -> Result<Oid, GitError> {
        if changes.is_empty() {
            return Ok(*base);
        }
        let changes: Vec<&Change> = changes.iter().collect();
        match self.rewrite(Some(*base), &changes, 0)? {
            Some(tree) => Ok(tree),
            None => self.write(ObjectKind::Tree, b""),
        }
    }

    /// Makes everything written since the last call survive a power loss: syncs exactly the
    /// object files, then their directories. Says how many objects that were.
    pub fn make_durable(&mut self) -> Result<usize, GitError> {
        self.sync_pending()
    }

    /// The raw content of any object and its type's word.
    pub fn read_object(&mut self, oid: &Oid) -> Result<(String, Vec<u8>), GitError> {
        if let Some(found) = self.recent.get(oid) {
            return Ok(found);
        }
        let found = match self.read_loose(oid)? {
            Some(found) => found,
            None => self.reader.read(oid)?.ok_or_else(|| GitError::Missing {
                oid: *oid,
                place: self.dir.clone(),
            })?,
        };
        self.recent.remember(oid, &found.0, &found.1);
        Ok(found)
    }

    /// Reads a blob piece by piece, so that its size does not matter.
    pub fn read_blob_in_pieces(
        &mut self,
        oid: &Oid,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), GitError> {
        if let Some((word, content)) = self.recent.get(oid)
            && word == ObjectKind::Blob.word()
        {
            take(&content);
            return Ok(());
        }
        if self.loose_in_pieces(oid, ObjectKind::Blob, take)? {
            return Ok(());
        }
        match self.reader.read_in_pieces(oid, take)? {
            Some(word) if word == ObjectKind::Blob.word() => Ok(()),
            Some(word) => Err(GitError::unexpected(format!(
                "object {oid} is a {word}, not a blob"
            ))),
            None => Err(GitError::Missing {
                oid: *oid,
                place: self.dir.clone(),
            }),
        }
    }

    /// The id of the tree that holds nothing.
    pub fn empty_tree(&mut self) -> Result<Oid, GitError> {
        self.write(ObjectKind::Tree, b"")
    }

    /// True if the bytes of a checkout may differ from the blob's.
    pub(crate) fn is_converted(&self, mode: Mode) -> bool {
        mode.is_regular() && self.conversions.change_checkouts()
    }

    pub(crate) fn conversions(&self) -> &Conversions {
        &self.conversions
    }

    /// Git with the settings the conversions in force need.
    pub(crate) fn configured(&self, git: Git) -> Git {
        self.conversions.configure(git)
    }

    #[cfg(test)]
    pub(crate) fn kill_reader_for_test(&mut self) {
        self.reader.kill_for_test();
    }

    /// Reads many blobs, asking for the next while the last are on their way.
    pub(crate) fn read_blobs(
        &mut self,
        oids: &[Oid],
        take: &mut TakeBlob<'_>,
    ) -> Result<(), GitError> {
        if oids.len() < MANY {
            for (at, oid) in oids.iter().enumerate() {
                let content = self.read_kind(oid, ObjectKind::Blob)?;
                take(at, &content)?;
            }
            return Ok(());
        }
        let place = self.dir.clone();
        self.reader.read_many(oids, &mut |at, found| match found {
            Some((word, content)) if word == ObjectKind::Blob.word() => take(at, &content),
            _ => Err(GitError::Missing {
                oid: oids[at],
                place: place.clone(),
            }),
        })
    }

    fn read_kind(&mut self, oid: &Oid, kind: ObjectKind) -> Result<Vec<u8>, GitError> {
        let (word, content) = self.read_object(oid)?;
        if word == kind.word() {
            return Ok(content);
        }
        Err(GitError::unexpected(format!(
            "object {oid} is a {word}, not a {}",
            kind.word()
        )))
    }

    fn remember_listing(&mut self, tree: Oid, listing: &TreeListing) {
        self.listings.retain(|(known, _)| *known != tree);
        self.listings.push_front((tree, Arc::clone(listing)));
        self.listings.truncate(LISTINGS_KEPT);
    }
}

impl Objects for ObjectStore {
    fn listing(&mut self, tree: &Oid) -> Result<TreeListing, GitError> {
        if let Some(at) = self.listings.iter().position(|(known, _)| known == tree) {
            let (_, listing) = self.listings[at].clone();
            self.remember_listing(*tree, &listing);
            return Ok(listing);
        }
        // Trees of one loop differ by few paths: derive from the nearest known one.
        let (known, parent) = match self.listings.front() {
            Some((known, listing)) => (Some(*known), Arc::clone(listing)),
            None => (None, TreeListing::default()),
        };
        let mut changes = Vec::new();
        self.diff_into(known, Some(*tree), &RepoPath::new(""), &mut changes)?;
        let listing = apply_changes(&parent, &changes);
        self.remember_listing(*tree, &listing);
        Ok(listing)
    }

    fn read_blob(&mut self, oid: &Oid) -> Result<Vec<u8>, GitError> {
        self.read_kind(oid, ObjectKind::Blob)
    }

    fn enter_tree(&mut self, listing: &TreeListing) -> Result<(), GitError> {
        self.use_attributes_of(listing).map(drop)
    }

    fn checkout_bytes(
        &mut self,
        path: &RepoPath,
        mode: Mode,
        oid: &Oid,
    ) -> Result<Vec<u8>, GitError> {
        if self.is_converted(mode) {
            return self.convert_out(path, oid);
        }
        self.read_blob(oid)
    }
}
