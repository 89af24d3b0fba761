//! The search machine: the door and the policy.

use loopwright_core::budget::Ceiling;
use loopwright_core::digest::Digest;
use loopwright_core::effect::{Booking, Effect, Settlement};
use loopwright_core::ending::Reason;
use loopwright_core::event::{Event, Scope};
use loopwright_core::ids::{BranchName, EffectId};
use loopwright_core::kernel::{self, kind as kernel_kind};
use loopwright_core::machine::{Draft, Ending, Finish, Input, Machine, Misfit, Next, Status};
use loopwright_core::role::Role;
use loopwright_core::time::Micros;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::state::{Branch, Pruning, SearchSettings, SearchState};

/// Kinds of the search machine's events.
pub mod kind {
    /// A branch is over without winning.
    pub const BRANCH_PRUNED: &str = "branch.pruned";
    /// A level is over.
    pub const LEVEL_DECIDED: &str = "level.decided";
}

/// Body of `level.decided`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelDecided {
    /// The branch that won; none where all are broken.
    pub winner: Option<usize>,
    /// What it costs.
    pub cost: Option<u64>,
}

/// The little search loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Search;

impl Machine for Search {
    type State = SearchState;
    const KIND: &'static str = "search";
    const VERSION: u32 = 1;
    const KINDS: &'static [&'static str] = &[kind::BRANCH_PRUNED, kind::LEVEL_DECIDED];
    const POLICIES: &'static [&'static str] = &["cheapest/1"];

    fn start(specification: &Value) -> Result<SearchState, String> {
        let settings = SearchSettings::deserialize(specification);
        settings
            .map(SearchState::new)
            .map_err(|error| error.to_string())
    }

    fn policies(_state: &SearchState) -> Vec<String> {
        vec!["cheapest/1".to_owned()]
    }

    fn decide(state: &SearchState, input: &Input, _now: Micros) -> Vec<Draft> {
        if !matches!(input, Input::Settled { .. } | Input::Lost { .. }) || state.ending.is_some() {
            return Vec::new();
        }
        let is_patient = state.settings.pruning == Pruning::Patient;
        let lost = if is_patient && !state.is_level_done() {
            Vec::new()
        } else {
            state.lost_branches()
        };
        let mut after = state.clone();
        let mut drafts = Vec::new();
        for index in lost {
            after.branches[index].is_pruned = true;
            drafts.push(pruned(state.level, index));
        }
        if after.is_level_done() {
            let winner = after.winner();
            for (index, branch) in after.branches.iter().enumerate() {
                if Some(index) != winner && !branch.is_pruned {
                    drafts.push(pruned(state.level, index));
                }
            }
            let body = LevelDecided {
                winner,
                cost: winner.map(|index| after.branches[index].so_far()),
            };
            drafts.push(Draft::new(
                kind::LEVEL_DECIDED,
                Scope::iteration(state.level),
                &body,
            ));
        }
        drafts
    }

    fn apply(state: &mut SearchState, event: &Event, _id: Digest) -> Result<(), Misfit> {
        match event.kind.as_str() {
            kernel_kind::INVOCATION_BEGUN => {
                state.is_open = true;
                state.pausing = None;
            }
            kernel_kind::INVOCATION_ENDED => state.is_open = false,
            kernel_kind::EFFECT_SETTLED => settled(state, event)?,
            kernel_kind::EFFECT_LOST => {
                if let Some(effect) = &event.effect {
                    broken(state, effect);
                }
            }
            kernel_kind::OPERATOR_ACT => {
                let act: kernel::OperatorAct = kernel::body(event)?;
                if act.act == kernel::ACT_RESOLVE
                    && kernel::resolved_as_failed(&act)
                    && let Some(effect) = kernel::resolved_effect(&act)
                {
                    broken(state, &effect);
                }
            }
            kernel_kind::LIMITS_SET => state.pausing = None,
            kernel_kind::EFFECT_REFUSED => {
                let words = "nothing is left of the tokens";
                state
                    .pausing
                    .get_or_insert(Ending::because(Reason::Budget, words));
            }
            kind::BRANCH_PRUNED => {
                let index = event.body["branch"].as_u64().unwrap_or(u64::MAX) as usize;
                let parts = state.settings.parts;
                match state.branches.get_mut(index) {
                    // How far it came depends on the order of results, and is nobody's business.
                    Some(branch) => *branch = Branch::new(parts, true),
                    None => return Err(Misfit::new(event, "there is no such branch")),
                }
            }
            kind::LEVEL_DECIDED => level_decided(state, &kernel::body(event)?),
            _ => {}
        }
        Ok(())
    }

    fn next(state: &SearchState) -> Next {
        if !state.is_open || state.ending.is_some() {
            return Next::default();
        }
        let finish = spared(state);
        if state.pausing.is_some() {
            return Next {
                finish,
                ..Next::default()
            };
        }
        let question = (state.settings.asks && !state.is_heard).then(|| question(state));
        Next {
            effects: question.into_iter().chain(wanted(state)).collect(),
            finish,
            deadline: None,
        }
    }

    fn status(state: &SearchState) -> Status {
        if let Some(ending) = &state.ending {
            return Status::Ended(ending.clone());
        }
        if let Some(pausing) = &state.pausing {
            return Status::Idle(pausing.clone());
        }
        if state.is_open {
            Status::Working
        } else {
            Status::Idle(Ending::because(Reason::Idle, "no invocation is open"))
        }
    }

    fn is_past(state: &SearchState, effect: &EffectId) -> bool {
        let of_old = level_of(effect).is_some_and(|level| level < state.level);
        let is_pruned = place(effect).is_some_and(|(level, branch, _)| {
            let branch = state.branches.get(branch);
            level == state.level && branch.is_some_and(|branch| branch.is_pruned)
        });
        of_old || is_pruned || state.ending.is_some()
    }
}

/// The parts that are wanted, in order, so that one that is in flight stays among the first.
fn wanted(state: &SearchState) -> Vec<Effect> {
    let is_patient = state.settings.pruning == Pruning::Patient;
    let branches = state.branches.iter().enumerate();
    let parts = branches.flat_map(|(index, branch)| {
        let is_live = !branch.is_pruned && (is_patient || !branch.is_broken);
        let open = branch.costs.iter().enumerate();
        open.filter(move |(_, cost)| is_live && cost.is_none())
            .map(move |(part, _)| (index, part))
    });
    let wanted = parts.take(state.settings.width);
    wanted
        .map(|(index, part)| effect(state, index, part))
        .collect()
}

/// What may finish though it isn't wanted: all, where the invocation ends for want of something;
/// else the parts of branches that are over, of this level and the one before.
fn spared(state: &SearchState) -> Finish {
    let level = state.level;
    if state.settings.pruning == Pruning::Stop {
        return Finish::Under(vec![EffectId::new(format!("l{level}/ask"))]);
    }
    if state.pausing.is_some() {
        return Finish::Everything;
    }
    let branches = state.branches.iter().enumerate();
    let pruned = branches.filter(|(_, branch)| branch.is_pruned);
    let mut paths: Vec<EffectId> = pruned
        .map(|(index, _)| EffectId::new(format!("l{level}/b{index}")))
        .collect();
    let before = state.branches.iter().enumerate();
    paths.extend(before.map(|(index, _)| EffectId::new(format!("l{}/b{index}", level - 1))));
    Finish::Under(paths)
}

fn question(state: &SearchState) -> Effect {
    let level = state.level;
    let (scope, request) = (Scope::iteration(level), json!({"path": state.path}));
    Effect::question(format!("l{level}/ask"), scope, request)
}

fn level_of(effect: &EffectId) -> Option<u64> {
    let first = effect.as_str().split('/').next()?;
    first.strip_prefix('l')?.parse().ok()
}

fn branch_name(index: usize) -> BranchName {
    BranchName::new(&format!("b{index}")).expect("BUG: a plain name")
}

fn pruned(level: u64, index: usize) -> Draft {
    let scope = Scope {
        iteration: Some(level),
        ..Scope::branch(&branch_name(index))
    };
    Draft::new(kind::BRANCH_PRUNED, scope, &json!({"branch": index}))
}

fn effect(state: &SearchState, index: usize, part: usize) -> Effect {
    let level = state.level;
    Effect {
        id: EffectId::new(format!("l{level}/b{index}/p{part}")),
        role: Role::Step,
        scope: Scope {
            iteration: Some(level),
            ..Scope::branch(&branch_name(index))
        },
        after: None,
        request: json!({"path": state.path, "branch": index, "part": part}),
        ceiling: Ceiling {
            tokens: Some(part_tokens(state, index, part)),
            ..Ceiling::default()
        },
        on_unknown: state.settings.on_unknown,
        booking: Booking::EachAttempt,
    }
}

/// The most a part may use: some are larger than others, so that a small one could overtake a large
/// one that waits.
fn part_tokens(state: &SearchState, index: usize, part: usize) -> u64 {
    state.settings.part_tokens * (1 + (2 * index + part) as u64 % 3)
}

/// The level, branch and part in an effect's path.
fn place(effect: &EffectId) -> Option<(u64, usize, usize)> {
    let mut parts = effect.as_str().split('/');
    let level = parts.next()?.strip_prefix('l')?.parse().ok()?;
    let branch = parts.next()?.strip_prefix('b')?.parse().ok()?;
    let part = parts.next()?.strip_prefix('p')?.parse().ok()?;
    Some((level, branch, part))
}

fn settled(state: &mut SearchState, event: &Event) -> Result<(), Misfit> {
    let settlement: Settlement = kernel::body(event)?;
    if event.effect.as_ref() == Some(&question(state).id) {
        // The end of the last level ends the question, too.
        state.is_heard = true;
        return Ok(());
    }
    let place = event.effect.as_ref().and_then(place);
    let (level, branch, part) = place.ok_or_else(|| Misfit::new(event, "no part of a branch"))?;
    // One of a level that is over, or of a branch that is, came faster than it could be stopped.
    if level == state.level
        && let Some(branch) = state.branches.get_mut(branch)
        && !branch.is_pruned
    {
        match settlement.result["cost"].as_u64() {
            Some(cost) => branch.costs[part] = Some(cost),
            None => fail(branch, part),
        }
    }
    Ok(())
}

fn broken(state: &mut SearchState, effect: &EffectId) {
    if let Some((level, branch, part)) = place(effect)
        && level == state.level
        && let Some(branch) = state.branches.get_mut(branch)
    {
        fail(branch, part);
    }
}

/// What is over doesn't pause any more: the last parts may have been paid for before the tokens were
/// used up.
fn end(state: &mut SearchState, ending: Ending) {
    state.ending = Some(ending);
    state.pausing = None;
    state.is_heard = false;
}

/// A part that can't be judged breaks its branch.
fn fail(branch: &mut Branch, part: usize) {
    branch.is_broken = true;
    branch.costs[part] = Some(0);
}

fn level_decided(state: &mut SearchState, decided: &LevelDecided) {
    let Some(winner) = decided.winner else {
        end(state, Ending::new("failed", "every branch is broken"));
        return;
    };
    let path = format!("{}/{winner}", state.path);
    state.path = Digest::of_content(path.as_bytes());
    if state.level >= state.settings.levels {
        let words = format!("{} levels are done", state.level);
        end(state, Ending::because(Reason::Finished, words));
    } else {
        state.begin_level();
    }
}
