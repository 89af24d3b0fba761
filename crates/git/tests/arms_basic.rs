//! The arms: after a preparation they hold exactly their tree, whatever happened before.

mod arms_support;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use arms_support::{Bench, MemoryObjects, assert_exact, expected, look, read, write};
use loopwright_git::GitError;
use loopwright_git::arms::Role::{Candidate, Incumbent};
use loopwright_git::arms::{ArmRules, Arms, ArmsError, Submodules};
use loopwright_git::types::{Mode, Oid, RepoPath, TreeListing};

#[test]
fn both_arms_are_measured_at_the_same_path() {
    let mut bench = Bench::new(&[]);
    let tree = bench.tree(&[("x", "10")]);
    let pwd = |path: &Path| {
        let output = Command::new("pwd")
            .arg("-P")
            .current_dir(path)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let one = bench.measure(Incumbent, &tree, pwd);
    let inode = fs::metadata(bench.arms.tree_path()).unwrap().ino();
    let other = bench.measure(Candidate, &tree, pwd);
    assert_eq!(one, other);
    assert_ne!(fs::metadata(bench.arms.tree_path()).unwrap().ino(), inode);
    bench.prepare(Incumbent, &tree);
    assert_eq!(fs::metadata(bench.arms.tree_path()).unwrap().ino(), inode);
    assert!(bench.arms.tree_path().starts_with(bench.arms.ceiling()));
}

#[test]
fn a_tree_is_checked_out_exactly() {
    let mut bench = Bench::new(&[]);
    let odd = b"odd \n\xff name".to_vec();
    let target = bench.objects.listing_of([
        (
            b"dir/run.sh".to_vec(),
            Mode::Executable,
            b"#!/bin/sh\n".to_vec(),
        ),
        (b"dir/sub/deep".to_vec(), Mode::File, vec![]),
        (b"dir-a".to_vec(), Mode::File, b"sorts between".to_vec()),
        (b"link".to_vec(), Mode::Link, b"../../outside".to_vec()),
        (odd, Mode::File, b"odd".to_vec()),
    ]);
    let prepared = bench.prepare(Candidate, &target);
    assert_eq!(prepared.switched, 5);
    assert_exact(&bench, &target);
    bench.arms.after_run(Candidate, &[]).unwrap();
    let reads = bench.objects.reads;
    let again = bench.prepare(Candidate, &target);
    assert_eq!((again.switched, again.removed), (0, 0));
    assert_eq!(
        bench.objects.reads, reads,
        "nothing is read for a tree that is there"
    );
    assert_eq!(again.waited, Duration::ZERO);
}

/// Everything C2 does to a workspace, done to an arm.
fn make_a_mess(root: &Path) {
    fs::write(root.join("x"), "50").unwrap();
    fs::write(root.join("new file\nwith a newline"), "?").unwrap();
    let raw = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    fs::write(root.join(raw), "?").unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    write(&root.join("nested/.git/config"), "[core]");
    write(&root.join("nested/inner"), "1");
    write(&root.join(".git/HEAD"), "ref");
    fs::remove_file(root.join("d/keep")).unwrap();
    fs::create_dir(root.join("d/keep")).unwrap();
    fs::remove_dir_all(root.join("e")).unwrap();
    symlink("/", root.join("e")).unwrap();
    let fifo = Command::new("mkfifo")
        .arg(root.join("pipe"))
        .status()
        .unwrap();
    assert!(fifo.success());
    write(&root.join("locked/inner/file"), "x");
    fs::set_permissions(root.join("locked/inner"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(root.join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o500)).unwrap();
    let mut deep = root.join("deep");
    for _ in 0..150 {
        deep.push("d");
    }
    write(&deep.join("bottom"), "x");
    fs::set_permissions(root, fs::Permissions::from_mode(0o555)).unwrap();
}

#[test]
fn whatever_a_measurement_leaves_is_gone() {
    let mut bench = Bench::new(&[]);
    let target = bench.objects.listing_of([
        (b"x".to_vec(), Mode::File, b"10".to_vec()),
        (b"run.sh".to_vec(), Mode::Executable, b"echo".to_vec()),
        (b"d/keep".to_vec(), Mode::File, b"k".to_vec()),
        (b"e/f/g".to_vec(), Mode::File, b"g".to_vec()),
    ]);
    for role in [Candidate, Incumbent, Candidate, Incumbent] {
        bench.measure(role, &target, make_a_mess);
        bench.prepare(role, &target);
        assert_exact(&bench, &target);
        bench.arms.after_run(role, &[]).unwrap();
    }
}

#[test]
fn towers_of_directories_are_removed() {
    let mut bench = Bench::new(&[]);
    let target = bench.tree(&[("x", "1")]);
    bench.measure(Candidate, &target, |root| {
        // Deeper than a path can be long, and than a process may have files open.
        let mut at = fs::File::open(root).unwrap();
        for _ in 0..1500 {
            rustix::fs::mkdirat(&at, "dd", rustix::fs::Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY;
            at = rustix::fs::openat(&at, "dd", flags, rustix::fs::Mode::empty())
                .unwrap()
                .into();
        }
    });
    bench.prepare(Candidate, &target);
    assert_exact(&bench, &target);
}

#[test]
fn a_same_size_change_within_the_clock_tick_is_seen() {
    let mut bench = Bench::new(&[]);
    let target = bench.tree(&[("x", "10")]);
    for _ in 0..50 {
        bench.measure(Candidate, &target, |root| {
            let meta = fs::metadata(root.join("x")).unwrap();
            fs::write(root.join("x"), "99").unwrap();
            let file = fs::File::options()
                .write(true)
                .open(root.join("x"))
                .unwrap();
            file.set_modified(meta.modified().unwrap()).unwrap();
        });
        bench.prepare(Candidate, &target);
        assert_eq!(read(&bench.at("x")), "10");
        bench.arms.after_run(Candidate, &[]).unwrap();
    }
}

#[test]
fn hard_links_to_other_files_are_not_written_through() {
    let mut bench = Bench::new(&[]);
    let target = bench.tree(&[("x", "10")]);
    let precious = bench.directory.path().join("precious");
    fs::write(&precious, "99").unwrap();
    bench.measure(Candidate, &target, |root| {
        fs::remove_file(root.join("x")).unwrap();
        fs::hard_link(&precious, root.join("x")).unwrap();
    });
    bench.prepare(Candidate, &target);
    assert_eq!(read(&bench.at("x")), "10");
    assert_eq!(read(&precious), "99");
}

#[test]
fn a_run_that_replaces_its_checkout_is_survived() {
    let mut bench = Bench::new(&["cache"]);
    let target = bench.tree(&[("x", "10")]);
    let outside = bench.directory.path().join("outside");
    write(&outside.join("x"), "precious");
    for gone in [true, false] {
        bench.measure(Incumbent, &target, |root| {
            fs::remove_dir_all(root).unwrap();
            if !gone {
                symlink(&outside, root).unwrap();
            }
        });
        bench.measure(Candidate, &target, |_| ());
        bench.prepare(Incumbent, &target);
        assert_exact(&bench, &target);
        assert_eq!(read(&outside.join("x")), "precious");
    }
}

#[test]
fn touched_protected_files_are_named() {
    let mut bench = Bench::new(&[]);
    let target = bench.tree(&[
        ("eval/a", "a"),
        ("eval/b", "b"),
        ("eval/c", "c"),
        ("x", "1"),
    ]);
    let watched: Vec<RepoPath> = ["eval/a", "eval/b", "eval/c"].map(RepoPath::from).to_vec();
    bench.prepare(Candidate, &target);
    let trace = bench.arms.after_run(Candidate, &watched).unwrap();
    assert!(trace.touched.is_empty());
    bench.prepare(Candidate, &target);
    fs::write(bench.at("eval/a"), "z").unwrap();
    fs::remove_file(bench.at("eval/c")).unwrap();
    symlink("/dev/null", bench.at("eval/c")).unwrap();
    fs::write(bench.at("x"), "not watched").unwrap();
    let trace = bench.arms.after_run(Candidate, &watched).unwrap();
    assert_eq!(trace.touched, ["eval/a", "eval/c"].map(RepoPath::from));
    bench.prepare(Candidate, &target);
    fs::remove_dir_all(bench.at("eval")).unwrap();
    let trace = bench.arms.after_run(Candidate, &watched).unwrap();
    assert_eq!(trace.touched, watched);
}

#[test]
fn changed_conversions_rewrite_files_whose_blobs_did_not_change() {
    let mut bench = Bench::new(&[]);
    let before = bench.tree(&[(".gitattributes", "* -text"), ("x", "1")]);
    let after = bench.tree(&[(".gitattributes", "* text"), ("x", "1")]);
    bench.measure(Candidate, &before, |_| ());
    assert_eq!(bench.prepare(Candidate, &after).switched, 2);
}

struct OneSubmodule(MemoryObjects, TreeListing);

impl Submodules for OneSubmodule {
    fn listing(&mut self, path: &RepoPath, _: &Oid) -> Result<Option<TreeListing>, GitError> {
        Ok((*path == RepoPath::from("lib")).then(|| self.1.clone()))
    }

    fn checkout_bytes(
        &mut self,
        submodule: &RepoPath,
        inner: &RepoPath,
        mode: Mode,
        oid: &Oid,
    ) -> Result<Vec<u8>, GitError> {
        use loopwright_git::types::Objects as _;
        assert_eq!(*submodule, RepoPath::from("lib"));
        self.0.checkout_bytes(inner, mode, oid)
    }
}

#[test]
fn submodules_are_spelled_out_or_left_empty() {
    let mut bench = Bench::new(&[]);
    let commit = Oid::from_bytes(&[7; 32]).unwrap();
    let mut inner = MemoryObjects::default();
    let inner_tree = inner.tree(&[("y", "y"), ("z/w", "w")]);
    let mut provider = OneSubmodule(inner, inner_tree);
    let plain = bench.tree(&[("x", "1")]);
    let mut target = plain.as_ref().clone();
    target.insert(RepoPath::from("lib"), (Mode::Submodule, commit));
    target.insert(RepoPath::from("unknown"), (Mode::Submodule, commit));
    let target = TreeListing::new(target);
    for _ in 0..2 {
        let submodules: Option<&mut dyn Submodules> = Some(&mut provider);
        let objects = &mut bench.objects;
        bench
            .arms
            .prepare(Candidate, &target, objects, submodules)
            .unwrap();
        assert_eq!(read(&bench.at("lib/y")), "y");
        assert_eq!(read(&bench.at("lib/z/w")), "w");
        assert_eq!(fs::read_dir(bench.at("unknown")).unwrap().count(), 0);
        fs::write(bench.at("lib/y"), "edited").unwrap();
        write(&bench.at("unknown/new"), "x");
        bench.arms.after_run(Candidate, &[]).unwrap();
    }
    bench.prepare(Candidate, &plain);
    assert_exact(&bench, &plain);
    // Without anyone who knows them: empty directories.
    let mut fresh = Bench::new(&[]);
    fresh.objects = bench.objects;
    fresh.prepare(Candidate, &target);
    assert_eq!(
        look(fresh.arms.tree_path()),
        expected(&target, &fresh.objects)
    );
}

#[test]
fn a_listing_may_spell_submodules_out_itself() {
    let mut bench = Bench::new(&[]);
    let commit = Oid::from_bytes(&[7; 32]).unwrap();
    let mut target = bench
        .tree(&[("lib-x", "1"), ("lib/y", "y"), ("lib/in/z", "z")])
        .as_ref()
        .clone();
    target.insert(RepoPath::from("lib"), (Mode::Submodule, commit));
    target.insert(RepoPath::from("lib/in"), (Mode::Submodule, commit));
    target.insert(RepoPath::from("lib/none"), (Mode::Submodule, commit));
    let target = TreeListing::new(target);
    for _ in 0..2 {
        bench.prepare(Candidate, &target);
        assert_exact(&bench, &target);
        fs::write(bench.at("lib/y"), "edited").unwrap();
        write(&bench.at("lib/none/new"), "x");
        bench.arms.after_run(Candidate, &[]).unwrap();
    }
}

#[test]
fn impossible_listings_are_refused() {
    let mut bench = Bench::new(&[]);
    let clash = bench.tree(&[
        ("eval", "a file now"),
        ("eval-x", "x"),
        ("eval/score.py", "protected"),
    ]);
    let refused = bench
        .arms
        .prepare(Candidate, &clash, &mut bench.objects, None);
    assert!(
        matches!(refused, Err(ArmsError::Clash { .. })),
        "{refused:?}"
    );
    let bad = bench.tree(&[("a/../../b", "x")]);
    let refused = bench
        .arms
        .prepare(Candidate, &bad, &mut bench.objects, None);
    assert!(
        matches!(refused, Err(ArmsError::UnsafePath(_))),
        "{refused:?}"
    );
}

#[test]
fn one_process_at_a_time() {
    let bench = Bench::new(&[]);
    let again = Arms::open(&bench.directory.path().join("arms"), ArmRules::default());
    assert!(matches!(again, Err(ArmsError::InUse(_))));
    let mut bench = bench.reopen();
    assert!(bench.arms.promote().is_err(), "nothing was measured");
    assert!(bench.arms.after_run(Candidate, &[]).is_err());
}
