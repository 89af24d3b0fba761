//! Puts the terminal picture together.

use super::canvas::{Canvas, Paint, painted, rank};
use super::glyphs::{Glyphs, glyphs};
use super::options::TerminalOptions;
use super::{labels, surroundings};
use crate::analysis::{Analysis, Lane, Strip};
use crate::model::{Mark, Progress};
use crate::scale::{Place, Scale, Ticks};
use crate::text::{columns, cut_columns};

/// Lines of the drawn field at least.
const FEWEST_ROWS: usize = 5;

/// Draws the progress of a run in characters, a line feed after each line.
///
/// Marks: `B` baseline, `+` kept, `-` rejected, `!` failed, `H` refused,
/// `=` not measured, `c` the confirmed value of a keep; `^` and `v` stand for
/// rejected values above and below the field. Where several fall on one
/// character the more important one is seen. Interval bands need Unicode.
pub fn terminal(progress: &Progress, options: &TerminalOptions) -> String {
    let options = &TerminalOptions {
        width: options.width.max(30),
        ..*options
    };
    let analysis = Analysis::new(progress);
    let glyphs = glyphs(options.unicode);
    let values = Scale::for_values(&analysis);
    let (first, last) = analysis.trials().unwrap_or((0, 1));
    let trials = Scale::for_trials(first, last);

    let strips = analysis.strips();
    let legend = surroundings::legend(&analysis, &values, options, glyphs);
    let notes = surroundings::notes(&analysis, options, glyphs);
    let around = 3 + 2 + strips.len() + legend.len() + notes.len();
    let rows = options.height.saturating_sub(around).max(FEWEST_ROWS);
    let ticks = values.ticks((rows / 3).clamp(2, 8));
    let indent = indent(&ticks, &strips, options.width);
    let field = Field {
        values,
        trials,
        canvas: Canvas::new(options.width - indent, rows),
        glyphs,
    }
    .drawn(&analysis);

    let axis_title = analysis.axis_title(field.values.logarithmic, ticks.offset);
    let mut lines = surroundings::heading(&analysis, options, glyphs, &axis_title);
    lines.extend(field_lines(&field, &ticks, indent, options));
    let width = field.canvas.columns;
    let (axis, numbers) = surroundings::trial_axis(&field.trials, indent, width, options, glyphs);
    lines.push(axis);
    for strip in strips {
        lines.push(strip_line(&field, &analysis, strip, indent, options));
    }
    lines.push(numbers);
    lines.extend(legend);
    lines.extend(notes);
    let mut text = lines
        .iter()
        .map(|line| line.trim_end())
        .collect::<Vec<_>>()
        .join("\n");
    text.push('\n');
    text
}

/// Columns before the field: the widest text, a blank and the axis.
fn indent(ticks: &Ticks, strips: &[Strip], width: usize) -> usize {
    let texts = ticks.marks.iter().map(|(_, text)| columns(text));
    let names = strips.iter().map(|strip| strip.name().len());
    texts.chain(names).max().unwrap_or(0).clamp(5, width / 3) + 2
}

/// The drawn part: the canvas and how values become places on it.
pub(super) struct Field {
    values: Scale,
    trials: Scale,
    pub(super) canvas: Canvas,
    pub(super) glyphs: &'static Glyphs,
}

impl Field {
    pub(super) fn column(&self, trial: u64) -> usize {
        let at = self.trials.position(trial as f64);
        (at * (self.canvas.columns - 1) as f64).round() as usize
    }

    pub(super) fn row(&self, value: f64) -> usize {
        self.row_at(self.values.position(value))
    }

    fn row_at(&self, position: f64) -> usize {
        ((1.0 - position) * (self.canvas.rows - 1) as f64).round() as usize
    }

    fn drawn(mut self, analysis: &Analysis<'_>) -> Self {
        self.target(analysis);
        for (before, first, _) in &analysis.boundaries {
            let column = usize::midpoint(self.column(*before), self.column(*first));
            for row in 0..self.canvas.rows {
                let glyph = self.glyphs.segment;
                self.canvas.put(column, row, glyph, Paint::Dim, rank::RULE);
            }
        }
        for lane in &analysis.lanes {
            self.band(lane);
            self.running_best(lane);
        }
        self.marks(analysis);
        labels::write(&mut self, analysis);
        self
    }

    fn target(&mut self, analysis: &Analysis<'_>) {
        let Some(Place::Inside(at)) = analysis.target.map(|t| self.values.place(t)) else {
            return;
        };
        let row = self.row_at(at);
        for column in 0..self.canvas.columns {
            let glyph = self.glyphs.target;
            self.canvas
                .put(column, row, glyph, Paint::Target, rank::RULE);
        }
    }

    /// Shades the interval of the running best, where it is more than the line itself.
    fn band(&mut self, lane: &Lane) {
        let Some(shade) = self.glyphs.band else {
            return;
        };
        for (at, step) in lane.steps.iter().enumerate() {
            let Some((low, high)) = step.interval else {
                continue;
            };
            let until = lane.steps.get(at + 1).map_or(lane.end_trial, |n| n.trial);
            let (top, bottom) = (self.row(high), self.row(low));
            for column in self.column(step.trial)..=self.column(until) {
                for row in top..=bottom {
                    let paint = Paint::Dim;
                    self.canvas.put(column, row, shade, paint, rank::BAND);
                }
            }
        }
    }

    fn running_best(&mut self, lane: &Lane) {
        let stroke = &self.glyphs.strokes[lane.branch % 3];
        let paint = Paint::Branch(lane.branch);
        for (at, step) in lane.steps.iter().enumerate() {
            let next = lane.steps.get(at + 1);
            let row = self.row(step.level);
            let from = self.column(step.trial);
            let until = self.column(next.map_or(lane.end_trial, |n| n.trial));
            for column in from..until {
                // The corner of the step before stands where this one begins.
                if at == 0 || column > from {
                    self.canvas
                        .put(column, row, stroke.across, paint, rank::LINE);
                }
            }
            let Some(next) = next else {
                if until > from {
                    self.canvas
                        .put(until, row, stroke.across, paint, rank::LINE);
                }
                continue;
            };
            let next_row = self.row(next.level);
            let (first, last, leaves, arrives) = if next_row >= row {
                (row, next_row, stroke.falls, stroke.lands)
            } else {
                (next_row, row, stroke.rises, stroke.tops)
            };
            for between in first..=last {
                let glyph = match between {
                    _ if row == next_row => stroke.across,
                    b if b == row => leaves,
                    b if b == next_row => arrives,
                    _ => stroke.upright,
                };
                self.canvas.put(until, between, glyph, paint, rank::LINE);
            }
        }
    }

    fn marks(&mut self, analysis: &Analysis<'_>) {
        for attempt in &analysis.attempts {
            let Some(value) = attempt.place() else {
                continue;
            };
            let column = self.column(attempt.point.trial);
            let symbol = attempt.point.mark.symbol();
            if !attempt.accepted() {
                let (row, symbol) = match self.values.place(value) {
                    Place::Inside(at) => (self.row_at(at), symbol),
                    Place::Above => (0, '^'),
                    Place::Below => (self.canvas.rows - 1, 'v'),
                };
                self.canvas
                    .put(column, row, symbol, Paint::Dim, rank::REJECTED);
                continue;
            }
            let row = self.row(value);
            let paint = match attempt.point.mark {
                Mark::Baseline => Paint::Strong,
                _ => Paint::Branch(attempt.branch),
            };
            self.canvas.put(column, row, symbol, paint, rank::ACCEPTED);
            if let Some(confirmed) = attempt.confirmed.filter(|_| attempt.value.is_some()) {
                let row = self.row(confirmed);
                self.canvas.put(column, row, 'c', paint, rank::CONFIRMED);
            }
        }
    }
}

/// The rows of the field with the value axis before them.
fn field_lines(
    field: &Field,
    ticks: &Ticks,
    indent: usize,
    options: &TerminalOptions,
) -> Vec<String> {
    let mut texts: Vec<Option<String>> = vec![None; field.canvas.rows];
    for (at, text) in &ticks.marks {
        texts[field.row_at(*at)] = Some(cut_columns(text, indent - 2, field.glyphs.ellipsis));
    }
    let mut lines = Vec::with_capacity(texts.len());
    for (row, text) in texts.into_iter().enumerate() {
        let axis = if text.is_some() {
            field.glyphs.value_tick
        } else {
            field.glyphs.value_axis
        };
        let text = text.unwrap_or_default();
        let margin = format!("{text:>pad$} {axis}", pad = indent - 2);
        lines.push(format!(
            "{}{}",
            painted(&margin, Paint::Dim, options.colour),
            field.canvas.line(row, options.colour)
        ));
    }
    lines
}

/// One row of attempts without a value.
fn strip_line(
    field: &Field,
    analysis: &Analysis<'_>,
    strip: Strip,
    indent: usize,
    options: &TerminalOptions,
) -> String {
    let mut canvas = Canvas::new(field.canvas.columns, 1);
    for attempt in analysis
        .attempts
        .iter()
        .filter(|a| a.strip() == Some(strip))
    {
        let mark = attempt.point.mark;
        let (paint, rank) = match mark {
            Mark::Failed => (Paint::Failed, rank::REJECTED),
            Mark::Refused => (Paint::Refused, rank::REJECTED),
            Mark::Kept => (Paint::Branch(attempt.branch), rank::ACCEPTED),
            Mark::Baseline => (Paint::Strong, rank::CONFIRMED),
            Mark::Rejected | Mark::NotMeasured => (Paint::Dim, rank::REJECTED),
        };
        let column = field.column(attempt.point.trial);
        canvas.put(column, 0, mark.symbol(), paint, rank);
    }
    let name = format!("{:>pad$}", strip.name(), pad = indent - 1);
    format!(
        "{} {}",
        painted(&name, Paint::Dim, options.colour),
        canvas.line(0, options.colour)
    )
}
