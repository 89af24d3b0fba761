//! Text that comes from outside: made harmless, measured and cut.

use unicode_width::UnicodeWidthChar;

/// Removes what could steer a terminal or reorder a line; runs of white space become one space.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(400));
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\x1b' && characters.next_if_eq(&'[').is_some() {
            // A terminal's control sequence goes as a whole.
            while characters
                .next_if(|c| c.is_ascii_digit() || ";?".contains(*c))
                .is_some()
            {}
            characters.next_if(char::is_ascii_alphabetic);
        } else if character.is_whitespace() {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        } else if !is_unwanted(character) {
            out.push(character);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Control, direction and zero-width characters, and those XML 1.0 forbids.
fn is_unwanted(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{fffe}' | '\u{ffff}')
        || character.width() == Some(0)
}

/// Columns a cleaned text takes in a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Cuts to `limit` columns, with the ellipsis where something is missing.
pub(crate) fn cut_columns(text: &str, limit: usize, ellipsis: &str) -> String {
    cut(text, limit as f64, ellipsis, |c| {
        c.width().unwrap_or(0) as f64
    })
}

/// Cuts to a number of pixels at a font size, by the estimate of [`pixels`].
pub(crate) fn cut_pixels(text: &str, limit: f64, size: f64) -> String {
    cut(text, limit, "…", |c| em(c) * size)
}

fn cut(text: &str, limit: f64, ellipsis: &str, width: impl Fn(char) -> f64) -> String {
    let total = |part: &str| part.chars().map(&width).sum::<f64>();
    if total(text) <= limit {
        return text.to_owned();
    }
    let room = limit - total(ellipsis);
    if room < 0.0 {
        return String::new();
    }
    let mut used = 0.0;
    let mut end = 0;
    for (at, character) in text.char_indices() {
        used += width(character);
        if used > room {
            break;
        }
        end = at + character.len_utf8();
    }
    format!("{}{ellipsis}", text[..end].trim_end())
}

/// Width of a text in pixels, estimated on the high side.
///
/// No font is at hand when the picture is made, and the viewer's isn't known:
/// the numbers follow the widest common sans-serif, so that text placed by them
/// fits in the others too.
pub(crate) fn pixels(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

fn em(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '\'' | '|' => 0.30,
        ' ' | '.' | ',' | ':' | ';' | '!' | 'I' | 'f' | 't' | '(' | ')' | '[' | ']' | '/'
        | '\\' => 0.40,
        'r' | '-' | '"' | '*' => 0.44,
        'm' | 'M' | 'W' | '@' | '%' | '…' | '→' => 1.0,
        'w' | '+' | '=' | '<' | '>' | '~' | '_' | '#' | '·' | '−' => 0.84,
        'A'..='Z' => 0.75,
        c if c.is_ascii() => 0.64,
        c if c.width() == Some(2) => 1.1,
        _ => 0.8,
    }
}

/// Escapes a cleaned text for XML, content and attribute values alike.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_disarmed() {
        assert_eq!(clean("a\x1b[31mb\n\n c\u{202e}d\0"), "ab cd");
        assert_eq!(clean("  spaced   out \t"), "spaced out");
        assert_eq!(
            escape("<a b=\"c\">&'"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&#39;"
        );
    }

    #[test]
    fn cutting_keeps_the_limit_with_wide_characters() {
        assert_eq!(cut_columns("学习率减半", 10, "…"), "学习率减半");
        assert_eq!(cut_columns("学习率减半", 7, "…"), "学习率…");
        assert_eq!(cut_columns("abcdef", 5, "..."), "ab...");
        assert_eq!(cut_columns("abcdef", 2, "..."), "");
        assert!(columns(&cut_columns("学习率减半", 6, "…")) <= 6);
        assert!(pixels(&cut_pixels("a longer sentence", 60.0, 12.0), 12.0) <= 60.0);
    }
}
