//! Token shapes: credentials that can be told by their form alone.
//!
//! Each begins where no word goes on, has a provider's prefix and at least a minimum of random
//! characters. Where the characters allow words joined by hyphens, proof of randomness is wanted
//! too, so that names in code and prose survive.

use super::private_key;
use super::table::{ANY, Class, Proof, SHAPES};

/// Where a shape was found: what to replace, counted from the place asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) kind: &'static str,
    /// Bytes before the secret that stay (`Bearer `).
    pub(super) kept: usize,
    /// Bytes of the secret.
    pub(super) secret: usize,
}

/// A token shows what it is within so many bytes. Without this bound, `sk-sk-sk-…` would be read to
/// its end again and again.
const JUDGED_BYTES: usize = 256;

/// The kinds of what is no row of the table.
const JWT: &str = "jwt";
const BEARER: &str = "bearer-token";
const AWS_SECRET: &str = "aws-secret-key";

/// Every kind a shape is replaced by.
pub(super) fn is_kind(kind: &[u8]) -> bool {
    [JWT, BEARER, AWS_SECRET, private_key::KIND]
        .iter()
        .any(|other| other.as_bytes() == kind)
        || SHAPES.iter().any(|shape| shape.kind.as_bytes() == kind)
}

/// The shape that begins at the start of `text`; `before` is what stands in front of it.
pub(super) fn at(text: &[u8], before: &[u8]) -> Option<Match> {
    if text.first() == Some(&b'-') {
        let secret = private_key::length(text)?;
        return Some(Match {
            kind: private_key::KIND,
            kept: 0,
            secret,
        });
    }
    if inside_word(before) {
        return None;
    }
    let after_joint = matches!(before.last(), Some(b'_' | b'-'));
    from_table(text)
        .or_else(|| if after_joint { None } else { jwt(text) })
        .or_else(|| bearer(text))
}

/// Whether a word goes on over this place. What only looks like a letter of it, the end of an escape
/// (`\\n`, `%20`, a terminal colour), does not count.
fn inside_word(before: &[u8]) -> bool {
    let Some((last, rest)) = before.split_last() else {
        return false;
    };
    if !last.is_ascii_alphanumeric() {
        return false;
    }
    let line_break = matches!(last, b'n' | b'r' | b't') && rest.ends_with(b"\\");
    let percent = last.is_ascii_hexdigit()
        && rest
            .split_last()
            .is_some_and(|(digit, rest)| digit.is_ascii_hexdigit() && rest.ends_with(b"%"));
    !(line_break || percent || ends_colour(*last, rest))
}

/// Whether a terminal colour ends here: `ESC [ 3 2 m`, the escape character raw or spelled out.
fn ends_colour(last: u8, rest: &[u8]) -> bool {
    let numbers = rest
        .iter()
        .rev()
        .take(24)
        .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
        .count();
    let start = &rest[..rest.len() - numbers];
    last == b'm'
        && [b"\x1b[".as_slice(), b"1b[", b"1B[", b"033[", b"\\e["]
            .iter()
            .any(|escape| start.ends_with(escape))
}

fn run(text: &[u8], holds: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|byte| holds(**byte)).count()
}

fn from_table(text: &[u8]) -> Option<Match> {
    SHAPES.iter().find_map(|shape| {
        let rest = text.strip_prefix(shape.prefix.as_bytes())?;
        let judged = run(&rest[..rest.len().min(JUDGED_BYTES)], |byte| {
            shape.class.holds(byte)
        });
        let goes_on = rest.get(judged).is_some_and(u8::is_ascii_alphanumeric);
        let fits = (shape.least..=shape.most).contains(&judged) && !(goes_on && shape.most != ANY);
        if !(fits && shape.proof.holds(&rest[..judged])) {
            return None;
        }
        let length = judged + run(&rest[judged..], |byte| shape.class.holds(byte));
        let mut secret = shape.prefix.len() + length;
        if shape.kind == "aws-access-key" {
            secret += paired_aws_secret(&text[secret..]);
        } else if shape.kind == "sendgrid-key" {
            let second = rest[length..].strip_prefix(b".")?;
            let second_length = run(second, |byte| Class::WordLike.holds(byte));
            if second_length < 40 {
                return None;
            }
            secret += 1 + second_length;
        }
        Some(Match {
            kind: shape.kind,
            kept: 0,
            secret,
        })
    })
}

/// A signed or encrypted web token: at least three parts, the first an encoded object.
fn jwt(text: &[u8]) -> Option<Match> {
    if !text.starts_with(b"eyJ") {
        return None;
    }
    let mut length = 0;
    let mut parts = 0;
    loop {
        let part = run(&text[length..], |byte| Class::WordLike.holds(byte));
        if part < 8 {
            break;
        }
        parts += 1;
        length += part;
        if text.get(length) != Some(&b'.') {
            break;
        }
        length += 1;
    }
    // A full stop behind the token is the sentence's.
    let secret = if text[..length].ends_with(b".") {
        length - 1
    } else {
        length
    };
    (parts >= 3).then_some(Match {
        kind: JWT,
        kept: 0,
        secret,
    })
}

/// `Bearer` and a long token behind it.
fn bearer(text: &[u8]) -> Option<Match> {
    let word = b"bearer";
    if !text.get(..word.len())?.eq_ignore_ascii_case(word) {
        return None;
    }
    let spaces = run(&text[word.len()..], |byte| byte == b' ');
    let kept = word.len() + spaces;
    let token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte);
    let mut secret = run(&text[kept..], token_byte);
    while text[kept..kept + secret].ends_with(b".") {
        secret -= 1;
    }
    let good = spaces > 0 && secret >= 20 && Proof::Piece(10).holds(&text[kept..kept + secret]);
    good.then_some(Match {
        kind: BEARER,
        kept,
        secret,
    })
}

/// An AWS secret key has no prefix: it is told by what names it. Looks at the start of `text` for
/// such a name and the 40 characters behind it.
pub(super) fn named_aws_secret(text: &[u8]) -> Option<Match> {
    let name = ["secret_access_key", "secretaccesskey", "secret access key"]
        .iter()
        .find(|name| {
            text.get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        })?;
    let joint = run(&text[name.len()..], |byte| b" \t\"'\\=:>".contains(&byte));
    let kept = name.len() + joint;
    let secret = aws_secret_length(&text[kept..])?;
    (joint > 0).then_some(Match {
        kind: AWS_SECRET,
        kept,
        secret,
    })
}

/// The length of a separator and a secret key right behind a key's id, or nothing.
fn paired_aws_secret(rest: &[u8]) -> usize {
    let joint = run(rest, |byte| b" \t,:;|\"'".contains(&byte));
    if !(1..=4).contains(&joint) {
        return 0;
    }
    aws_secret_length(&rest[joint..]).map_or(0, |secret| joint + secret)
}

/// Exactly 40 characters with capitals, small letters and digits: no object id, no path.
fn aws_secret_length(text: &[u8]) -> Option<usize> {
    let length = run(text, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'+')
    });
    let token = text.get(..40)?;
    let mixed = token.iter().any(u8::is_ascii_uppercase)
        && token.iter().any(u8::is_ascii_lowercase)
        && (token.iter().any(u8::is_ascii_digit)
            || token.iter().any(|byte| matches!(byte, b'/' | b'+')));
    (length == 40 && mixed).then_some(40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        for shape in &SHAPES {
            assert!(
                shape.prefix.len() >= 2 && shape.least <= shape.most,
                "{}",
                shape.prefix
            );
            assert!(shape.least <= JUDGED_BYTES, "{}", shape.prefix);
            assert!(
                shape
                    .kind
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            );
            assert!(is_kind(shape.kind.as_bytes()));
        }
    }
}
