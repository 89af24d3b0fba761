//! What stands around the drawn field: heading, axes, strips, legend, notes.

use super::canvas::{Paint, painted};
use super::glyphs::Glyphs;
use super::options::TerminalOptions;
use crate::analysis::{Analysis, Attempt};
use crate::model::Mark;
use crate::number::format_number;
use crate::scale::{Place, Scale};
use crate::text::{clean, columns, cut_columns};
use crate::words::change_words;

/// Notes of the caller at most.
const MOST_NOTES: usize = 4;
/// Branches named in the legend at most.
const MOST_BRANCHES: usize = 6;

/// Title with what was gained, counts, and the name of the value axis.
pub(super) fn heading(
    analysis: &Analysis<'_>,
    options: &TerminalOptions,
    glyphs: &Glyphs,
    axis_title: &str,
) -> Vec<String> {
    let width = options.width;
    let gain = cut_columns(&gain_text(analysis, glyphs), width / 2, glyphs.ellipsis);
    let title = clean(&analysis.progress.title);
    let room = width.saturating_sub(columns(&gain) + 2);
    let title = cut_columns(&title, room, glyphs.ellipsis);
    let gap = width - columns(&title) - columns(&gain);
    let gap = if gain.is_empty() {
        String::new()
    } else {
        " ".repeat(gap)
    };
    let first = format!(
        "{}{gap}{}",
        painted(&title, Paint::Strong, options.colour),
        painted(&gain, Paint::Branch(0), options.colour)
    );
    let counts = cut_columns(&analysis.counts_text(), width, glyphs.ellipsis);
    let axis_title = cut_columns(axis_title, width, glyphs.ellipsis);
    vec![
        first,
        counts,
        painted(&axis_title, Paint::Dim, options.colour),
    ]
}

fn gain_text(analysis: &Analysis<'_>, glyphs: &Glyphs) -> String {
    let Some(head) = analysis.headline() else {
        return String::new();
    };
    let to = analysis.value_text(head.to);
    if head.from == head.to {
        return to;
    }
    let change = head
        .change
        .map_or_else(String::new, |change| format!(" ({})", change_words(change)));
    format!("{} {} {to}{change}", format_number(head.from), glyphs.arrow)
}

/// The line below the field, and the trial numbers under it.
pub(super) fn trial_axis(
    trials: &Scale,
    indent: usize,
    field: usize,
    options: &TerminalOptions,
    glyphs: &Glyphs,
) -> (String, String) {
    let mut line = vec![glyphs.axis; field];
    let mut numbers = String::new();
    let mut used = 0;
    for (at, text) in trials.whole_ticks((field / 12).max(2)) {
        let column = (at * (field - 1) as f64).round() as usize;
        let start = column.saturating_sub(columns(&text) / 2);
        if start < used || start + columns(&text) > field {
            continue;
        }
        numbers.push_str(&" ".repeat(start - columns(&numbers)));
        numbers.push_str(&text);
        used = start + columns(&text) + 2;
        line[column] = glyphs.axis_tick;
    }
    let line: String = line.into_iter().collect();
    let line = format!("{}{}{line}", " ".repeat(indent - 1), glyphs.axis_corner);
    let numbers = format!("{:>pad$} {numbers}", "trial", pad = indent - 1);
    (
        painted(&line, Paint::Dim, options.colour),
        painted(&numbers, Paint::Dim, options.colour),
    )
}

/// The explanation of every sign in the picture, broken into lines.
pub(super) fn legend(
    analysis: &Analysis<'_>,
    values: &Scale,
    options: &TerminalOptions,
    glyphs: &Glyphs,
) -> Vec<String> {
    let entries = entries(analysis, values, glyphs);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for (sign, paint, word) in entries {
        let word = cut_columns(&word, options.width.saturating_sub(2), glyphs.ellipsis);
        let width = 2 + columns(&word);
        if used > 0 && used + 2 + width > options.width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push_str("  ");
            used += 2;
        }
        line.push_str(&painted(&sign.to_string(), paint, options.colour));
        line.push(' ');
        line.push_str(&word);
        used += width;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

fn entries(analysis: &Analysis<'_>, values: &Scale, glyphs: &Glyphs) -> Vec<(char, Paint, String)> {
    let attempts = &analysis.attempts;
    let mut all = Vec::new();
    for (mark, paint) in [
        (Mark::Baseline, Paint::Strong),
        (Mark::Kept, Paint::Branch(0)),
        (Mark::Rejected, Paint::Dim),
        (Mark::Failed, Paint::Failed),
        (Mark::Refused, Paint::Refused),
        (Mark::NotMeasured, Paint::Dim),
    ] {
        if attempts.iter().any(|a| a.point.mark == mark) {
            all.push((mark.symbol(), paint, mark.word().to_owned()));
        }
    }
    let confirmed = |a: &Attempt<'_>| a.accepted() && a.value.is_some() && a.confirmed.is_some();
    if attempts.iter().any(confirmed) {
        all.push(('c', Paint::Branch(0), "confirmed".to_owned()));
    }
    let beyond = |edge: Place| {
        let places = attempts.iter().filter_map(Attempt::place);
        places.into_iter().any(|value| values.place(value) == edge)
    };
    if beyond(Place::Above) {
        all.push(('^', Paint::Dim, "above the picture".to_owned()));
    }
    if beyond(Place::Below) {
        all.push(('v', Paint::Dim, "below the picture".to_owned()));
    }
    let several = analysis.branches.len() > 1;
    if several {
        for (at, name) in analysis.branches.iter().enumerate().take(MOST_BRANCHES) {
            let across = glyphs.strokes[at % 3].across;
            all.push((across, Paint::Branch(at), format!("best of {name}")));
        }
    } else if !analysis.lanes.is_empty() {
        let across = glyphs.strokes[0].across;
        all.push((across, Paint::Branch(0), "running best".to_owned()));
    }
    let banded = |lane: &crate::analysis::Lane| lane.steps.iter().any(|s| s.interval.is_some());
    if let Some(band) = glyphs.band.filter(|_| analysis.lanes.iter().any(banded)) {
        all.push((band, Paint::Dim, "its interval".to_owned()));
    }
    if !analysis.boundaries.is_empty() {
        all.push((glyphs.segment, Paint::Dim, "harness changed".to_owned()));
    }
    if let Some(target) = analysis.target {
        let where_it_is = match values.place(target) {
            Place::Inside(_) => "",
            Place::Above => ", above the picture",
            Place::Below => ", below the picture",
        };
        let word = format!("target {}{where_it_is}", analysis.value_text(target));
        all.push((glyphs.target, Paint::Target, word));
    }
    all
}

/// The caller's notes, and how many branches the legend doesn't name.
pub(super) fn notes(
    analysis: &Analysis<'_>,
    options: &TerminalOptions,
    glyphs: &Glyphs,
) -> Vec<String> {
    let given = &analysis.progress.notes;
    let mut notes: Vec<String> = given.iter().take(MOST_NOTES).map(|n| clean(n)).collect();
    if given.len() > MOST_NOTES {
        notes.push(format!("and {} more notes", given.len() - MOST_NOTES));
    }
    if analysis.branches.len() > MOST_BRANCHES {
        let more = analysis.branches.len() - MOST_BRANCHES;
        notes.push(format!("and {more} more branches"));
    }
    notes
        .into_iter()
        .map(|note| cut_columns(&note, options.width, glyphs.ellipsis))
        .map(|note| painted(&note, Paint::Dim, options.colour))
        .collect()
}
