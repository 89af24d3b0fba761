//! `packed-refs`, read by hand: a file that git can't read makes it see no repository.

use std::collections::BTreeMap;

use crate::types::Oid;

const HEADER: &[u8] = b"# pack-refs with:";

/// What of such a file can be read.
struct Packed<'a> {
    /// The id of each name.
    references: BTreeMap<&'a [u8], &'a [u8]>,
    /// Whether that is all, in the order it says.
    is_whole: bool,
}

/// What the file has to hold, by what it holds and what it held before: nothing where it may not be
/// there. As long as git can read it, it stays as it is, for others pack references too; of one that
/// is damaged, what can be read counts.
pub(super) fn mended(
    found: Option<&[u8]>,
    before: Option<&[u8]>,
    id_digits: usize,
) -> Option<Vec<u8>> {
    let had = before.map(|content| parse(content, id_digits).references);
    let mut references = had.unwrap_or_default();
    if let Some(content) = found {
        let now = parse(content, id_digits);
        let is_emptied = content.is_empty() && !references.is_empty();
        if now.is_whole && !is_emptied {
            return Some(content.to_vec());
        }
        let known = references.len();
        let is_news = now
            .references
            .iter()
            .any(|(name, id)| references.get(name) != Some(id));
        references.extend(now.references);
        if is_news || references.len() != known {
            return Some(written(&references));
        }
    }
    before.map(<[u8]>::to_vec)
}

fn written(references: &BTreeMap<&[u8], &[u8]>) -> Vec<u8> {
    let mut content = Vec::new();
    for (name, id) in references {
        content.extend_from_slice(&[id, &b" "[..], name, b"\n"].concat());
    }
    content
}

fn parse(content: &[u8], id_digits: usize) -> Packed<'_> {
    let mut packed = Packed {
        references: BTreeMap::new(),
        is_whole: content.is_empty() || content.ends_with(b"\n"),
    };
    let is_id = |text: &[u8]| text.len() == id_digits && Oid::from_hex(text).is_some();
    let mut is_sorted = false;
    let mut last: Option<&[u8]> = None;
    for (number, line) in content.split_inclusive(|it| *it == b'\n').enumerate() {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if number == 0 && line.starts_with(HEADER) {
            is_sorted = line.split(|it| *it == b' ').any(|word| word == b"sorted");
            continue;
        }
        if last.is_some() && line.strip_prefix(b"^").is_some_and(is_id) {
            continue;
        }
        let parts = line.split_at_checked(id_digits);
        let named = parts.and_then(|(id, rest)| Some((id, rest.strip_prefix(b" ")?)));
        match named {
            Some((id, name)) if is_id(id) && is_name(name) => {
                packed.is_whole &= !(is_sorted && last.is_some_and(|last| last >= name));
                packed.references.insert(name, id);
                last = Some(name);
            }
            _ => packed.is_whole = false,
        }
    }
    packed
}

/// Whether git would take it for the name of a reference.
fn is_name(name: &[u8]) -> bool {
    let is_fit = |part: &[u8]| {
        let ends_badly = part.ends_with(b".lock") || part.ends_with(b".");
        let has = |what: &[u8]| part.windows(what.len()).any(|it| it == what);
        let is_special = |it: &u8| it.is_ascii_control() || b" ~^:?*[\\".contains(it);
        !part.is_empty()
            && !part.starts_with(b".")
            && !ends_badly
            && !has(b"..")
            && !has(b"@{")
            && !part.iter().any(is_special)
    };
    name.starts_with(b"refs/") && name.split(|it| *it == b'/').all(is_fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";

    fn mend(found: Option<&str>, before: Option<&str>) -> Option<String> {
        mended(found.map(str::as_bytes), before.map(str::as_bytes), 40)
            .map(|content| String::from_utf8(content).unwrap())
    }

    #[test]
    fn what_git_can_read_stays_and_what_it_cannot_is_put_back() {
        let before = format!("{HEAD}{A} refs/heads/a\n^{B}\n{A} refs/tags/t\n");
        let moved = format!("{HEAD}{B} refs/heads/a\n");
        assert_eq!(mend(Some(&moved), Some(&before)), Some(moved.clone()));
        assert_eq!(mend(Some(&moved), None), Some(moved));
        assert_eq!(mend(None, Some(&before)), Some(before.clone()));
        assert_eq!(mend(Some(""), Some(&before)), Some(before.clone()));
        assert_eq!(mend(Some("junk\n"), Some(&before)), Some(before.clone()));
        assert_eq!(mend(Some("junk\n"), None), None);
        assert_eq!(mend(None, None), None);
        let cut = &before[..before.len() - 1];
        assert_eq!(mend(Some(cut), Some(&before)), Some(before));
    }

    #[test]
    fn of_a_damaged_file_nothing_is_lost_that_can_be_read() {
        let before = format!("{HEAD}{A} refs/heads/a\n{A} refs/heads/b\n");
        for junk in [
            "junk\n",
            "\n",
            "# more\n",
            &format!("{A} refs/heads/../x\n"),
            &format!("{A} HEAD\n"),
            &format!("{A} refs/heads/a.lock\n"),
            &format!("^{A}x\n"),
        ] {
            let found = format!("{HEAD}{B} refs/heads/a\n{junk}{B} refs/heads/c\n");
            let after = format!("{B} refs/heads/a\n{A} refs/heads/b\n{B} refs/heads/c\n");
            assert_eq!(mend(Some(&found), Some(&before)), Some(after), "{junk}");
        }
        // In another order than it says, git would miss some.
        let found = format!("{HEAD}{A} refs/heads/b\n{B} refs/heads/a\n");
        let after = format!("{B} refs/heads/a\n{A} refs/heads/b\n");
        assert_eq!(mend(Some(&found), Some(&before)), Some(after));
    }

    const HEAD: &str = "# pack-refs with: peeled fully-peeled sorted \n";
}
