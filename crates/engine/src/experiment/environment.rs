//! The environment that commands get.
//!
//! Nothing of git's own variables is handed on: a `GIT_DIR` of the caller's would make a
//! proposal's git work on the user's repository.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use loopwright_core::spec::{EnvPolicy, ExperimentSpec};
use loopwright_exec::Environment;

/// Our own variables that are meant for us and not for commands.
const OUR_OWN: [&str; 3] = ["LOOPWRIGHT_STORE", "LOOPWRIGHT_WORK", "LOOPWRIGHT_CRASH"];

/// The environment of a command of this loop, with `told` on top. `ceiling` is where git stops to
/// look for a repository.
pub fn environment(
    spec: &ExperimentSpec,
    ceiling: &Path,
    told: BTreeMap<&str, OsString>,
) -> Environment {
    let mut environment = Environment {
        inherit: false,
        ..Environment::default()
    };
    for (name, value) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let ours = OUR_OWN.contains(&&*text) || text.starts_with("GIT_");
        let policy = spec.env_policy;
        if !ours && (policy == EnvPolicy::Inherit || spec.passes_variable(&text)) {
            environment.set.insert(name, value);
        }
    }
    for (name, value) in &spec.env {
        environment.set.insert(name.into(), value.into());
    }
    environment
        .set
        .insert("GIT_CEILING_DIRECTORIES".into(), ceiling.into());
    for (name, value) in told {
        environment.set.insert(name.into(), value);
    }
    environment
}
