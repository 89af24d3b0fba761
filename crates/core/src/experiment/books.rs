//! The rule's books in the machine's state: the purse is the loop's, what is known of an incumbent
//! its branch's, a case its trial's. Cases are opened, fed and closed here.

use crate::metric::Real;

use super::events::Taken;
use super::rule::keep::{Case, Failed, Keep, KnownNoise, Purpose, Purse, Scale, Standing};
use super::rule::{Arm, Books, Judge, RuleSettings};
use super::state::{Line, State, Trial};

/// Makes sure that the books a rule needs are there: a purse once in the loop's life, a standing once
/// on each branch of a segment and scale.
fn keep_books(state: &mut State) {
    let RuleSettings::Keep(rule) = state.settings.rule else {
        return;
    };
    let scale = Scale::of(&rule, state.settings.goal);
    state.purse.get_or_insert_with(|| Purse::new(&rule));
    if let Some(line) = state.lines.get_mut(&state.branch) {
        let fits = line
            .standing
            .is_some_and(|standing| standing.scale() == scale);
        if !fits {
            line.standing = Some(Standing::new(&rule, scale));
        }
    }
}

/// The books of the branch in force beside its open trial.
fn split(state: &mut State) -> (Option<&mut Trial>, Option<Books<'_>>) {
    let line = state.lines.get_mut(&state.branch);
    let standing = line.and_then(|line| line.standing.as_mut());
    let books = state.purse.as_mut().zip(standing);
    let books = books.map(|(purse, standing)| Books { purse, standing });
    (state.trial.as_mut(), books)
}

/// Opens the case of a candidate; none before there is an incumbent to hold it against.
pub(super) fn open(state: &mut State) -> Option<Judge> {
    let incumbent = state.incumbent()?.value?;
    keep_books(state);
    let goal = state.settings.goal;
    match state.settings.rule {
        RuleSettings::Threshold(rule) => Some(Judge::Threshold(rule.open(goal, incumbent))),
        RuleSettings::Keep(rule) => {
            let standing = state.line()?.standing.as_ref()?;
            Some(Judge::Keep(Case::open(rule, goal, standing)))
        }
    }
}

/// The case of a trial, where the keep rule judges it.
fn case(trial: &Trial) -> Option<&Case> {
    match &trial.judge {
        Some(Judge::Keep(case)) => Some(case),
        _ => None,
    }
}

/// A reading as it stands in the record.
pub(super) fn taken(trial: &Trial, arm: Arm, value: Option<Real>) -> Taken {
    let purpose = case(trial).and_then(Case::purpose);
    Taken {
        arm,
        value,
        purpose,
    }
}

/// Whether a candidate's reading takes the place of its first draw, which was looked at because it
/// was good.
pub(super) fn replaces_first_draw(trial: &Trial) -> bool {
    case(trial).is_some_and(Case::has_only_first_draw)
}

/// Whether a reading of the incumbent was taken beside one of the candidate.
pub(super) fn is_beside(trial: &Trial) -> bool {
    case(trial).and_then(Case::purpose) == Some(Purpose::Duel)
}

/// One more reading for the open case.
pub(super) fn feed(state: &mut State, arm: Arm, value: Real) {
    let (trial, books) = split(state);
    if let Some(judge) = trial.and_then(|trial| trial.judge.as_mut()) {
        judge.feed(arm, value, books);
    }
}

/// A run of that arm failed: what that means to the open case; none where the rule has no say in it.
pub(super) fn fail(state: &mut State, arm: Arm) -> Option<Failed> {
    let (trial, books) = split(state);
    match (trial?.judge.as_mut()?, books?) {
        (Judge::Keep(case), books) => Some(case.fail(arm, books.standing)),
        (Judge::Threshold(_), _) => None,
    }
}

/// A trial is over. A branch that another rule gave a new incumbent knows its noise and no more.
pub(super) fn close(state: &mut State, trial: &Trial, kept: bool) {
    let (_, books) = split(state);
    let Some(books) = books else {
        return;
    };
    match &trial.judge {
        Some(Judge::Keep(case)) => case.close(kept, books.purse, books.standing),
        _ if kept => *books.standing = books.standing.fork(),
        _ => {}
    }
}

/// A reading of the incumbent outside of any case.
pub(super) fn baseline(state: &mut State, value: Real) {
    keep_books(state);
    let RuleSettings::Keep(rule) = state.settings.rule else {
        return;
    };
    let scale = Scale::of(&rule, state.settings.goal);
    let (_, books) = split(state);
    if let (Some(books), Ok(judged)) = (books, scale.judged(value)) {
        books.standing.baseline(judged);
    }
}

/// The doubt that is left once the open trial has ended so; none under a rule that has none.
pub(super) fn doubt_left(state: &State, trial: &Trial, kept: bool) -> Option<Real> {
    let RuleSettings::Keep(_) = state.settings.rule else {
        return None;
    };
    let mut purse = state.purse?;
    if let (Some(case), Some(mut standing)) = (case(trial), state.line()?.standing) {
        case.close(kept, &mut purse, &mut standing);
    }
    Real::new(purse.left()).ok()
}

/// The keep rule in force, where its metric is noisy on that line.
pub(super) fn noisy_rule(state: &State, line: &Line) -> Option<Keep> {
    let RuleSettings::Keep(rule) = state.settings.rule else {
        return None;
    };
    let noisy = line.standing.as_ref().is_some_and(Standing::is_noisy);
    (noisy && rule.noise != KnownNoise::None).then_some(rule)
}

/// The most runs that may still be made for trials; none where there is no limit. What the closing
/// check takes is kept back once there is something to claim.
pub(super) fn runs_for_trials(state: &State) -> Option<u64> {
    let left = runs_left(state)?;
    let line = state.line();
    let reserved = line
        .filter(|line| line.unclaimed)
        .and_then(|line| noisy_rule(state, line))
        .map_or(0, |rule| 2 * u64::from(rule.closing));
    Some(left.saturating_sub(reserved))
}

/// The most runs that may still be made at all; none where there is no limit.
pub(super) fn runs_left(state: &State) -> Option<u64> {
    let most = state.settings.max_runs?;
    Some(most.saturating_sub(state.runs))
}

/// How many runs a new trial needs at the least.
pub(super) fn runs_to_begin(state: &State) -> u64 {
    let looks_first = match (&state.settings.rule, state.line()) {
        (RuleSettings::Keep(rule), Some(line)) => line
            .standing
            .as_ref()
            .is_none_or(|standing| Case::looks_first(rule, standing)),
        _ => false,
    };
    1 + u64::from(looks_first)
}

/// How many runs the open case needs at the least to go on.
pub(super) fn runs_to_go_on(trial: &Trial) -> u64 {
    match case(trial) {
        // A duel that can't come to anything isn't begun.
        Some(case) if case.is_before_duel() => u64::from(case.least_duel()),
        _ => 1,
    }
}

/// How far the open case has come, in words.
pub(super) fn so_far(trial: &Trial) -> String {
    match &trial.judge {
        Some(Judge::Keep(case)) => case.so_far(),
        _ if trial.values.is_empty() => "nothing of it was measured".to_owned(),
        _ => "it was not confirmed".to_owned(),
    }
}
