//! What patterns cover, against a table and against the obvious matcher.

use super::super::pattern::Pattern;
use proptest::prelude::*;

fn covers(pattern: &str, path: &str) -> bool {
    Pattern::new(pattern).unwrap().matches(path.as_bytes())
}

#[test]
fn a_table_of_what_is_covered() {
    for (pattern, path, expected) in [
        ("bench.sh", "bench.sh", true),
        ("bench.sh", "sub/bench.sh", false),
        ("bench.sh", "bench.sh.bak", false),
        ("tests", "tests/a/.hidden", true),
        ("tests", "tests2/a", false),
        ("tests/", "tests/a", true),
        ("tests/", "tests", false),
        ("tests/**", "tests/a/b", true),
        ("tests/**", "tests", false),
        ("./tests/./a", "tests/a", true),
        (".", "anything/at/all", true),
        ("**", ".hidden", true),
        ("*.py", "a.py", true),
        ("*.py", "sub/a.py", false),
        ("**/*.py", "a.py", true),
        ("**/*.py", "x/y/a.py", true),
        ("a/**/b", "a/b", true),
        ("a/**/b", "a/x/y/b/deeper", true),
        ("a/**/b", "a/x/y/c", false),
        ("a/**/b/**/c", "a/b/x/b/y/c", true),
        ("?.txt", "é.txt", true),
        ("?.txt", "ab.txt", false),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[!a-c]x", "dx", true),
        ("[]x]", "]", true),
        ("[a-]", "-", true),
        ("[\\]a]", "]", true),
        ("\\*", "*", true),
        ("\\*", "a", false),
        ("*a*b*c", "xxaxxbxxc", true),
        ("*a*b*c", "xxaxxbxx", false),
        ("**", ".git/config", false),
        ("**", "sub/.GIT/config", false),
        ("**", "sub/.gitignore", true),
    ] {
        assert_eq!(covers(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn bytes_that_are_no_text_are_matched() {
    let path = b"data/\xff\xfe.bin";
    assert!(Pattern::new("data/??.bin").unwrap().matches(path));
    assert!(Pattern::new("data/*.bin").unwrap().matches(path));
    assert!(Pattern::new("data/[!a]*").unwrap().matches(path));
    assert!(!Pattern::new("data/?.bin").unwrap().matches(path));
}

#[test]
fn what_is_no_pattern_is_refused_with_words() {
    for bad in [
        "",
        "  ",
        "/etc",
        "~/x",
        "a/../b",
        "..",
        ".git",
        "a/.git/hooks",
        "a**",
        "[",
        "[a",
        "[z-a]",
        "a\\",
        "C:\\x",
        "a\nb",
    ] {
        assert!(Pattern::new(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn overlaps_are_seen() {
    let pattern = |text: &str| Pattern::new(text).unwrap();
    for (a, b, expected) in [
        ("data", "data/x", true),
        ("data", "database", false),
        ("tests/**", "tests", true),
        ("tests/**", "tests/a.py", true),
        ("**/*.py", "src/a.py", true),
        ("**/*.py", "src/a.rs", false),
        ("**/*.py", "**/*.pyc", false),
        ("a/*.x", "a/*.y", true),
    ] {
        assert_eq!(pattern(a).overlaps(&pattern(b)), expected, "{a} {b}");
        assert_eq!(pattern(b).overlaps(&pattern(a)), expected, "{b} {a}");
    }
}

/// The obvious matcher: every way of sharing the text among the wildcards is tried.
fn naive(pattern: &[&str], names: &[&str]) -> bool {
    match pattern.split_first() {
        None => true,
        Some((&"**", [])) => !names.is_empty(),
        Some((&"**", rest)) => (0..=names.len()).any(|skip| naive(rest, &names[skip..])),
        Some((part, rest)) => names.split_first().is_some_and(|(name, others)| {
            naive_part(part.as_bytes(), name.as_bytes()) && naive(rest, others)
        }),
    }
}

fn naive_part(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|skip| naive_part(rest, &name[skip..])),
        Some((b'?', rest)) => !name.is_empty() && naive_part(rest, &name[1..]),
        Some((b'[', _)) => {
            !name.is_empty() && b"ab".contains(&name[0]) && naive_part(&pattern[4..], &name[1..])
        }
        Some((byte, rest)) => name.first() == Some(byte) && naive_part(rest, &name[1..]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn equal_to_the_naive_matcher(
        parts in prop::collection::vec(
            prop_oneof![
                Just("**".to_owned()),
                "[abc]{1,3}",
                prop::collection::vec(
                    prop_oneof![Just("*"), Just("?"), Just("a"), Just("b"), Just("[ab]")], 1..5
                ).prop_map(|tokens| tokens.concat()).prop_filter("lone", |part| !part.contains("**")),
            ],
            1..5,
        ),
        names in prop::collection::vec("[abc]{1,4}", 1..6),
    ) {
        let text = parts.join("/");
        let pattern: Vec<&str> = parts.iter().map(String::as_str).collect();
        let path = names.join("/");
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        prop_assert_eq!(covers(&text, &path), naive(&pattern, &names), "{} {}", text, path);
    }

    #[test]
    fn any_pattern_meets_any_path(text in "\\PC{0,12}", path in prop::collection::vec(any::<u8>(), 0..20)) {
        if let Ok(pattern) = Pattern::new(&text) {
            let _ = (pattern.matches(&path), pattern.literal(), pattern.overlaps(&pattern));
        }
    }
}
