//! Several patterns together, and what to say about those that match nothing.

use std::collections::BTreeSet;

use crate::near::near_misses;

use super::pattern::{Pattern, names_of, within};

/// Suggestions given for one pattern at most.
const SUGGESTIONS_MAX: usize = 3;

/// Patterns of which a path needs to match one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternSet {
    patterns: Vec<Pattern>,
}

/// A pattern that matches no path, and what its writer may have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// The pattern as written.
    pub pattern: String,
    /// Paths or patterns that would match something, best first.
    pub near: Vec<String>,
}

impl PatternSet {
    /// The set of these patterns.
    pub fn new(patterns: Vec<Pattern>) -> Self {
        Self { patterns }
    }

    /// The patterns in the order they were given.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether some pattern covers the path.
    pub fn matches(&self, path: &[u8]) -> bool {
        self.first_match(path).is_some()
    }

    /// The first pattern that covers the path.
    pub fn first_match(&self, path: &[u8]) -> Option<&Pattern> {
        let names = names_of(path)?;
        self.patterns.iter().find(|pattern| pattern.covers(&names))
    }

    /// Each pattern that covers none of the listed paths, with near misses from the list.
    pub fn unmatched<'a>(&self, listing: impl IntoIterator<Item = &'a [u8]>) -> Vec<Unmatched> {
        let paths: Vec<&[u8]> = listing.into_iter().collect();
        let lost: Vec<&Pattern> = self
            .patterns
            .iter()
            .filter(|pattern| !paths.iter().any(|path| pattern.matches(path)))
            .collect();
        if lost.is_empty() {
            return Vec::new();
        }
        let known = files_and_directories(&paths);
        lost.into_iter()
            .map(|pattern| Unmatched {
                pattern: pattern.as_str().to_owned(),
                near: suggestions(pattern, &paths, &known),
            })
            .collect()
    }
}

/// Every listed path that is text, and every directory one of them lies in.
fn files_and_directories(paths: &[&[u8]]) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for path in paths
        .iter()
        .filter_map(|path| std::str::from_utf8(path).ok())
    {
        for (slash, _) in path.match_indices('/') {
            if !known.contains(&path[..slash]) {
                known.insert(path[..slash].to_owned());
            }
        }
        known.insert(path.to_owned());
    }
    known
}

fn suggestions(pattern: &Pattern, paths: &[&[u8]], known: &BTreeSet<String>) -> Vec<String> {
    let mut near = Vec::new();
    let prefix = pattern.literal_prefix();
    let name = prefix.rsplit('/').next().unwrap_or_default();
    if let Some(literal) = pattern.literal() {
        // The right name in another directory is the commonest slip.
        let elsewhere = |path: &&String| {
            path.strip_suffix(name)
                .is_some_and(|before| before.ends_with('/'))
                && **path != literal
        };
        near.extend(
            known
                .iter()
                .filter(elsewhere)
                .take(SUGGESTIONS_MAX)
                .cloned(),
        );
    } else {
        let deeper = format!("**/{}", pattern.as_str().trim_start_matches("./"));
        if let Ok(deeper) = Pattern::new(&deeper)
            && paths.iter().any(|path| deeper.matches(path))
        {
            near.push(deeper.as_str().to_owned());
        }
    }
    if !prefix.is_empty() && !known.contains(&prefix) {
        let parent = prefix.rsplit_once('/').map_or("", |(parent, _)| parent);
        let siblings: Vec<&str> = known
            .iter()
            .filter(|path| parent.is_empty() || within(path, parent))
            .map(String::as_str)
            .collect();
        for path in near_misses(&prefix, siblings) {
            let mended = format!(
                "{path}{}",
                &pattern.as_str()[rest_start(pattern, &prefix)..]
            );
            // Only what would match is worth offering.
            let useful = Pattern::new(&mended)
                .is_ok_and(|pattern| paths.iter().any(|path| pattern.matches(path)));
            if useful && !near.contains(&mended) {
                near.push(mended);
            }
        }
    }
    near.truncate(SUGGESTIONS_MAX);
    near
}

/// Where the pattern's text goes on after its literal directories; its end if they can't be found
/// in it word for word (`./`, escapes).
fn rest_start(pattern: &Pattern, prefix: &str) -> usize {
    let text = pattern.as_str();
    if text.starts_with(prefix) {
        prefix.len()
    } else {
        text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(patterns: &[&str]) -> PatternSet {
        PatternSet::new(
            patterns
                .iter()
                .map(|text| Pattern::new(text).unwrap())
                .collect(),
        )
    }

    #[test]
    fn each_pattern_that_matches_nothing_is_named_with_near_misses() {
        let listing: Vec<&[u8]> = vec![
            b"scripts/bench.sh",
            b"tests/a.py",
            b"src/main.py",
            b"\xff\xfe",
            b"run.sh",
        ];
        let lost = set(&[
            "bench.sh",
            "test/**",
            "*.py",
            "tests",
            "nothing-like-it",
            "rum.sh",
        ])
        .unmatched(listing);
        let found: Vec<(&str, Vec<&str>)> = lost
            .iter()
            .map(|lost| {
                (
                    lost.pattern.as_str(),
                    lost.near.iter().map(String::as_str).collect(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("bench.sh", vec!["scripts/bench.sh"]),
                ("test/**", vec!["tests/**"]),
                ("*.py", vec!["**/*.py"]),
                ("nothing-like-it", vec![]),
                ("rum.sh", vec!["run.sh"]),
            ]
        );
    }

    #[test]
    fn the_pattern_that_matched_can_be_named() {
        let patterns = set(&["a", "b/**"]);
        assert_eq!(patterns.first_match(b"b/c").unwrap().as_str(), "b/**");
        assert!(!patterns.matches(b"c"));
        assert!(patterns.unmatched([&b"a"[..], b"b/x"]).is_empty());
    }
}
