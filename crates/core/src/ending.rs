//! Why invocations and runs end: the closed list of the words that stand in records for it.
//!
//! Everything that tells endings apart (exit statuses, what to type next, whether work is left)
//! matches on [`Reason`], so that a new one can't be forgotten anywhere.

use std::fmt;

/// Why an invocation or a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// It did what it was for.
    Finished,
    /// The target is reached.
    TargetReached,
    /// The invocation's own wall clock limit has passed.
    WallClock,
    /// An effect doesn't fit the run's budget.
    Budget,
    /// Too many trials in a row came to no judgement.
    GaveUp,
    /// The baseline can't be measured.
    BaselineFailed,
    /// It waits for a person.
    Waiting,
    /// A signal, or a cancellation.
    Interrupted,
    /// The host died, which the next holder of the run found.
    HostDied,
    /// The host couldn't go on: a full disk, a broken repository.
    HostFailed,
    /// No invocation is open; never recorded.
    Idle,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Finished,
        Self::TargetReached,
        Self::WallClock,
        Self::Budget,
        Self::GaveUp,
        Self::BaselineFailed,
        Self::Waiting,
        Self::Interrupted,
        Self::HostDied,
        Self::HostFailed,
        Self::Idle,
    ];

    /// The word in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::TargetReached => "target_reached",
            Self::WallClock => "wall_clock",
            Self::Budget => "budget",
            Self::GaveUp => "gave_up",
            Self::BaselineFailed => "baseline_failed",
            Self::Waiting => "waiting",
            Self::Interrupted => "interrupted",
            Self::HostDied => "host_died",
            Self::HostFailed => "host_failed",
            Self::Idle => "idle",
        }
    }

    /// The reason of that name; none for one that only another release or kind of loop knows.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_one_name_of_its_own() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(Reason::named(reason.name()), Some(reason));
            assert_eq!(reason as usize, index, "ALL lists each once, in order");
        }
        for other in ["", "storage", "Finished", "finished "] {
            assert_eq!(Reason::named(other), None);
        }
    }
}
