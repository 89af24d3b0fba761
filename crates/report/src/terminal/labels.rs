//! Labels of kept attempts, written where the canvas is still empty.

use super::canvas::Canvas;
use super::picture::Field;
use crate::analysis::Analysis;
use crate::model::Mark;
use crate::ranking::{label_text, ranked};
use crate::text::{columns, cut_columns};

/// Labels tried at most.
const MOST_LABELS: usize = 40;
const LONGEST: usize = 32;
const SHORTER: usize = 12;

/// Writes the labels that find room.
pub(super) fn write(field: &mut Field, analysis: &Analysis<'_>) {
    let ellipsis = field.glyphs.ellipsis;
    let below = analysis.progress.lower_is_better;
    // A baseline without a label of its own is told by its mark.
    let labelled = ranked(analysis)
        .into_iter()
        .filter(|(a, _)| a.point.mark == Mark::Kept || a.point.label.is_some());
    for (attempt, value) in labelled.take(MOST_LABELS) {
        let (column, row) = (field.column(attempt.point.trial), field.row(value));
        let text = label_text(attempt);
        let whole = cut_columns(&text, LONGEST, ellipsis);
        let short = cut_columns(&text, SHORTER, ellipsis);
        let _ = write_one(&mut field.canvas, column, row, &whole, below)
            || write_one(&mut field.canvas, column, row, &short, below);
    }
}

fn write_one(canvas: &mut Canvas, column: usize, row: usize, text: &str, below: bool) -> bool {
    let width = columns(text);
    if width == 0 {
        return false;
    }
    let towards = if below { 1 } else { -1 };
    for rows in [towards, 0, 2 * towards, -towards] {
        let Some(row) = row.checked_add_signed(rows) else {
            continue;
        };
        let left = column.checked_sub(width + usize::from(rows == 0));
        let right = column + if rows == 0 { 2 } else { 1 };
        let middle = column.checked_sub(width / 2).filter(|_| rows != 0);
        for start in [left, Some(right), middle].into_iter().flatten() {
            if canvas.put_text(start, row, text) {
                return true;
            }
        }
    }
    false
}
