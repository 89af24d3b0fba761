//! The arms: what a preparation leaves, what survives it, and who starts from what.

mod arms_support;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use arms_support::{Bench, MemoryObjects, assert_exact, expected, look};
use loopwright_git::GitError;
use loopwright_git::arms::Role::{Candidate, Incumbent};
use loopwright_git::arms::{
    ArmRules, Arms, ArmsError, InputLink, LinkFingerprint, Patterns, Submodules,
};
use loopwright_git::types::{Mode, Oid, RepoPath, TreeListing};

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

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
fn a_cache_survives_and_nothing_beside_it() {
    let mut bench = Bench::new(&["build/out", "**/__pycache__", "log-*"]);
    let target = bench.tree(&[("x", "1"), ("pkg/m.py", "m")]);
    bench.measure(Incumbent, &target, |root| {
        write(&root.join("build/out/a/b"), "cached");
        write(&root.join("build/else"), "not cached");
        write(&root.join("pkg/__pycache__/m.pyc"), "cached");
        write(&root.join("gone/__pycache__/m.pyc"), "its sources are gone");
        write(&root.join("log-1"), "cached");
        write(&root.join("pkg/log-1"), "not cached");
    });
    let kept = [
        "build",
        "build/out",
        "build/out/a",
        "build/out/a/b",
        "log-1",
    ];
    let kept = kept
        .into_iter()
        .chain(["pkg/__pycache__", "pkg/__pycache__/m.pyc"]);
    let mut names: Vec<String> = kept.map(str::to_owned).collect();
    names.extend(["pkg", "pkg/m.py", "x"].map(str::to_owned));
    names.sort();
    for role in [Incumbent, Candidate] {
        bench.prepare(role, &target);
        let found: Vec<String> = look(bench.arms.tree_path())
            .into_keys()
            .map(|name| String::from_utf8(name).unwrap())
            .collect();
        assert_eq!(found, names, "{role}");
        bench.arms.after_run(role, &[]).unwrap();
    }
}

#[test]
fn one_candidate_cannot_poison_the_next() {
    let mut bench = Bench::new(&["cache"]);
    let base = bench.tree(&[("x", "1")]);
    let stamp = bench.measure(Incumbent, &base, |root| {
        write(&root.join("cache/sub/honest"), "honest");
        write(&root.join("cache/same"), "same");
        fs::metadata(root.join("cache/same"))
            .unwrap()
            .modified()
            .unwrap()
    });
    for (number, poison) in ["a", "b", "c"].iter().enumerate() {
        let target = bench.tree(&[("x", poison)]);
        bench.measure(Candidate, &target, |root| {
            let mut found: Vec<_> = look(&root.join("cache")).into_keys().collect();
            found.sort();
            assert_eq!(
                found,
                [&b"same"[..], b"sub", b"sub/honest"],
                "candidate {number}"
            );
            assert_eq!(read(&root.join("cache/sub/honest")), "honest");
            let meta = fs::metadata(root.join("cache/same")).unwrap();
            assert_eq!(meta.modified().unwrap(), stamp, "times come along");
            // The same size, and the time set back: only the change time tells.
            fs::write(root.join("cache/sub/honest"), "poison").unwrap();
            fs::write(root.join("cache/hit"), poison).unwrap();
            fs::write(root.join("cache/same"), "emas").unwrap();
            let file = fs::File::options()
                .write(true)
                .open(root.join("cache/same"))
                .unwrap();
            file.set_modified(stamp).unwrap();
        });
        // The same candidate again goes on with its own.
        bench.measure(Candidate, &target, |root| {
            assert_eq!(read(&root.join("cache/hit")), *poison);
        });
        bench.arms.reject();
    }
    // Rejected and measured again: from the incumbent's once more.
    let last = bench.tree(&[("x", "c")]);
    bench.measure(Candidate, &last, |root| {
        assert!(!root.join("cache/hit").exists());
    });
}

#[test]
fn a_kept_candidate_hands_its_cache_on() {
    let mut bench = Bench::new(&["cache"]);
    let base = bench.tree(&[("x", "1")]);
    bench.measure(Incumbent, &base, |root| {
        write(&root.join("cache/of"), "base");
    });
    let better = bench.tree(&[("x", "2")]);
    bench.measure(Candidate, &better, |root| {
        write(&root.join("cache/of"), "better");
    });
    bench.arms.promote().unwrap();
    let bench_inode = |bench: &Bench| fs::metadata(bench.arms.tree_path()).unwrap().ino();
    let kept_inode = bench_inode(&bench);
    let prepared = bench.prepare(Incumbent, &better);
    assert_eq!(prepared.switched, 0, "nothing is copied at a keep");
    assert_eq!(bench_inode(&bench), kept_inode);
    assert_eq!(read(&bench.at("cache/of")), "better");
    bench.arms.after_run(Incumbent, &[]).unwrap();
    let next = bench.tree(&[("x", "3")]);
    bench.measure(Candidate, &next, |root| {
        assert_eq!(read(&root.join("cache/of")), "better");
    });
}

#[test]
fn a_proposed_cache_has_no_effect() {
    let mut bench = Bench::new(&["cache"]);
    let run = "[ -e cache/hit ] && echo m=1 || echo m=$(cat x)";
    let measure = |root: &Path| {
        let output = Command::new("sh")
            .arg("run.sh")
            .current_dir(root)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let base = bench.tree(&[("x", "10"), ("run.sh", run)]);
    assert_eq!(bench.measure(Incumbent, &base, measure), "m=10\n");
    // What the proposer left in its ignored cache/ is no part of its tree.
    let note = format!("{run}\n# note");
    let proposal = bench.tree(&[("x", "10"), ("run.sh", &note)]);
    assert_eq!(bench.measure(Candidate, &proposal, measure), "m=10\n");
    // Forced into the tree it is a file like any other, as it would be in any clone ...
    let forced = bench.tree(&[("x", "10"), ("run.sh", run), ("cache/hit", "")]);
    assert_eq!(
        bench.arms.tracked_cache_paths(&forced),
        [RepoPath::from("cache/hit")]
    );
    assert_eq!(bench.measure(Candidate, &forced, measure), "m=1\n");
    // ... and gone with the next tree.
    assert_eq!(bench.measure(Candidate, &proposal, measure), "m=10\n");
    // Also when it was kept, and in both arms.
    assert_eq!(bench.measure(Candidate, &forced, measure), "m=1\n");
    bench.arms.promote().unwrap();
    assert_eq!(bench.measure(Candidate, &proposal, measure), "m=10\n");
    assert_eq!(bench.measure(Incumbent, &base, measure), "m=10\n");
}

#[test]
fn names_that_share_a_cache_file_still_share_it() {
    let mut bench = Bench::new(&["cache"]);
    let base = bench.tree(&[("x", "1")]);
    bench.measure(Incumbent, &base, |root| {
        write(&root.join("cache/one"), "v1");
        fs::hard_link(root.join("cache/one"), root.join("cache/two")).unwrap();
        symlink("one", root.join("cache/link")).unwrap();
        fs::set_permissions(root.join("cache"), fs::Permissions::from_mode(0o555)).unwrap();
    });
    for number in 0..3 {
        let target = bench.tree(&[("x", &format!("c{number}"))]);
        bench.measure(Candidate, &target, |root| {
            let inode = |name: &str| fs::metadata(root.join("cache").join(name)).unwrap().ino();
            assert_eq!(inode("one"), inode("two"));
            assert_eq!(read(&root.join("cache/link")), "v1");
            let mode = fs::metadata(root.join("cache")).unwrap().mode();
            assert_eq!(mode & 0o777, 0o555);
            fs::write(root.join("cache/one"), "v2").unwrap();
        });
    }
}

#[test]
fn sources_the_trees_agree_on_have_the_same_time_in_both_arms() {
    let mut bench = Bench::new(&["cache"]);
    let base = bench.tree(&[("same", "s"), ("x", "1")]);
    let time = |root: &Path, name: &str| fs::metadata(root.join(name)).unwrap().modified().unwrap();
    let (same, x) = bench.measure(Incumbent, &base, |root| {
        (time(root, "same"), time(root, "x"))
    });
    let target = bench.tree(&[("same", "s"), ("x", "2")]);
    bench.measure(Candidate, &target, |root| {
        assert_eq!(time(root, "same"), same);
        assert!(time(root, "x") > x);
    });
    // Back to the incumbent's tree: same content, but the arm's own file is rewritten.
    bench.measure(Candidate, &base, |root| {
        assert_eq!(read(&root.join("x")), "1");
        assert_eq!(time(root, "x"), x);
    });
    assert_eq!(bench.prepare(Candidate, &base).switched, 0);
}

#[test]
fn a_file_the_cache_was_built_without_is_written_anew() {
    let mut bench = Bench::new(&["cache"]);
    let (old, new) = (bench.tree(&[("x", "1")]), bench.tree(&[("x", "2")]));
    bench.measure(Incumbent, &old, |_| ());
    bench.measure(Candidate, &new, |_| ());
    // The incumbent's cache is written again, later than the candidate's file.
    bench.measure(Incumbent, &old, |root| write(&root.join("cache/out"), "1"));
    bench.arms.reject();
    let prepared = bench.prepare(Candidate, &new);
    assert_eq!(
        prepared.switched, 1,
        "right content, but older than an output of another"
    );
    let time = |name: &str| fs::metadata(bench.at(name)).unwrap().modified().unwrap();
    assert!(time("x") > time("cache/out"));
    assert!(prepared.waited > Duration::ZERO);
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
fn setup_runs_when_its_inputs_changed() {
    let mut bench = Bench::new(&["deps"]);
    let inputs = Patterns::parse(&["lock", "vendor"]).unwrap();
    let base = bench.tree(&[("lock", "1"), ("x", "1")]);
    let other = bench.tree(&[("lock", "1"), ("x", "2")]);
    let updated = bench.tree(&[("lock", "2"), ("x", "2")]);
    let step = |bench: &mut Bench, role, tree: &TreeListing, expected: bool| {
        bench.prepare(role, tree);
        assert_eq!(bench.arms.needs_setup(role, &inputs).unwrap(), expected);
        if expected {
            write(&bench.at("deps/made"), "by setup");
            bench.arms.setup_done(role, &inputs).unwrap();
        }
        assert!(bench.at("deps/made").exists());
        bench.arms.after_run(role, &[]).unwrap();
    };
    step(&mut bench, Incumbent, &base, true);
    step(&mut bench, Incumbent, &base, false);
    step(&mut bench, Candidate, &other, false);
    step(&mut bench, Candidate, &updated, true);
    step(&mut bench, Candidate, &other, false);
    step(&mut bench, Candidate, &updated, true);
    bench.arms.promote().unwrap();
    step(&mut bench, Incumbent, &updated, false);
    step(&mut bench, Candidate, &base, true);
    let mut bench = bench.reopen();
    step(&mut bench, Incumbent, &updated, false);
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
fn links_are_placed_and_watched() {
    let checkout = tempfile::tempdir().unwrap();
    let top = checkout.path();
    write(&top.join("data/a"), "a");
    write(&top.join("data/sub/b"), "b");
    let elsewhere = tempfile::tempdir().unwrap();
    write(&elsewhere.path().join("big"), "big");
    symlink(elsewhere.path(), top.join("mounted")).unwrap();
    let links = InputLink::resolve(top, &["data/", "mounted"]).unwrap();
    let prints: Vec<_> = links
        .iter()
        .map(|link| LinkFingerprint::take(link).unwrap())
        .collect();
    assert_eq!((prints[0].files, prints[0].bytes), (2, 2));
    let mut bench = Bench::with_links(&[], links.clone());
    let target = bench.tree(&[("x", "1")]);
    bench.measure(Candidate, &target, |root| {
        assert_eq!(read(&root.join("data/sub/b")), "b");
        assert_eq!(read(&root.join("mounted/big")), "big");
    });
    assert_eq!(bench.prepare(Candidate, &target).switched, 0);
    for print in &prints {
        assert_eq!(print.recheck().unwrap(), None);
    }
    // Written through the link, the link itself replaced.
    fs::write(bench.at("data/sub/b"), "c").unwrap();
    fs::remove_file(bench.at("mounted")).unwrap();
    fs::create_dir(bench.at("mounted")).unwrap();
    let changed = prints[0].recheck().unwrap().unwrap();
    assert_eq!(changed.link, RepoPath::from("data"));
    assert!(changed.example.unwrap().ends_with("data/sub/b"));
    assert_eq!(prints[1].recheck().unwrap(), None);
    bench.arms.after_run(Candidate, &[]).unwrap();
    assert_eq!(bench.prepare(Candidate, &target).switched, 1);
    assert_eq!(read(&bench.at("mounted/big")), "big");
    // What it is goes by content, not by when it was copied.
    fs::write(top.join("data/sub/b"), "b").unwrap();
    let again = LinkFingerprint::take(&links[0]).unwrap();
    assert_eq!(again.digest, prints[0].digest);
    fs::remove_dir_all(top.join("data")).unwrap();
    assert!(prints[0].recheck().unwrap().is_some());
}

#[test]
fn links_that_cannot_be_are_refused() {
    let checkout = tempfile::tempdir().unwrap();
    let top = checkout.path();
    write(&top.join("data/a"), "a");
    symlink("/", top.join("out")).unwrap();
    let refusal = |name: &str| InputLink::resolve(top, &[name]).unwrap_err();
    assert!(matches!(refusal("none"), ArmsError::LinkMissing { .. }));
    assert!(matches!(refusal("no/ne"), ArmsError::LinkMissing { .. }));
    for name in ["../x", "/etc", ".git", "", "out/etc"] {
        assert!(
            matches!(refusal(name), ArmsError::LinkOutside { .. }),
            "{name}"
        );
    }
    let links = InputLink::resolve(top, &["data"]).unwrap();
    for tracked in ["data", "data/a"] {
        let mut bench = Bench::with_links(&[], links.clone());
        let target = bench.tree(&[(tracked, "x")]);
        let refused = bench
            .arms
            .prepare(Candidate, &target, &mut bench.objects, None);
        assert!(
            matches!(refused, Err(ArmsError::LinkTracked { .. })),
            "{refused:?}"
        );
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

#[test]
fn a_closed_bench_opens_warm() {
    let mut bench = Bench::new(&["cache"]);
    let target = bench.tree(&[("x", "1"), ("d/y", "2")]);
    bench.measure(Incumbent, &target, |root| {
        write(&root.join("cache/out"), "o");
    });
    let mut bench = bench.reopen();
    let reads = bench.objects.reads;
    let prepared = bench.prepare(Incumbent, &target);
    assert_eq!(prepared.switched, 0);
    assert_eq!(bench.objects.reads, reads);
    assert_eq!(read(&bench.at("cache/out")), "o");
    // Killed while it runs: files are believed, the cache is not.
    let mut bench = bench.reopen();
    let prepared = bench.prepare(Incumbent, &target);
    assert_eq!(prepared.switched, 0);
    assert_exact(&bench, &target);
}
