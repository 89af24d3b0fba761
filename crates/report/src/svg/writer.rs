//! Writes SVG elements: short coordinates, escaped text, one element a line.

use crate::text::escape;
use std::fmt::Write;

/// Which end of a text stands at its coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Default)]
pub(super) struct Writer {
    out: String,
}

impl Writer {
    pub(super) fn raw(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    pub(super) fn open_group(&mut self, class: &str) {
        let _ = writeln!(self.out, "<g class=\"{class}\">");
    }

    pub(super) fn close_group(&mut self) {
        self.out.push_str("</g>\n");
    }

    pub(super) fn path(&mut self, class: &str, shape: &str, tooltip: Option<&str>) {
        if shape.is_empty() {
            return;
        }
        let _ = match tooltip {
            Some(text) => writeln!(
                self.out,
                "<path class=\"{class}\" d=\"{shape}\"><title>{}</title></path>",
                escape(text)
            ),
            None => writeln!(self.out, "<path class=\"{class}\" d=\"{shape}\"/>"),
        };
    }

    /// Writes a text as it is given; the caller has cleaned it.
    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() {
            String::new()
        } else {
            format!(" class=\"{class}\"")
        };
        let _ = writeln!(
            self.out,
            "<text{class} x=\"{}\" y=\"{}\"{anchor}>{}</text>",
            number(at.0),
            number(at.1),
            escape(text)
        );
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// A coordinate with at most one decimal.
pub(super) fn number(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    if rounded == 0.0 {
        return "0".to_owned();
    }
    format!("{rounded}")
}

pub(super) fn line(from: (f64, f64), to: (f64, f64)) -> String {
    format!(
        "M{} {}L{} {}",
        number(from.0),
        number(from.1),
        number(to.0),
        number(to.1)
    )
}

pub(super) fn rectangle(left: f64, top: f64, right: f64, bottom: f64) -> String {
    format!(
        "M{} {}H{}V{}H{}z",
        number(left),
        number(top),
        number(right),
        number(bottom),
        number(left)
    )
}

pub(super) fn circle(x: f64, y: f64, radius: f64) -> String {
    let (radius_text, across) = (number(radius), number(radius * 2.0));
    format!(
        "M{} {}a{radius_text} {radius_text} 0 1 0 {across} 0a{radius_text} {radius_text} 0 1 0-{across} 0z",
        number(x - radius),
        number(y)
    )
}

/// A regular polygon; `turn` is the angle of its first corner in degrees.
pub(super) fn polygon(x: f64, y: f64, radius: f64, corners: u32, turn: f64) -> String {
    let mut shape = String::new();
    for corner in 0..corners {
        let degrees = turn + 360.0 / f64::from(corners) * f64::from(corner);
        let angle = degrees.to_radians();
        let _ = write!(
            shape,
            "{}{} {}",
            if corner == 0 { 'M' } else { 'L' },
            number(x + radius * angle.cos()),
            number(y + radius * angle.sin())
        );
    }
    shape.push('z');
    shape
}

/// A dot for paths with round line ends: many of them fit in one element.
pub(super) fn dot(x: f64, y: f64) -> String {
    format!("M{} {}h.01", number(x), number(y))
}
