//! Which files a proposal must not change: those that measure, and those that test.

use super::script::mentioned_files;
use super::{ProjectFacts, Proposal};
use crate::spec::paths::escaped;
use crate::spec::pattern::Pattern;

/// Directories that hold tests and references.
const DIRECTORIES: [&str; 11] = [
    "__tests__",
    "bench",
    "benches",
    "benchmark",
    "benchmarks",
    "eval",
    "evals",
    "spec",
    "test",
    "testdata",
    "tests",
];

/// Patterns of tests that lie beside the code.
const BESIDE: [&str; 8] = [
    "**/*_test.go",
    "**/*_test.py",
    "**/test_*.py",
    "**/conftest.py",
    "**/*.test.js",
    "**/*.test.ts",
    "**/*.spec.js",
    "**/*.spec.ts",
];

/// Parts of names of files that belong to the referee when the measuring script uses them.
const REFEREE_WORDS: [&str; 9] = [
    "bench",
    "eval",
    "expected",
    "golden",
    "judge",
    "measure",
    "reference",
    "score",
    "test",
];

/// Names of scripts that do the work which is to be improved, and only print how it went.
const WORK_STEMS: [&str; 1] = ["train"];

fn is_the_work(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    WORK_STEMS.contains(&stem)
}

/// Proposes what to protect.
pub(super) fn propose(facts: &ProjectFacts<'_>, referee: Option<&str>, proposal: &mut Proposal) {
    let mut protect: Vec<String> = DIRECTORIES
        .into_iter()
        .filter(|directory| facts.has_below(directory))
        .map(|directory| format!("{directory}/**"))
        .collect();
    let covered = |protect: &[String], path: &str| {
        protect
            .iter()
            .any(|text| Pattern::new(text).is_ok_and(|pattern| pattern.matches(path.as_bytes())))
    };
    for text in BESIDE {
        let Ok(pattern) = Pattern::new(text) else {
            continue;
        };
        let mut found = facts
            .tracked
            .iter()
            .filter(|path| pattern.matches(path.as_bytes()));
        if found.any(|path| !covered(&protect, path)) {
            protect.push(text.to_owned());
        }
    }
    if let Some(path) = referee {
        let used = facts
            .text(path)
            .map(|text| mentioned_files(facts, &text))
            .unwrap_or_default();
        let judging = used.into_iter().filter(|used| {
            let lower = used.to_lowercase();
            REFEREE_WORDS.iter().any(|word| lower.contains(word))
        });
        let is_work = is_the_work(path);
        if is_work {
            proposal.notes.push(format!(
                "{path} is what a proposal will want to change, so it is not protected, and a proposal \
                 can change what it prints: let another script measure what it made, and protect that."
            ));
        }
        for path in std::iter::once(path).filter(|_| !is_work).chain(judging) {
            if !covered(&protect, path) {
                protect.push(escaped(path));
            }
        }
    }
    proposal.protect = protect;
}
