//! Private keys in their armour (`-----BEGIN … PRIVATE KEY-----`).

pub(super) const KIND: &str = "private-key";

/// The farthest the end of a key is looked for.
const LONGEST_BYTES: usize = 64 * 1024;
/// A key has at least this many characters of base64; the mere words of its armour have none.
const LEAST_BASE64_BYTES: usize = 32;

const BEGIN: &[u8] = b"-----BEGIN ";
const DASHES: &[u8] = b"-----";

/// The length of the private key that begins at the start of `text`. One that is cut off ends with
/// its base64.
pub(super) fn length(text: &[u8]) -> Option<usize> {
    let label_bytes = text.strip_prefix(BEGIN)?;
    let label_length = label_bytes
        .iter()
        .take(64)
        .take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b' ')
        .count();
    let label = &label_bytes[..label_length];
    if !(label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK")) {
        return None;
    }
    let body_start = BEGIN.len() + label_length + DASHES.len();
    if !label_bytes[label_length..].starts_with(DASHES) {
        return None;
    }
    let window = &text[..text.len().min(LONGEST_BYTES)];
    let body = &window[body_start..];
    // Quotes, escaped line breaks and headers stand in a body too, where it is part of a document;
    // five dashes only at its end. So no byte of a text full of beginnings is read twice.
    let body_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\r\n\t \\\"',:.()<>-".contains(&byte);
    let dashes = body
        .windows(DASHES.len())
        .position(|place| place == DASHES)
        .unwrap_or(body.len());
    let body_length = body[..dashes]
        .iter()
        .take_while(|byte| body_byte(**byte))
        .count();
    let (body, rest) = body.split_at(body_length);
    let end_line = [b"-----END ", label, DASHES].concat();
    let ended = rest.starts_with(&end_line);
    let body = if ended {
        body
    } else {
        &body[..cut_off_length(body)]
    };
    if longest_base64_run(body) < LEAST_BASE64_BYTES {
        return None;
    }
    Some(body_start + body.len() + if ended { end_line.len() } else { 0 })
}

/// Of a body without an end, what belongs to it: up to the last long piece of base64.
fn cut_off_length(body: &[u8]) -> usize {
    let mut length = 0;
    let mut start = 0;
    let mut first = true;
    for piece in body.split(|byte| !is_base64(*byte)) {
        let end = start + piece.len();
        // Lines of a key are long; its last one may be short. Words behind it are not taken along.
        if piece.len() >= 16
            || (first && !piece.is_empty() && piece.len() >= 4 && piece.ends_with(b"="))
        {
            length = end;
        }
        first = piece.is_empty();
        start = end + 1;
    }
    length
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn longest_base64_run(body: &[u8]) -> usize {
    body.split(|byte| !is_base64(*byte))
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0)
}
