//! What a search run folds from its events, and what it is set to.

use loopwright_core::digest::Digest;
use loopwright_core::machine::Ending;
use loopwright_core::role::OnUnknown;
use serde::{Deserialize, Serialize};

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
    /// The most tokens a small part may use.
    pub part_tokens: u64,
    /// What happens to parts whose outcome is unknown.
    pub on_unknown: OnUnknown,
    /// What becomes of branches that can't win any more.
    pub pruning: Pruning,
    /// Whether a person may say something about each level. It decides nothing.
    pub asks: bool,
}

/// What becomes of branches that can't win any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pruning {
    /// They are over at once, and what they have in flight is stopped.
    Stop,
    /// They are over at once, and what they have in flight is paid for and may finish.
    Finish,
    /// Every part of every branch is judged, so that the order of results decides nothing.
    Patient,
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
    pub(super) fn new(parts: usize, is_pruned: bool) -> Self {
        Self {
            costs: vec![None; parts],
            is_pruned,
            is_broken: false,
        }
    }

    pub(super) fn so_far(&self) -> u64 {
        self.costs.iter().flatten().sum()
    }

    pub(super) fn is_complete(&self) -> bool {
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
    /// Whether a person has said something about it.
    pub is_heard: bool,
    /// The digest of all winners so far; the path itself may be long.
    pub path: Digest,
    /// How the run ended.
    pub ending: Option<Ending>,
    /// How this invocation ends, where it is not the run's end.
    pub pausing: Option<Ending>,
}

impl SearchState {
    pub(super) fn new(settings: SearchSettings) -> Self {
        let mut state = Self {
            settings,
            is_open: false,
            level: 0,
            branches: Vec::new(),
            is_heard: false,
            path: Digest::of_content(b""),
            ending: None,
            pausing: None,
        };
        state.begin_level();
        state
    }

    pub(super) fn begin_level(&mut self) {
        self.level += 1;
        self.is_heard = false;
        let branch = Branch::new(self.settings.parts, false);
        self.branches = vec![branch; self.settings.branches];
    }

    /// The branches that can't win any more and are not over yet.
    pub(super) fn lost_branches(&self) -> Vec<usize> {
        let complete = self.branches.iter().filter(|branch| branch.is_complete());
        let best = complete.map(Branch::so_far).min();
        let is_lost =
            |branch: &Branch| branch.is_broken || best.is_some_and(|best| branch.so_far() > best);
        let open = self.branches.iter().enumerate();
        open.filter(|(_, branch)| !branch.is_pruned && is_lost(branch))
            .map(|(index, _)| index)
            .collect()
    }

    /// Whether every branch is complete or over, or judged in all its parts.
    pub(super) fn is_level_done(&self) -> bool {
        let is_done = |branch: &Branch| {
            branch.is_pruned || branch.is_complete() || branch.costs.iter().all(Option::is_some)
        };
        self.branches.iter().all(is_done)
    }

    /// The cheapest branch; of equals the first, whoever came first. None where all are over.
    pub(super) fn winner(&self) -> Option<usize> {
        let live = self.branches.iter().enumerate();
        live.filter(|(_, branch)| !branch.is_pruned)
            .min_by_key(|(index, branch)| (branch.so_far(), *index))
            .map(|(index, _)| index)
    }
}
