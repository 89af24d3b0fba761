//! How names are shown: as git does, so that every name can be told from every other and none can
//! steer a terminal.
//!
//! A plain name is shown as it is. One that holds a control character, a quote, a backslash, a
//! character that reorders what is shown, or bytes that are not UTF-8 is put in double quotes, with
//! escapes as in C (`\n`, `\"`, `\303`). Git reads both in patches, and a name that begins with a
//! double quote is always a quoted one.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The name as it is shown; git does the same with `core.quotePath=false`.
pub fn quoted(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) if text.chars().all(is_plain) => Cow::Borrowed(text),
        _ => Cow::Owned(in_quotes(name)),
    }
}

fn in_quotes(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    out.push('"');
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_plain(character) {
                out.push(character);
            } else {
                escape(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut out);
            }
        }
        escape(chunk.invalid(), &mut out);
    }
    out.push('"');
    out
}

fn escape(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        let letter = match byte {
            0x07 => 'a',
            0x08 => 'b',
            b'\t' => 't',
            b'\n' => 'n',
            0x0b => 'v',
            0x0c => 'f',
            b'\r' => 'r',
            b'"' | b'\\' => char::from(*byte),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
                continue;
            }
        };
        out.push('\\');
        out.push(letter);
    }
}

/// True for what needs no quoting. Git lets characters through that reorder a line; we don't.
fn is_plain(character: char) -> bool {
    let steers = character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !steers && character != '"' && character != '\\'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::TestRepository;

    #[test]
    fn names_are_shown_as_git_shows_them() {
        let repository = TestRepository::new();
        let names: [&[u8]; 12] = [
            b"plain",
            "caf\u{e9} \u{4e16}".as_bytes(),
            b" with  spaces ",
            b"-dash",
            b"a\nb",
            b"tab\there",
            b"qu\"ote",
            b"back\\slash",
            b"bell\x07\x08\x0b\x0c\r\x1b\x7f",
            b"not utf-8 \xff\xc3",
            b"half \xe2\x82 of one",
            b"it's",
        ];
        let mut expected = Vec::new();
        for name in names {
            use std::os::unix::ffi::OsStrExt as _;
            let path = repository.top.join(std::ffi::OsStr::from_bytes(name));
            std::fs::write(path, "").unwrap();
            expected.push(quoted(name).into_owned());
        }
        repository.git(["add", "--all"]);
        let listed = repository.git([
            "-c",
            "core.quotePath=false",
            "diff",
            "--cached",
            "--name-only",
        ]);
        // Git lets the bytes of what is not UTF-8 through there; with quotePath it escapes them.
        let escaped = repository.git(["diff", "--cached", "--name-only"]);
        let (listed, escaped): (Vec<&str>, Vec<&str>) =
            (listed.lines().collect(), escaped.lines().collect());
        for (name, shown) in names.iter().zip(&expected) {
            let lines = if std::str::from_utf8(name).is_ok() {
                &listed
            } else {
                &escaped
            };
            assert!(lines.contains(&shown.as_str()), "{shown} not in {lines:?}");
        }
    }

    #[test]
    fn what_reorders_a_line_is_escaped() {
        assert_eq!(quoted("a\u{202e}b".as_bytes()), r#""a\342\200\256b""#);
        assert_eq!(quoted("a\u{85}".as_bytes()), r#""a\302\205""#);
    }

    #[test]
    fn no_two_names_are_shown_alike() {
        let all = (0..=255_u8).flat_map(|one| [vec![one], vec![b'x', one], vec![one, b'"']]);
        let names: std::collections::BTreeSet<Vec<u8>> = all.collect();
        let shown: std::collections::BTreeSet<_> = names.iter().map(|name| quoted(name)).collect();
        assert_eq!(shown.len(), names.len());
    }
}
