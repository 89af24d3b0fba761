//! What is proposed for projects of each kind, and that what is written reads back.

use proptest::prelude::*;

use super::super::detect::{ProjectFacts, Proposal, detect, render_toml};
use super::*;

/// A project from its files' names and texts, and what lies beside them untracked.
fn propose(files: &[(&str, &str)], untracked: &[&str]) -> Proposal {
    let texts: BTreeMap<String, String> = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect();
    let tracked: Vec<String> = texts.keys().cloned().collect();
    let untracked: Vec<String> = untracked.iter().map(|name| (*name).to_owned()).collect();
    let read = |path: &str| texts.get(path).cloned();
    let proposal = detect(&ProjectFacts {
        tracked: &tracked,
        untracked: &untracked,
        read: &read,
    });
    assert_reads_back(&proposal, "speed");
    // What is proposed as protected must match something.
    let protect: Vec<Pattern> = proposal
        .protect
        .iter()
        .map(|text| Pattern::new(text).unwrap())
        .collect();
    let listing = tracked.iter().map(String::as_bytes);
    assert_eq!(PatternSet::new(protect).unmatched(listing), []);
    proposal
}

fn assert_reads_back(proposal: &Proposal, name: &str) {
    let text = render_toml(proposal, name);
    let file =
        LoopFile::parse("loopwright.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let entry = file.choose(None).unwrap();
    assert_eq!(entry.name, name);
    let text_of = |key: &str| match entry
        .values
        .get(key)
        .and_then(|located| located.value.as_ref())
    {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let list_of = |key: &str| match entry
        .values
        .get(key)
        .and_then(|located| located.value.as_ref())
    {
        Some(Value::List(items)) => items.clone(),
        _ => Vec::new(),
    };
    assert_eq!(text_of("run"), proposal.run);
    assert_eq!(text_of("metric"), proposal.metric);
    assert_eq!(
        text_of("goal"),
        proposal.goal.map(|goal| goal.name().to_owned())
    );
    assert_eq!(text_of("setup"), proposal.setup);
    assert_eq!(list_of("protect"), proposal.protect);
    assert_eq!(list_of("link"), proposal.link);
    assert_eq!(list_of("cache"), proposal.cache);
    if proposal.setup.is_some() {
        assert_eq!(list_of("setup_inputs"), proposal.setup_inputs);
    }
    let strict = entry.values.contains_key("strict_metric");
    assert_eq!(strict, proposal.strict_metric);
}

/// The proposal makes a loop that passes every check.
fn assert_complete(proposal: &Proposal) {
    let text = render_toml(proposal, "speed");
    resolved(&text)
        .experiment(Purpose::Measure)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
}

#[test]
fn a_plain_script() {
    let proposal = propose(
        &[("x", "10"), ("run.sh", "echo \"m=$(cat x)\"\n")],
        &["data"],
    );
    assert_eq!(proposal.run.as_deref(), Some("sh run.sh"));
    assert_eq!(proposal.metric.as_deref(), Some("m"));
    assert_eq!(proposal.goal, None);
    // Both are there to choose from, and neither is chosen.
    let text = render_toml(&proposal, "speed");
    assert!(
        text.contains("# goal = \"min\"\n# goal = \"max\"\n"),
        "{text}"
    );
    assert!(
        proposal
            .notes
            .iter()
            .any(|note| note.contains("for you to say")),
        "{:?}",
        proposal.notes
    );
    let problems = resolved(&text).experiment(Purpose::Measure).unwrap_err();
    assert!(problems.to_string().contains("--goal min"), "{problems}");
    assert_eq!(proposal.protect, ["run.sh"]);
    assert_eq!(proposal.link, ["data"]);
    assert!(proposal.strict_metric);
}

#[test]
fn a_cargo_project() {
    let proposal = propose(
        &[
            ("Cargo.toml", "[package]\nname = \"p\"\n"),
            (
                "Cargo.lock",
                "[[package]]\nname = \"serde\"\nsource = \"registry+x\"\n",
            ),
            ("crates/a/Cargo.toml", ""),
            ("src/lib.rs", ""),
            ("tests/all.rs", ""),
            (
                "bench.sh",
                "#!/bin/bash\ncargo build --release\necho \"seconds=$t\"\n",
            ),
        ],
        &["target"],
    );
    assert_eq!(proposal.kinds, ["Cargo"]);
    assert_eq!(proposal.run.as_deref(), Some("bash bench.sh"));
    assert_eq!(proposal.goal, Some(Goal::Minimize));
    assert_eq!(proposal.cache, ["target"]);
    assert_eq!(proposal.setup.as_deref(), Some("cargo fetch --locked"));
    assert_eq!(
        proposal.setup_inputs,
        ["**/Cargo.toml", "Cargo.lock", "Cargo.toml"]
    );
    assert_eq!(proposal.protect, ["bench.sh", "tests/**"]);
    assert!(proposal.link.is_empty());
    assert_complete(&proposal);
}

#[test]
fn cargo_benches_are_named_with_what_they_lack() {
    let files = [
        ("Cargo.toml", ""),
        ("Cargo.lock", ""),
        ("benches/sort.rs", ""),
        ("src/lib.rs", ""),
    ];
    let proposal = propose(&files, &[]);
    assert_eq!(proposal.run.as_deref(), Some("cargo bench"));
    assert_eq!((proposal.setup, proposal.metric), (None, None));
    assert_eq!(proposal.protect, ["benches/**"]);
    assert!(
        proposal
            .notes
            .iter()
            .any(|note| note.contains("prints no line"))
    );
    let files = [
        ("Cargo.toml", ""),
        ("src/bin/bench.rs", "println!(\"qps={}\", n);"),
    ];
    let proposal = propose(&files, &[]);
    assert_eq!(
        proposal.run.as_deref(),
        Some("cargo run --release --quiet --bin bench")
    );
    assert_eq!(proposal.goal, Some(Goal::Maximize));
    assert!(
        proposal
            .notes
            .iter()
            .any(|note| note.contains("Cargo.lock is not in git"))
    );
    assert_complete(&proposal);
}

#[test]
fn python_projects() {
    let proposal = propose(
        &[
            ("requirements.txt", "# none\nnumpy==2\n"),
            (
                "evaluate.py",
                "import eval_set\nprint(f\"val_loss: {loss}\")\n",
            ),
            ("model.py", ""),
            ("pkg/test_model.py", ""),
            ("tests/golden.json", ""),
        ],
        &["data", "weights", ".venv"],
    );
    assert_eq!(
        proposal.run.as_deref(),
        Some(".venv/bin/python evaluate.py")
    );
    assert_eq!(proposal.metric.as_deref(), Some("val_loss"));
    assert_eq!(proposal.cache, [".venv"]);
    assert_eq!(proposal.link, ["data", "weights"]);
    assert_eq!(
        proposal.protect,
        ["**/test_*.py", "evaluate.py", "tests/**"]
    );
    assert!(
        proposal
            .setup
            .as_ref()
            .unwrap()
            .contains("pip install --quiet -r requirements.txt")
    );
    assert_complete(&proposal);

    let project = "[project]\nname = \"p\"\ndependencies = [\"numpy\"]\n";
    let proposal = propose(
        &[
            ("pyproject.toml", project),
            ("uv.lock", ""),
            ("bench.sh", ""),
        ],
        &[],
    );
    assert_eq!(proposal.setup.as_deref(), Some("uv sync --frozen"));
    assert_eq!(
        proposal.run.as_deref(),
        Some("PATH=\"$PWD/.venv/bin:$PATH\" sh bench.sh")
    );

    let proposal = propose(&[("pyproject.toml", "[project]\n"), ("a.py", "")], &[]);
    assert_eq!((proposal.run, proposal.setup), (None, None));
    assert_eq!(proposal.kinds, ["Python"]);
}

#[test]
fn a_script_that_does_the_work_is_left_to_proposals() {
    let train = "import evaluate\nprint(f\"val_accuracy: {evaluate.held_out()}\")\n";
    let proposal = propose(&[("train.py", train), ("evaluate.py", "")], &[]);
    // What is called like a referee is one.
    assert_eq!(proposal.run.as_deref(), Some("python3 evaluate.py"));
    assert_eq!(proposal.protect, ["evaluate.py"]);
    let proposal = propose(&[("train.py", train), ("eval_data.py", "")], &[]);
    assert_eq!(proposal.run.as_deref(), Some("python3 train.py"));
    assert_eq!(proposal.metric.as_deref(), Some("val_accuracy"));
    assert_eq!(proposal.protect, Vec::<String>::new());
    assert!(!proposal.strict_metric);
    let says = |words: &str| proposal.notes.iter().any(|note| note.contains(words));
    assert!(
        says("train.py is what a proposal will want to change"),
        "{:?}",
        proposal.notes
    );
}

#[test]
fn node_projects() {
    let package = "{\"scripts\": {\"bench\": \"node b.js\"}, \"dependencies\": {\"a\": \"1\"}}";
    for (lock, setup, run) in [
        ("package-lock.json", "npm ci", "npm run --silent bench"),
        (
            "pnpm-lock.yaml",
            "pnpm install --frozen-lockfile",
            "pnpm --silent run bench",
        ),
        (
            "yarn.lock",
            "yarn install --frozen-lockfile",
            "yarn run bench",
        ),
    ] {
        let proposal = propose(
            &[
                ("package.json", package),
                (lock, ""),
                ("b.js", "console.log(`ms=${t}`)"),
            ],
            &[],
        );
        assert_eq!(proposal.setup.as_deref(), Some(setup));
        assert_eq!(proposal.run.as_deref(), Some(run));
        assert_eq!(proposal.cache, ["node_modules"]);
        assert_eq!(proposal.metric.as_deref(), Some("ms"));
        assert_eq!(proposal.protect, ["package.json"]);
        assert_complete(&proposal);
    }
    let proposal = propose(&[("package.json", package)], &[]);
    assert!(
        proposal
            .notes
            .iter()
            .any(|note| note.contains("No lock file"))
    );
}

#[test]
fn make_go_and_cmake_projects() {
    let makefile =
        "CC := cc\nbench: all\n\t@./prog | sed 's/^/throughput=/'\n\t@echo throughput=$(N)\n";
    let proposal = propose(&[("Makefile", makefile), ("main.c", "")], &[]);
    assert_eq!(proposal.run.as_deref(), Some("make -s bench"));
    assert_eq!(proposal.goal, Some(Goal::Maximize));
    assert_eq!(proposal.protect, ["Makefile"]);
    assert_complete(&proposal);

    let module = "module m\nrequire example.com/x v1\n";
    let proposal = propose(
        &[
            ("go.mod", module),
            ("go.sum", ""),
            ("a_test.go", ""),
            ("bench.sh", ""),
        ],
        &[],
    );
    assert_eq!(proposal.setup.as_deref(), Some("go mod download"));
    assert_eq!(proposal.protect, ["**/*_test.go", "bench.sh"]);

    let proposal = propose(
        &[
            ("CMakeLists.txt", ""),
            ("lib/CMakeLists.txt", ""),
            ("scripts/bench.sh", ""),
        ],
        &[],
    );
    assert_eq!(proposal.run.as_deref(), Some("sh scripts/bench.sh"));
    assert_eq!(proposal.cache, ["build"]);
    assert_eq!(
        proposal.setup_inputs,
        ["**/CMakeLists.txt", "CMakeLists.txt"]
    );
}

#[test]
fn an_empty_project_is_told_what_is_needed() {
    let proposal = propose(&[], &[]);
    assert!(proposal.kinds.is_empty() && proposal.run.is_none());
    assert!(proposal.notes[0].contains("No measuring command was found"));
    let problems = resolved(&render_toml(&proposal, "speed"))
        .experiment(Purpose::Propose)
        .unwrap_err();
    assert_eq!(problems.list().len(), 4, "{problems}");
}

proptest! {
    #[test]
    fn whatever_is_proposed_reads_back(
        run in prop::option::of("\\PC{0,20}"),
        setup in prop::option::of("[a-z\\\\\"'\n\t#]{0,20}"),
        protect in prop::collection::vec("\\PC{1,12}", 0..4),
        notes in prop::collection::vec("[a-z\n\r\"\\]\\[\u{7f}]{0,20}", 0..3),
        name in "[a-z][a-z0-9_-]{0,4}[.]?[a-z0-9]{1,4}",
    ) {
        let proposal = Proposal { run, protect, setup, notes, ..Proposal::default() };
        assert_reads_back(&proposal, &name);
    }
}
