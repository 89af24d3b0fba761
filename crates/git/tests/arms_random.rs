//! The arms against random trees, random messes and random switches: after every preparation
//! the checkout equals its tree exactly, and the cache is the one it should be.

mod arms_support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use arms_support::{Bench, Seen, expected, look};
use loopwright_git::arms::Role::{self, Candidate, Incumbent};
use loopwright_git::types::{Mode, RepoPath, TreeListing};
use proptest::prelude::*;

/// Names that sort badly, look like something else, or are no text.
const NAMES: [&[u8]; 9] = [
    b"a",
    b"a-b",
    b"a.",
    b"b",
    b"cache",
    b"new\nline",
    b"\xff\xfe",
    b" ",
    b"\xc3\xa9",
];

type TreeFile = (Vec<u8>, Mode, Vec<u8>);

fn a_path() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0..NAMES.len(), 1..4).prop_map(|names| {
        let names: Vec<&[u8]> = names.into_iter().map(|index| NAMES[index]).collect();
        names.join(&b'/')
    })
}

fn a_file() -> impl Strategy<Value = TreeFile> {
    let mode = prop_oneof![
        4 => Just(Mode::File),
        1 => Just(Mode::Executable),
        1 => Just(Mode::Link)
    ];
    (a_path(), mode, 1..4_u8).prop_map(|(path, mode, content)| (path, mode, vec![b'0' + content]))
}

fn a_tree() -> impl Strategy<Value = Vec<TreeFile>> {
    proptest::collection::vec(a_file(), 0..12).prop_map(|files| {
        let mut tree: BTreeMap<Vec<u8>, TreeFile> = BTreeMap::new();
        for file in files {
            let path = RepoPath::new(file.0.clone());
            let clash = tree.keys().any(|other| {
                let other = RepoPath::new(other.clone());
                other.is_below(&path) || path.is_below(&other)
            });
            if !clash {
                tree.insert(file.0.clone(), file);
            }
        }
        tree.into_values().collect()
    })
}

/// Something a measurement may do to its checkout.
#[derive(Debug, Clone)]
enum Mess {
    Write(Vec<u8>, u8),
    Remove(Vec<u8>),
    Directory(Vec<u8>, u32),
    Link(Vec<u8>),
    HardLink(Vec<u8>, Vec<u8>),
    Mode(Vec<u8>, u32),
    Fifo(Vec<u8>),
    Repository(Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
}

fn a_mess() -> impl Strategy<Value = Vec<Mess>> {
    // Only root can look at what the first two lock up, so only root checks what becomes of it.
    let modes: &[u32] = &[0, 0o644, 0o500, 0o777, 0o4755];
    let from = if rustix::process::geteuid().is_root() {
        0
    } else {
        2
    };
    let mode = proptest::sample::select(&modes[from..]);
    let one = prop_oneof![
        3 => (a_path(), 1..4_u8).prop_map(|(path, content)| Mess::Write(path, b'0' + content)),
        2 => a_path().prop_map(Mess::Remove),
        1 => (a_path(), mode.clone()).prop_map(|(path, mode)| Mess::Directory(path, mode)),
        1 => a_path().prop_map(Mess::Link),
        1 => (a_path(), a_path()).prop_map(|(from, to)| Mess::HardLink(from, to)),
        1 => (a_path(), mode).prop_map(|(path, mode)| Mess::Mode(path, mode)),
        1 => a_path().prop_map(Mess::Fifo),
        1 => a_path().prop_map(Mess::Repository),
        1 => (a_path(), a_path()).prop_map(|(from, to)| Mess::Rename(from, to)),
    ];
    proptest::collection::vec(one, 0..10)
}

fn inside(root: &Path, path: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(path))
}

/// Does it as well as it can be done; what fails, fails.
fn do_mess(root: &Path, outside: &Path, mess: &[Mess]) {
    for step in mess {
        let _ = match step {
            Mess::Write(path, content) => {
                let path = inside(root, path);
                let _ = fs::create_dir_all(path.parent().unwrap());
                // Opening a pipe would wait for its reader.
                let may_open = path.is_file() || !path.exists();
                if may_open {
                    fs::write(&path, [*content])
                } else {
                    Ok(())
                }
            }
            Mess::Remove(path) => {
                let path = inside(root, path);
                fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path))
            }
            Mess::Directory(path, mode) => {
                let path = inside(root, path);
                fs::create_dir_all(&path).and_then(|()| set_mode(&path, *mode))
            }
            Mess::Link(path) => symlink(outside, inside(root, path)),
            Mess::HardLink(from, to) => fs::hard_link(inside(root, from), inside(root, to)),
            Mess::Mode(path, mode) => set_mode(&inside(root, path), *mode),
            Mess::Fifo(path) => {
                rustix::fs::mkfifoat(rustix::fs::CWD, inside(root, path), rustix::fs::Mode::RWXU)
                    .map_err(Into::into)
            }
            Mess::Repository(path) => {
                let path = inside(root, path).join(".git");
                fs::create_dir_all(&path).and_then(|()| fs::write(path.join("HEAD"), "ref"))
            }
            Mess::Rename(from, to) => fs::rename(inside(root, from), inside(root, to)),
        };
    }
}

fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    let real = path.canonicalize()?;
    if real.to_string_lossy().contains("outside") {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[derive(Debug, Clone)]
struct Step {
    incumbent: bool,
    tree: Vec<TreeFile>,
    again: bool,
    mess: Vec<Mess>,
    keep: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<bool>(), a_tree(), any::<bool>(), a_mess(), 0..4_u8).prop_map(
        |(incumbent, tree, again, mess, keep)| Step {
            incumbent,
            tree,
            again,
            mess,
            keep: keep == 0,
        },
    );
    proptest::collection::vec(step, 1..8)
}

/// What is in the checkout's cache by now: everything covered that the tree does not name.
fn cache_of(seen: &BTreeMap<Vec<u8>, Seen>, tree: &TreeListing) -> BTreeMap<Vec<u8>, Seen> {
    seen.iter()
        .filter(|(path, what)| {
            let covered = path.as_slice() == b"cache" || path.starts_with(b"cache/");
            covered && !claims(tree, path) && !matches!(what, Seen::Other("other"))
        })
        .map(|(path, what)| (path.clone(), what.clone()))
        .collect()
}

/// A path the tree itself has, needs as a directory, or has a file above.
fn claims(tree: &TreeListing, path: &[u8]) -> bool {
    let path = RepoPath::new(path);
    tree.keys()
        .any(|other| *other == path || other.is_below(&path) || path.is_below(other))
}

/// A cache directory that was the tree's once may have either one's mode.
fn forget_modes_of_cache(seen: &mut BTreeMap<Vec<u8>, Seen>) {
    for (path, what) in seen {
        if let (true, Seen::Directory(mode)) = (path.starts_with(b"cache"), what) {
            *mode = 0;
        }
    }
}

struct Model {
    caches: [BTreeMap<Vec<u8>, Seen>; 2],
    trees: [Option<TreeListing>; 2],
    taken: [bool; 2],
    incumbent: usize,
}

fn run_steps(cache: &[&str], steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut bench = Bench::new(cache);
    bench.arms.never_wait();
    let outside = bench.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "p").unwrap();
    let root = bench.arms.tree_path().to_path_buf();
    let mut model = Model {
        caches: [BTreeMap::new(), BTreeMap::new()],
        trees: [None, None],
        taken: [true, true],
        incumbent: 0,
    };
    for step in steps {
        let role: Role = if step.incumbent { Incumbent } else { Candidate };
        let slot = if step.incumbent {
            model.incumbent
        } else {
            1 - model.incumbent
        };
        let tree = match &model.trees[slot] {
            Some(old) if step.again => old.clone(),
            _ => bench.objects.listing_of(step.tree),
        };
        let fresh = model.taken[slot] || model.trees[slot].as_ref() != Some(&tree);
        if role == Candidate && fresh {
            model.caches[slot] = model.caches[model.incumbent].clone();
            model.taken[slot] = false;
        }
        let untouched = look(&outside);
        bench.prepare(role, &tree);
        prop_assert_eq!(look(&outside), untouched);
        let mut found = look(&root);
        let mut wanted = expected(&tree, &bench.objects);
        if !cache.is_empty() {
            let mut kept = model.caches[slot].clone();
            kept.retain(|path, _| !claims(&tree, path));
            for path in kept.keys() {
                let path = RepoPath::new(path.clone());
                let above = std::iter::successors(path.parent(), RepoPath::parent);
                wanted.extend(above.map(|path| (path.as_bytes().to_vec(), Seen::Directory(0o755))));
            }
            wanted.extend(kept);
            forget_modes_of_cache(&mut wanted);
            forget_modes_of_cache(&mut found);
        }
        prop_assert_eq!(&found, &wanted, "{}", role);
        do_mess(&root, &outside, &step.mess);
        bench.arms.after_run(role, &[]).unwrap();
        model.caches[slot] = cache_of(&look(&root), &tree);
        model.trees[slot] = Some(tree);
        if role == Candidate && step.keep {
            bench.arms.promote().unwrap();
            model.incumbent = slot;
            model.taken[1 - slot] = true;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn without_a_cache(steps in steps()) {
        run_steps(&[], steps)?;
    }

    #[test]
    fn with_a_cache(steps in steps()) {
        run_steps(&["cache"], steps)?;
    }
}
