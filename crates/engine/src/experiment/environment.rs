//! The environment that commands get.
//!
//! Of git's own variables none is handed on that says where a repository, its index or its objects
//! are: a `GIT_DIR` of the caller's would make a proposal's git work on the user's repository. Who
//! the user is and where their settings are is handed on.
//!
//! Of our own variables a command gets those that are meant for it. Those in our environment are an
//! outer loop's, whose measurement we may be: its `LOOPWRIGHT_RESULT` is none of our proposer's
//! business. What is named in `pass_env` is handed on all the same.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use loopwright_core::scrub::Secrets;
use loopwright_core::spec::ExperimentSpec;
use loopwright_exec::Environment;

/// What our own variables begin with.
const OUR_OWN: &str = "LOOPWRIGHT_";

/// Git's variables that belong to one repository (`git rev-parse --local-env-vars`, and a few more).
const OF_A_REPOSITORY: [&str; 19] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// The environment of a command: what all of this loop's get, with `told` on top. `ceiling` is where
/// git stops to look for a repository.
pub fn environment(
    of_all: &Environment,
    ceiling: &Path,
    told: BTreeMap<&str, OsString>,
) -> Environment {
    let mut environment = of_all.clone();
    environment
        .set
        .insert("GIT_CEILING_DIRECTORIES".into(), ceiling.into());
    for (name, value) in told {
        environment.set.insert(name.into(), value);
    }
    environment
}

/// What every command of this loop gets.
pub fn environment_of_all(spec: &ExperimentSpec) -> Environment {
    let mut environment = Environment {
        inherit: false,
        ..Environment::default()
    };
    for (name, value) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let passed = if text.starts_with(OUR_OWN) {
            spec.pass_env.iter().any(|wanted| *wanted == text)
        } else {
            !OF_A_REPOSITORY.contains(&&*text) && spec.passes_variable(&text)
        };
        if passed {
            environment.set.insert(name, value);
        }
    }
    for (name, value) in &spec.env {
        environment.set.insert(name.into(), value.into());
    }
    environment
}

/// The secrets that our environment holds, with the shapes that give one away.
pub fn known_secrets() -> Secrets {
    Secrets::new(std::env::vars_os().map(|(name, value)| {
        (
            name.to_string_lossy().into_owned(),
            value.to_string_lossy().into_owned(),
        )
    }))
}
