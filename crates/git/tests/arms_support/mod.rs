//! What the tests of the arms share: an object store in memory, and a close look at a checkout.
#![allow(dead_code, reason = "each test uses its own part of it")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopwright_git::GitError;
use loopwright_git::arms::{ArmRules, Arms, InputLink, Patterns, Prepared, Role};
use loopwright_git::types::{Mode, Objects, Oid, RepoPath, TreeListing};
use sha2::{Digest, Sha256};

/// Blobs in memory, named by their content.
#[derive(Debug, Default)]
pub struct MemoryObjects {
    blobs: BTreeMap<Oid, Vec<u8>>,
    pub reads: usize,
}

impl MemoryObjects {
    pub fn add(&mut self, content: &[u8]) -> Oid {
        let oid = Oid::from_bytes(&Sha256::digest(content)).unwrap();
        self.blobs.insert(oid, content.to_vec());
        oid
    }

    /// A listing of plain files.
    pub fn tree(&mut self, files: &[(&str, &str)]) -> TreeListing {
        self.listing_of(files.iter().map(|(path, content)| {
            (
                path.as_bytes().to_vec(),
                Mode::File,
                content.as_bytes().to_vec(),
            )
        }))
    }

    pub fn listing_of(
        &mut self,
        files: impl IntoIterator<Item = (Vec<u8>, Mode, Vec<u8>)>,
    ) -> TreeListing {
        let entries = files
            .into_iter()
            .map(|(path, mode, content)| (RepoPath::new(path), (mode, self.add(&content))));
        Arc::new(entries.collect())
    }

    pub fn content(&self, oid: &Oid) -> &[u8] {
        &self.blobs[oid]
    }
}

impl Objects for MemoryObjects {
    fn listing(&mut self, _tree: &Oid) -> Result<TreeListing, GitError> {
        unreachable!("arms are given listings")
    }

    fn read_blob(&mut self, oid: &Oid) -> Result<Vec<u8>, GitError> {
        self.reads += 1;
        Ok(self.blobs[oid].clone())
    }

    fn checkout_bytes(
        &mut self,
        _path: &RepoPath,
        _mode: Mode,
        oid: &Oid,
    ) -> Result<Vec<u8>, GitError> {
        self.read_blob(oid)
    }
}

/// Arms in a temporary directory.
pub struct Bench {
    pub directory: tempfile::TempDir,
    pub arms: Arms,
    pub objects: MemoryObjects,
    rules: ArmRules,
}

impl Bench {
    pub fn new(cache: &[&str]) -> Self {
        Self::with_links(cache, Vec::new())
    }

    /// For tests that build nothing, so that nothing can be stale.
    pub fn hasty(cache: &[&str]) -> Self {
        let mut bench = Self::new(cache);
        bench.arms.never_wait();
        bench
    }

    pub fn with_links(cache: &[&str], links: Vec<InputLink>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cache = Patterns::parse(cache).unwrap();
        let rules = ArmRules { cache, links };
        let arms = Arms::open(&directory.path().join("arms"), rules.clone()).unwrap();
        Self {
            directory,
            arms,
            objects: MemoryObjects::default(),
            rules,
        }
    }

    pub fn tree(&mut self, files: &[(&str, &str)]) -> TreeListing {
        self.objects.tree(files)
    }

    pub fn prepare(&mut self, role: Role, target: &TreeListing) -> Prepared {
        self.arms
            .prepare(role, target, &mut self.objects, None)
            .unwrap()
    }

    /// Prepares, lets `run` work in the checkout, and notes the end.
    pub fn measure<T>(
        &mut self,
        role: Role,
        target: &TreeListing,
        run: impl FnOnce(&Path) -> T,
    ) -> T {
        let prepared = self.prepare(role, target);
        let result = run(&prepared.path);
        self.arms.after_run(role, &[]).unwrap();
        result
    }

    /// What a killed process and its successor would do.
    pub fn reopen(self) -> Self {
        let Self {
            directory,
            arms,
            objects,
            rules,
        } = self;
        drop(arms);
        let arms = Arms::open(&directory.path().join("arms"), rules.clone()).unwrap();
        Self {
            directory,
            arms,
            objects,
            rules,
        }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.arms.tree_path().join(path)
    }
}

/// One thing in a checkout, as exactly as git would tell it, and directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    File(u32, Vec<u8>),
    Link(OsString),
    Directory(u32),
    Other(&'static str),
}

/// Everything below `root` by its path, following no link.
pub fn look(root: &Path) -> BTreeMap<Vec<u8>, Seen> {
    let mut seen = BTreeMap::new();
    look_into(root, &[], &mut seen);
    seen
}

fn look_into(directory: &Path, prefix: &[u8], seen: &mut BTreeMap<Vec<u8>, Seen>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        let mut name = prefix.to_vec();
        name.extend_from_slice(entry.file_name().as_bytes());
        let meta = fs::symlink_metadata(&path).unwrap();
        let kind = meta.file_type();
        let what = if kind.is_symlink() {
            Seen::Link(fs::read_link(&path).unwrap().into_os_string())
        } else if kind.is_dir() {
            let mut inner = name.clone();
            inner.push(b'/');
            look_into(&path, &inner, seen);
            Seen::Directory(meta.mode() & 0o7777)
        } else if kind.is_file() {
            Seen::File(meta.mode() & 0o7777, fs::read(&path).unwrap())
        } else if kind.is_fifo() {
            Seen::Other("fifo")
        } else {
            Seen::Other("other")
        };
        seen.insert(name, what);
    }
}

/// What a checkout of `listing` must look like.
pub fn expected(listing: &TreeListing, objects: &MemoryObjects) -> BTreeMap<Vec<u8>, Seen> {
    let mut seen = BTreeMap::new();
    for (path, (mode, oid)) in listing.iter() {
        let mut above = path.parent();
        while let Some(directory) = above {
            seen.insert(directory.as_bytes().to_vec(), Seen::Directory(0o755));
            above = directory.parent();
        }
        let content = || objects.content(oid).to_vec();
        let what = match mode {
            Mode::File => Seen::File(0o644, content()),
            Mode::Executable => Seen::File(0o755, content()),
            Mode::Link => Seen::Link(OsString::from_vec(content())),
            Mode::Submodule => Seen::Directory(0o755),
        };
        seen.insert(path.as_bytes().to_vec(), what);
    }
    seen
}

/// The checkout at the active place equals `listing` and nothing else.
#[track_caller]
pub fn assert_exact(bench: &Bench, listing: &TreeListing) {
    let found = look(bench.arms.tree_path());
    assert_eq!(found, expected(listing, &bench.objects));
}

pub fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
