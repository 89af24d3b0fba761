//! The purse of doubt: how many false keeps a loop may still risk. It belongs to the whole loop:
//! all its branches, segments and invocations draw on the same one, and nothing refills it but
//! trials that were judged and keeps that were earned.

use serde::{Deserialize, Serialize};

use super::exact;
use super::settings::Keep;

/// How many trials a loop's doubt is spread over.
const TRIALS: f64 = 60.0;

/// What is left of the doubt, in expected false keeps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purse {
    #[serde(with = "exact")]
    left: f64,
}

impl Purse {
    /// A new loop's.
    pub fn new(rule: &Keep) -> Self {
        Self {
            left: 0.6 * rule.doubt.get(),
        }
    }

    /// What is left, in expected false keeps.
    pub fn left(&self) -> f64 {
        self.left
    }

    /// Takes out the stake of one duel: more of it, the better the first draw looked.
    pub(super) fn stake(&mut self, promise: f64) -> f64 {
        let share = (0.25 * libm::exp((promise - 1.0).min(5.0))).min(0.4);
        let stake = self.left * share;
        self.left -= stake;
        stake
    }

    /// What a judged trial brings in.
    pub(super) fn income(&mut self, rule: &Keep) {
        self.left += 0.4 * rule.doubt.get() / TRIALS;
    }

    /// What an earned keep brings in.
    pub(super) fn reward(&mut self, rule: &Keep) {
        self.left += (1.5 * rule.doubt.get()).min(0.5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purse_is_never_empty_and_never_in_debt() {
        let mut purse = Purse::new(&Keep::default());
        for _ in 0..5000 {
            let before = purse.left();
            let stake = purse.stake(1e9);
            assert!(stake > 0.0 && stake <= 0.4 * before && purse.left() > 0.0);
            purse.income(&Keep::default());
        }
    }

    /// All that a loop without an earned keep can ever stake is what it began with and its income.
    #[test]
    fn stakes_are_bounded_by_start_and_income() {
        let rule = Keep::default();
        let mut purse = Purse::new(&rule);
        let mut staked = 0.0;
        for trial in 0..600 {
            staked += purse.stake(f64::from(trial % 7));
            purse.income(&rule);
        }
        let bound = 0.6 * 0.1 + 0.4 * 0.1 * 600.0 / 60.0;
        assert!(staked <= bound, "{staked} of {bound}");
    }
}
