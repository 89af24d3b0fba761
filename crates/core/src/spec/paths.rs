//! Literal paths in a specification: what may be named, and sets of them in one order.

/// Why a text is no path of the repository; reads after the quoted path.
pub(crate) fn relative_path_fault(path: &str) -> Option<&'static str> {
    let trimmed = path.trim_end_matches('/');
    if path.trim().is_empty() {
        return Some("is blank");
    }
    let bytes = path.as_bytes();
    let drive = bytes.get(1) == Some(&b':') && bytes[0].is_ascii_alphabetic();
    if path.starts_with('/') || drive {
        return Some("is absolute: write it relative to the repository's top directory");
    }
    if path.starts_with('~') {
        return Some("begins with `~`: only paths inside the repository can be named");
    }
    if path.chars().any(char::is_control) {
        return Some("holds a control character");
    }
    for part in trimmed.split('/') {
        match part {
            ".." => return Some("has a `..` part: only paths inside the repository can be named"),
            "." => return Some("has a `.` part: leave it out"),
            "" => return Some("has an empty part"),
            _ if part.eq_ignore_ascii_case(".git") => {
                return Some("names `.git`, which is never part of a candidate");
            }
            _ => {}
        }
    }
    path.contains(['*', '?', '['])
        .then_some("is a pattern: this setting names single paths")
}

/// The items in order, each once: a set has one form.
pub(crate) fn sorted(mut items: Vec<String>) -> Vec<String> {
    items.sort_unstable();
    items.dedup();
    items
}

/// A literal path as the text of a pattern that covers just it.
pub(crate) fn escaped(path: &str) -> String {
    path.chars().fold(String::new(), |mut text, character| {
        if matches!(character, '*' | '?' | '[' | '\\') {
            text.push('\\');
        }
        text.push(character);
        text
    })
}
