//! The ids of an experiment run's effects, typed: `t7/measure/candidate/1` and its kind.
//!
//! An id is a contract: it is the key under which an outside service knows a repeated attempt, and
//! stands in records for good. It is written and read here and nowhere else.

use std::fmt;
use std::str::FromStr;

use crate::ids::EffectId;

use super::rule::Arm;

/// An effect of an experiment run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectPath {
    /// The trial it belongs to.
    pub trial: u64,
    /// What is done.
    pub part: Part,
}

/// What is done for a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A change is made.
    Propose,
    /// An old change is brought to the incumbent.
    Reapply,
    /// A tree is measured for the decision.
    Measure {
        /// Which.
        arm: Arm,
        /// Which reading of the trial, from 1.
        reading: u64,
    },
    /// The change is committed.
    Keep {
        /// Which time, from 1: a commit hook may have rewritten what was to be kept.
        time: u64,
    },
    /// The incumbent is measured once more, for the target.
    Target {
        /// Which check, from 1.
        check: u64,
    },
    /// A tree is measured for the closing check.
    Closing {
        /// Which check of this incumbent, from 1.
        check: u64,
        /// Which reading of it, from 1.
        reading: u64,
    },
}

/// An id that is none of this machine's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no effect of an experiment run is called {0:?}")]
pub struct NotOurs(pub String);

impl EffectPath {
    /// The path that an id stands for.
    pub fn of(effect: &EffectId) -> Result<Self, NotOurs> {
        effect.as_str().parse()
    }
}

impl fmt::Display for EffectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}/", self.trial)?;
        match self.part {
            Part::Propose => f.write_str("propose"),
            Part::Reapply => f.write_str("reapply"),
            Part::Measure { arm, reading } => write!(f, "measure/{}/{reading}", arm.name()),
            Part::Keep { time } => write!(f, "keep/{time}"),
            Part::Target { check } => write!(f, "target/{check}"),
            Part::Closing { check, reading } => write!(f, "closing/{check}/{reading}"),
        }
    }
}

impl FromStr for EffectPath {
    type Err = NotOurs;

    fn from_str(text: &str) -> Result<Self, NotOurs> {
        read(text).ok_or_else(|| NotOurs(text.to_owned()))
    }
}

fn read(text: &str) -> Option<EffectPath> {
    let names: Vec<&str> = text.split('/').collect();
    let (first, rest) = names.split_first()?;
    let part = match rest {
        ["propose"] => Part::Propose,
        ["reapply"] => Part::Reapply,
        ["measure", arm, reading] => Part::Measure {
            arm: Arm::named(arm)?,
            reading: number(reading)?,
        },
        ["keep", time] => Part::Keep {
            time: number(time)?,
        },
        ["target", check] => Part::Target {
            check: number(check)?,
        },
        ["closing", check, reading] => Part::Closing {
            check: number(check)?,
            reading: number(reading)?,
        },
        _ => return None,
    };
    let trial = number(first.strip_prefix('t')?)?;
    Some(EffectPath { trial, part })
}

/// A number as it is written here: one text for each, or two ids would be one path.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl From<EffectPath> for EffectId {
    fn from(path: EffectPath) -> Self {
        Self::new(path.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_stand_as_they_were_always_written() {
        let measure = |arm, reading| Part::Measure { arm, reading };
        for (text, trial, part) in [
            ("t7/propose", 7, Part::Propose),
            ("t7/reapply", 7, Part::Reapply),
            ("t0/measure/incumbent/1", 0, measure(Arm::Incumbent, 1)),
            ("t12/measure/candidate/3", 12, measure(Arm::Candidate, 3)),
            ("t7/keep/2", 7, Part::Keep { time: 2 }),
            ("t7/target/1", 7, Part::Target { check: 1 }),
            (
                "t7/closing/2/11",
                7,
                Part::Closing {
                    check: 2,
                    reading: 11,
                },
            ),
        ] {
            let path = EffectPath { trial, part };
            assert_eq!(text.parse(), Ok(path));
            assert_eq!(EffectId::from(path).as_str(), text);
        }
    }

    #[test]
    fn what_only_looks_like_one_is_refused() {
        for text in [
            "",
            "t7",
            "7/propose",
            "t07/propose",
            "t+7/propose",
            "t7/propose/",
            "t7/propose/1",
            "t7/measure/candidate",
            "t7/measure/other/1",
            "t7/keep/01",
            "t7/keep/-1",
            "t7/fly/1",
            "t7/closing/1",
            "t7/closing/1/01",
            "l1/b2/p3",
            "t18446744073709551616/propose",
        ] {
            assert_eq!(text.parse::<EffectPath>(), Err(NotOurs(text.to_owned())));
        }
    }

    fn part() -> impl Strategy<Value = Part> {
        (0..6u8, any::<bool>(), any::<u64>()).prop_map(|(part, of_candidate, number)| match part {
            0 => Part::Propose,
            1 => Part::Reapply,
            2 => Part::Keep { time: number },
            3 => Part::Target { check: number },
            4 => Part::Closing {
                check: number,
                reading: number / 2,
            },
            _ => Part::Measure {
                arm: if of_candidate {
                    Arm::Candidate
                } else {
                    Arm::Incumbent
                },
                reading: number,
            },
        })
    }

    proptest! {
        #[test]
        fn every_path_reads_back(trial in any::<u64>(), part in part()) {
            let path = EffectPath { trial, part };
            prop_assert_eq!(path.to_string().parse(), Ok(path));
        }

        #[test]
        fn every_text_that_is_read_is_the_one_written(text in "t?[0-9]{0,2}/(propose|keep/[0-9]{1,2}|measure/candidate/[0-9]{1,2}|closing/[0-9]{1,2}/[0-9]|.{0,4})") {
            if let Ok(path) = text.parse::<EffectPath>() {
                prop_assert_eq!(path.to_string(), text);
            }
        }
    }
}
