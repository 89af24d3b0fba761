//! Printing: data to stdout, talk to stderr, colour only where a terminal shows it and nobody
//! minds. A reader of stdout that goes away ends a command, and that is a success.

use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use loopwright_core::time::Micros;
use serde::Serialize;
use serde_json::Value;
use unicode_width::UnicodeWidthChar as _;

use crate::failure::Failure;

/// Columns where no terminal says how many it has.
const WIDTH_FALLBACK: usize = 80;

/// What the two streams can show.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Whether stdout is shown in colour.
    pub colour: bool,
    /// Whether stderr is a terminal on which a line may be redrawn.
    pub live: bool,
    /// Columns for pictures.
    pub width: usize,
    /// Columns of the terminal that stdout is; none where it is none, and lines may be long.
    pub columns: Option<usize>,
}

/// What colours say; each is said in words or marks, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Kept.
    Good,
    /// Failed.
    Bad,
    /// As it is.
    Plain,
}

impl Output {
    /// What the streams of this process can show.
    pub fn of_process() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        let off = |name: &str| set(name).is_some_and(|value| value == "0");
        let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let unwanted = set("NO_COLOR").is_some() || off("CLICOLOR") || dumb;
        let stdout = std::io::stdout();
        let stderr = std::io::stderr();
        let shown = columns_of(&stdout).or_else(|| columns_of(&stderr));
        // Fewer may be asked for; more would break the line that is redrawn.
        let asked = set("COLUMNS").and_then(|text| text.to_str()?.parse().ok());
        let asked = asked.filter(|columns| *columns > 0);
        let columns = match (shown, asked) {
            (Some(shown), Some(asked)) => Some(shown.min(asked)),
            (shown, asked) => shown.or(asked),
        };
        Self {
            colour: set("NO_COLOR").is_none() && (forced || stdout.is_terminal() && !unwanted),
            live: stderr.is_terminal() && !dumb,
            width: columns.unwrap_or(WIDTH_FALLBACK),
            columns: columns.filter(|_| stdout.is_terminal()),
        }
    }

    /// A text in a tone, where colours are shown.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            _ if !self.colour => return text.to_owned(),
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Plain => return text.to_owned(),
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

fn columns_of(stream: &impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Prints data.
pub fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// Prints a line of data.
pub fn line(text: &str) -> Result<(), Failure> {
    print(&format!("{text}\n"))
}

/// Prints data as it is.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .map_err(Failure::io("write the output"))
}

/// Prints one object of data on one line.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).expect("BUG: what is shown is plain data");
    line(&text)
}

/// Turns what stands for numbers in the record into numbers: `value` and the like, at the top and
/// one level down.
pub fn with_numbers(mut object: Value, keys: &[&str]) -> Value {
    for key in keys {
        if let Some(found) = object.get_mut(*key) {
            to_number(found);
        }
    }
    object
}

fn to_number(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Ok(number) = text.parse::<f64>() {
                *value = Value::from(number);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| {
            if let Some(found) = item.get_mut("value") {
                to_number(found);
            }
        }),
        Value::Object(fields) => fields.values_mut().for_each(to_number),
        _ => {}
    }
}

/// Says something to whoever is there; nobody need be.
pub fn talk(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Makes text of others harmless for a terminal, and one line of it.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_one_line(&mut out, text);
    out
}

/// The same at the end of a text.
pub fn push_one_line(out: &mut String, text: &str) {
    // What most texts are; listings show thousands.
    if text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() || byte == b' ')
    {
        out.push_str(text.trim_end_matches(' '));
        return;
    }
    let start = out.len();
    for character in text.chars() {
        if character == '\n' || character == '\t' || character == '\r' {
            out.push(' ');
        } else if !is_steering(character) {
            out.push(character);
        }
    }
    out.truncate(start + out[start..].trim_end().len());
}

/// Makes text of others harmless for a terminal, and keeps its lines.
pub fn harmless(text: &str) -> String {
    text.chars()
        .filter(|character| matches!(character, '\n' | '\t') || !is_steering(*character))
        .collect()
}

/// Control characters, and those that reorder what is shown.
fn is_steering(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Cuts a line to so many columns.
pub fn cut(text: &str, columns: usize) -> String {
    let mut used = 0;
    let mut out = String::new();
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > columns {
            out.pop();
            out.push('…');
            return out;
        }
        out.push(character);
    }
    out
}

/// A moment, as people in this time zone write it.
pub fn moment(at: Micros) -> String {
    match Timestamp::from_microsecond(at.0) {
        Ok(timestamp) => timestamp
            .to_zoned_datetime(TimeZone::system())
            .strftime("%Y-%m-%d %H:%M:%S %Z")
            .to_string(),
        Err(_) => format!("{at} µs"),
    }
}

/// A span of time for a display: `4.2s`, `12m05s`, `3h07m`.
pub fn span(duration_us: u64) -> String {
    let seconds = duration_us / 1_000_000;
    match seconds {
        0 => format!("{}ms", duration_us / 1000),
        1..60 => format!("{:.1}s", duration_us as f64 / 1e6),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `1 trial`, `2 trials`.
pub fn counted(count: u64, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_steers_no_terminal() {
        assert_eq!(one_line("a\x1b[2Jb\nc\u{202e}\n"), "a[2Jb c");
        assert_eq!(one_line("plain words  "), "plain words");
        let mut text = "kept  ".to_owned();
        push_one_line(&mut text, "\n");
        assert_eq!(text, "kept  ");
        assert_eq!(harmless("a\x07\nb\u{2066}"), "a\nb");
    }

    #[test]
    fn lines_are_cut_to_their_columns() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
    }

    #[test]
    fn spans_are_short() {
        assert_eq!(span(42_000), "42ms");
        assert_eq!(span(4_200_000), "4.2s");
        assert_eq!(span(725_000_000), "12m05s");
        assert_eq!(span(11_220_000_000), "3h07m");
    }
}
