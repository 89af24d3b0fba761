//! The geometry of the SVG picture: what stands where, and how values become places.

use super::legend;
use super::options::SvgOptions;
use crate::analysis::{Analysis, Strip};
use crate::layout::Area;
use crate::scale::{Scale, Ticks};
use crate::text::{clean, cut_pixels, pixels};

/// Space to the edge of the picture.
pub(super) const MARGIN: f64 = 24.0;
const STRIP_HEIGHT: f64 = 22.0;
const LEGEND_ROW: f64 = 20.0;
const NOTE_ROW: f64 = 16.0;
/// Lines of the caller's notes at most.
const MOST_NOTES: usize = 4;
/// From this many attempts on they share elements and lose their tooltips.
const COMPACT_FROM: usize = 400;
/// More interval bands than this would make the file too large.
const MOST_BANDS: usize = 3000;

pub(super) struct Frame {
    pub width: f64,
    pub height: f64,
    pub plot: Area,
    /// The rows below the plot, each with the middle of its height.
    pub strips: Vec<(Strip, f64)>,
    /// Baseline of the trial numbers.
    pub trial_text_y: f64,
    pub legend: Vec<Vec<legend::Entry>>,
    pub legend_y: f64,
    pub notes: Vec<String>,
    pub notes_y: f64,
    pub values: Scale,
    pub trials: Scale,
    pub ticks: Ticks,
    pub compact: bool,
    /// Whether interval bands are drawn; not when there are too many for a small file.
    pub bands: bool,
}

impl Frame {
    /// Lays the picture out; `remark` is the picture's own line under the notes.
    pub(super) fn new(analysis: &Analysis<'_>, options: &SvgOptions, remark: Option<&str>) -> Self {
        let width = f64::from(options.width.max(320));
        let height = f64::from(options.height.max(260));
        let values = Scale::for_values(analysis);
        let (first, last) = analysis.trials().unwrap_or((0, 1));
        let trials = Scale::for_trials(first, last);
        let compact = analysis.attempts.len() > COMPACT_FROM;
        let inner = width - 2.0 * MARGIN;

        let banded = analysis.lanes.iter().flat_map(|lane| &lane.steps);
        let banded = banded.filter(|step| step.interval.is_some()).count();
        let bands = (1..=MOST_BANDS).contains(&banded);
        let entries = legend::entries(analysis, compact, bands, &values);
        let legend = legend::rows(&entries, inner);
        let notes = notes(analysis, remark, inner);
        let strips = analysis.strips();

        let below = legend.len() as f64 * LEGEND_ROW + notes.len() as f64 * NOTE_ROW + 46.0;
        let strip_space = if strips.is_empty() {
            0.0
        } else {
            strips.len() as f64 * STRIP_HEIGHT + 8.0
        };
        let top = 98.0;
        let bottom = (height - below - strip_space).max(top + 60.0);
        let ticks = values.ticks((((bottom - top) / 52.0) as usize).clamp(2, 8));

        let names = strips.iter().map(|s| pixels(s.name(), 12.0));
        let tick_texts = ticks.marks.iter().map(|(_, text)| pixels(text, 12.0));
        let widest = names
            .chain(tick_texts)
            .fold(pixels("trial", 12.0), f64::max);
        let plot = Area {
            left: MARGIN + widest.min(width * 0.3) + 10.0,
            top,
            right: width - MARGIN,
            bottom,
        };
        let strips: Vec<(Strip, f64)> = strips
            .into_iter()
            .enumerate()
            .map(|(row, strip)| (strip, bottom + 8.0 + (row as f64 + 0.5) * STRIP_HEIGHT))
            .collect();
        let trial_text_y = bottom + strip_space + 18.0;
        let legend_y = trial_text_y + 28.0;
        let notes_y = legend_y + (legend.len() as f64 - 1.0) * LEGEND_ROW + 20.0;
        Self {
            width,
            height: height.max(notes_y + notes.len() as f64 * NOTE_ROW - 4.0),
            plot,
            strips,
            trial_text_y,
            legend,
            legend_y,
            notes,
            notes_y,
            values,
            trials,
            ticks,
            compact,
            bands,
        }
    }

    pub(super) fn x(&self, trial: u64) -> f64 {
        self.x_at(self.trials.position(trial as f64))
    }

    pub(super) fn x_at(&self, position: f64) -> f64 {
        self.snapped(self.plot.left + position * (self.plot.right - self.plot.left))
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.y_at(self.values.position(value))
    }

    pub(super) fn y_at(&self, position: f64) -> f64 {
        self.snapped(self.plot.bottom - position * (self.plot.bottom - self.plot.top))
    }

    /// Whole pixels in a crowd: shorter to write, and finer couldn't be seen.
    fn snapped(&self, coordinate: f64) -> f64 {
        if self.compact {
            coordinate.round()
        } else {
            coordinate
        }
    }

    pub(super) fn strip_y(&self, strip: Strip) -> f64 {
        self.strips
            .iter()
            .find(|(row, _)| *row == strip)
            .map_or(self.plot.bottom, |(_, y)| *y)
    }

    pub(super) fn strip_height() -> f64 {
        STRIP_HEIGHT
    }

    /// Radius of the marks of accepted attempts: smaller in a crowd.
    pub(super) fn mark_radius(&self, accepted: usize) -> f64 {
        match accepted {
            _ if self.compact => 4.5,
            0..=60 => 5.5,
            _ => 4.0,
        }
    }

    pub(super) const fn legend_row() -> f64 {
        LEGEND_ROW
    }

    pub(super) const fn note_row() -> f64 {
        NOTE_ROW
    }
}

fn notes(analysis: &Analysis<'_>, remark: Option<&str>, inner: f64) -> Vec<String> {
    let given = &analysis.progress.notes;
    let mut lines: Vec<String> = given
        .iter()
        .take(MOST_NOTES)
        .map(|note| cut_pixels(&clean(note), inner, 11.0))
        .collect();
    if given.len() > MOST_NOTES {
        lines.push(format!("and {} more notes", given.len() - MOST_NOTES));
    }
    lines.extend(remark.map(|text| cut_pixels(text, inner, 11.0)));
    lines
}
