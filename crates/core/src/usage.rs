//! What effects use up, in one vocabulary for all kinds of loop.
//!
//! Unknown is not zero: an amount that nobody reported is counted as unknown, never added as 0.

use serde::{Deserialize, Serialize};

/// What one attempt used. `None` is "not reported".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_us: Option<u64>,
    /// CPU time, user and system, of the whole process family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// The largest resident set of one process of the family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Tokens, all dimensions together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money in millionths of the loop's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_micros: Option<u64>,
}

impl Usage {
    /// Of what was not begun: nothing, and that is known.
    pub fn nothing() -> Self {
        Self {
            wall_us: Some(0),
            cpu_us: Some(0),
            memory_bytes: None,
            tokens: Some(0),
            money_micros: Some(0),
        }
    }

    /// Of this and what came after it. Unknown of one is unknown of both, but for the memory, which
    /// they had one after the other.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        Self {
            wall_us: sum(self.wall_us, next.wall_us),
            cpu_us: sum(self.cpu_us, next.cpu_us),
            memory_bytes: self.memory_bytes.max(next.memory_bytes),
            tokens: sum(self.tokens, next.tokens),
            money_micros: sum(self.money_micros, next.money_micros),
        }
    }

    /// Usage of a thing that can't use tokens or money (a measurement, the engine's own effects).
    pub fn free_of_charge(self) -> Self {
        Self {
            tokens: self.tokens.or(Some(0)),
            money_micros: self.money_micros.or(Some(0)),
            ..self
        }
    }
}

/// Amounts in the dimensions that budgets have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Amounts {
    /// Steps: trials, iterations or search steps.
    pub steps: u64,
    /// Time spent in effects.
    pub time_us: u64,
    /// Tokens.
    pub tokens: u64,
    /// Millionths of the loop's currency.
    pub money_micros: u64,
    /// Time that passed while the run was driven and not only waited for a person.
    #[serde(skip_serializing_if = "is_zero")]
    pub wall_us: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands it a reference"
)]
pub(crate) fn is_zero(amount: &u64) -> bool {
    *amount == 0
}

impl Amounts {
    /// The sum; saturates.
    pub fn plus(self, other: Self) -> Self {
        Self {
            steps: self.steps.saturating_add(other.steps),
            time_us: self.time_us.saturating_add(other.time_us),
            tokens: self.tokens.saturating_add(other.tokens),
            money_micros: self.money_micros.saturating_add(other.money_micros),
            wall_us: self.wall_us.saturating_add(other.wall_us),
        }
    }

    /// The difference; never below zero.
    pub fn minus(self, other: Self) -> Self {
        Self {
            steps: self.steps.saturating_sub(other.steps),
            time_us: self.time_us.saturating_sub(other.time_us),
            tokens: self.tokens.saturating_sub(other.tokens),
            money_micros: self.money_micros.saturating_sub(other.money_micros),
            wall_us: self.wall_us.saturating_sub(other.wall_us),
        }
    }

    /// The amount in one dimension.
    pub fn of(self, dimension: Dimension) -> u64 {
        match dimension {
            Dimension::Steps => self.steps,
            Dimension::Time => self.time_us,
            Dimension::Tokens => self.tokens,
            Dimension::Money => self.money_micros,
            Dimension::Wall => self.wall_us,
        }
    }
}

/// What a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// Trials, iterations or search steps.
    Steps,
    /// Time spent in effects, in microseconds.
    Time,
    /// Tokens.
    Tokens,
    /// Millionths of the loop's currency.
    Money,
    /// The wall clock, in microseconds: what passes while the run is driven and not only waits
    /// for a person. No effect declares or books it.
    Wall,
}

impl Dimension {
    /// All of them, in the order in which refusals are reported.
    pub const ALL: [Self; 5] = [
        Self::Steps,
        Self::Time,
        Self::Tokens,
        Self::Money,
        Self::Wall,
    ];

    /// The word used everywhere.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Time => "time",
            Self::Tokens => "tokens",
            Self::Money => "money",
            Self::Wall => "wall clock",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_one_after_the_other_is_summed_where_both_are_known() {
        let setup = Usage {
            wall_us: Some(3),
            cpu_us: None,
            memory_bytes: Some(9),
            ..Usage::default()
        };
        let run = Usage {
            wall_us: Some(4),
            cpu_us: Some(1),
            memory_bytes: Some(5),
            tokens: Some(2),
            ..Usage::default()
        };
        let both = Usage {
            wall_us: Some(7),
            memory_bytes: Some(9),
            ..Usage::default()
        };
        assert_eq!(setup.then(run), both);
        assert_eq!(run.then(setup), both);
        assert_eq!(
            run.free_of_charge().then(Usage::nothing()),
            run.free_of_charge()
        );
    }
}
