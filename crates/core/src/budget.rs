//! Budgets: limits, what was spent, what is reserved, and how a child inherits its parent's.
//!
//! An effect that declares a ceiling has it reserved before it starts, and is refused where it
//! can't fit. One that declares none in a dimension starts while anything is left there, and is
//! booked after. A lost attempt, or one that reported nothing, is booked at its ceiling where it
//! has one, else counted as unknown.

use serde::{Deserialize, Serialize};

use crate::usage::{Amounts, Dimension, Usage};

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
}

impl Limits {
    /// The limit in one dimension.
    pub fn of(self, dimension: Dimension) -> Option<u64> {
        match dimension {
            Dimension::Steps => self.steps,
            Dimension::Time => self.time_us,
            Dimension::Tokens => self.tokens,
            Dimension::Money => self.money_micros,
        }
    }

    /// A child's limits under its parent: its own, but never more than the parent has left.
    /// Steps are not shared: a child's iteration is not a parent's.
    pub fn inherit(self, parent: &Account) -> Self {
        let tighter = |own: Option<u64>, left: Option<u64>| match (own, left) {
            (Some(own), Some(left)) => Some(own.min(left)),
            (own, left) => own.or(left),
        };
        Self {
            steps: self.steps,
            time_us: tighter(self.time_us, parent.left(Dimension::Time)),
            tokens: tighter(self.tokens, parent.left(Dimension::Tokens)),
            money_micros: tighter(self.money_micros, parent.left(Dimension::Money)),
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

    fn declared(self, dimension: Dimension) -> Option<u64> {
        match dimension {
            Dimension::Steps => Some(self.steps),
            Dimension::Time => self.time_us,
            Dimension::Tokens => self.tokens,
            Dimension::Money => self.money_micros,
        }
    }

    fn reserved(self) -> Amounts {
        Amounts {
            steps: self.steps,
            time_us: self.time_us.unwrap_or(0),
            tokens: self.tokens.unwrap_or(0),
            money_micros: self.money_micros.unwrap_or(0),
        }
    }
}

/// Why an effect may not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverBudget {
    /// Where it doesn't fit.
    pub dimension: Dimension,
    /// What it would need at most; `None` where it declares nothing and nothing is left.
    pub needed: Option<u64>,
    /// What is left, reservations taken off.
    pub left: u64,
    /// The limit.
    pub limit: u64,
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

    /// Whether an effect with this ceiling may start.
    pub fn fits(&self, ceiling: Ceiling) -> Result<(), OverBudget> {
        for dimension in Dimension::ALL {
            let (Some(limit), Some(left)) = (self.limits.of(dimension), self.left(dimension))
            else {
                continue;
            };
            let needed = ceiling.declared(dimension);
            let fits = needed.map_or(left > 0, |needed| needed <= left);
            if !fits {
                return Err(OverBudget {
                    dimension,
                    needed,
                    left,
                    limit,
                });
            }
        }
        Ok(())
    }

    /// Reserves a ceiling.
    pub fn reserve(&mut self, ceiling: Ceiling) {
        self.reserved = self.reserved.plus(ceiling.reserved());
    }

    /// Releases a reservation and books what was used. Steps are booked as declared.
    pub fn settle(&mut self, ceiling: Ceiling, usage: &Usage) {
        self.reserved = self.reserved.minus(ceiling.reserved());
        let tokens = usage.tokens.or(ceiling.tokens);
        let money = usage.money_micros.or(ceiling.money_micros);
        self.unknown.tokens += u64::from(tokens.is_none());
        self.unknown.money += u64::from(money.is_none());
        self.spent = self.spent.plus(Amounts {
            steps: ceiling.steps,
            time_us: usage.wall_us.or(ceiling.time_us).unwrap_or(0),
            tokens: tokens.unwrap_or(0),
            money_micros: money.unwrap_or(0),
        });
    }

    /// Releases a reservation for an attempt that is known not to have been finished, so that
    /// another attempt of the same step can be made: its step is not booked, the rest is booked
    /// as used at its ceiling where that is declared and charged for.
    pub fn give_up(&mut self, ceiling: Ceiling, usage: &Usage) {
        self.settle(ceiling, usage);
        self.spent.steps = self.spent.steps.saturating_sub(ceiling.steps);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(tokens: u64) -> Limits {
        Limits {
            tokens: Some(tokens),
            ..Limits::default()
        }
    }

    #[test]
    fn a_declared_ceiling_that_does_not_fit_is_refused_before_it_starts() {
        let mut account = Account::new(limits(1000));
        let call = Ceiling {
            tokens: Some(400),
            ..Ceiling::default()
        };
        for _ in 0..2 {
            account.fits(call).unwrap();
            account.reserve(call);
        }
        let refused = account.fits(call).unwrap_err();
        assert_eq!((refused.dimension, refused.left), (Dimension::Tokens, 200));
        account.settle(
            call,
            &Usage {
                tokens: Some(100),
                ..Usage::default()
            },
        );
        account.fits(call).unwrap();
    }

    #[test]
    fn unknown_usage_is_booked_at_the_ceiling_or_counted_as_unknown() {
        let mut account = Account::new(limits(1000));
        let declared = Ceiling {
            tokens: Some(400),
            ..Ceiling::default()
        };
        account.reserve(declared);
        account.settle(declared, &Usage::default());
        assert_eq!((account.spent.tokens, account.unknown.tokens), (400, 0));
        account.reserve(Ceiling::default());
        account.settle(Ceiling::default(), &Usage::default());
        assert_eq!((account.spent.tokens, account.unknown.tokens), (400, 1));
    }

    #[test]
    fn a_child_gets_no_more_than_its_parent_has_left() {
        let mut parent = Account::new(limits(1000));
        parent.spent.tokens = 700;
        assert_eq!(limits(500).inherit(&parent).tokens, Some(300));
        assert_eq!(limits(100).inherit(&parent).tokens, Some(100));
        assert_eq!(Limits::default().inherit(&parent).tokens, Some(300));
        assert_eq!(limits(100).inherit(&Account::default()).tokens, Some(100));
    }

    proptest! {
        /// Where every call declares its ceiling and keeps to it, the limit is never passed.
        #[test]
        fn reserved_calls_never_overspend(calls in prop::collection::vec((0u64..500, 0u64..500), 0..60)) {
            let mut account = Account::new(limits(2000));
            let mut open = Vec::new();
            for (index, (ceiling, used)) in calls.into_iter().enumerate() {
                let ceiling = Ceiling { tokens: Some(ceiling), ..Ceiling::default() };
                if account.fits(ceiling).is_ok() {
                    account.reserve(ceiling);
                    open.push((ceiling, used));
                }
                if index % 3 == 0 && let Some((ceiling, used)) = open.pop() {
                    let used = used.min(ceiling.tokens.unwrap_or(0));
                    account.settle(ceiling, &Usage { tokens: Some(used), ..Usage::default() });
                }
                prop_assert!(account.spent.plus(account.reserved).tokens <= 2000);
            }
        }
    }
}
