//! From facts to the next step of a trial: what to do now, or how it ends.

use crate::guard;
use crate::metric::{MetricName, Reading, Readings, Real, Refusal};

use super::books;
use super::named::Named;
use super::outcome::Outcome;
use super::results::{Ended, Findings, Measured, Proposed};
use super::rule::{Arm, Judge, Want};
use super::settings::Settings;
use super::state::{Conclusion, Line, Origin, State, Trial};

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

/// The next step of `trial`, which is open on `line`.
pub(super) fn step(state: &State, line: &Line, trial: &Trial) -> Step {
    let settings = &state.settings;
    if let Some(conclusion) = &trial.conclusion {
        return Step::Conclude(conclusion.clone());
    }
    match (&trial.origin, &trial.candidate) {
        (Origin::Baseline, _) => return baseline_step(settings, trial),
        (Origin::Proposed, None) => return Step::Propose,
        (Origin::Retry { .. }, None) => return Step::Reapply,
        (_, Some(_)) => {}
    }
    let Some(judge) = &trial.judge else {
        return measure(state, trial, Arm::Candidate);
    };
    let verdict = match judge.want() {
        // Also after the user's commit hook made another change of it: that one was not measured.
        Want::Measure(arm) if trial.values.is_empty() => return measure(state, trial, arm),
        Want::Measure(arm) => {
            // A clear breach needs no second look at the metric.
            let broken = judge
                .looks_at_guards()
                .then(|| broken_guard(settings, line, trial))
                .flatten();
            return broken.map_or_else(|| measure(state, trial, arm), Step::Conclude);
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
        return Step::Conclude(conclusion);
    }
    if trial.commit.is_none() {
        return Step::Keep(verdict.value);
    }
    let note = trial.commit_note.as_ref().map(|note| format!(" ({note})"));
    Step::Conclude(Conclusion {
        outcome: Outcome::Kept,
        why: format!("{}{}", verdict.why, note.unwrap_or_default()),
        value: Some(verdict.value),
    })
}

/// A measurement, while the loop may make one more.
fn measure(state: &State, trial: &Trial, arm: Arm) -> Step {
    let left = books::runs_for_trials(state);
    if left.is_none_or(|left| left >= books::runs_to_go_on(trial)) {
        return Step::Measure(arm);
    }
    let most = state.settings.max_runs.unwrap_or_default();
    Step::Conclude(Conclusion {
        outcome: Outcome::Undecided,
        why: format!(
            "the loop's {most} runs did not reach: {}",
            books::so_far(trial)
        ),
        value: value_of(trial),
    })
}

fn baseline_step(settings: &Settings, trial: &Trial) -> Step {
    if trial.values.is_empty() {
        return Step::Measure(Arm::Incumbent);
    }
    if let Some(conclusion) = unknown_guard(settings, trial) {
        return Step::Conclude(conclusion);
    }
    let value = trial.values.of(&settings.metric);
    Step::Conclude(Conclusion {
        outcome: Outcome::Kept,
        why: "baseline".to_owned(),
        value,
    })
}

/// A guard that the baseline gives no number for: nothing could be held against it, whatever is kept.
fn unknown_guard(settings: &Settings, trial: &Trial) -> Option<Conclusion> {
    let known = trial.values.all();
    let guard = settings
        .guards
        .iter()
        .find(|guard| !known.contains_key(guard.metric()))?;
    let metric = guard.metric();
    let refused = trial.refused.iter().find(|(name, _)| *name == metric);
    let refusal = refused.and_then(|(_, reading)| reading.refusal().cloned());
    let refusal = refusal.unwrap_or_else(Refusal::missing);
    let why = format!("{metric}, which a guard watches: {refusal}");
    Some(end(Outcome::NoMetric, why))
}

fn broken_guard(settings: &Settings, line: &Line, trial: &Trial) -> Option<Conclusion> {
    let mut readings = Readings::default();
    for (name, mean) in trial.values.all() {
        readings.insert(name, mean);
    }
    // A number that was missing once is unknown, whatever it was the other time.
    for (name, refused) in trial.refused.iter() {
        readings.insert(name.clone(), refused.clone());
    }
    // What was measured beside the candidate says more than what was measured long ago.
    let mut incumbent = line.incumbent.values.clone();
    incumbent.extend(trial.beside.all());
    let verdict = guard::judge(&settings.guards, &readings, &incumbent, &line.baseline);
    if verdict.holds() {
        return None;
    }
    Some(Conclusion {
        outcome: Outcome::GuardFailed,
        why: verdict.to_string(),
        value: value_of(trial),
    })
}

/// The value that stands for a trial as far as it has come: the rule's, else the last one read.
pub(super) fn value_of(trial: &Trial) -> Option<Real> {
    let of_rule = trial.judge.as_ref().and_then(Judge::value);
    of_rule.or_else(|| {
        let last = trial.readings.last();
        last.filter(|taken| taken.arm == Arm::Candidate)?.value
    })
}

fn end(outcome: Outcome, why: impl Into<String>) -> Conclusion {
    Conclusion {
        outcome,
        why: why.into(),
        value: None,
    }
}

/// `outcome` where something was found, naming the first and how many more there are.
fn if_any(found: &Named, outcome: Outcome, words: &str) -> Option<Conclusion> {
    let first = found.first().first()?;
    let names = match found.count() - 1 {
        0 => first.clone(),
        more => format!("{first} and {more} more"),
    };
    Some(end(outcome, format!("{words}: {names}")))
}

/// How a trial ends because of what `subject` made a candidate of, whoever that was; none where
/// nothing speaks against measuring it.
pub(super) fn after_candidate(subject: &str, findings: &Findings) -> Option<Conclusion> {
    let secret = "the change holds what looks like a secret";
    changed_harness(subject, findings)
        .or_else(|| if_any(&findings.secrets, Outcome::Failed, secret))
}

fn changed_harness(subject: &str, findings: &Findings) -> Option<Conclusion> {
    let harness = Outcome::HarnessChanged;
    let changed = format!("{subject} changed what judges it");
    let shadows =
        format!("{subject} added a file that would be imported in place of what judges it");
    if_any(&findings.protected, harness, &changed)
        .or_else(|| if_any(&findings.shadowing, harness, &shadows))
}

/// How a trial ends after its proposal, if it does. What touches the harness is looked at before
/// anything else, so that a crash can't hide it.
pub(super) fn after_proposal(proposed: &Proposed, incumbent_tree: &str) -> Option<Conclusion> {
    let subject = "the proposal";
    let refused = "the proposal left something git can't record";
    let early = changed_harness(subject, &proposed.findings)
        .or_else(|| ended_badly(subject, &proposed.ran.ended))
        .or_else(|| if_any(&proposed.refused, Outcome::Failed, refused));
    if early.is_some() {
        return early;
    }
    let tree = proposed.candidate.as_ref().map(|candidate| &candidate.tree);
    if tree.is_none_or(|tree| tree == incumbent_tree) {
        return Some(end(
            Outcome::NoChange,
            "the proposal left the tree as it was",
        ));
    }
    after_candidate(subject, &proposed.findings).or_else(|| {
        let of = proposed.duplicate_of?;
        Some(end(
            Outcome::Duplicate,
            format!("the same tree was tried in trial {of}"),
        ))
    })
}

/// How a trial ends after a measurement, if that is no usable reading. `repeat` says that the same
/// arm was measured before.
pub(super) fn after_measurement(
    measured: &Measured,
    settings: &Settings,
    repeat: bool,
) -> Option<Conclusion> {
    let touched = "the measurement changed what judges it";
    if let Some(conclusion) = if_any(&measured.touched, Outcome::HarnessChanged, touched) {
        return Some(conclusion);
    }
    let subject = if measured.in_setup {
        "the setup"
    } else {
        "the measurement"
    };
    let conclusion =
        ended_badly(subject, &measured.ran.ended).or_else(|| refused_metric(measured, settings))?;
    if !repeat {
        return Some(conclusion);
    }
    Some(end(
        Outcome::Unstable,
        format!("measured again, {}", conclusion.why),
    ))
}

fn refused_metric(measured: &Measured, settings: &Settings) -> Option<Conclusion> {
    let metric: &MetricName = &settings.metric;
    let refusal = match measured.readings.get(metric.as_str()) {
        Some(Reading::Value(value)) => {
            let objection = settings.rule.objection(settings.goal, *value)?;
            return Some(end(
                Outcome::NotFinite,
                format!("{metric}: {} {objection}", value.short()),
            ));
        }
        Some(Reading::Refused(refusal)) => refusal.clone(),
        None => Refusal::missing(),
    };
    let outcome = match refusal {
        Refusal::NotFinite { .. } => Outcome::NotFinite,
        Refusal::Ambiguous { .. } => Outcome::Ambiguous,
        Refusal::Missing { .. }
        | Refusal::NotInResultFile { .. }
        | Refusal::Nameless { .. }
        | Refusal::Malformed { .. } => Outcome::NoMetric,
    };
    Some(end(outcome, format!("{metric}: {refusal}")))
}

/// How a trial ends because of a number that its judge can make nothing of.
pub(super) fn not_judged(metric: &MetricName, value: Real, judge: &Judge) -> Option<Conclusion> {
    let objection = judge.objection(value)?;
    let why = format!("{metric}: {} {objection}", value.short());
    Some(end(Outcome::NotFinite, why))
}

fn ended_badly(subject: &str, ended: &Ended) -> Option<Conclusion> {
    let outcome = match ended {
        Ended::Exited(0) => return None,
        Ended::TimedOut { .. } => Outcome::TimedOut,
        Ended::Exited(_) | Ended::Signaled(_) | Ended::Broken { .. } => Outcome::Failed,
    };
    Some(end(outcome, format!("{subject} {}", ended.words())))
}
