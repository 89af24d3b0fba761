//! Plans: all that a simulated run depends on, made from a seed, and small enough to read.

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// Which machine is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The experiment loop.
    Experiment,
    /// The little agent loop.
    Agent,
    /// The little search loop, with several effects in flight.
    Search,
}

/// Where the record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// In memory; fast.
    Memory,
    /// In a store on the disk, with all its syncs.
    Store,
}

/// What happens to effects whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// They are done again.
    Retry,
    /// A person is asked, and says to do them again.
    AskRetry,
    /// A person is asked, and counts them as failed.
    AskFail,
    /// They count as failed.
    Fail,
    /// A person would be asked, but there is none.
    NobodyToAsk,
}

/// What goes wrong in one life of the host. Numbers count from 1; one that is never reached does
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disturbance {
    /// The process dies at that crash point. What it wrote is there.
    Crash(u32),
    /// The power fails before that append is back: what it wrote may be torn or garbled.
    PowerLoss {
        /// Which append.
        append: u32,
        /// Seed of what becomes of the unsynced tail.
        tear: u32,
    },
    /// A signal arrives at that wait; `again` while it is obeyed, too.
    Interrupt {
        /// Which wait.
        wait: u32,
        /// Whether a second one follows.
        again: bool,
    },
    /// The host can't go on at that wait.
    Broken(u32),
    /// A signal arrives at that wait, and the host breaks while it is obeyed.
    InterruptThenBroken(u32),
    /// That append fails.
    WriteFails {
        /// Which.
        append: u32,
        /// Whether it reached the disk all the same.
        reached: bool,
    },
    /// Somebody takes the run over before that append.
    Usurped(u32),
}

/// All that a simulated run depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Which machine.
    pub kind: Kind,
    /// Seed of scripts, times and orders.
    pub seed: u64,
    /// Another seed of times and orders, for the same scripts; none where it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub order: u64,
    /// How long the run is: trials, iterations, levels.
    pub steps: u32,
    /// How many effects may be in flight at once, where the machine can.
    pub width: u32,
    /// What happens to lost effects.
    pub lost: Lost,
    /// Tokens the run may use; unlimited where none.
    pub tokens: Option<u64>,
    /// After how many batches a snapshot is written along.
    pub snapshot_every: u64,
    /// Where the record lies.
    pub medium: Medium,
    /// What goes wrong, one life each.
    pub disturbances: Vec<Disturbance>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands it a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Plan {
    /// The plan of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::of(seed, "plan");
        let kind = random.pick(&[Kind::Experiment, Kind::Agent, Kind::Search]);
        let lost = random.pick(&[
            Lost::Retry,
            Lost::Retry,
            Lost::Retry,
            Lost::AskRetry,
            Lost::AskFail,
            Lost::Fail,
            Lost::NobodyToAsk,
        ]);
        let count = random.below(6);
        Self {
            kind,
            seed,
            order: 0,
            steps: random.between(1, 6) as u32,
            width: random.between(1, 4) as u32,
            lost,
            tokens: random.one_in(3).then(|| random.between(100, 3000)),
            snapshot_every: random.pick(&[1, 2, 3, 7, 1000]),
            medium: Medium::Memory,
            disturbances: (0..count).map(|_| disturbance(&mut random)).collect(),
        }
    }

    /// The same on another medium.
    pub fn on(self, medium: Medium) -> Self {
        Self { medium, ..self }
    }

    /// The same with these disturbances.
    pub fn with(&self, disturbances: Vec<Disturbance>) -> Self {
        Self {
            disturbances,
            ..self.clone()
        }
    }

    /// The same run with nothing going wrong.
    pub fn undisturbed(&self) -> Self {
        self.with(Vec::new()).on(Medium::Memory)
    }

    /// Whether somebody can be asked about lost effects.
    pub fn can_ask(&self) -> bool {
        matches!(self.lost, Lost::AskRetry | Lost::AskFail)
    }

    /// Whether what was lost is always done again, so that nothing is decided otherwise.
    pub fn repeats_what_is_lost(&self) -> bool {
        matches!(self.lost, Lost::Retry | Lost::AskRetry)
    }

    /// Whether the power fails in it.
    pub fn loses_power(&self) -> bool {
        let is_loss =
            |disturbance: &Disturbance| matches!(disturbance, Disturbance::PowerLoss { .. });
        self.disturbances.iter().any(is_loss)
    }

    /// The plan as it is written in a list of known failures.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("BUG: a plan is plain data")
    }

    /// The plan of a line: a seed, or a written plan.
    pub fn of_line(line: &str) -> Result<Self, String> {
        match line.parse::<u64>() {
            Ok(seed) => Ok(Self::of_seed(seed)),
            Err(_) => serde_json::from_str(line).map_err(|error| format!("{error}: {line}")),
        }
    }
}

fn disturbance(random: &mut Random) -> Disturbance {
    // Early ones are likelier: short runs have no late ones.
    let bound = random.pick(&[6, 20, 80, 250]);
    let at = random.between(1, bound) as u32;
    let few = at.div_ceil(4);
    match random.below(10) {
        0..=4 => Disturbance::Crash(at),
        5 => Disturbance::PowerLoss {
            append: few,
            tear: random.below(1 << 20) as u32,
        },
        6 => Disturbance::Interrupt {
            wait: few,
            again: random.one_in(2),
        },
        7 if random.one_in(2) => Disturbance::InterruptThenBroken(few),
        7 => Disturbance::Broken(few),
        8 => Disturbance::WriteFails {
            append: few,
            reached: random.one_in(2),
        },
        _ => Disturbance::Usurped(few),
    }
}
