//! The legend: an entry for each kind of thing that is in the picture, and none for others.

use super::frame::{Frame, MARGIN};
use super::marks;
use super::style::BRANCH_STYLES;
use super::writer::{Anchor, Writer, circle, dot, line, rectangle};
use crate::analysis::{Analysis, Attempt};
use crate::model::Mark;
use crate::scale::{Place, Scale};
use crate::text::{cut_pixels, pixels};

/// Branches named at most; the rest is counted.
const MOST_BRANCHES: usize = 8;
/// From the start of the sign to the start of its word.
const SIGN_WIDTH: f64 = 26.0;

/// What an entry explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Baseline,
    Kept(usize),
    Confirmed,
    ConfirmedBar,
    Rejected,
    RejectedDot,
    Outside,
    Failed,
    Refused,
    Unmeasured,
    Best,
    Band,
    None,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub sign: Sign,
    pub word: String,
    width: f64,
}

fn entry(sign: Sign, word: &str) -> Entry {
    let word = cut_pixels(word, 180.0, 12.0);
    let sign_width = if sign == Sign::None { 0.0 } else { SIGN_WIDTH };
    Entry {
        sign,
        width: sign_width + pixels(&word, 12.0) + 16.0,
        word,
    }
}

/// The entries for what the picture shows.
pub(super) fn entries(
    analysis: &Analysis<'_>,
    compact: bool,
    bands: bool,
    values: &Scale,
) -> Vec<Entry> {
    let has = |mark: Mark| analysis.attempts.iter().any(|a| a.point.mark == mark);
    let mut all = Vec::new();
    let mut add = |present: bool, sign: Sign, word: &str| {
        if present {
            all.push(entry(sign, word));
        }
    };
    let branches = analysis.branches.len();
    add(has(Mark::Baseline), Sign::Baseline, "baseline");
    add(has(Mark::Kept) && branches < 2, Sign::Kept(0), "kept");
    for (at, name) in analysis.branches.iter().enumerate().take(MOST_BRANCHES) {
        add(branches > 1, Sign::Kept(at), &format!("kept on {name}"));
    }
    if branches > MOST_BRANCHES {
        let more = format!("and {} more branches", branches - MOST_BRANCHES);
        add(true, Sign::None, &more);
    }
    let confirmed = |a: &Attempt<'_>| a.accepted() && a.confirmed.is_some() && a.value.is_some();
    let any_confirmed = analysis.attempts.iter().any(confirmed);
    let confirmed_sign = if compact {
        Sign::ConfirmedBar
    } else {
        Sign::Confirmed
    };
    add(any_confirmed, confirmed_sign, "confirmed value");
    add(!analysis.lanes.is_empty(), Sign::Best, "running best");
    add(bands, Sign::Band, "its interval");
    let rejected = || analysis.attempts.iter().filter(|a| !a.accepted());
    let inside = |value: f64| matches!(values.place(value), Place::Inside(_));
    let any_inside = rejected().filter_map(Attempt::place).any(inside);
    let any_outside = rejected().filter_map(Attempt::place).any(|v| !inside(v));
    let rejected_sign = if compact {
        Sign::RejectedDot
    } else {
        Sign::Rejected
    };
    add(any_inside, rejected_sign, "rejected");
    add(any_outside, Sign::Outside, "rejected, beyond the edge");
    add(has(Mark::Failed), Sign::Failed, "failed");
    add(has(Mark::Refused), Sign::Refused, "refused");
    let unmeasured = has(Mark::NotMeasured)
        || rejected().any(|a| a.point.mark == Mark::Rejected && a.place().is_none());
    add(unmeasured, Sign::Unmeasured, "not measured");
    all
}

/// Breaks the entries into rows of a width.
pub(super) fn rows(entries: &[Entry], inner: f64) -> Vec<Vec<Entry>> {
    let mut rows: Vec<Vec<Entry>> = vec![Vec::new()];
    let mut used = 0.0;
    for entry in entries {
        if used > 0.0 && used + entry.width - 16.0 > inner {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += entry.width;
        if let Some(row) = rows.last_mut() {
            row.push(entry.clone());
        }
    }
    rows
}

pub(super) fn draw(writer: &mut Writer, frame: &Frame) {
    writer.open_group("legend");
    for (row, entries) in frame.legend.iter().enumerate() {
        let y = frame.legend_y + row as f64 * Frame::legend_row();
        let mut x = MARGIN;
        for entry in entries {
            draw_sign(writer, entry.sign, x + 9.0, y - 4.0);
            let indent = if entry.sign == Sign::None {
                0.0
            } else {
                SIGN_WIDTH
            };
            writer.text("", (x + indent, y), Anchor::Start, &entry.word);
            x += entry.width;
        }
    }
    writer.close_group();
}

fn draw_sign(writer: &mut Writer, sign: Sign, x: f64, y: f64) {
    let (left, right) = (x - 9.0, x + 11.0);
    match sign {
        Sign::Baseline => writer.path("base", &marks::baseline_shape(x, y, 5.0), None),
        Sign::Kept(branch) => {
            let style = branch % BRANCH_STYLES;
            if branch > 0 {
                let dashes = line((left, y), (right, y));
                writer.path(&format!("best b{style}"), &dashes, None);
            }
            let class = format!("kept b{style} solid");
            writer.path(&class, &marks::kept_shape(branch, x, y, 5.0), None);
        }
        Sign::Confirmed => writer.path("ring b0 solid", &circle(x, y, 6.0), None),
        Sign::ConfirmedBar => {
            let bar = line((x - 3.0, y), (x + 3.0, y));
            writer.path("ring b0 solid", &bar, None);
        }
        Sign::Rejected => {
            writer.path("rejected", &circle(x, y, marks::REJECTED_RADIUS), None);
        }
        Sign::RejectedDot => writer.path("rejected-dots", &dot(x, y), None),
        Sign::Outside => writer.path("outside", &marks::outside_shape(x, y, true), None),
        Sign::Failed => writer.path("failed", &marks::failed_shape(x, y), None),
        Sign::Refused => {
            let (hexagon, bang) = marks::refused_shapes(x, y);
            writer.path("refused", &hexagon, None);
            writer.path("bang", &bang, None);
        }
        Sign::Unmeasured => writer.path("unmeasured", &marks::unmeasured_shape(x, y), None),
        Sign::Best => writer.path("best b0", &line((left, y), (right, y)), None),
        Sign::Band => {
            writer.path("band b0", &rectangle(left, y - 5.0, right, y + 5.0), None);
        }
        Sign::None => {}
    }
}
