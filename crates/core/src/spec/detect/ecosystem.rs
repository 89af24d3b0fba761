//! Which tools a project is built with, and how it seems to be measured.

use super::{ProjectFacts, Proposal};

/// Names of scripts that measure, the likeliest first.
const SCRIPT_STEMS: [&str; 11] = [
    "bench",
    "benchmark",
    "evaluate",
    "eval",
    "score",
    "measure",
    "perf",
    "run_bench",
    "run_benchmark",
    "run",
    "train",
];

/// Directories such a script may lie in.
const SCRIPT_DIRECTORIES: [&str; 8] = [
    "",
    "scripts/",
    "script/",
    "bench/",
    "benchmarks/",
    "benchmark/",
    "eval/",
    "tools/",
];

/// Endings of scripts and what runs them.
const INTERPRETERS: [(&str, &str); 6] = [
    ("sh", "sh"),
    ("py", "python3"),
    ("mjs", "node"),
    ("js", "node"),
    ("rb", "ruby"),
    ("pl", "perl"),
];

/// Targets and package scripts that measure.
const TARGETS: [&str; 5] = ["bench", "benchmark", "eval", "evaluate", "perf"];

/// Recognises the tools, and proposes caches and the setup they need.
pub(super) fn describe(facts: &ProjectFacts<'_>, proposal: &mut Proposal) {
    cargo(facts, proposal);
    node(facts, proposal);
    python(facts, proposal);
    go(facts, proposal);
    if facts.has("CMakeLists.txt") {
        proposal.kinds.push("CMake".to_owned());
        proposal.cache.push("build".to_owned());
        add_setup(
            proposal,
            "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release",
            &["CMakeLists.txt"],
        );
        if facts
            .tracked
            .iter()
            .any(|path| path.ends_with("/CMakeLists.txt"))
        {
            proposal.setup_inputs.push("**/CMakeLists.txt".to_owned());
        }
        proposal.notes.push(
            "Let the measuring command begin with `cmake --build build`, so that it measures what \
             the candidate's sources say."
                .to_owned(),
        );
    }
    if makefile(facts).is_some() {
        proposal.kinds.push("make".to_owned());
    }
}

fn cargo(facts: &ProjectFacts<'_>, proposal: &mut Proposal) {
    if !facts.has("Cargo.toml") {
        return;
    }
    proposal.kinds.push("Cargo".to_owned());
    proposal.cache.push("target".to_owned());
    let Some(lock) = facts.text("Cargo.lock") else {
        proposal.notes.push(
            "Cargo.lock is not in git: commit it, or two measurements may build against different \
             dependencies."
                .to_owned(),
        );
        return;
    };
    if lock.contains("\nsource = ") {
        add_setup(
            proposal,
            "cargo fetch --locked",
            &["Cargo.lock", "Cargo.toml"],
        );
        if facts
            .tracked
            .iter()
            .any(|path| path.ends_with("/Cargo.toml"))
        {
            proposal.setup_inputs.push("**/Cargo.toml".to_owned());
        }
    }
}

fn node(facts: &ProjectFacts<'_>, proposal: &mut Proposal) {
    let Some(package) = package_json(facts) else {
        return;
    };
    proposal.kinds.push("Node".to_owned());
    let needs = ["dependencies", "devDependencies", "workspaces"];
    if !needs.iter().any(|key| package.get(key).is_some()) {
        return;
    }
    proposal.cache.push("node_modules".to_owned());
    let berry = facts.has(".yarnrc.yml");
    let known = [
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        (
            "yarn.lock",
            if berry {
                "yarn install --immutable"
            } else {
                "yarn install --frozen-lockfile"
            },
        ),
        ("bun.lock", "bun install --frozen-lockfile"),
        ("bun.lockb", "bun install --frozen-lockfile"),
        ("package-lock.json", "npm ci"),
        ("npm-shrinkwrap.json", "npm ci"),
    ];
    if let Some((lock, command)) = known.iter().find(|(lock, _)| facts.has(lock)) {
        return add_setup(proposal, command, &["package.json", lock]);
    }
    add_setup(proposal, "npm install --no-package-lock", &["package.json"]);
    proposal.notes.push(
        "No lock file is in git: two measurements may run with different dependencies.".to_owned(),
    );
}

fn python(facts: &ProjectFacts<'_>, proposal: &mut Proposal) {
    let requirements = facts.text("requirements.txt");
    let project = facts.text("pyproject.toml");
    let setup_py = facts.has("setup.py");
    let scripts = facts
        .tracked
        .iter()
        .any(|path| !path.contains('/') && ends(path, "py"));
    if requirements.is_none() && project.is_none() && !setup_py && !scripts {
        return;
    }
    proposal.kinds.push("Python".to_owned());
    let venv = "python3 -m venv .venv && .venv/bin/pip install --quiet";
    if facts.has("uv.lock") {
        add_setup(proposal, "uv sync --frozen", &["uv.lock", "pyproject.toml"]);
    } else if facts.has("poetry.lock") {
        let command = "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction";
        add_setup(proposal, command, &["poetry.lock", "pyproject.toml"]);
    } else if requirements.as_deref().is_some_and(has_requirements) {
        let command = format!("{venv} -r requirements.txt");
        add_setup(proposal, &command, &["requirements.txt"]);
    } else if project.as_deref().is_some_and(has_dependencies) {
        add_setup(proposal, &format!("{venv} -e ."), &["pyproject.toml"]);
    } else {
        return;
    }
    proposal.cache.push(".venv".to_owned());
}

fn has_requirements(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .any(|line| !line.is_empty() && !line.starts_with('#'))
}

fn has_dependencies(text: &str) -> bool {
    let Ok(document) = text.parse::<toml::Table>() else {
        return false;
    };
    let listed = document
        .get("project")
        .and_then(|project| project.get("dependencies"));
    listed
        .and_then(toml::Value::as_array)
        .is_some_and(|list| !list.is_empty())
}

fn go(facts: &ProjectFacts<'_>, proposal: &mut Proposal) {
    let Some(module) = facts.text("go.mod") else {
        return;
    };
    proposal.kinds.push("Go".to_owned());
    if module.contains("require") {
        let inputs: &[&str] = if facts.has("go.sum") {
            &["go.mod", "go.sum"]
        } else {
            &["go.mod"]
        };
        add_setup(proposal, "go mod download", inputs);
    }
}

/// Adds a setup command; those of several tools run one after the other.
fn add_setup(proposal: &mut Proposal, command: &str, inputs: &[&str]) {
    proposal.setup = Some(match proposal.setup.take() {
        Some(earlier) => format!("{earlier} && {command}"),
        None => command.to_owned(),
    });
    proposal
        .setup_inputs
        .extend(inputs.iter().map(|input| (*input).to_owned()));
}

/// Finds how the project is measured; gives the file that does it.
pub(super) fn measuring_command(
    facts: &ProjectFacts<'_>,
    proposal: &mut Proposal,
) -> Option<String> {
    let (run, referee) = script(facts, proposal)
        .or_else(|| package_script(facts))
        .or_else(|| make_target(facts))
        .or_else(|| cargo_target(facts, proposal))?;
    proposal.run = Some(run);
    Some(referee)
}

fn script(facts: &ProjectFacts<'_>, proposal: &Proposal) -> Option<(String, String)> {
    for stem in SCRIPT_STEMS {
        for directory in SCRIPT_DIRECTORIES {
            for (ending, interpreter) in INTERPRETERS {
                let path = format!("{directory}{stem}.{ending}");
                if facts.has(&path) {
                    return Some((command_line(facts, proposal, interpreter, &path), path));
                }
            }
        }
    }
    None
}

fn command_line(
    facts: &ProjectFacts<'_>,
    proposal: &Proposal,
    interpreter: &str,
    path: &str,
) -> String {
    let venv = proposal.cache.iter().any(|cache| cache == ".venv");
    match interpreter {
        "python3" if venv => format!(".venv/bin/python {path}"),
        "sh" => {
            let bash = facts.text(path).is_some_and(|text| {
                text.lines()
                    .next()
                    .is_some_and(|line| line.starts_with("#!") && line.contains("bash"))
            });
            let shell = if bash { "bash" } else { "sh" };
            let prefix = if venv {
                "PATH=\"$PWD/.venv/bin:$PATH\" "
            } else {
                ""
            };
            format!("{prefix}{shell} {path}")
        }
        _ => format!("{interpreter} {path}"),
    }
}

fn package_json(facts: &ProjectFacts<'_>) -> Option<serde_json::Value> {
    serde_json::from_str(&facts.text("package.json")?).ok()
}

fn package_script(facts: &ProjectFacts<'_>) -> Option<(String, String)> {
    let package = package_json(facts)?;
    let scripts = package.get("scripts")?;
    let name = TARGETS
        .into_iter()
        .find(|name| scripts.get(name).is_some())?;
    let runner = if facts.has("pnpm-lock.yaml") {
        "pnpm --silent run"
    } else if facts.has("yarn.lock") {
        "yarn run"
    } else {
        "npm run --silent"
    };
    Some((format!("{runner} {name}"), "package.json".to_owned()))
}

fn makefile(facts: &ProjectFacts<'_>) -> Option<&'static str> {
    ["GNUmakefile", "makefile", "Makefile"]
        .into_iter()
        .find(|name| facts.has(name))
}

fn make_target(facts: &ProjectFacts<'_>) -> Option<(String, String)> {
    let file = makefile(facts)?;
    let text = facts.text(file)?;
    let has = |target: &str| {
        text.lines().any(|line| {
            line.strip_prefix(target).is_some_and(|rest| {
                let rest = rest.trim_start();
                rest.starts_with(':') && !rest.starts_with(":=")
            })
        })
    };
    let target = TARGETS.into_iter().find(|target| has(target))?;
    Some((format!("make -s {target}"), file.to_owned()))
}

fn cargo_target(facts: &ProjectFacts<'_>, proposal: &mut Proposal) -> Option<(String, String)> {
    if !facts.has("Cargo.toml") {
        return None;
    }
    for (path, kind) in [("src/bin", "--bin"), ("examples", "--example")] {
        for name in TARGETS {
            let file = format!("{path}/{name}.rs");
            if facts.has(&file) {
                return Some((format!("cargo run --release --quiet {kind} {name}"), file));
            }
        }
    }
    let bench = facts.tracked.iter().find(|path| {
        path.strip_prefix("benches/")
            .is_some_and(|name| ends(name, "rs"))
    })?;
    proposal.notes.push(
        "`cargo bench` prints no line `name=value` by itself: let the benchmark print one, or wrap \
         it in a script that does."
            .to_owned(),
    );
    Some(("cargo bench".to_owned(), bench.clone()))
}

/// Whether a path has this ending; tools tell `a.py` and `a.PY` apart.
fn ends(path: &str, ending: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, found)| found == ending)
}
