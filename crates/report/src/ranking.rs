//! Which accepted attempts deserve a label first, and what it says.

use crate::analysis::{Analysis, Attempt};
use crate::model::Mark;
use crate::text::clean;

/// Accepted attempts with a place on the value axis (given along), the most
/// telling first: the best, the baselines, then by how far they moved the value.
pub(crate) fn ranked<'a, 'b>(analysis: &'b Analysis<'a>) -> Vec<(&'b Attempt<'a>, f64)> {
    let best_trial = analysis.headline().map(|head| head.trial);
    let mut previous: Option<f64> = None;
    let mut ranked: Vec<(u8, f64, &Attempt<'a>, f64)> = Vec::new();
    for attempt in analysis.attempts.iter().filter(|a| a.accepted()) {
        let (Some(value), Some(level)) = (attempt.place(), attempt.level()) else {
            continue;
        };
        let gain = previous.map_or(0.0, |previous| (previous / 2.0 - level / 2.0).abs());
        previous = Some(level);
        let group = match attempt.point.mark {
            Mark::Kept if Some(attempt.point.trial) == best_trial => 0,
            Mark::Baseline => 1,
            _ => 2,
        };
        ranked.push((group, gain, attempt, value));
    }
    ranked.sort_by(|left, right| left.0.cmp(&right.0).then(right.1.total_cmp(&left.1)));
    ranked
        .into_iter()
        .map(|(_, _, a, value)| (a, value))
        .collect()
}

/// What was changed, or failing that which attempt it is.
pub(crate) fn label_text(attempt: &Attempt<'_>) -> String {
    let given = attempt.point.label.as_deref().map(clean);
    match given {
        Some(text) if !text.is_empty() => text,
        _ if attempt.point.mark == Mark::Baseline => "baseline".to_owned(),
        _ => format!("trial {}", attempt.point.trial),
    }
}
