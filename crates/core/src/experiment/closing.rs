//! The closing check of an invocation that kept something: the tree its line of work started from
//! and the one it arrived at are measured against each other, and the result is what the loop
//! claims. It comes between the reason to end and the end. Cut off by a death or an interrupt, it is
//! carried on by the next invocation on that branch, before anything else.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::budget::Ceiling;
use crate::effect::{Booking, Effect};
use crate::ending::Reason;
use crate::event::{Event, Scope};
use crate::kernel;
use crate::machine::{Draft, Ending, Misfit};
use crate::role::Role;

use super::books;
use super::conclude;
use super::events::{ClosingChecked, kind};
use super::path::{EffectPath, Part};
use super::results::Measured;
use super::rule::Arm;
use super::rule::keep::{Closing, Side};
use super::settings::Mode;
use super::state::{Invocation, Line, State};

/// A closing check that is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenClosing {
    check: Closing,
    /// Readings so far, failed ones included.
    readings: u64,
    /// Why the last one failed.
    failure: Option<String>,
}

/// Settles how the invocation ends; the first reason stands. Where there is something to claim, it
/// is measured first.
pub(super) fn close(state: &mut State, ending: Ending) {
    let check = due(state, &ending);
    let said = said(state, ending);
    let Some(invocation) = &mut state.invocation else {
        return;
    };
    if invocation.ending.is_some() || invocation.ends_after_closing.is_some() {
        return;
    }
    let line = state.lines.get_mut(&state.branch);
    let (Some(check), Some(line)) = (check, line) else {
        invocation.ending = Some(said);
        return;
    };
    invocation.ends_after_closing = Some(said);
    if line.closing.is_none() {
        line.closings += 1;
        line.closing = Some(OpenClosing {
            check,
            readings: 0,
            failure: None,
        });
    }
}

/// Ends the invocation at once. A closing check that is under way waits for the next one.
pub(super) fn close_at_once(state: &mut State, ending: Ending) {
    let Some(invocation) = &mut state.invocation else {
        return;
    };
    let ending = match invocation.ends_after_closing.take() {
        None => ending,
        Some(pending) => Ending {
            words: format!(
                "{}; start and finish are not measured against each other yet: {}",
                pending.words, ending.words
            ),
            ..pending
        },
    };
    invocation.ending.get_or_insert(ending);
}

/// Settings have changed, perhaps: a check that they don't ask for any more is forgotten.
pub(super) fn revise(state: &mut State) {
    let asked = state.line().is_some_and(|line| {
        let rule = books::noisy_rule(state, line).filter(|rule| rule.closing > 0);
        rule.is_some_and(|rule| {
            let scale = line.closing.as_ref().map(|open| open.check.scale());
            scale.is_none_or(|scale| scale.ratio == rule.ratio)
        })
    });
    if let Some(line) = state.lines.get_mut(&state.branch).filter(|_| !asked) {
        line.closing = None;
    }
}

/// The check that comes before that end, if one does: at an end of its own choosing, never where
/// time or money ran out.
fn due(state: &State, ending: &Ending) -> Option<Closing> {
    let (invocation, line) = (state.invocation.as_ref()?, state.line()?);
    let chosen = matches!(
        ending.known(),
        Some(Reason::Finished | Reason::TargetReached | Reason::GaveUp | Reason::Budget)
    );
    if !chosen || invocation.caps.mode == Mode::Baseline || !line.unclaimed {
        return None;
    }
    let rule = books::noisy_rule(state, line)?;
    let left = books::runs_left(state)
        .map_or(u32::MAX, |left| u32::try_from(left / 2).unwrap_or(u32::MAX));
    Closing::open(&rule, state.settings.goal, rule.closing.min(left))
}

/// The ending with what is left of the doubt.
fn said(state: &State, ending: Ending) -> Ending {
    let of_trials = state
        .invocation
        .as_ref()
        .is_some_and(|invocation| invocation.caps.mode != Mode::Baseline);
    let line = state.line().filter(|_| of_trials);
    let noisy = line.and_then(|line| books::noisy_rule(state, line));
    match state.purse.filter(|_| noisy.is_some()) {
        None => ending,
        Some(purse) => Ending {
            words: format!(
                "{}; doubt left: {:.2} false keeps",
                ending.words,
                purse.left()
            ),
            ..ending
        },
    }
}

/// Whether a check that is open comes before anything else now.
pub(super) fn comes_first(state: &State, invocation: &Invocation, line: &Line) -> bool {
    line.closing.is_some() && state.trial.is_none() && invocation.caps.mode != Mode::Baseline
}

/// The measurement that an open check wants.
pub(super) fn wanted(state: &State, line: &Line) -> Option<Effect> {
    let open = line.closing.as_ref()?;
    let trial = line.incumbent.trial?;
    // The finish is measured where the incumbent is, so that what its arm keeps stays there.
    let (arm, tree) = match open.check.want()? {
        Side::Start => (Arm::Candidate, &line.start),
        Side::Finish => (Arm::Incumbent, &line.incumbent.tree),
    };
    let part = Part::Closing {
        check: u64::from(line.closings),
        reading: open.readings + 1,
    };
    Some(Effect {
        id: EffectPath { trial, part }.into(),
        role: Role::Experiment,
        scope: Scope::trial(&state.branch, trial),
        after: None,
        request: json!({"arm": arm, "tree": tree}),
        ceiling: Ceiling::time(Some(state.settings.measurement_limit_us)),
        on_unknown: state.settings.on_unknown_experiment,
        booking: Booking::EachAttempt,
    })
}

/// One of its measurements has ended.
pub(super) fn settle(state: &mut State, measured: &Measured) {
    let settings = &state.settings;
    let failure = conclude::after_measurement(measured, settings, false);
    let value = measured.readings.value(settings.metric.as_str());
    let Some(open) = open_check(state) else {
        return;
    };
    open.readings += 1;
    let judged = value.and_then(|value| open.check.scale().judged(value).ok());
    match (failure, judged) {
        (None, Some(judged)) => open.check.feed(judged),
        (failure, _) => {
            open.check.fail();
            open.failure = failure.map(|failure| failure.why);
        }
    }
}

/// The outcome of one of its measurements will stay unknown.
pub(super) fn lose(state: &mut State) {
    if let Some(open) = open_check(state) {
        open.readings += 1;
        open.check.fail();
        open.failure = Some("the outcome of a measurement is unknown".to_owned());
    }
}

fn open_check(state: &mut State) -> Option<&mut OpenClosing> {
    state.lines.get_mut(&state.branch)?.closing.as_mut()
}

/// What a check has come to, once it wants nothing more.
pub(super) fn checked(state: &State) -> Option<Draft> {
    let line = state.line()?;
    let open = line.closing.as_ref()?;
    if open.check.want().is_some() {
        return None;
    }
    let claim = open.check.claim(line.standing.as_ref()?);
    let why = match (&claim, &open.failure) {
        (Some(claim), _) => format!("measured again, start against finish: {}", claim.words()),
        (None, Some(failure)) => {
            format!("start and finish could not be measured against each other: {failure}")
        }
        (None, None) => "too little is known of the noise to claim anything".to_owned(),
    };
    let body = ClosingChecked {
        trial: line.incumbent.trial?,
        claim,
        why,
    };
    let scope = Scope::branch(&state.branch);
    Some(Draft::new(kind::CLOSING_CHECKED, scope, &body))
}

/// Folds what a check has come to. The invocation ends, if it was to end after it.
pub(super) fn apply(state: &mut State, event: &Event) -> Result<(), Misfit> {
    let checked: ClosingChecked = kernel::body(event)?;
    if let Some(line) = state.lines.get_mut(&state.branch) {
        line.unclaimed = false;
        line.closing = None;
    }
    if let Some(invocation) = &mut state.invocation
        && let Some(pending) = invocation.ends_after_closing.take()
    {
        let words = format!("{}; {}", pending.words, checked.why);
        invocation.ending.get_or_insert(Ending { words, ..pending });
    }
    Ok(())
}
