//! Heading, axes, grid and strips of the SVG picture.

use super::frame::{Frame, MARGIN};
use super::writer::{Anchor, Writer, line, rectangle};
use crate::analysis::Analysis;
use crate::number::format_number;
use crate::text::{clean, cut_pixels, pixels};
use crate::words::change_words;

/// Title and counts to the left, what was gained to the right.
pub(super) fn heading(writer: &mut Writer, frame: &Frame, analysis: &Analysis<'_>) {
    let right = frame.width - MARGIN;
    let inner = frame.width - 2.0 * MARGIN;
    let (gain, gain_note) = gain_texts(analysis);
    // In a narrow picture the last value alone, and the counts rather than the share.
    let short = gain.rsplit(" → ").next().unwrap_or_default();
    let gain = if pixels(&gain, 20.0) > inner * 0.45 {
        short
    } else {
        &gain
    };
    let gain = cut_pixels(gain, inner * 0.55, 20.0);
    let both = pixels(&analysis.counts_text(), 13.0) + pixels(&gain_note, 13.0) + 20.0;
    let gain_note = if both > inner {
        String::new()
    } else {
        gain_note
    };
    let left_of = |text: &str, size: f64| inner - pixels(text, size) - 20.0;
    let title = clean(&analysis.progress.title);
    let title = cut_pixels(&title, left_of(&gain, 20.0), 20.0);
    writer.text("title", (MARGIN, 38.0), Anchor::Start, &title);
    let counts = analysis.counts_text();
    let counts = cut_pixels(&counts, left_of(&gain_note, 13.0), 13.0);
    writer.text("sub", (MARGIN, 60.0), Anchor::Start, &counts);
    writer.text("head b0", (right, 38.0), Anchor::End, &gain);
    writer.text("sub", (right, 60.0), Anchor::End, &gain_note);
}

fn gain_texts(analysis: &Analysis<'_>) -> (String, String) {
    let Some(head) = analysis.headline() else {
        return (String::new(), String::new());
    };
    let to = analysis.value_text(head.to);
    if head.from == head.to {
        return (to, "nothing better so far".to_owned());
    }
    let gain = format!("{} → {to}", format_number(head.from));
    let note = match head.change {
        Some(change) => format!("{}, trial {}", change_words(change), head.trial),
        None => format!("trial {}", head.trial),
    };
    (gain, note)
}

/// Grid, value axis, trial axis and the rows for attempts without a value.
pub(super) fn axes(writer: &mut Writer, frame: &Frame, analysis: &Analysis<'_>) {
    let plot = &frame.plot;
    let axis_text_x = plot.left - 8.0;
    writer.open_group("axes");
    let mut grid = String::new();
    for (at, text) in &frame.ticks.marks {
        let y = frame.y_at(*at);
        grid.push_str(&line((plot.left, y), (plot.right, y)));
        let text = cut_pixels(text, plot.left - MARGIN * 0.5, 12.0);
        writer.text("", (axis_text_x, y + 4.0), Anchor::End, &text);
    }
    writer.path("grid", &grid, None);
    let half = Frame::strip_height() / 2.0 - 1.0;
    for (strip, y) in &frame.strips {
        let row = rectangle(plot.left, y - half, plot.right, y + half);
        writer.path("strip", &row, None);
        writer.text("", (axis_text_x, y + 4.0), Anchor::End, strip.name());
    }
    let floor = line((plot.left, plot.bottom), (plot.right, plot.bottom));
    writer.path("axis", &floor, None);
    trial_axis(writer, frame);
    writer.text(
        "",
        (MARGIN, plot.top - 10.0),
        Anchor::Start,
        &cut_pixels(
            &analysis.axis_title(frame.values.logarithmic, frame.ticks.offset),
            plot.right - MARGIN,
            12.0,
        ),
    );
    writer.close_group();
}

fn trial_axis(writer: &mut Writer, frame: &Frame) {
    let plot = &frame.plot;
    let y = frame.trial_text_y;
    writer.text("", (plot.left - 8.0, y), Anchor::End, "trial");
    let wanted = ((plot.right - plot.left) / 90.0).max(2.0) as usize;
    let mut ticks = String::new();
    let mut free_from = plot.left - 4.0;
    for (at, text) in frame.trials.whole_ticks(wanted) {
        let x = frame.x_at(at);
        let width = pixels(&text, 12.0);
        let left = x - width / 2.0;
        if left < free_from || left + width > frame.width - 6.0 {
            continue;
        }
        free_from = left + width + 8.0;
        ticks.push_str(&line((x, y - 18.0), (x, y - 13.0)));
        writer.text("", (x, y), Anchor::Middle, &text);
    }
    writer.path("axis", &ticks, None);
}
