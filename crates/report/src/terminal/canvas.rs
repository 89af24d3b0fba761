//! A grid of characters with colours, where the more important mark wins.

use crate::text::columns;
use unicode_width::UnicodeWidthChar;

/// What a character is painted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Dim,
    Strong,
    Failed,
    Refused,
    Target,
    Branch(usize),
}

impl Paint {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Dim => "\x1b[90m",
            Self::Strong => "\x1b[1m",
            Self::Failed => "\x1b[31m",
            Self::Refused => "\x1b[1;35m",
            Self::Target => "\x1b[33m",
            Self::Branch(branch) => match branch % 3 {
                0 => "\x1b[32m",
                1 => "\x1b[34m",
                _ => "\x1b[36m",
            },
        }
    }
}

/// Adds a paint's colour to a text.
pub(super) fn painted(text: &str, paint: Paint, colour: bool) -> String {
    if colour && !paint.code().is_empty() && !text.is_empty() {
        format!("{}{text}\x1b[0m", paint.code())
    } else {
        text.to_owned()
    }
}

/// Ranks: a character is replaced only by one of at least its rank.
pub(super) mod rank {
    pub(in crate::terminal) const BLANK: u8 = 0;
    pub(in crate::terminal) const BAND: u8 = 1;
    pub(in crate::terminal) const RULE: u8 = 2;
    pub(in crate::terminal) const LINE: u8 = 3;
    pub(in crate::terminal) const REJECTED: u8 = 4;
    pub(in crate::terminal) const TEXT: u8 = 5;
    pub(in crate::terminal) const CONFIRMED: u8 = 6;
    pub(in crate::terminal) const ACCEPTED: u8 = 7;
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    /// `None` is the second half of a wide character.
    glyph: Option<char>,
    paint: Paint,
    rank: u8,
}

pub(super) struct Canvas {
    pub columns: usize,
    pub rows: usize,
    cells: Vec<Cell>,
}

impl Canvas {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        let blank = Cell {
            glyph: Some(' '),
            paint: Paint::Plain,
            rank: rank::BLANK,
        };
        Self {
            columns,
            rows,
            cells: vec![blank; columns * rows],
        }
    }

    pub(super) fn put(&mut self, column: usize, row: usize, glyph: char, paint: Paint, rank: u8) {
        let cell = &mut self.cells[row * self.columns + column];
        if rank >= cell.rank {
            *cell = Cell {
                glyph: Some(glyph),
                paint,
                rank,
            };
        }
    }

    /// Writes a text where nothing but bands is, with a blank at both ends; says whether it could.
    pub(super) fn put_text(&mut self, column: usize, row: usize, text: &str) -> bool {
        let end = column + columns(text);
        if row >= self.rows || end > self.columns {
            return false;
        }
        let around = column.saturating_sub(1)..(end + 1).min(self.columns);
        let cells = &mut self.cells[row * self.columns..(row + 1) * self.columns];
        if cells[around].iter().any(|cell| cell.rank > rank::BAND) {
            return false;
        }
        let mut at = column;
        for character in text.chars() {
            let width = character.width().unwrap_or(0);
            for half in 0..width {
                cells[at + half] = Cell {
                    glyph: (half == 0).then_some(character),
                    paint: Paint::Plain,
                    rank: rank::TEXT,
                };
            }
            at += width;
        }
        true
    }

    /// A row as text, without trailing blanks.
    pub(super) fn line(&self, row: usize, colour: bool) -> String {
        let cells = &self.cells[row * self.columns..(row + 1) * self.columns];
        let used = cells
            .iter()
            .rposition(|cell| cell.glyph != Some(' '))
            .map_or(0, |last| last + 1);
        let mut line = String::new();
        for run in cells[..used].chunk_by(|left, right| left.paint == right.paint) {
            let text: String = run.iter().filter_map(|cell| cell.glyph).collect();
            line.push_str(&painted(&text, run[0].paint, colour));
        }
        line
    }
}
