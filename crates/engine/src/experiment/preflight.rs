//! What is refused before anything is spent: settings that name nothing, and commands that lean on
//! files which the loop will not see.

use std::collections::BTreeSet;
use std::path::Path;

use loopwright_core::scrub::{Secrets, is_secret_name};
use loopwright_core::spec::{ExperimentSpec, SPEC_FILE_NAME, did_you_mean};
use loopwright_git::{Dirty, RepoPath, TreeListing};

use crate::error::EngineError;

/// How many paths are named in a notice.
const NAMED_MAX: usize = 8;

/// Refuses limits that nobody could keep: while no proposer can say what it used, the first proposal
/// would already make them meaningless.
pub fn check_budget(spec: &ExperimentSpec) -> Result<(), EngineError> {
    let budget = &spec.budget;
    let set = [
        ("budget.tokens", budget.tokens.is_some()),
        ("budget.money", budget.money.is_some()),
    ];
    let set: Vec<&str> = set
        .iter()
        .filter(|(_, is)| *is)
        .map(|(key, _)| *key)
        .collect();
    if set.is_empty() {
        return Ok(());
    }
    Err(EngineError::refused_with(
        format!(
            "{} can't be kept: in this release nothing can say how much a proposal used",
            set.join(" and ")
        ),
        "leave it out, and limit proposals or time instead: --budget-steps N, --budget-time TIME",
    ))
}

/// Refuses protect patterns that match nothing, each by name.
pub fn check_protect(spec: &ExperimentSpec, listing: &TreeListing) -> Result<(), EngineError> {
    let paths = listing.keys().map(RepoPath::as_bytes);
    let unmatched = spec.protect_set().unmatched(paths);
    if unmatched.is_empty() {
        return Ok(());
    }
    let hint = |unmatched: &loopwright_core::spec::Unmatched| match did_you_mean(&unmatched.near) {
        Some(near) => format!("`{}` matches nothing; {near}", unmatched.pattern),
        None => format!("`{}` matches nothing", unmatched.pattern),
    };
    let hints = unmatched.iter().map(hint).collect();
    let what = match unmatched.len() {
        1 => "a protect pattern matches no file of the commit".to_owned(),
        count => format!("{count} protect patterns match no file of the commit"),
    };
    Err(EngineError::Refused { what, hints })
}

/// Refuses links to what git carries anyhow: what a checkout holds there would have to give way.
pub fn check_links(spec: &ExperimentSpec, listing: &TreeListing) -> Result<(), EngineError> {
    let tracked = |link: &&String| {
        let link = RepoPath::from(link.as_str());
        listing
            .keys()
            .any(|path| *path == link || path.is_below(&link))
    };
    let Some(link) = spec.link.iter().find(tracked) else {
        return Ok(());
    };
    Err(EngineError::refused_with(
        format!("link {link} is tracked by git: links are for inputs that git does not carry"),
        format!("remove {link} from `link`; every checkout has it as it is in the commit"),
    ))
}

/// Refuses commands that name a file which exists only in the user's checkout: a clean checkout
/// of the commit will not have it.
pub fn check_commands(
    spec: &ExperimentSpec,
    top: &Path,
    workdir: &str,
    listing: &TreeListing,
) -> Result<(), EngineError> {
    // In place, who proposes works in the very checkout that has it.
    let propose = spec.propose.as_ref().filter(|_| !spec.in_place);
    let commands = [
        ("run", Some(&spec.run)),
        ("propose", propose),
        ("setup", spec.setup.as_ref()),
    ];
    let mut hints = Vec::new();
    let mut missing = BTreeSet::new();
    for (key, line) in commands {
        for word in line.into_iter().flat_map(|line| plain_words(line)) {
            if only_untracked(word, spec, top, workdir, listing) && missing.insert(word.to_owned())
            {
                hints.push(format!(
                    "`{key}` names {word}, which git does not track here"
                ));
            }
        }
    }
    let Some(first) = missing.first() else {
        return Ok(());
    };
    let top_name = first.split('/').next().unwrap_or(first);
    hints.push(format!(
        "commit it: git add {first} && git commit -m \"add {first}\""
    ));
    hints.push(format!(
        "or bring it in as it is, read-only: link = [\"{first}\"] (--link {first})"
    ));
    hints.push(format!(
        "or, if the command itself makes it: cache = [\"{top_name}\"] (--cache {top_name})"
    ));
    let what = "a command needs a file that the loop's checkouts will not have".to_owned();
    Err(EngineError::Refused { what, hints })
}

/// Refuses secrets in what is pinned: a record keeps no secret, so a resumed run would not have it.
/// `secrets` knows those of the environment: a shell writes them into a command.
pub fn check_secrets(spec: &ExperimentSpec, secrets: &Secrets) -> Result<(), EngineError> {
    let holds = |text: &str| !secrets.findings(text.as_bytes()).is_empty();
    let mut hints = Vec::new();
    for (name, value) in &spec.env {
        if is_secret_name(name) || holds(value) {
            hints.push(format!(
                "env.{name}: leave it in your own environment, which commands inherit (or name it in pass_env)"
            ));
        }
    }
    let commands = [
        ("run", Some(&spec.run)),
        ("propose", spec.propose.as_ref()),
        ("setup", spec.setup.as_ref()),
    ];
    for (key, line) in commands {
        if line.is_some_and(|line| holds(line)) {
            hints.push(format!(
                "{key}: read it from the environment instead of writing it in the command"
            ));
        }
    }
    if hints.is_empty() {
        // Whatever else is pinned, a name or a pattern.
        let mut pinned = serde_json::to_value(spec).expect("BUG: a specification is plain data");
        if secrets.scrub_json(&mut pinned) == 0 {
            return Ok(());
        }
        hints.push("see which: loopwright config show".to_owned());
    }
    let what = "the settings hold what looks like a secret, and they are recorded".to_owned();
    Err(EngineError::Refused { what, hints })
}

/// The words of a shell line that could be plain relative paths.
fn plain_words(line: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || ";|&()<>\"'=`".contains(c);
    line.split(ends)
        .map(|word| word.trim_start_matches("./"))
        .filter(|word| !word.is_empty() && !word.starts_with(['/', '-', '$', '~']))
        .filter(|word| !word.contains(['*', '?', '$', '{']) && !word.contains(".."))
}

fn only_untracked(
    word: &str,
    spec: &ExperimentSpec,
    top: &Path,
    workdir: &str,
    listing: &TreeListing,
) -> bool {
    let path = if workdir.is_empty() {
        word.to_owned()
    } else {
        format!("{workdir}/{word}")
    };
    // A repository's own files are in every checkout, and never tracked.
    let of_git = path.split('/').any(|name| name == ".git");
    // Also by way of a tracked link.
    let is_tracked = Path::new(&path)
        .ancestors()
        .any(|above| listing.contains_key(above.as_os_str().as_encoded_bytes()));
    if of_git || is_tracked || !top.join(&path).is_file() {
        return false;
    }
    let below = |declared: &str| {
        let declared = declared.trim_end_matches('/');
        path == declared
            || path
                .strip_prefix(declared)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    let linked = spec.link.iter().any(|link| below(link));
    let cached = spec.cache_set().matches(path.as_bytes());
    let result = spec.result_file.as_deref() == Some(word);
    !(linked || cached || result)
}

/// What the loop will not see of a dirty checkout, in words.
pub fn unseen(dirty: &Dirty) -> Option<String> {
    if dirty.is_clean() {
        return None;
    }
    let list = |paths: &[RepoPath]| {
        let named: Vec<String> = paths
            .iter()
            .take(NAMED_MAX)
            .map(ToString::to_string)
            .collect();
        match paths.len().saturating_sub(NAMED_MAX) {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    };
    let mut parts = Vec::new();
    if !dirty.modified.is_empty() {
        parts.push(format!("edits of {}", list(&dirty.modified)));
    }
    // The settings are read from the checkout, committed or not.
    let is_settings = |path: &RepoPath| path.as_bytes().ends_with(SPEC_FILE_NAME.as_bytes());
    let untracked: Vec<RepoPath> = dirty
        .untracked
        .iter()
        .filter(|path| !is_settings(path))
        .cloned()
        .collect();
    if !untracked.is_empty() {
        parts.push(format!("untracked {}", list(&untracked)));
    }
    if parts.is_empty() {
        return None;
    }
    Some(format!(
        "the loop starts from the commit and will not see: {}",
        parts.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_could_be_paths_are_found() {
        let words: Vec<&str> =
            plain_words("FOO=1 ./bench.sh --fast data/in.csv > /tmp/x && python 'a b.py' $HOME")
                .collect();
        assert_eq!(
            words,
            ["FOO", "1", "bench.sh", "data/in.csv", "python", "a", "b.py"]
        );
    }
}
