//! What a work tree looked like when it was last brought to a known state.
//!
//! A tree of directories as it stands on the disk, each file with its stamp and its git entry.
//! The scan walks it and the disk side by side and allocates nothing for what is unchanged.

use super::stamp::Stamp;
use crate::types::{Mode, Oid};

/// A directory.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// Stamp of the directory itself; unchanged means no name came or went.
    pub(crate) stamp: Stamp,
    /// The names have to be read again, whatever the stamp says.
    pub(crate) unsure: bool,
    /// It stands for a submodule (and may be empty).
    pub(crate) submodule: bool,
    /// In byte order of names.
    pub(crate) entries: Vec<Entry>,
}

/// A name in a directory.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Box<[u8]>,
    pub(crate) node: Node,
}

/// What stands under a name.
#[derive(Debug)]
pub(crate) enum Node {
    Directory(Box<Directory>),
    File(FileNode),
}

/// A file or link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileNode {
    pub(crate) mode: Mode,
    /// The id of the bytes on the disk (not the blob's where a conversion applies).
    pub(crate) disk: Oid,
    pub(crate) stamp: Stamp,
    /// The stamp is too fresh to be believed.
    pub(crate) racy: bool,
}

impl Directory {
    pub(crate) fn find(&self, name: &[u8]) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| (*entry.name).cmp(name))
    }

    /// Notes a file; directories on the way come into being.
    ///
    /// `mode` is what directories made just now have.
    pub(crate) fn insert(&mut self, path: &[u8], file: FileNode, mode: u32) {
        match split(path) {
            (name, None) => {
                let node = Node::File(file);
                match self.find(name) {
                    Ok(at) => self.entries[at].node = node,
                    Err(at) => self.insert_at(at, name, node),
                }
            }
            (name, Some(rest)) => self.enter(name, mode).insert(rest, file, mode),
        }
        self.unsure = true;
    }

    /// Notes a submodule's directory.
    pub(crate) fn insert_submodule(&mut self, path: &[u8], mode: u32) {
        let (name, rest) = split(path);
        let directory = self.enter(name, mode);
        match rest {
            None => directory.submodule = true,
            Some(rest) => directory.insert_submodule(rest, mode),
        }
        self.unsure = true;
    }

    /// Forgets what stood at a path, and directories left empty by that.
    pub(crate) fn remove(&mut self, path: &[u8]) {
        let (name, rest) = split(path);
        self.unsure = true;
        let Ok(at) = self.find(name) else { return };
        let gone = match (rest, &mut self.entries[at].node) {
            (None, _) => true,
            (Some(rest), Node::Directory(directory)) => {
                directory.remove(rest);
                directory.entries.is_empty() && !directory.submodule
            }
            (Some(_), Node::File(_)) => false,
        };
        if gone {
            self.entries.remove(at);
        }
    }

    fn enter(&mut self, name: &[u8], mode: u32) -> &mut Directory {
        let fresh = || {
            Node::Directory(Box::new(Directory {
                unsure: true,
                stamp: Stamp {
                    mode,
                    ..Stamp::default()
                },
                ..Directory::default()
            }))
        };
        let at = match self.find(name) {
            Ok(at) => {
                if matches!(self.entries[at].node, Node::File(_)) {
                    self.entries[at].node = fresh();
                }
                at
            }
            Err(at) => {
                self.insert_at(at, name, fresh());
                at
            }
        };
        match &mut self.entries[at].node {
            Node::Directory(directory) => directory,
            Node::File(_) => unreachable!("a directory was put here just now"),
        }
    }

    fn insert_at(&mut self, at: usize, name: &[u8], node: Node) {
        let name = name.into();
        self.entries.insert(at, Entry { name, node });
    }
}

fn split(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    match path.iter().position(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], Some(&path[slash + 1..])),
        None => (path, None),
    }
}
