//! Tree objects: parsed, compared and rewritten along the changed paths only.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ObjectStore;
use crate::error::GitError;
use crate::hash::ObjectKind;
use crate::types::{Change, Mode, Oid, RepoPath};

/// Names in parsed trees kept in memory; beyond that the cache starts anew.
const NAMES_KEPT: usize = 500_000;

/// What a tree holds under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Directory(Oid),
    Leaf(Mode, Oid),
}

/// One directory, by name.
pub(super) type TreeItems = BTreeMap<Box<[u8]>, Item>;

impl ObjectStore {
    pub(super) fn tree(&mut self, oid: &Oid) -> Result<Arc<TreeItems>, GitError> {
        if let Some(items) = self.trees.get(oid) {
            return Ok(Arc::clone(items));
        }
        let content = self.read_kind(oid, ObjectKind::Tree)?;
        let items = parse(&content, self.format.id_bytes())
            .ok_or_else(|| GitError::unexpected(format!("tree {oid} can't be read")))?;
        Ok(self.remember_tree(*oid, items))
    }

    fn remember_tree(&mut self, oid: Oid, items: TreeItems) -> Arc<TreeItems> {
        if self.tree_names > NAMES_KEPT {
            self.trees.clear();
            self.tree_names = 0;
        }
        self.tree_names += items.len() + 1;
        let items = Arc::new(items);
        self.trees.insert(oid, Arc::clone(&items));
        items
    }

    /// Collects the paths that differ, directory by directory; equal ids are not entered.
    pub(super) fn diff_into(
        &mut self,
        before: Option<Oid>,
        after: Option<Oid>,
        at: &RepoPath,
        changes: &mut Vec<Change>,
    ) -> Result<(), GitError> {
        if before == after {
            return Ok(());
        }
        let old = before.map(|oid| self.tree(&oid)).transpose()?;
        let new = after.map(|oid| self.tree(&oid)).transpose()?;
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        for (name, item) in old.iter() {
            self.diff_item(Some(*item), new.get(name).copied(), &at.join(name), changes)?;
        }
        for (name, item) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            self.diff_item(None, Some(*item), &at.join(name), changes)?;
        }
        Ok(())
    }

    fn diff_item(
        &mut self,
        old: Option<Item>,
        new: Option<Item>,
        path: &RepoPath,
        changes: &mut Vec<Change>,
    ) -> Result<(), GitError> {
        if old == new {
            return Ok(());
        }
        let (before, after) = (old.and_then(leaf), new.and_then(leaf));
        if before.is_some() || after.is_some() {
            changes.push(Change {
                path: path.clone(),
                before,
                after,
            });
        }
        let (before, after) = (old.and_then(directory), new.and_then(directory));
        if before.is_some() || after.is_some() {
            self.diff_into(before, after, path, changes)?;
        }
        Ok(())
    }

    /// Writes the tree with the changes applied; `None` if nothing is left in it.
    ///
    /// `depth` is how many bytes of each path lead to this directory.
    pub(super) fn rewrite(
        &mut self,
        tree: Option<Oid>,
        changes: &[&Change],
        depth: usize,
    ) -> Result<Option<Oid>, GitError> {
        let mut items = match tree {
            Some(oid) => TreeItems::clone(&*self.tree(&oid)?),
            None => TreeItems::new(),
        };
        for (name, here) in group(changes, depth) {
            let old = items.get(name).copied();
            let below = old.and_then(directory);
            let kept = if here.nested.is_empty() {
                below
            } else {
                self.rewrite(below, &here.nested, depth + name.len() + 1)?
            };
            let leaf = match here.leaf {
                Some(change) => change.after,
                None => old.and_then(leaf),
            };
            let item = match (kept, leaf) {
                (None, None) => {
                    items.remove(name);
                    continue;
                }
                (Some(oid), None) => Item::Directory(oid),
                (None, Some((mode, oid))) => Item::Leaf(mode, oid),
                (Some(_), Some(_)) => {
                    let path = RepoPath::new(name);
                    return Err(GitError::unexpected(format!(
                        "{path} would be a file and a directory at once"
                    )));
                }
            };
            items.insert(name.into(), item);
        }
        if items.is_empty() {
            return Ok(None);
        }
        let oid = self.write(ObjectKind::Tree, &encode(&items))?;
        self.remember_tree(oid, items);
        Ok(Some(oid))
    }

    /// Every tree and blob that `after` has and `before` lacks at the same place.
    pub(super) fn new_objects(
        &mut self,
        before: Option<Oid>,
        after: Oid,
        found: &mut Vec<Oid>,
    ) -> Result<(), GitError> {
        if before == Some(after) {
            return Ok(());
        }
        found.push(after);
        let old = before.map(|oid| self.tree(&oid)).transpose()?;
        let old = old.unwrap_or_default();
        for (name, item) in self.tree(&after)?.iter() {
            match *item {
                Item::Directory(oid) => {
                    let before = old.get(name).copied().and_then(directory);
                    self.new_objects(before, oid, found)?;
                }
                Item::Leaf(Mode::Submodule, _) => {}
                Item::Leaf(_, oid) => found.push(oid),
            }
        }
        Ok(())
    }
}

/// The changes that concern one name of a directory.
#[derive(Default)]
struct Here<'a> {
    leaf: Option<&'a Change>,
    nested: Vec<&'a Change>,
}

fn group<'a>(changes: &[&'a Change], depth: usize) -> BTreeMap<&'a [u8], Here<'a>> {
    let mut groups: BTreeMap<&[u8], Here<'_>> = BTreeMap::new();
    for change in changes {
        let rest = &change.path.as_bytes()[depth..];
        match rest.iter().position(|byte| *byte == b'/') {
            Some(slash) => groups
                .entry(&rest[..slash])
                .or_default()
                .nested
                .push(change),
            None => groups.entry(rest).or_default().leaf = Some(change),
        }
    }
    groups
}

fn directory(item: Item) -> Option<Oid> {
    match item {
        Item::Directory(oid) => Some(oid),
        Item::Leaf(..) => None,
    }
}

fn leaf(item: Item) -> Option<(Mode, Oid)> {
    match item {
        Item::Directory(_) => None,
        Item::Leaf(mode, oid) => Some((mode, oid)),
    }
}

fn parse(mut content: &[u8], id_bytes: usize) -> Option<TreeItems> {
    let mut items = TreeItems::new();
    while !content.is_empty() {
        let space = content.iter().position(|byte| *byte == b' ')?;
        let octal = std::str::from_utf8(&content[..space]).ok()?;
        let bits = u32::from_str_radix(octal, 8).ok()?;
        let rest = &content[space + 1..];
        let end = rest.iter().position(|byte| *byte == 0)?;
        let oid = Oid::from_bytes(rest.get(end + 1..end + 1 + id_bytes)?)?;
        let item = match bits & 0o170_000 {
            0o040_000 => Item::Directory(oid),
            0o120_000 => Item::Leaf(Mode::Link, oid),
            0o160_000 => Item::Leaf(Mode::Submodule, oid),
            _ if bits & 0o100 != 0 => Item::Leaf(Mode::Executable, oid),
            _ => Item::Leaf(Mode::File, oid),
        };
        items.insert(rest[..end].into(), item);
        content = &rest[end + 1 + id_bytes..];
    }
    Some(items)
}

/// The bytes of a tree; git sorts a directory as if its name ended with a slash.
fn encode(items: &TreeItems) -> Vec<u8> {
    let mut sorted: Vec<(Vec<u8>, &[u8], Item)> = items
        .iter()
        .map(|(name, item)| {
            let mut key = name.to_vec();
            if matches!(item, Item::Directory(_)) {
                key.push(b'/');
            }
            (key, &**name, *item)
        })
        .collect();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    let mut bytes = Vec::new();
    for (_, name, item) in sorted {
        let (octal, oid) = match item {
            Item::Directory(oid) => ("40000", oid),
            Item::Leaf(mode, oid) => (mode.octal(), oid),
        };
        bytes.extend_from_slice(octal.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(oid.as_bytes());
    }
    bytes
}
