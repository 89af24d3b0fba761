//! The search machine: the door, the state, the policy.

use loopwright_core::budget::Ceiling;
use loopwright_core::digest::Digest;
use loopwright_core::effect::{Effect, Settlement};
use loopwright_core::event::{Event, Scope};
use loopwright_core::ids::{BranchName, EffectId};
use loopwright_core::kernel::{self, kind as kernel_kind};
use loopwright_core::machine::{Draft, Ending, Input, Machine, Misfit, Next, Status};
use loopwright_core::role::{OnUnknown, Role};
use loopwright_core::time::Micros;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Kinds of the search machine's events.
pub mod kind {
    /// A branch is over without winning.
    pub const BRANCH_PRUNED: &str = "branch.pruned";
    /// A level is over.
    pub const LEVEL_DECIDED: &str = "level.decided";
}

/// The pinned specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchSettings {
    /// How many levels.
    pub levels: u64,
    /// How many branches a level has.
    pub branches: usize,
    /// In how many parts a branch is judged.
    pub parts: usize,
    /// How many effects may be in flight.
    pub width: usize,
    /// The most tokens a part may use.
    pub part_tokens: u64,
    /// What happens to parts whose outcome is unknown.
    pub on_unknown: OnUnknown,
}

/// One branch of the open level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// What each part costs, as far as it is known.
    pub costs: Vec<Option<u64>>,
    /// Whether it is over.
    pub is_pruned: bool,
    /// Whether one of its parts failed.
    pub is_broken: bool,
}

impl Branch {
    fn new(parts: usize, is_pruned: bool) -> Self {
        Self {
            costs: vec![None; parts],
            is_pruned,
            is_broken: false,
        }
    }

    fn so_far(&self) -> u64 {
        self.costs.iter().flatten().sum()
    }

    fn is_complete(&self) -> bool {
        !self.is_broken && self.costs.iter().all(Option::is_some)
    }
}

/// The state of a search run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchState {
    /// The settings.
    pub settings: SearchSettings,
    /// Whether an invocation is open.
    pub is_open: bool,
    /// The level, from 1.
    pub level: u64,
    /// Its branches.
    pub branches: Vec<Branch>,
    /// The digest of all winners so far; the path itself may be long.
    pub path: Digest,
    /// How the run ended.
    pub ending: Option<Ending>,
    /// How this invocation ends, where it is not the run's end.
    pub pausing: Option<Ending>,
}

impl SearchState {
    fn new(settings: SearchSettings) -> Self {
        let mut state = Self {
            settings,
            is_open: false,
            level: 0,
            branches: Vec::new(),
            path: Digest::of_content(b""),
            ending: None,
            pausing: None,
        };
        state.begin_level();
        state
    }

    fn begin_level(&mut self) {
        self.level += 1;
        let branch = Branch::new(self.settings.parts, false);
        self.branches = vec![branch; self.settings.branches];
    }

    /// The branches that can't win any more and are not over yet.
    fn lost_branches(&self) -> Vec<usize> {
        let complete = self.branches.iter().filter(|branch| branch.is_complete());
        let best = complete.map(Branch::so_far).min();
        let is_lost =
            |branch: &Branch| branch.is_broken || best.is_some_and(|best| branch.so_far() > best);
        let open = self.branches.iter().enumerate();
        open.filter(|(_, branch)| !branch.is_pruned && is_lost(branch))
            .map(|(index, _)| index)
            .collect()
    }

    /// Whether every branch is complete or over.
    fn is_level_done(&self) -> bool {
        let is_done = |branch: &Branch| branch.is_pruned || branch.is_complete();
        self.branches.iter().all(is_done)
    }

    /// The cheapest branch; of equals the first, whoever came first. None where all are over.
    fn winner(&self) -> Option<usize> {
        let live = self.branches.iter().enumerate();
        live.filter(|(_, branch)| !branch.is_pruned)
            .min_by_key(|(index, branch)| (branch.so_far(), *index))
            .map(|(index, _)| index)
    }
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
        let lost = state.lost_branches();
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
            kernel_kind::EFFECT_REFUSED => {
                let words = "nothing is left of the tokens";
                state.pausing.get_or_insert(Ending::new("budget", words));
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
        if !state.is_open || state.pausing.is_some() || state.ending.is_some() {
            return Next::default();
        }
        // Taken in order, so that one that is in flight stays among the first.
        let wanted = state
            .branches
            .iter()
            .enumerate()
            .flat_map(|(index, branch)| {
                let open = branch.costs.iter().enumerate();
                let is_live = !branch.is_pruned && !branch.is_broken;
                open.filter(move |(_, cost)| is_live && cost.is_none())
                    .map(move |(part, _)| (index, part))
            });
        let effects = wanted
            .take(state.settings.width)
            .map(|(index, part)| effect(state, index, part))
            .collect();
        Next {
            effects,
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
            Status::Idle(Ending::new("idle", "no invocation is open"))
        }
    }
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
            tokens: Some(state.settings.part_tokens),
            ..Ceiling::default()
        },
        on_unknown: state.settings.on_unknown,
    }
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
    let place = event.effect.as_ref().and_then(place);
    let (level, branch, part) = place.ok_or_else(|| Misfit::new(event, "no part of a branch"))?;
    // One of a level that is over, or of a branch that is, came faster than it could be stopped.
    if level == state.level
        && let Some(branch) = state.branches.get_mut(branch)
        && !branch.is_pruned
    {
        match settlement.result["cost"].as_u64() {
            Some(cost) => branch.costs[part] = Some(cost),
            None => branch.is_broken = true,
        }
    }
    Ok(())
}

fn broken(state: &mut SearchState, effect: &EffectId) {
    if let Some((level, branch, _)) = place(effect)
        && level == state.level
        && let Some(branch) = state.branches.get_mut(branch)
    {
        branch.is_broken = true;
    }
}

fn level_decided(state: &mut SearchState, decided: &LevelDecided) {
    let Some(winner) = decided.winner else {
        state.ending = Some(Ending::new("failed", "every branch is broken"));
        return;
    };
    let path = format!("{}/{winner}", state.path);
    state.path = Digest::of_content(path.as_bytes());
    if state.level >= state.settings.levels {
        let words = format!("{} levels are done", state.level);
        state.ending = Some(Ending::new("finished", words));
    } else {
        state.begin_level();
    }
}
