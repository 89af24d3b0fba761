//! A duel: fresh runs of candidate and incumbent in turn, in the order `C I | I C | C I …`, so that
//! a drift of the machine meets both alike. Each two runs are a pair; what pairs say decides, what
//! came before them doesn't.

use serde::{Deserialize, Serialize};

use super::super::Arm;
use super::exact;
use super::settings::Keep;
use super::standing::Standing;
use super::statistics::{CLIP, t_to_z, upper_quantile};

/// One candidate's duel, between readings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Duel {
    /// The candidate's first draw. It chose the duel, so it proves nothing in it.
    #[serde(with = "exact")]
    pub(super) first: f64,
    /// The doubt that is at stake.
    #[serde(with = "exact")]
    pub(super) stake: f64,
    /// The least improvement that counts.
    #[serde(with = "exact")]
    pub(super) margin: f64,
    /// Readings so far that belong to a pair.
    step: u32,
    /// The open pair's first reading.
    #[serde(with = "exact")]
    half: Option<f64>,
    /// The candidate's readings in the duel.
    #[serde(with = "exact")]
    pub(super) candidate_sum: f64,
    pub(super) candidates: u32,
    /// The incumbent's.
    #[serde(with = "exact")]
    pub(super) incumbent_sum: f64,
    pub(super) incumbents: u32,
    /// By how much the candidate was better, beyond the margin, in all pairs, outliers cut off.
    #[serde(with = "exact")]
    pub(super) pair_sum: f64,
    pub(super) pairs: u32,
    /// In how many of them it was better.
    pub(super) won: u32,
    /// Whether a failed run of the candidate was repeated.
    pub(super) retried: bool,
}

/// What a reading makes of a duel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing yet.
    Open,
    /// The candidate is better.
    Better,
    /// It no longer looks it.
    Unpromising,
    /// The pairs say that it is worse.
    Worse,
    /// All its pairs are spent.
    Spent,
}

impl Duel {
    pub(super) fn new(first: f64, stake: f64, margin: f64) -> Self {
        Self {
            first,
            stake,
            margin,
            step: 0,
            half: None,
            candidate_sum: 0.0,
            candidates: 0,
            incumbent_sum: 0.0,
            incumbents: 0,
            pair_sum: 0.0,
            pairs: 0,
            won: 0,
            retried: false,
        }
    }

    /// Whose turn it is.
    pub(super) fn turn(&self) -> Arm {
        if matches!(self.step % 4, 1 | 2) {
            Arm::Incumbent
        } else {
            Arm::Candidate
        }
    }

    /// Readings so far, all told.
    pub(super) fn readings(&self) -> u32 {
        self.candidates + self.incumbents
    }

    /// The mean of the candidate's readings in the duel, or its first draw where there are none.
    pub(super) fn candidate_mean(&self) -> f64 {
        if self.candidates == 0 {
            self.first
        } else {
            self.candidate_sum / f64::from(self.candidates)
        }
    }

    /// What the candidate stood against: the mean of the incumbent's readings in the duel, or where it
    /// is remembered to stand.
    pub(super) fn against(&self, standing: &Standing) -> f64 {
        if self.incumbents == 0 {
            standing.reference.value()
        } else {
            self.incumbent_sum / f64::from(self.incumbents)
        }
    }

    /// A run failed: its pair is begun anew, because two halves of one have to follow each other.
    pub(super) fn discard_half(&mut self) {
        if self.half.take().is_some() {
            self.step -= 1;
        }
    }

    /// Counts a reading of the arm whose turn it is; whether it closes a pair.
    pub(super) fn count(&mut self, arm: Arm, reading: f64) {
        self.step = self.step.wrapping_add(1);
        match arm {
            Arm::Candidate => {
                self.candidate_sum += reading;
                self.candidates += 1;
            }
            Arm::Incumbent => {
                self.incumbent_sum += reading;
                self.incumbents += 1;
            }
        }
    }

    /// Puts a counted reading into its pair; by how much the candidate was better in it, beyond the
    /// margin, where that closes it.
    pub(super) fn pair(&mut self, arm: Arm, reading: f64) -> Option<f64> {
        let Some(half) = self.half.take() else {
            self.half = Some(reading);
            return None;
        };
        let better_by = match arm {
            Arm::Candidate => half - reading,
            Arm::Incumbent => reading - half,
        };
        Some(better_by - self.margin)
    }

    /// Learns from a closed pair: the noise from how it differs from those before it, and the
    /// candidate's advantage.
    pub(super) fn learn(&mut self, difference: f64, standing: &mut Standing) {
        let before = standing.deviation();
        if self.pairs >= 1 {
            let pairs = f64::from(self.pairs);
            let off = difference - self.pair_sum / pairs;
            standing
                .noise
                .add(off * off / 2.0 * pairs / (pairs + 1.0), before);
        }
        let counted = match before {
            Some(deviation) if standing.noise.is_enough() => {
                let most = CLIP * deviation * std::f64::consts::SQRT_2;
                difference.min(most).max(-most)
            }
            _ => difference,
        };
        self.pair_sum += counted;
        self.pairs += 1;
        self.won += u32::from(difference > 0.0);
    }

    /// Whether the pairs so far are proof enough; asked when one was closed.
    pub(super) fn is_proven(&self, rule: &Keep, standing: &Standing) -> bool {
        let Some(deviation) = standing.deviation() else {
            return false;
        };
        let pairs = f64::from(self.pairs);
        let mean = self.pair_sum / pairs;
        let z = if deviation > 0.0 {
            let t = mean / (deviation * (2.0 / pairs).sqrt());
            t_to_z(t, standing.freedom())
        } else if mean > 0.0 {
            99.0
        } else {
            -99.0
        };
        z > upper_quantile((self.stake * rule.look()).min(0.5))
    }

    /// Whether all readings together still look promising against the remembered incumbent.
    pub(super) fn is_unpromising(&self, standing: &Standing) -> bool {
        let Some(deviation) = standing.deviation().filter(|deviation| *deviation > 0.0) else {
            return false;
        };
        if standing.freedom() < 2.0 || self.candidates == 0 {
            return false;
        }
        let runs = f64::from(self.candidates) + 1.0;
        let reference = &standing.reference;
        let ahead = reference.value() - self.margin - (self.first + self.candidate_sum) / runs;
        let error = deviation * (1.0 / reference.weight() + 1.0 / runs).sqrt();
        ahead / error < 0.75 + 0.3 * libm::log(runs / 2.0)
    }

    /// What the readings so far come to; `closed` says that the last one closed a pair.
    pub(super) fn look(&self, closed: bool, rule: &Keep, standing: &Standing) -> Turn {
        if closed && self.is_proven(rule, standing) {
            return Turn::Better;
        }
        if self.is_unpromising(standing) {
            return Turn::Unpromising;
        }
        if closed && self.pairs >= 4 && self.pair_sum < 0.0 {
            return Turn::Worse;
        }
        if closed && self.pairs >= rule.max_pairs {
            return Turn::Spent;
        }
        Turn::Open
    }
}
