//! The case of one candidate: a look at the incumbent where that is due, one draw that screens, and
//! for what looks promising a duel.

use serde::{Deserialize, Serialize};

use crate::metric::Real;
use crate::spec::Goal;

use super::super::{Arm, Verdict, Want};
use super::duel::{Duel, Turn};
use super::purse::Purse;
use super::reference::Standpoint;
use super::scale::Scale;
use super::settings::{Keep, KnownNoise};
use super::standing::Standing;
use super::words::{self, Screened};

/// One candidate's case, between readings. It keeps the settings it was opened with, whatever an
/// invocation brings meanwhile: a stake is good for the number of looks it was made for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    rule: Keep,
    scale: Scale,
    stage: Stage,
    /// Whether its first draw was judged.
    is_screened: bool,
    /// How many runs of the incumbent failed one after the other.
    incumbent_failures: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// The incumbent is read first.
    Incumbent,
    /// The candidate's first draw.
    First,
    /// See [`Duel`].
    Duel(Duel),
    /// It is decided.
    Over(Over),
}

/// A decided case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Over {
    verdict: Verdict,
    /// Where it stands, if it takes the incumbent's place.
    stands: Option<Standpoint>,
    /// Whether it won against noise, which earns the loop more doubt.
    earned: bool,
}

/// What a reading is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The incumbent is looked at once more before a candidate is.
    Refresh,
    /// The candidate's first draw, which screens.
    First,
    /// One half of a pair.
    Duel,
}

/// What a failed run means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// It is repeated; the case goes on.
    Again,
    /// The candidate is at fault, and its trial is over.
    Candidate,
    /// The incumbent failed twice in a row: what measures is broken, not the candidate.
    Harness,
}

impl Case {
    /// Opens the case of a candidate against the incumbent that `standing` knows.
    pub fn open(rule: Keep, goal: Goal, standing: &Standing) -> Self {
        Self {
            rule,
            scale: Scale::of(&rule, goal),
            stage: if Self::looks_first(&rule, standing) {
                Stage::Incumbent
            } else {
                Stage::First
            },
            is_screened: false,
            incumbent_failures: 0,
        }
    }

    /// Whether a case that is opened now begins with a look at the incumbent.
    pub fn looks_first(rule: &Keep, standing: &Standing) -> bool {
        if rule.noise == KnownNoise::None {
            standing.stands_at().is_none()
        } else {
            standing.wants_incumbent()
        }
    }

    /// What is wanted now.
    pub fn want(&self) -> Want {
        match &self.stage {
            Stage::Incumbent => Want::Measure(Arm::Incumbent),
            Stage::First => Want::Measure(Arm::Candidate),
            Stage::Duel(duel) => Want::Measure(duel.turn()),
            Stage::Over(over) => Want::Verdict(over.verdict.clone()),
        }
    }

    /// The scale it judges on.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Whether a duel is about to begin.
    pub fn is_before_duel(&self) -> bool {
        matches!(&self.stage, Stage::Duel(duel) if duel.readings() == 0)
    }

    /// The fewest runs that a duel can come to anything with.
    pub fn least_duel(&self) -> u32 {
        (2 * self.rule.max_pairs).min(4)
    }

    /// Whether the candidate was drawn once, and a duel is on.
    pub fn has_only_first_draw(&self) -> bool {
        matches!(&self.stage, Stage::Duel(duel) if duel.candidates == 0)
    }

    /// What its next reading is for.
    pub fn purpose(&self) -> Option<Purpose> {
        match &self.stage {
            Stage::Incumbent => Some(Purpose::Refresh),
            Stage::First => Some(Purpose::First),
            Stage::Duel(_) => Some(Purpose::Duel),
            Stage::Over(_) => None,
        }
    }

    /// The mean of the candidate's readings in its duel, in the metric's unit; its first draw before
    /// there are any.
    pub fn value(&self) -> Option<Real> {
        match &self.stage {
            Stage::Incumbent | Stage::First => None,
            Stage::Duel(duel) => Some(self.scale.shown(duel.candidate_mean())),
            Stage::Over(over) => Some(over.verdict.value),
        }
    }

    /// How far it has come, in words.
    pub fn so_far(&self) -> String {
        match &self.stage {
            Stage::Incumbent | Stage::First => "nothing of it was measured".to_owned(),
            Stage::Duel(duel) => words::so_far(duel),
            Stage::Over(over) => over.verdict.why.clone(),
        }
    }

    /// One more reading of the arm that was wanted, on the scale of judging.
    pub fn feed(&mut self, arm: Arm, reading: f64, purse: &mut Purse, standing: &mut Standing) {
        if self.want() != Want::Measure(arm) {
            return;
        }
        if arm == Arm::Incumbent {
            self.incumbent_failures = 0;
        }
        self.stage = match std::mem::replace(&mut self.stage, Stage::First) {
            Stage::Incumbent => {
                standing.incumbent(reading);
                Stage::First
            }
            Stage::First => self.screen(reading, purse, standing),
            Stage::Duel(duel) => self.duel(duel, arm, reading, standing),
            over @ Stage::Over(_) => over,
        };
    }

    /// A run of the arm that was wanted failed, or gave no usable number.
    pub fn fail(&mut self, arm: Arm, standing: &mut Standing) -> Failed {
        if let Stage::Duel(duel) = &mut self.stage {
            duel.discard_half();
        }
        if arm == Arm::Incumbent {
            standing.incumbent_failed();
            self.incumbent_failures = self.incumbent_failures.saturating_add(1);
            return if self.incumbent_failures > 1 {
                Failed::Harness
            } else {
                Failed::Again
            };
        }
        match &mut self.stage {
            // Drawing again where a candidate failed would select its lucky runs. Where the
            // incumbent fails too, one failure says little of the candidate.
            Stage::Duel(duel) if standing.fails_sometimes() && !duel.retried => {
                duel.retried = true;
                Failed::Again
            }
            _ => Failed::Candidate,
        }
    }

    /// The trial is over: whether the candidate took the incumbent's place.
    pub fn close(&self, kept: bool, purse: &mut Purse, standing: &mut Standing) {
        match &self.stage {
            Stage::Over(Over {
                stands: Some(stands),
                earned,
                ..
            }) if kept => {
                if *earned {
                    purse.reward(&self.rule);
                }
                standing.replaced(*stands);
            }
            _ if self.is_screened => standing.reference.outlived(),
            _ => {}
        }
        // What was never judged has neither spent nor earned anything.
        if self.is_screened {
            purse.income(&self.rule);
        }
    }

    fn screen(&mut self, reading: f64, purse: &mut Purse, standing: &mut Standing) -> Stage {
        self.is_screened = true;
        standing.candidate(reading);
        let exact = self.rule.noise == KnownNoise::None;
        let reference = standing.reference;
        let margin = self.scale.margin(self.rule.worth, reference.value());
        let ahead = reference.value() - margin - reading;
        let known = standing.known_deviation().filter(|_| !exact);
        let (promise, passes) = match known {
            Some(deviation) => {
                let error = deviation * (1.0 + 1.0 / reference.weight()).sqrt();
                (ahead / error, ahead / error > self.rule.first_bar())
            }
            None => (1.0, reading < reference.value() - margin),
        };
        let screened = Screened {
            scale: self.scale,
            reading,
            reference: reference.value(),
            margin,
            promise: known.map(|_| promise),
            bar: self.rule.first_bar(),
        };
        if !passes {
            return self.over(
                false,
                reading,
                reference.value(),
                screened.lost(),
                None,
                false,
            );
        }
        if exact || standing.repeats(self.rule.identical()) {
            let stands = Standpoint {
                value: reading,
                readings: 1,
            };
            let why = screened.exactly();
            return self.over(true, reading, reference.value(), why, Some(stands), false);
        }
        Stage::Duel(Duel::new(reading, purse.stake(promise), margin))
    }

    fn duel(&self, mut duel: Duel, arm: Arm, reading: f64, standing: &mut Standing) -> Stage {
        let earlier = match arm {
            Arm::Candidate => {
                standing.candidate(reading);
                duel.first
            }
            Arm::Incumbent => standing.incumbent(reading),
        };
        duel.count(arm, reading);
        if !standing.is_noisy() {
            let same = reading == earlier;
            standing.repeated(same);
            let enough = if self.rule.coarse {
                self.rule.identical()
            } else {
                1
            };
            if same && standing.repeats(enough) {
                return self.repeats_exactly(&duel, standing);
            }
        }
        let closed = duel.pair(arm, reading);
        if !standing.is_noisy() {
            return Stage::Duel(duel);
        }
        if let Some(difference) = closed {
            duel.learn(difference, standing);
        }
        match duel.look(closed.is_some(), &self.rule, standing) {
            Turn::Open => Stage::Duel(duel),
            Turn::Better => self.better(&duel, standing),
            turn @ (Turn::Unpromising | Turn::Worse | Turn::Spent) => {
                let why = words::not_better(turn, &duel, standing);
                let against = duel.against(standing);
                self.over(false, duel.candidate_mean(), against, why, None, false)
            }
        }
    }

    fn repeats_exactly(&self, duel: &Duel, standing: &Standing) -> Stage {
        let screened = Screened {
            scale: self.scale,
            reading: duel.first,
            reference: standing.reference.value(),
            margin: duel.margin,
            promise: None,
            bar: self.rule.first_bar(),
        };
        let stands = Standpoint {
            value: duel.first,
            readings: duel.candidates.div_ceil(2).max(1),
        };
        let against = standing.reference.value();
        self.over(
            true,
            duel.first,
            against,
            screened.exactly(),
            Some(stands),
            false,
        )
    }

    fn better(&self, duel: &Duel, standing: &Standing) -> Stage {
        let runs = f64::from(duel.candidates);
        let deviation = standing.deviation().unwrap_or(0.0);
        let mean = duel.candidate_sum / runs;
        let stands = Standpoint {
            // A winner's readings flatter it.
            value: mean + 0.5 * deviation / runs.sqrt(),
            readings: duel.candidates.div_ceil(2),
        };
        let against = duel.against(standing);
        let why = words::better(duel, standing);
        self.over(true, mean, against, why, Some(stands), true)
    }

    fn over(
        &self,
        better: bool,
        value: f64,
        against: f64,
        why: String,
        stands: Option<Standpoint>,
        earned: bool,
    ) -> Stage {
        let verdict = Verdict {
            better,
            value: self.scale.shown(value),
            against: self.scale.shown(against),
            why,
        };
        Stage::Over(Over {
            verdict,
            stands,
            earned,
        })
    }
}
