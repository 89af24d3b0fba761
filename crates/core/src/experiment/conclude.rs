//! From facts to the next step of a trial: what to do now, or how it ends.

use crate::guard;
use crate::metric::Real;

use super::outcome::Outcome;
use super::results::{Ended, Measured, Proposed, Reading};
use super::rule::{Arm, Want};
use super::state::{Conclusion, Line, Origin, Trial};
use super::settings::Settings;

/// What an open trial needs next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Its candidate is to be made.
    Propose,
    /// An old candidate is to be brought to the incumbent.
    Reapply,
    /// An arm is to be measured.
    Measure(Arm),
    /// It is to be committed; the value that stands for it.
    Keep(Real),
    /// It is over.
    Conclude(Conclusion),
}

/// The next step of `trial`.
pub(super) fn step(settings: &Settings, line: &Line, trial: &Trial) -> Step {
    if let Some(conclusion) = &trial.conclusion {
        return Step::Conclude(conclusion.clone());
    }
    match (&trial.origin, &trial.candidate) {
        (Origin::Baseline, _) => return baseline_step(settings, trial),
        (Origin::Proposed, None) => return Step::Propose,
        (Origin::Retry { .. }, None) => return Step::Reapply,
        (_, Some(_)) => {}
    }
    let Some(judge) = &trial.judge else { return Step::Measure(Arm::Candidate) };
    let verdict = match judge.want() {
        Want::Measure(arm) if trial.readings.is_empty() => return Step::Measure(arm),
        Want::Measure(arm) => {
            // A clear breach needs no second look at the metric.
            return broken_guard(settings, line, trial).map_or(Step::Measure(arm), Step::Conclude);
        }
        Want::Verdict(verdict) => verdict,
    };
    if !verdict.better {
        return Step::Conclude(Conclusion {
            outcome: Outcome::Reverted,
            why: verdict.why,
            value: Some(verdict.value),
        });
    }
    if let Some(conclusion) = broken_guard(settings, line, trial) {
        return Step::Conclude(Conclusion { value: Some(verdict.value), ..conclusion });
    }
    match &trial.commit {
        None => Step::Keep(verdict.value),
        Some(_) => {
            let note = trial.commit_note.as_ref().map(|note| format!(" ({note})"));
            Step::Conclude(Conclusion {
                outcome: Outcome::Kept,
                why: format!("{}{}", verdict.why, note.unwrap_or_default()),
                value: Some(verdict.value),
            })
        }
    }
}

fn baseline_step(settings: &Settings, trial: &Trial) -> Step {
    let Some(values) = trial.values.first() else { return Step::Measure(Arm::Incumbent) };
    let value = values.get(&settings.metric).copied();
    Step::Conclude(Conclusion { outcome: Outcome::Kept, why: "baseline".to_owned(), value })
}

fn broken_guard(settings: &Settings, line: &Line, trial: &Trial) -> Option<Conclusion> {
    let verdict = guard::judge(
        &settings.guards,
        &trial.mean_values(),
        &line.incumbent.values,
        &line.baseline,
    );
    let why = verdict.words()?;
    let value = trial.readings.last().and_then(|taken| taken.value);
    Some(Conclusion { outcome: Outcome::GuardFailed, why, value })
}

fn end(outcome: Outcome, why: impl Into<String>) -> Option<Conclusion> {
    Some(Conclusion { outcome, why: why.into(), value: None })
}

/// How a trial ends after its proposal, if it does. What touches the harness is looked at before
/// anything else, so that a crash can't hide it.
pub(super) fn after_proposal(proposed: &Proposed, incumbent_tree: &str) -> Option<Conclusion> {
    if let Some(first) = proposed.protected.first() {
        return end(
            Outcome::HarnessChanged,
            format!("the proposal changed what judges it: {}", and_more(first, proposed.protected.len())),
        );
    }
    if let Some(first) = proposed.shadowing.first() {
        let files = and_more(first, proposed.shadowing.len());
        return end(
            Outcome::HarnessChanged,
            format!("the proposal added a file that would be imported in place of what judges it: {files}"),
        );
    }
    if let Some(conclusion) = ended_badly("the proposal", &proposed.ran.ended) {
        return Some(conclusion);
    }
    if let Some(first) = proposed.refused.first() {
        return end(
            Outcome::Failed,
            format!("the proposal left something git can't record: {}", and_more(first, proposed.refused.len())),
        );
    }
    let Some(candidate) = &proposed.candidate else {
        return end(Outcome::NoChange, "the proposal left the tree as it was");
    };
    if candidate.tree == incumbent_tree {
        return end(Outcome::NoChange, "the proposal left the tree as it was");
    }
    if let Some(first) = proposed.secrets.first() {
        let files = and_more(first, proposed.secrets.len());
        return end(Outcome::Failed, format!("the change holds what looks like a secret: {files}"));
    }
    let of = proposed.duplicate_of?;
    end(Outcome::Duplicate, format!("the same tree was tried in trial {of}"))
}

/// How a trial ends after a measurement, if that is no usable reading. `repeat` says that the
/// candidate was measured before.
pub(super) fn after_measurement(
    measured: &Measured,
    metric: &str,
    repeat: bool,
) -> Option<Conclusion> {
    if let Some(first) = measured.touched.first() {
        let files = and_more(first, measured.touched.len());
        return end(
            Outcome::HarnessChanged,
            format!("the measurement changed what judges it: {files}"),
        );
    }
    let subject = if measured.in_setup { "the setup" } else { "the measurement" };
    let conclusion = ended_badly(subject, &measured.ran.ended)
        .or_else(|| refused_metric(measured, metric))?;
    if !repeat {
        return Some(conclusion);
    }
    end(Outcome::Unstable, format!("measured again, {}", conclusion.why))
}

fn refused_metric(measured: &Measured, metric: &str) -> Option<Conclusion> {
    match measured.readings.get(metric) {
        Some(Reading::Value(_)) => None,
        Some(Reading::Refused { code, words }) => {
            let outcome = match code.as_str() {
                "not_finite" => Outcome::NotFinite,
                "ambiguous" => Outcome::Ambiguous,
                _ => Outcome::NoMetric,
            };
            end(outcome, words.clone())
        }
        None => end(Outcome::NoMetric, format!("{metric} was not measured")),
    }
}

fn ended_badly(subject: &str, ended: &Ended) -> Option<Conclusion> {
    let words = format!("{subject} {}", ended.words());
    match ended {
        Ended::Exited(0) => None,
        Ended::TimedOut { .. } => end(Outcome::TimedOut, words),
        Ended::Exited(_) | Ended::Signaled(_) | Ended::Broken { .. } => end(Outcome::Failed, words),
    }
}

/// `first`, with how many more there are.
fn and_more(first: &str, count: usize) -> String {
    match count {
        0 | 1 => first.to_owned(),
        more => format!("{first} and {} more", more - 1),
    }
}
