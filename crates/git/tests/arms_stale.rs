//! A hundred switches between trees that differ by edits of the same size, with build outputs
//! in the cache: no measurement may ever come from stale output. The tools are used if they are
//! there; without one its part is skipped, aloud.

mod arms_support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use arms_support::Bench;
use loopwright_git::arms::Role::{Candidate, Incumbent};
use loopwright_git::types::TreeListing;

/// A build and its trees.
struct Project {
    name: &'static str,
    tool: &'static str,
    cache: &'static [&'static str],
    switches: usize,
    /// The files of a variant.
    files: fn(u32) -> Vec<(&'static str, String)>,
    /// Builds and prints what was built. The number picks among ways to use the project, some
    /// of which leave parts of the cache as they are.
    run: fn(&Path, u32) -> String,
    /// What it must print.
    wanted: fn(u32, u32) -> String,
}

fn shell(root: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .args(["-ec", script])
        .current_dir(root)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("MAKEFLAGS")
        .env_remove("PYTHONDONTWRITEBYTECODE")
        .env_remove("PYTHONPYCACHEPREFIX")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

const PYTHON: Project = Project {
    name: "Python module",
    tool: "python3",
    cache: &["**/__pycache__"],
    switches: 100,
    files: |variant| {
        vec![
            ("one.py", format!("V = {}\n", variant % 10)),
            ("pkg/__init__.py", String::new()),
            ("pkg/two.py", format!("V = {}\n", variant / 10)),
        ]
    },
    run: |root, way| {
        let script = if way % 3 == 0 {
            "python3 -c 'import one; print(one.V)'"
        } else {
            "python3 -c 'import one, pkg.two; print(one.V, pkg.two.V)'"
        };
        shell(root, script)
    },
    wanted: |variant, way| {
        if way % 3 == 0 {
            format!("{}\n", variant % 10)
        } else {
            format!("{} {}\n", variant % 10, variant / 10)
        }
    },
};

const MAKE: Project = Project {
    name: "make project",
    tool: "make",
    cache: &["out"],
    switches: 100,
    files: |variant| {
        let rules = "all: out/both\n\
            out/both: out/one two\n\tcat out/one two > out/both\n\
            out/one: one\n\tmkdir -p out\n\tcat one > out/one\n";
        vec![
            ("Makefile", rules.to_owned()),
            ("one", format!("{}\n", variant % 10)),
            ("two", format!("{}\n", variant / 10)),
        ]
    },
    run: |root, way| {
        let script = if way % 3 == 0 {
            "make -s out/one && cat out/one"
        } else {
            "make -s && cat out/both"
        };
        shell(root, script)
    },
    wanted: |variant, way| {
        if way % 3 == 0 {
            format!("{}\n", variant % 10)
        } else {
            format!("{}\n{}\n", variant % 10, variant / 10)
        }
    },
};

const CARGO: Project = Project {
    name: "cargo project",
    tool: "cargo",
    cache: &["target"],
    switches: 24,
    files: |variant| {
        let manifest =
            "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
        let main = "mod two; fn main() { println!(\"{} {}\", p::V, two::V) }\n";
        vec![
            ("Cargo.toml", manifest.to_owned()),
            (
                "src/lib.rs",
                format!("pub const V: u32 = {};\n", variant % 10),
            ),
            ("src/main.rs", main.to_owned()),
            (
                "src/two.rs",
                format!("pub const V: u32 = {};\n", variant / 10),
            ),
        ]
    },
    run: |root, _| shell(root, "cargo run -q --offline"),
    wanted: |variant, _| format!("{} {}\n", variant % 10, variant / 10),
};

/// A few trees, measured in a random order in both roles, some of them kept.
fn switch_around(project: &Project) {
    let mut bench = Bench::new(project.cache);
    let trees: Vec<(u32, TreeListing)> = [11, 12, 21, 22]
        .into_iter()
        .map(|variant| {
            let files = (project.files)(variant);
            let files: Vec<(&str, &str)> = files
                .iter()
                .map(|(path, text)| (*path, text.as_str()))
                .collect();
            (variant, bench.tree(&files))
        })
        .collect();
    // A small generator of our own: the same order every time.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    };
    let mut best = 0;
    let mut stale = Vec::new();
    for number in 0..project.switches {
        let (role, tree) = match random(3) {
            0 => (Incumbent, best),
            _ => (Candidate, random(trees.len() as u64) as usize),
        };
        let (variant, listing) = &trees[tree];
        let way = random(6) as u32;
        let printed = bench.measure(role, listing, |root| (project.run)(root, way));
        let wanted = (project.wanted)(*variant, way);
        if printed != wanted {
            stale.push(format!(
                "switch {number} to {variant} ({role}): {printed:?}"
            ));
        }
        match (role, random(4)) {
            (Candidate, 0) => {
                bench.arms.promote().unwrap();
                best = tree;
            }
            (Candidate, 1) => bench.arms.reject(),
            _ => {}
        }
    }
    assert!(stale.is_empty(), "{}: {stale:#?}", project.name);
}

#[expect(clippy::print_stderr, reason = "a skipped part has to be seen")]
fn has_tool(project: &Project) -> bool {
    let there = Command::new(project.tool)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        eprintln!(
            "SKIPPED: {} needs {}, which is not there",
            project.name, project.tool
        );
    }
    there
}

fn never_stale(project: &Project) {
    if has_tool(project) {
        let began = Instant::now();
        switch_around(project);
        assert!(began.elapsed() < Duration::from_secs(600));
    }
}

#[test]
fn python_modules_are_never_stale() {
    never_stale(&PYTHON);
}

#[test]
fn make_outputs_are_never_stale() {
    never_stale(&MAKE);
}

#[test]
fn cargo_outputs_are_never_stale() {
    never_stale(&CARGO);
}
