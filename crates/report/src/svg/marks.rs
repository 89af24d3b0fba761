//! One mark for each attempt: on the value axis where it has a value, on a strip where not.

use super::frame::Frame;
use super::style::BRANCH_STYLES;
use super::writer::{Writer, circle, dot, line, number, polygon, rectangle};
use crate::analysis::{Analysis, Attempt, Strip};
use crate::layout::Ink;
use crate::model::Mark;
use crate::scale::Place;
use crate::text::{clean, cut_columns};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Radius of a rejected attempt's ring.
pub(super) const REJECTED_RADIUS: f64 = 3.2;

/// The shape of a kept attempt: its branch's, besides its colour.
pub(super) fn kept_shape(branch: usize, x: f64, y: f64, radius: f64) -> String {
    match branch % BRANCH_STYLES {
        0 => circle(x, y, radius),
        1 => polygon(x, y, radius * 1.25, 4, 45.0),
        2 => polygon(x, y, radius * 1.3, 3, -90.0),
        3 => polygon(x, y, radius * 1.3, 3, 90.0),
        4 => polygon(x, y, radius * 1.15, 5, -90.0),
        _ => polygon(x, y, radius * 1.1, 8, 22.5),
    }
}

pub(super) fn baseline_shape(x: f64, y: f64, radius: f64) -> String {
    polygon(x, y, radius * 1.35, 4, 0.0)
}

pub(super) fn failed_shape(x: f64, y: f64) -> String {
    let arm = 4.0;
    line((x - arm, y - arm), (x + arm, y + arm)) + &line((x - arm, y + arm), (x + arm, y - arm))
}

/// A hexagon, and the bar and dot of the exclamation mark in it.
pub(super) fn refused_shapes(x: f64, y: f64) -> (String, String) {
    let bang = rectangle(x - 0.9, y - 4.0, x + 0.9, y + 1.0)
        + &rectangle(x - 0.9, y + 2.2, x + 0.9, y + 4.0);
    (polygon(x, y, 7.5, 6, -90.0), bang)
}

pub(super) fn unmeasured_shape(x: f64, y: f64) -> String {
    line((x - 4.0, y - 2.0), (x + 4.0, y - 2.0)) + &line((x - 4.0, y + 2.0), (x + 4.0, y + 2.0))
}

/// An open arrow head at the edge: the value lies beyond it.
pub(super) fn outside_shape(x: f64, y: f64, up: bool) -> String {
    let tip = if up { -2.5 } else { 2.5 };
    format!(
        "M{} {}L{} {}L{} {}",
        number(x - 4.0),
        number(y - tip),
        number(x),
        number(y + tip),
        number(x + 4.0),
        number(y - tip)
    )
}

/// Rejected attempts, below everything else.
pub(super) fn rejected(writer: &mut Writer, frame: &Frame, analysis: &Analysis<'_>) {
    writer.open_group("rejected-marks");
    let mut dots = BTreeSet::new();
    let mut edges = BTreeSet::new();
    for attempt in &analysis.attempts {
        let Some(value) = attempt.place().filter(|_| !attempt.accepted()) else {
            continue;
        };
        let x = frame.x(attempt.point.trial);
        match frame.values.place(value) {
            Place::Inside(at) if frame.compact => {
                // A grid of two pixels: what merges couldn't be told apart anyway.
                dots.insert(((x / 2.0) as i64, (frame.y_at(at) / 2.0) as i64));
            }
            Place::Inside(at) => {
                let y = frame.y_at(at);
                if let Some((low, high)) = attempt.interval {
                    let whisker = line((x, frame.y(low)), (x, frame.y(high)));
                    writer.path("whisker", &whisker, None);
                }
                let shape = circle(x, y, REJECTED_RADIUS);
                writer.path("rejected", &shape, Some(&tooltip(analysis, attempt)));
            }
            beyond => {
                let up = beyond == Place::Above;
                let y = if up {
                    frame.plot.top + 5.0
                } else {
                    frame.plot.bottom - 5.0
                };
                if !frame.compact {
                    let shape = outside_shape(x, y, up);
                    writer.path("outside", &shape, Some(&tooltip(analysis, attempt)));
                } else if edges.insert(((x / 6.0) as i64, up)) {
                    writer.path("outside", &outside_shape(x, y, up), None);
                }
            }
        }
    }
    for chunk in thin(dots).chunks(2000) {
        let path: String = chunk
            .iter()
            .map(|(x, y)| dot(*x as f64 * 2.0 + 1.0, *y as f64 * 2.0 + 1.0))
            .collect();
        writer.path("rejected-dots", &path, None);
    }
    writer.close_group();
}

/// More dots than the file may hold: they are merged further, in cells of four pixels.
fn thin(dots: BTreeSet<(i64, i64)>) -> Vec<(i64, i64)> {
    if dots.len() <= 12_000 {
        return dots.into_iter().collect();
    }
    let coarse: BTreeSet<(i64, i64)> = dots
        .into_iter()
        .map(|(x, y)| (x / 2 * 2, y / 2 * 2))
        .collect();
    coarse.into_iter().collect()
}

/// Baselines, kept attempts and their confirmed values.
pub(super) fn accepted(writer: &mut Writer, frame: &Frame, analysis: &Analysis<'_>) {
    let placed = || {
        let accepted = analysis.attempts.iter().filter(|a| a.accepted());
        accepted.filter_map(|a| a.place().map(|value| (a, value)))
    };
    let radius = frame.mark_radius(placed().count());
    writer.open_group("confirmed-marks");
    let mut rings = vec![String::new(); BRANCH_STYLES];
    for (attempt, value) in placed() {
        let (Some(confirmed), Some(_)) = (attempt.confirmed, attempt.value) else {
            continue;
        };
        let x = frame.x(attempt.point.trial);
        let (from, to) = (frame.y(value), frame.y(confirmed));
        let ring_radius = radius + 2.5;
        let style = attempt.branch % BRANCH_STYLES;
        if frame.compact {
            let _ = write!(rings[style], "M{} {}h6", number(x - 3.0), number(to));
            continue;
        }
        if (from - to).abs() > ring_radius {
            let end = if to > from {
                to - ring_radius
            } else {
                to + ring_radius
            };
            writer.path(&format!("link b{style}"), &line((x, from), (x, end)), None);
        }
        let class = format!("ring b{style} solid");
        writer.path(&class, &circle(x, to, ring_radius), None);
    }
    for (style, path) in rings.iter().enumerate() {
        writer.path(&format!("ring b{style} solid"), path, None);
    }
    writer.close_group();

    writer.open_group("kept-marks");
    let mut dots = vec![String::new(); BRANCH_STYLES];
    for (attempt, value) in placed() {
        let (x, y) = (frame.x(attempt.point.trial), frame.y(value));
        let style = attempt.branch % BRANCH_STYLES;
        match attempt.point.mark {
            Mark::Kept if frame.compact => dots[style].push_str(&dot(x, y)),
            Mark::Kept => {
                let class = format!("kept b{style} solid");
                let shape = kept_shape(attempt.branch, x, y, radius);
                writer.path(&class, &shape, Some(&tooltip(analysis, attempt)));
            }
            _ if frame.compact => writer.path("base", &baseline_shape(x, y, radius), None),
            _ => {
                let shape = baseline_shape(x, y, radius);
                writer.path("base", &shape, Some(&tooltip(analysis, attempt)));
            }
        }
    }
    for (style, path) in dots.iter().enumerate() {
        writer.path(&format!("kept-dots b{style} solid"), path, None);
    }
    writer.close_group();
}

/// Attempts without a value, on the rows below the plot.
pub(super) fn strips(writer: &mut Writer, frame: &Frame, analysis: &Analysis<'_>) {
    writer.open_group("strip-marks");
    let mut taken = BTreeSet::new();
    for attempt in &analysis.attempts {
        let Some(strip) = attempt.strip() else {
            continue;
        };
        let (x, y) = (frame.x(attempt.point.trial), frame.strip_y(strip));
        let kept = attempt.point.mark == Mark::Kept;
        let cell = ((x / 9.0) as i64, strip.name());
        if frame.compact && !kept && !taken.insert(cell) {
            continue;
        }
        let told = tooltip(analysis, attempt);
        let told = (!frame.compact).then_some(told.as_str());
        match (strip, attempt.point.mark) {
            (Strip::Failed, _) => writer.path("failed", &failed_shape(x, y), told),
            (Strip::Refused, _) => {
                let (hexagon, bang) = refused_shapes(x, y);
                writer.path("refused", &hexagon, told);
                writer.path("bang", &bang, None);
            }
            (Strip::NoValue, Mark::Kept) => {
                let class = format!("kept b{} solid", attempt.branch % BRANCH_STYLES);
                writer.path(&class, &kept_shape(attempt.branch, x, y, 4.5), told);
            }
            (Strip::NoValue, Mark::Baseline) => {
                writer.path("base", &baseline_shape(x, y, 4.5), told);
            }
            (Strip::NoValue, _) => writer.path("unmeasured", &unmeasured_shape(x, y), told),
        }
    }
    writer.close_group();
}

/// Marks rejected attempts as drawn-on, so that labels keep off them.
pub(super) fn rejected_ink(ink: &mut Ink, frame: &Frame, analysis: &Analysis<'_>) {
    for attempt in analysis.attempts.iter().filter(|a| !a.accepted()) {
        if let Some(value) = attempt.place() {
            ink.dot(frame.x(attempt.point.trial), frame.y(value), 0.8);
        }
    }
}

/// Everything known of an attempt in one line.
fn tooltip(analysis: &Analysis<'_>, attempt: &Attempt<'_>) -> String {
    let point = attempt.point;
    let mut text = format!("trial {}", point.trial);
    if analysis.branches.len() > 1 {
        let branch = cut_columns(&analysis.branches[attempt.branch], 30, "…");
        let _ = write!(text, " on {branch}");
    }
    let outcome = cut_columns(&clean(&point.outcome), 40, "…");
    let outcome = if outcome.is_empty() {
        point.mark.word()
    } else {
        &outcome
    };
    let _ = write!(text, ", {outcome}");
    if let Some(value) = attempt.value {
        let _ = write!(text, ", {}", analysis.value_text(value));
    }
    if let Some(confirmed) = attempt.confirmed {
        let _ = write!(text, ", confirmed {}", analysis.value_text(confirmed));
    }
    if let Some((low, high)) = attempt.interval {
        let (low, high) = (analysis.value_text(low), analysis.value_text(high));
        let _ = write!(text, ", between {low} and {high}");
    }
    if let Some(label) = &point.label {
        let _ = write!(text, ": {}", cut_columns(&clean(label), 80, "…"));
    }
    text
}
