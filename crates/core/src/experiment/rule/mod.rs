//! The decision point: which arm to measure next, or the verdict.
//!
//! A rule answers [`Judge::want`] and is told each reading by [`Judge::feed`]; every reading is an
//! effect of its own, so a rule may ask for as many as it likes, of either arm, in its own order.
//! Rules are versioned policies: an old version stays when a new one comes, because recorded
//! decisions must come out the same in every later release.

pub mod keep;
mod threshold;

use serde::{Deserialize, Serialize};

use crate::metric::Real;
use crate::spec::Goal;

use keep::{Keep, Purse, Scale, Standing};

pub use threshold::{Threshold, ThresholdJudge};

/// Which tree is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The change under test.
    Candidate,
    /// The best accepted one.
    Incumbent,
}

impl Arm {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::Incumbent => "incumbent",
        }
    }

    /// The arm of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Candidate, Self::Incumbent]
            .into_iter()
            .find(|arm| arm.name() == name)
    }
}

/// A rule with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleSettings {
    /// One draw against the remembered incumbent, perhaps confirmed by another.
    Threshold(Threshold),
    /// A draw that screens, a duel that decides, and a purse of doubt.
    Keep(Keep),
}

impl RuleSettings {
    /// All policies there are; an old version stays when a new one comes.
    pub const POLICIES: &[&str] = &[threshold::POLICY, keep::POLICY];

    /// The policy in force, `name/version`.
    pub fn policy(&self) -> &'static str {
        match self {
            Self::Threshold(_) => threshold::POLICY,
            Self::Keep(_) => keep::POLICY,
        }
    }

    /// Why a reading can't be judged, in words that follow its number; none where it can.
    pub fn objection(&self, goal: Goal, value: Real) -> Option<String> {
        match self {
            Self::Threshold(_) => None,
            Self::Keep(rule) => Scale::of(rule, goal)
                .judged(value)
                .err()
                .map(|why| why.to_string()),
        }
    }
}

/// What a rule remembers beyond one candidate: of the loop, and of its branch and segment.
pub struct Books<'a> {
    /// The loop's.
    pub purse: &'a mut Purse,
    /// The branch's in its segment.
    pub standing: &'a mut Standing,
}

/// What a rule wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// One more reading of an arm.
    Measure(Arm),
    /// Nothing more.
    Verdict(Verdict),
}

/// What a rule says about a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Whether it helps.
    pub better: bool,
    /// The value that stands for the candidate.
    pub value: Real,
    /// The incumbent's value that it stood against.
    pub against: Real,
    /// Why, in words.
    pub why: String,
}

/// The case of one candidate, between readings; part of the machine's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// See [`Threshold`].
    Threshold(ThresholdJudge),
    /// See [`keep`].
    Keep(keep::Case),
}

impl Judge {
    /// What is wanted now.
    pub fn want(&self) -> Want {
        match self {
            Self::Threshold(judge) => judge.want(),
            Self::Keep(case) => case.want(),
        }
    }

    /// Why it can't judge a reading, in words that follow its number; none where it can. The settings may
    /// be others than those it was opened with.
    pub fn objection(&self, value: Real) -> Option<String> {
        match self {
            Self::Threshold(_) => None,
            Self::Keep(case) => case.scale().judged(value).err().map(|why| why.to_string()),
        }
    }

    /// The value that stands for the candidate so far, if the rule has one.
    pub fn value(&self) -> Option<Real> {
        match (self, self.want()) {
            (_, Want::Verdict(verdict)) => Some(verdict.value),
            (Self::Threshold(_), Want::Measure(_)) => None,
            (Self::Keep(case), Want::Measure(_)) => case.value(),
        }
    }

    /// Whether a guard that is broken now ends the trial before the rule has its verdict. In a duel
    /// the means of all its readings are held against each other at its end.
    pub fn looks_at_guards(&self) -> bool {
        match self {
            Self::Threshold(_) => true,
            Self::Keep(case) => case.is_before_duel(),
        }
    }

    /// One more reading of `arm`.
    pub fn feed(&mut self, arm: Arm, value: Real, books: Option<Books<'_>>) {
        match self {
            Self::Threshold(judge) => judge.feed(arm, value),
            Self::Keep(case) => {
                if let (Some(books), Ok(judged)) = (books, case.scale().judged(value)) {
                    case.feed(arm, judged, books.purse, books.standing);
                }
            }
        }
    }
}
