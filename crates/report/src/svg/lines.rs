//! Running best, interval bands, target and segment changes.

use super::frame::Frame;
use super::style::BRANCH_STYLES;
use super::writer::{Anchor, Writer, line, number, rectangle};
use crate::analysis::{Analysis, Lane};
use crate::layout::{Area, Ink};
use crate::scale::Place;
use crate::text::pixels;
use std::fmt::Write;

/// A lane's steps as the picture can show them: one at most for each half pixel.
struct Seen {
    x: f64,
    y: f64,
    band: Option<(f64, f64)>,
}

fn seen_steps(frame: &Frame, lane: &Lane) -> Vec<Seen> {
    let mut seen: Vec<Seen> = Vec::new();
    for step in &lane.steps {
        let next = Seen {
            x: frame.x(step.trial),
            y: frame.y(step.level),
            band: step
                .interval
                .map(|(low, high)| (frame.y(high), frame.y(low))),
        };
        // A later step in the same half pixel hides the earlier: the best only moves one way.
        if seen.len() > 1 && seen.last().is_some_and(|last| next.x - last.x < 0.5) {
            seen.pop();
        }
        seen.push(next);
    }
    seen
}

/// Bands first, then the step lines over them.
pub(super) fn running_best(writer: &mut Writer, frame: &Frame, analysis: &Analysis<'_>) {
    let mut bands = vec![String::new(); BRANCH_STYLES];
    let mut lines = vec![String::new(); BRANCH_STYLES];
    for lane in &analysis.lanes {
        let style = lane.branch % BRANCH_STYLES;
        let steps = seen_steps(frame, lane);
        let end = frame.x(lane.end_trial);
        for (at, step) in steps.iter().enumerate() {
            let until = steps.get(at + 1).map_or(end, |next| next.x);
            if let Some((top, bottom)) = step.band.filter(|_| frame.bands) {
                // A lone point has a band of a few pixels, so that it can be seen.
                let until = until.max(step.x + 6.0).min(frame.plot.right);
                bands[style].push_str(&rectangle(step.x, top, until, bottom));
            }
        }
        let Some(first) = steps.first() else { continue };
        if end <= first.x {
            continue;
        }
        let path = &mut lines[style];
        let _ = write!(path, "M{} {}", number(first.x), number(first.y));
        for step in &steps[1..] {
            let _ = write!(path, "H{}V{}", number(step.x), number(step.y));
        }
        let _ = write!(path, "H{}", number(end));
    }
    writer.open_group("running-best");
    for (style, band) in bands.iter().enumerate() {
        writer.path(&format!("band b{style} solid"), band, None);
    }
    for (style, path) in lines.iter().enumerate() {
        writer.path(&format!("best b{style}"), path, None);
    }
    writer.close_group();
}

/// Marks the lines as drawn-on, so that labels keep off them.
pub(super) fn lines_ink(ink: &mut Ink, frame: &Frame, analysis: &Analysis<'_>) {
    let plot = &frame.plot;
    if let Some(Place::Inside(at)) = analysis.target.map(|t| frame.values.place(t)) {
        let y = frame.y_at(at);
        ink.stroke((plot.left, y), (plot.right, y), 0.6);
    }
    for (before, first, _) in &analysis.boundaries {
        let x = f64::midpoint(frame.x(*before), frame.x(*first));
        ink.stroke((x, plot.top), (x, plot.bottom), 3.0);
    }
    for lane in &analysis.lanes {
        let steps = seen_steps(frame, lane);
        let end = frame.x(lane.end_trial);
        for (at, step) in steps.iter().enumerate() {
            let next = steps.get(at + 1);
            let until = next.map_or(end, |next| next.x);
            ink.stroke((step.x, step.y), (until, step.y), 1.0);
            if let Some(next) = next {
                ink.stroke((next.x, step.y), (next.x, next.y), 1.0);
            }
        }
    }
}

/// The dashed target, or a word at the edge when it lies outside; gives the area of its text.
pub(super) fn target(writer: &mut Writer, frame: &Frame, analysis: &Analysis<'_>) -> Option<Area> {
    let target = analysis.target?;
    let plot = &frame.plot;
    let value = analysis.value_text(target);
    let below = analysis.progress.lower_is_better;
    let (text, y) = match frame.values.place(target) {
        Place::Inside(at) => {
            let y = frame.y_at(at);
            writer.path("target", &line((plot.left, y), (plot.right, y)), None);
            // On the better side, away from the values, where there is room.
            let under = y + 14.0;
            let over = y - 5.0;
            let (first, second) = if below { (under, over) } else { (over, under) };
            let fits = first < plot.bottom - 3.0 && first - 10.0 > plot.top;
            (format!("target {value}"), if fits { first } else { second })
        }
        Place::Below => (
            format!("target {value} is below the picture"),
            plot.bottom - 6.0,
        ),
        Place::Above => (
            format!("target {value} is above the picture"),
            plot.top + 13.0,
        ),
    };
    writer.text("target-text", (plot.right - 4.0, y), Anchor::End, &text);
    Some(Area {
        left: plot.right - 6.0 - pixels(&text, 12.0),
        top: y - 12.0,
        right: plot.right,
        bottom: y + 4.0,
    })
}

/// A vertical line where the harness changed, with a word where there is room; gives the areas of the words.
pub(super) fn segments(writer: &mut Writer, frame: &Frame, analysis: &Analysis<'_>) -> Vec<Area> {
    let plot = &frame.plot;
    let foot = frame.trial_text_y - 18.0;
    let mut path = String::new();
    let mut drawn: Vec<(f64, u64)> = Vec::new();
    for (before, first, segment) in &analysis.boundaries {
        let x = f64::midpoint(frame.x(*before), frame.x(*first));
        if drawn.last().is_none_or(|(last, _)| x - last >= 3.0) {
            path.push_str(&line((x, plot.top), (x, foot)));
            drawn.push((x, *segment));
        }
    }
    writer.path("segment", &path, None);
    let mut areas = Vec::new();
    for (at, (x, segment)) in drawn.iter().enumerate() {
        let until = drawn.get(at + 1).map_or(plot.right, |(next, _)| *next);
        let long = format!("segment {segment}: harness changed");
        let short = format!("segment {segment}");
        let room = until - x - 10.0;
        let Some(text) = [long, short].into_iter().find(|t| pixels(t, 11.0) <= room) else {
            continue;
        };
        let y = plot.top + 11.0;
        writer.text("small", (x + 5.0, y), Anchor::Start, &text);
        areas.push(Area {
            left: x + 2.0,
            top: y - 11.0,
            right: x + 8.0 + pixels(&text, 11.0),
            bottom: y + 4.0,
        });
    }
    areas
}
