//! The arms, stopped anywhere: whoever opens them next finds or rebuilds exactly the trees, and
//! no cache that a cut-off run or copy may have left half-written.

mod arms_support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arms_support::{Bench, MemoryObjects, Seen, assert_exact, expected, look};
use loopwright_git::arms::Role::{self, Candidate, Incumbent};
use loopwright_git::arms::{ArmRules, Arms, ArmsError, Patterns};
use loopwright_git::types::{Mode, TreeListing};

const ROUNDS: usize = 3;

/// The trees of a little run: the base and a candidate each round.
fn trees(objects: &mut MemoryObjects) -> Vec<TreeListing> {
    (0..=ROUNDS)
        .map(|round| {
            let mut files = vec![
                (b"same".to_vec(), Mode::File, b"same".to_vec()),
                (b"x".to_vec(), Mode::File, round.to_string().into_bytes()),
                (b"run".to_vec(), Mode::Executable, b"run".to_vec()),
            ];
            // A file that becomes a directory and back, and a link.
            if round % 2 == 0 {
                files.push((b"d/e/f".to_vec(), Mode::File, b"f".to_vec()));
                files.push((b"cache/tracked".to_vec(), Mode::File, b"t".to_vec()));
            } else {
                files.push((b"d".to_vec(), Mode::Link, b"x".to_vec()));
            }
            objects.listing_of(files)
        })
        .collect()
}

/// What each measurement does: checks its tree and cache, leaves a mess, writes the cache.
fn run(root: &Path, tree: &TreeListing, objects: &MemoryObjects) {
    let mut seen = look(root);
    let honest = seen.remove(&b"cache/sum"[..]);
    if let Some(Seen::File(_, content)) = &honest {
        // Both halves or nothing: half a cache is what a cut-off run leaves.
        let halves = seen.remove(&b"cache/sum2"[..]);
        assert_eq!(
            halves,
            Some(Seen::File(0o644, content.clone())),
            "half a cache is trusted"
        );
    }
    seen.retain(|path, _| !path.starts_with(b"cache/own-"));
    let mut wanted = expected(tree, objects);
    // The directory stays with the cache in it.
    for found in [&mut seen, &mut wanted] {
        found.remove(&b"cache"[..]);
    }
    assert_eq!(seen, wanted);
    fs::write(root.join("left over"), "x").unwrap();
    fs::write(root.join("same"), "SAME").unwrap();
    fs::create_dir_all(root.join("cache")).unwrap();
    let sum = fs::read(root.join("x")).unwrap();
    fs::write(root.join("cache/sum"), &sum).unwrap();
    fs::write(root.join("cache/sum2"), &sum).unwrap();
    let own = format!("cache/own-{}", String::from_utf8_lossy(&sum));
    fs::write(root.join(own), "of this tree only").unwrap();
}

fn measure(
    arms: &mut Arms,
    objects: &mut MemoryObjects,
    role: Role,
    tree: &TreeListing,
) -> Result<(), ArmsError> {
    let prepared = arms.prepare(role, tree, objects, None)?;
    run(&prepared.path, tree, objects);
    arms.after_run(role, &[])?;
    Ok(())
}

/// The whole little run; odd rounds are kept.
fn play(arms: &mut Arms, objects: &mut MemoryObjects) -> Result<(), ArmsError> {
    let trees = trees(objects);
    let mut best = 0;
    measure(arms, objects, Incumbent, &trees[0])?;
    for round in 1..=ROUNDS {
        measure(arms, objects, Candidate, &trees[round])?;
        measure(arms, objects, Incumbent, &trees[best])?;
        if round % 2 == 1 {
            arms.promote()?;
            best = round;
        } else {
            arms.reject();
        }
    }
    Ok(())
}

fn rules() -> ArmRules {
    ArmRules {
        cache: Patterns::parse(&["cache"]).unwrap(),
        links: Vec::new(),
    }
}

#[test]
fn stopped_at_every_step() {
    let counter = Arc::new(AtomicUsize::new(0));
    let names = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let mut stop = 1;
    loop {
        let mut bench = Bench::new(&["cache"]);
        bench.arms.never_wait();
        counter.store(0, Ordering::Relaxed);
        let (seen, steps) = (Arc::clone(&counter), Arc::clone(&names));
        bench.arms.stop_at(Some(Box::new(move |step| {
            steps.lock().unwrap().insert(step);
            seen.fetch_add(1, Ordering::Relaxed) + 1 == stop
        })));
        let outcome = play(&mut bench.arms, &mut bench.objects);
        if outcome.is_ok() {
            break;
        }
        assert!(matches!(outcome, Err(ArmsError::Stopped(_))), "{outcome:?}");
        // The next process starts all over, and once more after that.
        for _ in 0..2 {
            bench = bench.reopen();
            bench.arms.never_wait();
            play(&mut bench.arms, &mut bench.objects).unwrap();
        }
        stop += 1;
    }
    let names = names.lock().unwrap();
    for step in [
        "marked busy",
        "remove",
        "remove former file",
        "make directory",
        "write",
        "remove cache",
        "make cache directory",
        "copy cache",
        "move in",
        "moved in",
        "move out",
        "moved out",
        "run noted",
        "promote",
        "promoted",
    ] {
        assert!(names.contains(step), "{step} was never reached; {names:?}");
    }
    assert!(stop > 60, "{stop} steps");
}

const CHILD: &str = "LOOPWRIGHT_ARMS_TEST_CHILD";

/// Not a test by itself: what the test below kills.
#[test]
fn played_by_a_child() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let mut arms = Arms::open(Path::new(&directory), rules()).unwrap();
    arms.never_wait();
    let mut objects = MemoryObjects::default();
    loop {
        play(&mut arms, &mut objects).unwrap();
    }
}

#[test]
fn killed_at_any_moment() {
    let directory = tempfile::tempdir().unwrap();
    let arms_directory = directory.path().join("arms");
    for kill in 0..25_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "played_by_a_child", "--nocapture"])
            .env(CHILD, &arms_directory)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Not a wait for anything: the moment of the kill, spread over the run.
        std::thread::sleep(Duration::from_millis(20 + (kill * 37) % 190));
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(ended, None, "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut arms = Arms::open(&arms_directory, rules()).unwrap();
    arms.never_wait();
    play(&mut arms, &mut MemoryObjects::default()).unwrap();
}

#[test]
fn an_idle_cache_survives_a_kill_and_a_busy_one_does_not() {
    let mut bench = Bench::new(&["cache"]);
    let tree = bench.tree(&[("x", "1")]);
    bench.measure(Incumbent, &tree, |root| {
        fs::create_dir(root.join("cache")).unwrap();
        fs::write(root.join("cache/out"), "o").unwrap();
    });
    // Killed while a proposal is made: nothing was under way here.
    let mut bench = bench.reopen();
    bench.prepare(Incumbent, &tree);
    assert!(bench.at("cache/out").exists());
    // Killed in the middle of this run.
    let mut bench = bench.reopen();
    bench.prepare(Incumbent, &tree);
    assert!(!bench.at("cache").exists());
    let candidate = bench.tree(&[("x", "2")]);
    bench.arms.after_run(Incumbent, &[]).unwrap();
    bench.prepare(Candidate, &candidate);
    assert!(!bench.at("cache").exists());
}

#[test]
fn other_cache_patterns_drop_the_old_cache() {
    let mut bench = Bench::new(&["cache"]);
    let tree = bench.tree(&[("x", "1")]);
    bench.measure(Incumbent, &tree, |root| {
        fs::write(root.join("cache"), "old rule").unwrap();
        fs::write(root.join("other"), "left over").unwrap();
    });
    let directory = bench.directory.path().join("arms");
    let mut objects = std::mem::take(&mut bench.objects);
    let keep = bench.directory;
    drop(bench.arms);
    let rules = ArmRules {
        cache: Patterns::parse(&["other"]).unwrap(),
        links: Vec::new(),
    };
    let mut arms = Arms::open(&directory, rules).unwrap();
    let prepared = arms.prepare(Incumbent, &tree, &mut objects, None).unwrap();
    assert_eq!(look(&prepared.path), expected(&tree, &objects));
    drop(keep);
}

#[test]
fn a_checkout_nobody_claims_is_not_trusted() {
    let mut bench = Bench::new(&["cache"]);
    let tree = bench.tree(&[("x", "1")]);
    bench.measure(Incumbent, &tree, |root| {
        fs::write(root.join("cache"), "c").unwrap();
    });
    let home = bench.arms.ceiling().parent().unwrap().to_path_buf();
    // One checkout too many, then one too few.
    fs::create_dir(home.join("a/tree")).unwrap();
    let mut bench = bench.reopen();
    bench.prepare(Incumbent, &tree);
    assert_exact(&bench, &tree);
    fs::remove_dir(home.join("b/tree")).unwrap();
    let mut bench = bench.reopen();
    for role in [Candidate, Incumbent] {
        bench.prepare(role, &tree);
        assert_exact(&bench, &tree);
    }
}

#[test]
fn a_cut_off_run_costs_its_cache() {
    let mut bench = Bench::new(&["cache"]);
    let tree = bench.tree(&[("x", "1")]);
    let write = |root: &Path| fs::write(root.join("cache"), "half").unwrap();
    bench.measure(Incumbent, &tree, write);
    bench.measure(Incumbent, &tree, |root| {
        assert!(root.join("cache").exists());
    });
    bench.arms.discard_cache(Incumbent).unwrap();
    bench.measure(Candidate, &tree, |root| {
        assert!(!root.join("cache").exists());
    });
    bench.measure(Incumbent, &tree, |root| {
        assert!(!root.join("cache").exists());
    });
    bench.measure(Incumbent, &tree, write);
    bench.arms.discard_cache(Incumbent).unwrap();
    let mut bench = bench.reopen();
    bench.measure(Incumbent, &tree, |root| {
        assert!(!root.join("cache").exists());
    });
    // A run whose end nobody noted is as good as cut off.
    bench.measure(Incumbent, &tree, write);
    bench.prepare(Incumbent, &tree);
    bench.measure(Incumbent, &tree, |root| {
        assert!(!root.join("cache").exists());
    });
}
