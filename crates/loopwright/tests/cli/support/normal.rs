//! Texts made comparable: what differs from run to run is replaced by what it is.

use std::path::Path;

/// Replaces paths below `root`, ids, times, spans and sizes.
pub fn normal(text: &str, root: &Path) -> String {
    let text = text.replace(root.to_str().unwrap(), "[ROOT]");
    let mut out = String::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let bare = word.trim_end_matches([':', '.']);
        let follows = after.trim_start();
        out.push_str(&replaced(bare, follows, out.ends_with("process ")));
        out.push_str(&word[bare.len()..]);
        let gap = after.find(is_word).unwrap_or(after.len());
        out.push_str(&after[..gap]);
        rest = &after[gap..];
    }
    out
}

fn replaced(word: &str, follows: &str, is_process: bool) -> String {
    let name = match word {
        _ if word.starts_with("sha256:") => "[DIGEST]",
        _ if is_hex(word, &[40, 64]) => "[OID]",
        _ if is_hex(word, &[7]) && word.contains(|c: char| c.is_ascii_digit()) => "[COMMIT]",
        _ if is_uuid(word) => "[RUN]",
        _ if shaped(word, "dddd-dd-dd") => "[DATE]",
        _ if shaped(word, "dd:dd:dd") => "[TIME]",
        _ if is_span(word) => "[SPAN]",
        _ if is_number(word) && follows.starts_with("MiB") => "[SIZE]",
        _ if is_process && is_number(word) => "[PID]",
        _ => return word.to_owned(),
    };
    name.to_owned()
}

fn is_hex(word: &str, lengths: &[usize]) -> bool {
    let digits = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    lengths.contains(&word.len()) && word.chars().all(digits)
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

/// Whether each character is a digit where the shape has `d`, else the shape's own.
fn shaped(word: &str, shape: &str) -> bool {
    word.len() == shape.len()
        && word.chars().zip(shape.chars()).all(|(c, wanted)| {
            if wanted == 'd' {
                c.is_ascii_digit()
            } else {
                c == wanted
            }
        })
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// `12ms`, `0.3s`.
fn is_span(word: &str) -> bool {
    let tenths = |word: &str| word.len() >= 3 && word.as_bytes()[word.len() - 2] == b'.';
    word.strip_suffix("ms").is_some_and(is_number)
        || word
            .strip_suffix('s')
            .is_some_and(|number| is_number(number) && tenths(number))
}
