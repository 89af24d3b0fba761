//! Budgets: limits, what was spent, what is reserved, and how a child inherits its parent's.
//!
//! An effect that declares a ceiling has it reserved before it starts. It is refused where it can't
//! fit even if all effects in flight should cost nothing, and waits for them where it doesn't fit
//! beside what they reserve. One that declares none in a dimension starts while anything is left
//! there, and is booked after. A lost attempt, or one that reported nothing, is booked at its
//! ceiling where it has one, else counted as unknown. Unknown is not zero: once an amount is
//! unknown nobody can say that the limit still holds, so nothing more is admitted that could use
//! any of what is limited there.

use serde::{Deserialize, Serialize};

use crate::spec::{format_duration_us, format_micros};
use crate::usage::{Amounts, Dimension, Usage, is_zero};

/// Upper limits; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Steps: trials, iterations or search steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Time spent in effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<u64>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of the loop's currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money_micros: Option<u64>,
    /// The wall clock: time in which the run is driven and doesn't only wait for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_us: Option<u64>,
}

impl Limits {
    /// The limit in one dimension.
    pub fn of(self, dimension: Dimension) -> Option<u64> {
        match dimension {
            Dimension::Steps => self.steps,
            Dimension::Time => self.time_us,
            Dimension::Tokens => self.tokens,
            Dimension::Money => self.money_micros,
            Dimension::Wall => self.wall_us,
        }
    }

    /// What is other in `new`, in words: `steps 1 -> 100`.
    pub fn changes(self, new: Self) -> Vec<String> {
        let words = |dimension: Dimension, limit: Option<u64>| {
            limit.map_or_else(|| "no limit".to_owned(), |limit| amount(dimension, limit))
        };
        let changed = Dimension::ALL
            .into_iter()
            .filter(|dimension| self.of(*dimension) != new.of(*dimension));
        changed
            .map(|dimension| {
                let (from, to) = (self.of(dimension), new.of(dimension));
                let (from, to) = (words(dimension, from), words(dimension, to));
                format!("{} {from} -> {to}", dimension.name())
            })
            .collect()
    }

    /// A child's limits: its own, but never more than was reserved for its parent's effect. The
    /// effect's time limit bounds both the time it spends and its wall clock. Steps are not shared:
    /// a child's iteration is not a parent's.
    pub fn under(self, ceiling: Ceiling) -> Self {
        let tighter = |own: Option<u64>, reserved: Option<u64>| match (own, reserved) {
            (Some(own), Some(reserved)) => Some(own.min(reserved)),
            (own, reserved) => own.or(reserved),
        };
        Self {
            steps: self.steps,
            time_us: tighter(self.time_us, ceiling.time_us),
            tokens: tighter(self.tokens, ceiling.tokens),
            money_micros: tighter(self.money_micros, ceiling.money_micros),
            wall_us: tighter(self.wall_us, ceiling.time_us),
        }
    }
}

/// The worst case an effect declares before it starts; `None` is "not declared".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ceiling {
    /// Steps; exact, not a worst case.
    pub steps: u64,
    /// Its time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<u64>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of the loop's currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money_micros: Option<u64>,
}

impl Ceiling {
    /// A ceiling for something that uses time only.
    pub fn time(time_us: Option<u64>) -> Self {
        Self {
            time_us,
            tokens: Some(0),
            money_micros: Some(0),
            steps: 0,
        }
    }

    /// The ceiling of what costs nothing: a question to a person.
    pub fn nothing() -> Self {
        Self::time(Some(0))
    }

    fn declared(self, dimension: Dimension) -> Option<u64> {
        match dimension {
            Dimension::Steps => Some(self.steps),
            Dimension::Time => self.time_us,
            Dimension::Tokens => self.tokens,
            Dimension::Money => self.money_micros,
            Dimension::Wall => None,
        }
    }

    fn reserved(self) -> Amounts {
        Amounts {
            steps: self.steps,
            time_us: self.time_us.unwrap_or(0),
            tokens: self.tokens.unwrap_or(0),
            money_micros: self.money_micros.unwrap_or(0),
            wall_us: 0,
        }
    }
}

/// Whether an effect may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Now.
    Fits,
    /// Not beside what is in flight; later, if that leaves enough.
    Waits,
    /// Never under these limits.
    Refused(OverBudget),
}

/// Why an effect may not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverBudget {
    /// Where it doesn't fit.
    pub dimension: Dimension,
    /// What it would need at most; `None` where it declares nothing and nothing is left.
    pub needed: Option<u64>,
    /// What isn't booked; what is in flight may take of it.
    pub left: u64,
    /// The limit.
    pub limit: u64,
    /// How many attempts used an unknown amount, where it is that which hinders.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
}

impl OverBudget {
    /// Why `what` may not start, in words.
    pub fn words(&self, what: &str) -> String {
        let name = self.dimension.name();
        let limit = amount(self.dimension, self.limit);
        if self.unknown > 0 {
            let attempts = if self.unknown == 1 {
                "1 attempt".to_owned()
            } else {
                format!("{} attempts", self.unknown)
            };
            return format!(
                "the budget of {name} ({limit}) can't be kept: {attempts} used an unknown amount"
            );
        }
        match self.needed {
            Some(needed) if self.left > 0 => format!(
                "the budget of {name} has {} left of {limit}, and {what} may need {}",
                amount(self.dimension, self.left),
                amount(self.dimension, needed),
            ),
            _ => format!("the budget of {name} is used up: nothing is left of {limit}"),
        }
    }
}

/// An amount as people read it.
pub fn amount(dimension: Dimension, amount: u64) -> String {
    match dimension {
        Dimension::Steps | Dimension::Tokens => amount.to_string(),
        Dimension::Time | Dimension::Wall => format_duration_us(amount),
        Dimension::Money => format_micros(amount),
    }
}

/// How often something was used in an amount nobody reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Unknown {
    /// Attempts whose tokens are unknown.
    pub tokens: u64,
    /// Attempts whose cost is unknown.
    pub money: u64,
}

impl Unknown {
    /// The attempts in one dimension; steps and time are always known.
    pub fn of(self, dimension: Dimension) -> u64 {
        match dimension {
            Dimension::Tokens => self.tokens,
            Dimension::Money => self.money,
            Dimension::Steps | Dimension::Time | Dimension::Wall => 0,
        }
    }
}

/// A budget with what has been booked on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Account {
    /// The limits.
    pub limits: Limits,
    /// Booked.
    pub spent: Amounts,
    /// Held back for effects in flight.
    pub reserved: Amounts,
    /// Used in unknown amounts.
    pub unknown: Unknown,
}

impl Account {
    /// An empty account.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// What is left in a dimension, reservations taken off; `None` is unlimited.
    pub fn left(&self, dimension: Dimension) -> Option<u64> {
        let used = self.spent.plus(self.reserved).of(dimension);
        self.limits
            .of(dimension)
            .map(|limit| limit.saturating_sub(used))
    }

    /// What is left in every dimension that has a limit.
    pub fn all_left(&self) -> Limits {
        Limits {
            steps: self.left(Dimension::Steps),
            time_us: self.left(Dimension::Time),
            tokens: self.left(Dimension::Tokens),
            money_micros: self.left(Dimension::Money),
            wall_us: self.left(Dimension::Wall),
        }
    }

    /// Whether an effect with this ceiling may start. Refusing looks only at what is booked, which
    /// never shrinks: whoever is refused while others are in flight would be refused after them.
    /// What was used in an unknown amount may have been all there is.
    pub fn admit(&self, ceiling: Ceiling) -> Admission {
        let mut admission = Admission::Fits;
        for dimension in Dimension::ALL {
            let (Some(limit), Some(free)) = (self.limits.of(dimension), self.left(dimension))
            else {
                continue;
            };
            let left = limit.saturating_sub(self.spent.of(dimension));
            let needed = ceiling.declared(dimension);
            let fits = |left: u64| needed.map_or(left > 0, |needed| needed <= left);
            let over = OverBudget {
                dimension,
                needed,
                left,
                limit,
                unknown: 0,
            };
            if !fits(left) {
                return Admission::Refused(over);
            }
            let unknown = self.unknown.of(dimension);
            if unknown > 0 && needed != Some(0) {
                return Admission::Refused(OverBudget { unknown, ..over });
            }
            if !fits(free) {
                admission = Admission::Waits;
            }
        }
        admission
    }

    /// The same ceiling with all that is free in the limited dimensions it doesn't declare.
    pub fn with_the_rest(&self, ceiling: Ceiling) -> Ceiling {
        let or_rest = |declared: Option<u64>, dimension| declared.or(self.left(dimension));
        Ceiling {
            steps: ceiling.steps,
            time_us: or_rest(ceiling.time_us, Dimension::Time),
            tokens: or_rest(ceiling.tokens, Dimension::Tokens),
            money_micros: or_rest(ceiling.money_micros, Dimension::Money),
        }
    }

    /// Reserves a ceiling.
    pub fn reserve(&mut self, ceiling: Ceiling) {
        self.reserved = self.reserved.plus(ceiling.reserved());
    }

    /// Releases a reservation and books what was used. Steps are booked as declared.
    pub fn settle(&mut self, ceiling: Ceiling, usage: &Usage) -> Booked {
        self.reserved = self.reserved.minus(ceiling.reserved());
        let tokens = usage.tokens.or(ceiling.tokens);
        let money = usage.money_micros.or(ceiling.money_micros);
        let booked = Booked {
            amounts: Amounts {
                steps: ceiling.steps,
                time_us: usage.wall_us.or(ceiling.time_us).unwrap_or(0),
                tokens: tokens.unwrap_or(0),
                money_micros: money.unwrap_or(0),
                wall_us: 0,
            },
            unknown: Unknown {
                tokens: u64::from(tokens.is_none()),
                money: u64::from(money.is_none()),
            },
        };
        self.spent = self.spent.plus(booked.amounts);
        self.unknown.tokens += booked.unknown.tokens;
        self.unknown.money += booked.unknown.money;
        booked
    }

    /// Releases a reservation for an attempt that is known not to have been finished, so that
    /// another attempt of the same step can be made: its step is not booked, the rest is booked
    /// as used at its ceiling where that is declared and charged for.
    pub fn give_up(&mut self, ceiling: Ceiling, usage: &Usage) -> Booked {
        let mut booked = self.settle(ceiling, usage);
        self.spent.steps = self.spent.steps.saturating_sub(ceiling.steps);
        booked.amounts.steps = 0;
        booked
    }

    /// Takes back what an attempt was booked at: the next one reports it along with its own.
    pub fn take_back(&mut self, booked: Booked) {
        self.spent = self.spent.minus(booked.amounts);
        self.unknown.tokens = self.unknown.tokens.saturating_sub(booked.unknown.tokens);
        self.unknown.money = self.unknown.money.saturating_sub(booked.unknown.money);
    }

    /// Lets the wall clock run on.
    pub fn pass(&mut self, duration_us: u64) {
        self.spent.wall_us = self.spent.wall_us.saturating_add(duration_us);
    }

    /// Whether the wall clock has run out.
    pub fn out_of_time(&self) -> Option<OverBudget> {
        let limit = self.limits.wall_us?;
        (self.spent.wall_us >= limit).then_some(OverBudget {
            dimension: Dimension::Wall,
            needed: None,
            left: 0,
            limit,
            unknown: 0,
        })
    }

    /// What was used of it in all, as one attempt of the parent's effect reports it. What is
    /// unknown here is unknown there.
    pub fn usage(&self) -> Usage {
        Usage {
            wall_us: Some(self.spent.wall_us),
            tokens: (self.unknown.tokens == 0).then_some(self.spent.tokens),
            money_micros: (self.unknown.money == 0).then_some(self.spent.money_micros),
            ..Usage::default()
        }
    }
}

/// What an attempt was booked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Booked {
    /// The amounts.
    pub amounts: Amounts,
    /// What nobody reported.
    pub unknown: Unknown,
}

#[cfg(test)]
mod tests;
