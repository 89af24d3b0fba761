//! How long a preparation takes that has nothing to do, or little: the price of a trial.
//!
//! `cargo run --release -p loopwright-git --example arms_noop [files]`
#![allow(clippy::print_stdout, reason = "printing is what this example is for")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use loopwright_git::GitError;
use loopwright_git::arms::{ArmRules, Arms, Patterns, Role};
use loopwright_git::types::{Mode, Objects, Oid, RepoPath, TreeListing};
use sha2::{Digest, Sha256};

#[derive(Default)]
struct Memory(BTreeMap<Oid, Vec<u8>>);

impl Memory {
    fn add(&mut self, content: Vec<u8>) -> Oid {
        let oid = Oid::from_bytes(&Sha256::digest(&content)).expect("a digest is as long as an id");
        self.0.insert(oid, content);
        oid
    }
}

impl Objects for Memory {
    fn listing(&mut self, _: &Oid) -> Result<TreeListing, GitError> {
        Ok(TreeListing::default())
    }

    fn read_blob(&mut self, oid: &Oid) -> Result<Vec<u8>, GitError> {
        Ok(self.0[oid].clone())
    }

    fn checkout_bytes(&mut self, _: &RepoPath, _: Mode, oid: &Oid) -> Result<Vec<u8>, GitError> {
        self.read_blob(oid)
    }
}

fn tree(objects: &mut Memory, files: usize, edited: usize) -> TreeListing {
    let entry = |number: usize| {
        let path = format!("d{}/e{}/file-{number}.txt", number % 20, number % 400);
        let version = usize::from(number == edited);
        let content = format!("{number} {version}\n").repeat(40).into_bytes();
        (RepoPath::new(path), (Mode::File, objects.add(content)))
    };
    TreeListing::new((0..files).map(entry).collect())
}

/// What this thread has used of a processor: steadier than the clock on a busy machine.
fn processor_time() -> Duration {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let used = line
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    Duration::from_nanos(used.unwrap_or(0))
}

/// The middle of each: by the clock, and of the processor.
fn median(times: Vec<(Duration, Duration)>) -> String {
    let (mut clock, mut processor): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    clock.sort_unstable();
    processor.sort_unstable();
    let middle = clock.len() / 2;
    format!("{:?} (processor {:?})", clock[middle], processor[middle])
}

fn measure(files: usize, cache: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let cache = Patterns::parse(cache)?;
    let with = if cache.is_empty() {
        ""
    } else {
        " (cache declared)"
    };
    let links = Vec::new();
    let mut arms = Arms::open(&directory.path().join("arms"), ArmRules { cache, links })?;
    let mut objects = Memory::default();
    let base = tree(&mut objects, files, usize::MAX);
    let mut once = |role: Role,
                    target: &TreeListing|
     -> Result<(Duration, Duration), Box<dyn std::error::Error>> {
        let (began, used) = (Instant::now(), processor_time());
        let prepared = arms.prepare(role, target, &mut objects, None)?;
        arms.after_run(role, &[])?;
        let clock = began.elapsed().saturating_sub(prepared.waited);
        Ok((clock, processor_time().saturating_sub(used)))
    };
    let first = once(Role::Incumbent, &base)?;
    once(Role::Candidate, &base)?;
    // Young files are read again; trials have them settled.
    std::thread::sleep(Duration::from_millis(60));
    once(Role::Incumbent, &base)?;
    once(Role::Candidate, &base)?;
    let rounds = if files > 1000 { 20 } else { 300 };
    let mut nothing = Vec::new();
    for _ in 0..rounds {
        nothing.push(once(Role::Candidate, &base)?);
    }
    let mut turns = Vec::new();
    for _ in 0..rounds {
        turns.push(once(Role::Incumbent, &base)?);
        turns.push(once(Role::Candidate, &base)?);
    }
    println!(
        "{files} files{with}: first {}, nothing to do {}, arms in turn {}",
        median(vec![first]),
        median(nothing),
        median(turns)
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked: Option<usize> = std::env::args().nth(1).and_then(|text| text.parse().ok());
    for files in asked.map_or(vec![20, 20_000], |files| vec![files]) {
        measure(files, &[])?;
        measure(files, &["target"])?;
    }
    Ok(())
}
