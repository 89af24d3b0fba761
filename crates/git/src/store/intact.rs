//! Looking whether what the store holds is what its name says.

use super::ObjectStore;
use crate::error::GitError;
use crate::hash::{ObjectKind, hash_object};
use crate::types::Oid;

impl ObjectStore {
    /// The kind's word of an object that is there and whose content has its name; none where it is
    /// missing or damaged.
    pub fn intact_kind(&mut self, oid: &Oid) -> Option<String> {
        let (word, content) = self.read_object(oid).ok()?;
        let kinds = [ObjectKind::Blob, ObjectKind::Tree, ObjectKind::Commit];
        let kind = kinds.into_iter().find(|kind| kind.word() == word)?;
        let is_it = |found: Result<Oid, GitError>| found.is_ok_and(|found| found == *oid);
        is_it(hash_object(self.format(), kind, &content)).then_some(word)
    }
}
