//! Object ids computed here: SHA-1 with collision detection (as git does), or SHA-256.

use sha1_checked::Sha1;
use sha2::{Digest as _, Sha256};

use crate::error::GitError;
use crate::types::{ObjectFormat, Oid};

/// The three kinds of objects this crate writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Blob,
    Tree,
    Commit,
}

impl ObjectKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Tree => "tree",
            Self::Commit => "commit",
        }
    }

    /// What stands before an object's content when it is hashed and stored.
    pub(crate) fn header(self, size: u64) -> Vec<u8> {
        format!("{} {size}\0", self.word()).into_bytes()
    }
}

/// A running hash in a repository's format.
pub(crate) enum Hasher {
    Sha1(Box<Sha1>),
    Sha256(Box<Sha256>),
}

impl Hasher {
    pub(crate) fn new(format: ObjectFormat) -> Self {
        match format {
            ObjectFormat::Sha1 => Self::Sha1(Box::new(Sha1::new())),
            ObjectFormat::Sha256 => Self::Sha256(Box::new(Sha256::new())),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hash) => sha1_checked::Digest::update(hash.as_mut(), bytes),
            Self::Sha256(hash) => hash.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> Result<Oid, GitError> {
        let oid = match self {
            Self::Sha1(hash) => {
                let result = hash.try_finalize();
                if result.has_collision() {
                    return Err(GitError::unexpected(
                        "content made to collide under SHA-1 was refused",
                    ));
                }
                Oid::from_bytes(result.hash())
            }
            Self::Sha256(hash) => Oid::from_bytes(&hash.finalize()),
        };
        oid.ok_or_else(|| GitError::unexpected("BUG: a digest has the length of an id"))
    }
}

/// The id of an object.
pub(crate) fn hash_object(
    format: ObjectFormat,
    kind: ObjectKind,
    content: &[u8],
) -> Result<Oid, GitError> {
    let mut hasher = Hasher::new(format);
    hasher.update(&kind.header(content.len() as u64));
    hasher.update(content);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ids() {
        let empty = hash_object(ObjectFormat::Sha1, ObjectKind::Blob, b"").unwrap();
        assert_eq!(empty.to_hex(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        let tree = hash_object(ObjectFormat::Sha1, ObjectKind::Tree, b"").unwrap();
        assert_eq!(tree.to_hex(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        let long = hash_object(ObjectFormat::Sha256, ObjectKind::Blob, b"").unwrap();
        assert_eq!(
            long.to_hex(),
            "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
        );
    }
}
