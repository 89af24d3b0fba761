//! The arms' caches: what survives, who starts from what, and what a setup has to do with it.

mod arms_support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use arms_support::{Bench, assert_exact, look, read, write};
use loopwright_git::arms::Role::{Candidate, Incumbent};
use loopwright_git::arms::{Patterns, SetupInputs};
use loopwright_git::types::TreeListing;

#[test]
fn a_cache_survives_and_nothing_beside_it() {
    let mut bench = Bench::hasty(&["build/out", "**/__pycache__", "log-*"]);
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
    let mut bench = Bench::hasty(&["cache"]);
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
    let mut bench = Bench::hasty(&["cache"]);
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
    let mut bench = Bench::hasty(&["cache"]);
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
    let mut bench = Bench::hasty(&["cache"]);
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
fn setup_runs_when_its_inputs_changed() {
    let mut bench = Bench::hasty(&["deps"]);
    let inputs = SetupInputs {
        files: Patterns::parse(&["lock", "vendor"]).unwrap(),
        ..SetupInputs::default()
    };
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
fn without_inputs_a_setup_depends_on_all_files_and_always_on_its_surroundings() {
    let mut bench = Bench::hasty(&["deps"]);
    let mut inputs = SetupInputs::default();
    let base = bench.tree(&[("x", "1")]);
    let other = bench.tree(&[("x", "2")]);
    let step = |bench: &mut Bench, inputs: &SetupInputs, role, tree: &TreeListing| {
        bench.prepare(role, tree);
        let needed = bench.arms.needs_setup(role, inputs).unwrap();
        bench.arms.setup_done(role, inputs).unwrap();
        bench.arms.after_run(role, &[]).unwrap();
        needed
    };
    assert!(step(&mut bench, &inputs, Incumbent, &base));
    assert!(!step(&mut bench, &inputs, Incumbent, &base));
    assert!(step(&mut bench, &inputs, Candidate, &other));
    assert!(!step(&mut bench, &inputs, Incumbent, &base));
    inputs.surroundings = "another command".to_owned();
    assert!(step(&mut bench, &inputs, Incumbent, &base));
    inputs.files = Patterns::parse(&["lock"]).unwrap();
    assert!(step(&mut bench, &inputs, Incumbent, &base));
}

#[test]
fn a_closed_bench_opens_warm() {
    let mut bench = Bench::hasty(&["cache"]);
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

/// Both arms are believed by their stamps; the candidate's cache is the incumbent's all the same.
#[test]
fn a_bench_put_away_rewrites_no_candidate() {
    let mut bench = Bench::hasty(&["cache"]);
    let base = bench.tree(&[("x", "1"), ("d/y", "2")]);
    let tried = bench.tree(&[("x", "1"), ("d/y", "3")]);
    bench.measure(Incumbent, &base, |root| {
        write(&root.join("cache/out"), "incumbent's");
    });
    bench.measure(Candidate, &tried, |root| {
        write(&root.join("cache/out"), "candidate's");
        write(&root.join("cache/bought"), "candidate's");
    });
    bench.arms.close().unwrap();
    let mut bench = bench.reopen();
    let prepared = bench.prepare(Candidate, &tried);
    // With a cache, what differs from the tree it was built from is written anew.
    assert_eq!(prepared.switched, 1);
    assert_eq!(read(&bench.at("cache/out")), "incumbent's");
    assert!(!bench.at("cache/bought").exists());

    let mut bench = Bench::hasty(&[]);
    let base = bench.tree(&[("x", "1"), ("d/y", "2")]);
    let tried = bench.tree(&[("x", "1"), ("d/y", "3")]);
    bench.measure(Incumbent, &base, |_| ());
    bench.measure(Candidate, &tried, |root| write(&root.join("x"), "forged"));
    bench.arms.close().unwrap();
    let mut bench = bench.reopen();
    let reads = bench.objects.reads;
    let prepared = bench.prepare(Candidate, &tried);
    assert_eq!(
        prepared.switched, 1,
        "what the run changed, and nothing else"
    );
    assert_eq!(bench.objects.reads, reads + 1);
    assert_exact(&bench, &tried);
}

#[test]
fn what_a_run_puts_in_place_of_tracked_files_is_no_cache() {
    let mut bench = Bench::hasty(&["cache"]);
    let tracked = bench.tree(&[("cache/d/f", "1"), ("cache/g", "1")]);
    let deeper = bench.tree(&[("cache/g/h", "1"), ("cache/d", "1")]);
    let bare = bench.tree(&[("x", "1")]);
    let swap = |root: &Path| {
        fs::remove_dir_all(root.join("cache")).unwrap();
        write(
            &root.join("cache/d"),
            "a file where the tree has a directory",
        );
        write(
            &root.join("cache/g/hit"),
            "a directory where the tree has a file",
        );
    };
    // In the arm itself, with what is tracked gone, and with each kind turned into the other.
    for next in [&bare, &deeper] {
        bench.measure(Incumbent, &tracked, swap);
        bench.prepare(Incumbent, next);
        assert_exact(&bench, next);
        bench.arms.after_run(Incumbent, &[]).unwrap();
    }
    // And in a candidate's that starts from it.
    for next in [&bare, &deeper] {
        bench.measure(Incumbent, &tracked, swap);
        bench.prepare(Candidate, next);
        assert_exact(&bench, next);
        bench.arms.after_run(Candidate, &[]).unwrap();
    }
}

#[test]
fn directories_that_held_tracked_files_stay_for_their_cache_only() {
    let mut bench = Bench::hasty(&["cache"]);
    let tracked = bench.tree(&[("cache/a/f", "1"), ("cache/b/f", "1")]);
    let bare = bench.tree(&[("x", "1")]);
    bench.measure(Incumbent, &tracked, |root| {
        write(&root.join("cache/b/made"), "m");
    });
    let kept = [&b"cache"[..], b"cache/b", b"cache/b/made", b"x"];
    for role in [Candidate, Incumbent] {
        bench.prepare(role, &bare);
        let found: Vec<_> = look(bench.arms.tree_path()).into_keys().collect();
        assert_eq!(found, kept, "{role}");
        bench.arms.after_run(role, &[]).unwrap();
    }
}
