//! What the simulator looks for: a law of the engine that was broken.

use serde::Serialize;

/// The laws that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Nothing panics.
    NoPanic,
    /// The driver goes on in what a machine, a store or a role may do.
    GoesOn,
    /// A run comes to its end, in a bounded number of steps.
    ComesToItsEnd,
    /// What was announced is durable before it is performed.
    CommitThenAct,
    /// Nothing settled is performed again.
    SettledOnce,
    /// An attempt is performed once, and a repeat is the next attempt of the same effect.
    AttemptsInOrder,
    /// No more is repeated than was in flight when something was lost.
    FewRepeats,
    /// A batch whose append returned is there.
    Durable,
    /// Batches are a chain, events have the ids of their bytes.
    Chain,
    /// A snapshot gives what folding everything gives.
    Snapshot,
    /// Turning the record again gives the same bytes.
    Replay,
    /// The state stays small.
    SmallState,
    /// Reserved calls never exceed a budget.
    Budget,
    /// Whatever ended has a reason.
    Reasons,
    /// Time never goes backwards in the record.
    Time,
    /// A disturbed run decides as an undisturbed one.
    SameDecisions,
    /// A disturbed run comes to the state of an undisturbed one.
    SameState,
    /// The same plan gives the same record.
    Deterministic,
    /// Who was shut out can't write.
    Fenced,
    /// What was used is booked once, and all of it.
    Books,
    /// The wall clock is what the times of events say.
    Clock,
    /// What comes too late is not recorded, and said to be late.
    Late,
    /// No question is open that nothing waits for.
    Questions,
    /// What is kept doesn't grow.
    Memory,
}

/// A law that was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{law:?}: {words}")]
pub struct Violation {
    /// The law.
    pub law: Law,
    /// How.
    pub words: String,
}

impl Violation {
    /// A violation.
    pub fn new(law: Law, words: impl Into<String>) -> Self {
        Self {
            law,
            words: words.into(),
        }
    }

    /// Leaves the simulated life at once, from where no error can be returned.
    pub fn throw(law: Law, words: impl Into<String>) -> ! {
        std::panic::resume_unwind(Box::new(Self::new(law, words)))
    }
}

/// Fails with `words` unless `holds`.
pub fn ensure(holds: bool, law: Law, words: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds {
        Ok(())
    } else {
        Err(Violation::new(law, words()))
    }
}
