//! Streams of readings that follow from their number alone, in plain arithmetic, so that they are
//! the same on every platform: noise of many shapes, drifts, rounding, settings.

use loopwright_core::experiment::rule::Arm;
use loopwright_core::experiment::rule::keep::{Keep, KnownNoise, Scale};
use loopwright_core::metric::Real;
use loopwright_core::spec::Goal;
use serde::Serialize;

use crate::bench::{Bench, real};

/// Dice whose throws follow from their seed alone (SplitMix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Mixed, or the throws of one seed would be those of the one before it, less the first.
        Self(mixed(seed))
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// From 0 up to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About standard normal: the sum of twelve uniform numbers.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.bits() % from.len() as u64) as usize]
    }
}

fn mixed(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The shape of one run's noise, of standard deviation 1 or so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    Normal,
    /// Now and then far off, one way (the sign).
    Outliers(f64),
    /// Skewed and heavy.
    Cubed,
    /// Nearly always nothing.
    Rare,
    None,
}

impl Noise {
    pub fn draw(self, dice: &mut Dice) -> f64 {
        match self {
            Self::Normal => dice.normal(),
            Self::Outliers(sign) => {
                let lucky = dice.unit() < 0.05;
                dice.normal() + if lucky { 6.0 * sign } else { 0.0 }
            }
            Self::Cubed => {
                let x = dice.normal();
                x * x * x / 3.9
            }
            Self::Rare => {
                if dice.unit() < 0.03 {
                    dice.normal()
                } else {
                    0.0
                }
            }
            Self::None => 0.0,
        }
    }
}

/// How the machine moves over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drift {
    None,
    /// So much per run.
    Linear(f64),
    /// A random walk.
    Walk,
    /// Sudden steps.
    Steps,
}

impl Drift {
    pub fn step(self, dice: &mut Dice) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Linear(by) => by,
            Self::Walk => 0.2 * dice.normal(),
            Self::Steps => {
                if dice.unit() < 1.0 / 40.0 {
                    3.0 * dice.normal()
                } else {
                    0.0
                }
            }
        }
    }
}

/// One loop's readings: what each run adds to the mean of its tree, and what each candidate does.
#[derive(Clone, Debug, Serialize)]
pub struct Stream {
    pub doubt: f64,
    pub pairs: u32,
    pub first_bar: f64,
    pub coarse: bool,
    pub identical: u32,
    /// Readings taken beforehand.
    pub noise: Vec<f64>,
    pub level: f64,
    /// What readings are rounded to; 0 for nothing.
    pub quantum: f64,
    /// By how much each candidate lowers the mean; taken in turn.
    pub effects: Vec<f64>,
    pub runs: Vec<f64>,
}

impl Stream {
    /// The stream of that number.
    pub fn of(number: u64) -> Self {
        let mut dice = Dice::new(number);
        let shape = dice.pick(&[
            Noise::Normal,
            Noise::Normal,
            Noise::Outliers(1.0),
            Noise::Outliers(-1.0),
            Noise::Cubed,
            Noise::Rare,
            Noise::None,
        ]);
        let drift = dice.pick(&[
            Drift::None,
            Drift::None,
            Drift::None,
            Drift::Linear(0.05),
            Drift::Linear(-0.05),
            Drift::Walk,
            Drift::Steps,
        ]);
        let quantum = dice.pick(&[0.0, 0.0, 0.0, 1.0, 0.25]);
        let coarse = quantum > 0.0 && dice.unit() < 0.5;
        let doubt = dice.pick(&[0.02, 0.05, 0.1, 0.1, 0.1, 0.2, 0.4, 1.0]);
        let spread = dice.pick(&[1.0, 1.0, 0.001, 1000.0]);
        let size = dice.pick(&[0.5, 1.0, 2.0, 4.0]);
        let (helps, neutral) = (dice.pick(&[0.0, 0.1, 0.3]), dice.pick(&[0.3, 0.6]));
        let runs = 40 + dice.bits() % 100;
        let mut level = 0.0;
        let runs = (0..runs).map(|_| {
            level += drift.step(&mut dice);
            (level + shape.draw(&mut dice)) * spread
        });
        let runs = runs.collect();
        let mut effect = || match dice.unit() {
            at if at < helps => size * spread,
            at if at < helps + neutral => 0.0,
            _ => -size * spread,
        };
        let effects = (0..70).map(|_| effect()).collect();
        let known = dice.pick(&[0, 0, 0, 0, 2, 5, 8]);
        Self {
            doubt,
            pairs: dice.pick(&[24, 24, 24, 24, 40, 16, 8, 4, 2, 1]),
            first_bar: if doubt >= 0.4 { 0.8 } else { 0.5 },
            coarse,
            identical: if coarse { 4 } else { 2 },
            noise: (0..known).map(|_| shape.draw(&mut dice) * spread).collect(),
            level: dice.pick(&[0.0, 10.0, -3.0, 1e4]) * spread,
            quantum: quantum * spread,
            effects,
            runs,
        }
    }

    /// The rule that it is judged by.
    pub fn rule(&self) -> Keep {
        let readings: Vec<Real> = self.noise.iter().map(|value| real(*value)).collect();
        let scale = Scale {
            goal: Goal::Minimize,
            ratio: false,
        };
        Keep {
            doubt: real(self.doubt),
            max_pairs: self.pairs,
            coarse: self.coarse,
            noise: KnownNoise::of(&readings, scale).unwrap(),
            ..Keep::default()
        }
    }

    /// The trace of the loop that judges it, as the peer writes it: a letter per run, `+` behind the
    /// run that led to a keep and `-` behind the one that led to a revert.
    pub fn trace(&self, mut bench: Bench) -> (String, [f64; 5]) {
        let turned = bench.goal == Goal::Maximize;
        let (mut mean, mut trial, mut trace) = (self.level, 0, String::new());
        for run in &self.runs {
            let effect = self.effects[trial % self.effects.len()];
            let (letter, at) = match bench.want() {
                Arm::Incumbent => ('i', mean),
                Arm::Candidate => ('c', mean - effect),
            };
            trace.push(letter);
            let mut value = at + run;
            if self.quantum > 0.0 {
                value = (value / self.quantum + 0.5).floor() * self.quantum;
            }
            let Some(kept) = bench.feed(if turned { -value } else { value }) else {
                continue;
            };
            trial += 1;
            trace.push(if kept { '+' } else { '-' });
            if kept {
                mean -= effect;
            }
        }
        (trace, bench.stands())
    }
}
