//! What is commanded of an experiment run, one order after the other, and how far it has come.

use loopwright_core::batch::Batch;
use loopwright_core::ending::Reason;
use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{Decided, Mode, Outcome, RetryOf, kind};
use loopwright_core::kernel::{EndedBy, InvocationEnded, kind as kernel_kind};

use crate::laws;
use crate::random::Random;

/// One command as a person gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// What for.
    pub mode: Mode,
    /// How many trials are to be decided.
    pub trials: u64,
    /// Which harness it finds.
    pub harness: u64,
    /// On which branch.
    pub branch: &'static str,
    /// The target, in tenths of the metric.
    pub target: Option<u64>,
}

/// The orders of a seed.
pub fn orders(random: &mut Random, trials: u64) -> Vec<Order> {
    let mut harness = 1;
    let mut target = None;
    let count = random.between(1, 4);
    (0..count)
        .map(|index| {
            harness += u64::from(index > 0 && random.one_in(4));
            if random.one_in(4) {
                target = Some(random.between(200, 900));
            }
            let mode = match random.below(8) {
                0 => Mode::Baseline,
                1 if index > 0 => Mode::Retry(RetryOf {
                    trial: 1,
                    commit: "commit-of-old".to_owned(),
                }),
                _ => Mode::Run,
            };
            Order {
                trials: if mode == Mode::Run {
                    random.between(1, trials)
                } else {
                    1
                },
                mode,
                harness,
                branch: random.pick(&["main", "main", "main", "side"]),
                target,
            }
        })
        .collect()
}

/// How far the orders have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The order in work.
    pub order: usize,
    /// How many trials were decided for it.
    pub decided: u64,
}

impl Progress {
    /// What the record says. An order is carried out when an invocation for it ends by itself.
    pub fn of(batches: &[Batch], orders: &[Order]) -> Self {
        let mut progress = Self::default();
        let mut is_open = false;
        for event in laws::events(batches) {
            match event.kind.as_str() {
                kernel_kind::INVOCATION_BEGUN => is_open = true,
                kernel_kind::INVOCATION_ENDED => {
                    is_open = false;
                    let ended = laws::body::<InvocationEnded>(event);
                    let by_itself = ended.is_some_and(|ended| {
                        ended.by == EndedBy::Machine
                            && ended.ending.known() != Some(Reason::Waiting)
                    });
                    if by_itself {
                        progress.advance();
                    }
                }
                kind::TRIAL_DECIDED => {
                    let Some(order) = orders.get(progress.order) else {
                        continue;
                    };
                    let decided = laws::body::<Decided>(event);
                    let decided = decided.as_ref();
                    if decided.is_some_and(|decided| counts(order, decided)) {
                        progress.decided += 1;
                    }
                    // A baseline leaves nothing to be done after it; a trial may have reached the
                    // target, which is then to be confirmed. After a baseline that can't be had,
                    // nobody goes on.
                    let is_done = progress.decided >= order.trials;
                    let has_none = decided.is_some_and(|decided| {
                        decided.origin == Origin::Baseline && decided.outcome != Outcome::Kept
                    });
                    if !is_open && (has_none || is_done && order.mode == Mode::Baseline) {
                        progress.advance();
                    }
                }
                _ => {}
            }
        }
        progress
    }

    fn advance(&mut self) {
        self.order += 1;
        self.decided = 0;
    }
}

fn counts(order: &Order, decided: &Decided) -> bool {
    match order.mode {
        Mode::Run => decided.origin != Origin::Baseline,
        Mode::Baseline => decided.origin == Origin::Baseline,
        Mode::Retry(_) => matches!(decided.origin, Origin::Retry { .. }),
    }
}
