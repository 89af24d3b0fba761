//! Small objects in memory: the incumbent's commit, its trees, the files that candidates change are
//! asked for again in every trial, and never change.

use std::collections::HashMap;

use crate::types::Oid;

/// Larger objects are read again.
const OBJECT_BYTES_MAX: usize = 32 * 1024;

/// How much is kept in all, before everything is forgotten.
const BYTES_MAX: usize = 4 << 20;

/// Objects by id: the type's word and the content.
#[derive(Debug, Default)]
pub(super) struct Recent {
    objects: HashMap<Oid, (String, Vec<u8>)>,
    bytes: usize,
}

impl Recent {
    pub(super) fn get(&self, oid: &Oid) -> Option<(String, Vec<u8>)> {
        self.objects.get(oid).cloned()
    }

    pub(super) fn remember(&mut self, oid: &Oid, word: &str, content: &[u8]) {
        if content.len() > OBJECT_BYTES_MAX || self.objects.contains_key(oid) {
            return;
        }
        if self.bytes + content.len() > BYTES_MAX {
            *self = Self::default();
        }
        self.bytes += content.len();
        let object = (word.to_owned(), content.to_vec());
        self.objects.insert(*oid, object);
    }
}
