//! The words this crate is built of: object ids, modes, paths, listings and changes.
//!
//! Every other module (and the measurement arms) speaks in these types; none of them touches
//! git or a disk. They are made to be cheap: a listing of 20,000 files is derived from its
//! parent by cloning reference counts, not strings.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::GitError;
use crate::quote::quoted;

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectFormat {
    /// 20-byte ids, git's default.
    Sha1,
    /// 32-byte ids (`git init --object-format=sha256`).
    Sha256,
}

impl ObjectFormat {
    /// The word git's configuration uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// Length of an id in bytes.
    pub fn id_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// The id of a git object; 20 or 32 bytes, written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Oid {
    bytes: [u8; 32],
    length: u8,
}

impl Oid {
    /// From raw bytes, as they stand in a tree object.
    pub fn from_bytes(raw: &[u8]) -> Option<Self> {
        if raw.len() != 20 && raw.len() != 32 {
            return None;
        }
        let mut bytes = [0; 32];
        bytes[..raw.len()].copy_from_slice(raw);
        Some(Self {
            bytes,
            length: raw.len() as u8,
        })
    }

    /// From hexadecimal digits (a line of git's output).
    pub fn from_hex(hex: &[u8]) -> Option<Self> {
        if hex.len() != 40 && hex.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (slot, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *slot = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self {
            bytes,
            length: (hex.len() / 2) as u8,
        })
    }

    /// The id in hexadecimal.
    pub fn to_hex(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = String::with_capacity(64);
        for byte in self.as_bytes() {
            hex.push(DIGITS[usize::from(byte >> 4)] as char);
            hex.push(DIGITS[usize::from(byte & 15)] as char);
        }
        hex
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// True for the all-zero id, git's "nothing".
    pub fn is_zero(&self) -> bool {
        self.as_bytes().iter().all(|byte| *byte == 0)
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Oid({})", self.to_hex())
    }
}

impl FromStr for Oid {
    type Err = GitError;

    fn from_str(text: &str) -> Result<Self, GitError> {
        Self::from_hex(text.as_bytes())
            .ok_or_else(|| GitError::unexpected(format!("{text:?} is not the id of a git object")))
    }
}

impl Serialize for Oid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for Oid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What kind of thing a tree holds at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// A plain file (100644).
    File,
    /// A file that may be executed (100755).
    Executable,
    /// A symbolic link (120000); its blob is the target.
    Link,
    /// A submodule (160000); its id is a commit of another repository.
    Submodule,
}

impl Mode {
    /// Git's octal spelling, as trees and `ls-tree` have it.
    pub fn octal(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Submodule => "160000",
        }
    }

    /// Reads git's octal spelling. Old trees hold 100664 for plain files.
    pub fn from_octal(octal: &[u8]) -> Option<Self> {
        match octal {
            b"100644" | b"100664" | b"100600" => Some(Self::File),
            b"100755" => Some(Self::Executable),
            b"120000" => Some(Self::Link),
            b"160000" => Some(Self::Submodule),
            _ => None,
        }
    }

    /// True for a plain or an executable file.
    pub fn is_regular(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }
}

/// A path inside a repository: raw bytes, `/` between names, never a leading one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepoPath(Arc<[u8]>);

impl RepoPath {
    /// A path of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into().into())
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Where this path lies below `root`.
    pub fn to_path(&self, root: &Path) -> PathBuf {
        root.join(OsStr::from_bytes(&self.0))
    }

    /// The names along the path.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// The directory holding it; `None` at the top.
    pub fn parent(&self) -> Option<RepoPath> {
        let slash = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(Self::new(&self.0[..slash]))
    }

    /// This path with one more name.
    pub fn join(&self, name: &[u8]) -> RepoPath {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        if !self.0.is_empty() {
            bytes.extend_from_slice(&self.0);
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Self::new(bytes)
    }

    /// True if this path lies below `directory` (not at it).
    pub fn is_below(&self, directory: &RepoPath) -> bool {
        self.0.len() > directory.0.len()
            && self.0.starts_with(&directory.0)
            && self.0[directory.0.len()] == b'/'
    }

    /// True if writing it below a directory can't leave that directory or touch a `.git`.
    pub fn is_safe(&self) -> bool {
        !self.0.is_empty()
            && !self.0.contains(&0)
            && self.names().all(|name| {
                !name.is_empty()
                    && name != b"."
                    && name != b".."
                    && !name.eq_ignore_ascii_case(b".git")
            })
    }
}

impl fmt::Display for RepoPath {
    /// As git shows it, see [`quoted`](crate::quote::quoted).
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&quoted(&self.0))
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&quoted(&self.0))
    }
}

impl From<&str> for RepoPath {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl std::borrow::Borrow<[u8]> for RepoPath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where.
    pub path: RepoPath,
    /// What kind.
    pub mode: Mode,
    /// Which content.
    pub oid: Oid,
}

/// Everything a tree holds, flat, in the byte order of paths.
pub type TreeListing = Arc<BTreeMap<RepoPath, (Mode, Oid)>>;

/// One path that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: RepoPath,
    /// What stood there before; `None` if nothing did.
    pub before: Option<(Mode, Oid)>,
    /// What stands there now; `None` if it was removed.
    pub after: Option<(Mode, Oid)>,
}

/// The listing that results from applying `changes` to `base`.
///
/// Costs reference counts for the unchanged part, nothing at all when there are no changes.
pub fn apply_changes(base: &TreeListing, changes: &[Change]) -> TreeListing {
    if changes.is_empty() {
        return Arc::clone(base);
    }
    let mut listing = BTreeMap::clone(base);
    for change in changes {
        match change.after {
            Some(entry) => listing.insert(change.path.clone(), entry),
            None => listing.remove(&change.path),
        };
    }
    Arc::new(listing)
}

/// The paths that differ between two listings, in order.
pub fn diff_listings(before: &TreeListing, after: &TreeListing) -> Vec<Change> {
    if Arc::ptr_eq(before, after) {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let (mut left, mut right) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return changes,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((one, _)), Some((other, _))) => one.cmp(other),
        };
        let old = if order.is_le() { left.next() } else { None };
        let new = if order.is_ge() { right.next() } else { None };
        if old.map(|pair| pair.1) == new.map(|pair| pair.1) {
            continue;
        }
        if let Some((path, _)) = old.or(new) {
            changes.push(Change {
                path: path.clone(),
                before: old.map(|pair| *pair.1),
                after: new.map(|pair| *pair.1),
            });
        }
    }
}

/// Where the content of trees comes from; the object store, or a stand-in in tests.
pub trait Objects {
    /// The flat listing of a tree.
    fn listing(&mut self, tree: &Oid) -> Result<TreeListing, GitError>;

    /// The raw content of a blob, as git stores it.
    fn read_blob(&mut self, oid: &Oid) -> Result<Vec<u8>, GitError>;

    /// Says which tree the next [`Self::checkout_bytes`] are for: its attributes are the ones
    /// in force.
    fn enter_tree(&mut self, _listing: &TreeListing) -> Result<(), GitError> {
        Ok(())
    }

    /// The bytes a checkout has at `path` (the target, for a link): the blob after the
    /// conversions the tree's attributes ask for (line endings, encodings, LFS).
    fn checkout_bytes(
        &mut self,
        path: &RepoPath,
        mode: Mode,
        oid: &Oid,
    ) -> Result<Vec<u8>, GitError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oid(digit: u8) -> Oid {
        Oid::from_bytes(&[digit; 20]).unwrap()
    }

    #[test]
    fn ids_round_trip() {
        for length in [20, 32] {
            let id = Oid::from_bytes(&vec![0xa7; length]).unwrap();
            assert_eq!(id.to_hex().parse::<Oid>().unwrap(), id);
            assert_eq!(id.to_hex().len(), length * 2);
        }
        assert!("xyz".parse::<Oid>().is_err());
        assert!(Oid::from_bytes(&[0; 20]).unwrap().is_zero());
    }

    #[test]
    fn unsafe_paths_are_known() {
        for path in ["", "/a", "a//b", "../a", "a/..", ".git/config", "a/.GIT/x"] {
            assert!(!RepoPath::from(path).is_safe(), "{path}");
        }
        assert!(RepoPath::from("a/.gitignore").is_safe());
        assert!(RepoPath::from("a b\nc").is_safe());
    }

    #[test]
    fn changes_and_difference_are_inverse() {
        let before: TreeListing = Arc::new(
            [("a", 1), ("b", 2), ("c", 3)]
                .map(|(path, digit)| (RepoPath::from(path), (Mode::File, oid(digit))))
                .into(),
        );
        let after: TreeListing = Arc::new(
            [("a", 1), ("b", 9), ("d", 3)]
                .map(|(path, digit)| (RepoPath::from(path), (Mode::File, oid(digit))))
                .into(),
        );
        let changes = diff_listings(&before, &after);
        assert_eq!(changes.len(), 3);
        assert_eq!(apply_changes(&before, &changes), after);
        assert!(diff_listings(&before, &before).is_empty());
    }
}
