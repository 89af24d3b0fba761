//! What was changed, in words beside the kept attempts; outcomes beside the refused and failed.

use super::frame::Frame;
use super::lines::lines_ink;
use super::marks::rejected_ink;
use super::writer::{Anchor, Writer, line};
use crate::analysis::{Analysis, Attempt, Strip};
use crate::layout::{Area, Ground, Ink, Placed, Wish, place_labels};
use crate::ranking::{label_text, ranked};
use crate::text::{clean, cut_pixels, pixels};

/// Up to this many labels are all tried.
const MANY_LABELS: usize = 60;
/// Of more than that only so many: the rest couldn't be read, and would hide the marks.
const MOST_LABELS: usize = 20;
/// No more words than this on one strip.
const MOST_STRIP_WORDS: usize = 14;

/// The labels that found room, and how many did not.
pub(super) struct Labels {
    pub placed: Vec<Placed>,
    pub left_out: usize,
}

/// Finds places for the labels of kept attempts and baselines.
pub(super) fn find(frame: &Frame, analysis: &Analysis<'_>, blocked: &[Area]) -> Labels {
    let labelled = ranked(analysis);
    let tried = if labelled.len() > MANY_LABELS {
        MOST_LABELS
    } else {
        MANY_LABELS
    };
    let wishes: Vec<Wish> = labelled
        .iter()
        .take(tried)
        .map(|(attempt, value)| Wish {
            x: frame.x(attempt.point.trial),
            y: frame.y(*value),
            text: label_text(attempt),
        })
        .collect();
    let mut ink = Ink::new(&frame.plot);
    rejected_ink(&mut ink, frame, analysis);
    lines_ink(&mut ink, frame, analysis);
    let radius = frame.mark_radius(labelled.len()) + 1.0;
    let mut blocked = blocked.to_vec();
    for (attempt, value) in &labelled {
        let x = frame.x(attempt.point.trial);
        blocked.push(Area::around(x, frame.y(*value), radius));
        if let Some(confirmed) = attempt.confirmed {
            blocked.push(Area::around(x, frame.y(confirmed), radius + 2.5));
        }
    }
    if frame.compact {
        // Marks of a crowd can't all be kept clear; they count as ink instead.
        blocked.truncate(1500);
    }
    let ground = Ground {
        outer: frame.plot,
        blocked,
        ink: &ink,
        font_size: 12.0,
        prefer_below: analysis.progress.lower_is_better,
    };
    let placed = place_labels(&wishes, &ground);
    let left_out = labelled.len() - placed.len();
    Labels { placed, left_out }
}

pub(super) fn draw(writer: &mut Writer, labels: &Labels) {
    writer.open_group("labels");
    let leaders: String = labels
        .placed
        .iter()
        .filter_map(|label| label.leader)
        .map(|l| line((l[0], l[1]), (l[2], l[3])))
        .collect();
    writer.path("leader", &leaders, None);
    for label in &labels.placed {
        writer.text("label", (label.x, label.y), Anchor::Start, &label.text);
    }
    writer.close_group();
}

/// Outcomes in words on the strips, where there is room to the next mark.
pub(super) fn strip_words(writer: &mut Writer, frame: &Frame, analysis: &Analysis<'_>) {
    writer.open_group("strip-words");
    for strip in [Strip::Failed, Strip::Refused, Strip::NoValue] {
        let marks: Vec<(f64, &Attempt<'_>)> = analysis
            .attempts
            .iter()
            .filter(|a| a.strip() == Some(strip))
            .take(MOST_STRIP_WORDS + 1)
            .map(|a| (frame.x(a.point.trial), a))
            .collect();
        if marks.len() > MOST_STRIP_WORDS {
            continue;
        }
        let y = frame.strip_y(strip) + 4.0;
        let mut taken_until = frame.plot.left;
        for (at, (x, attempt)) in marks.iter().enumerate() {
            let until = marks
                .get(at + 1)
                .map_or(frame.plot.right, |(next, _)| next - 9.0);
            let word = clean(&attempt.point.outcome).replace('_', " ");
            let word = cut_pixels(&word, 150.0, 11.0);
            let width = pixels(&word, 11.0);
            let (after, before) = (x + 11.0, x - 11.0 - width);
            taken_until = if after + width <= until {
                writer.text("small", (after, y), Anchor::Start, &word);
                after + width
            } else {
                if before >= taken_until {
                    writer.text("small", (x - 11.0, y), Anchor::End, &word);
                }
                x + 9.0
            };
        }
    }
    writer.close_group();
}
