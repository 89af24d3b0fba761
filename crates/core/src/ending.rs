//! Why invocations and runs end: the closed list of the words that stand in records for it.
//!
//! Everything that tells endings apart (exit statuses, what to type next, whether work is left)
//! matches on [`Reason`], so that a new one can't be forgotten anywhere.

use std::fmt;

use crate::machine::Ending;

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

    /// What is said before an ending's words, where those don't say it by themselves.
    fn label(self, words: &str) -> Option<&'static str> {
        let label = match self {
            // A baseline's words say what it came to.
            Self::Finished if words.starts_with("baseline: ") => return None,
            Self::Finished => "finished",
            Self::TargetReached if words.contains("target was reached") => return None,
            Self::TargetReached => "target reached",
            Self::GaveUp => "gave up",
            Self::Waiting => "it waits for you",
            Self::HostFailed => "the host could not go on",
            Self::WallClock
            | Self::Budget
            | Self::BaselineFailed
            | Self::Interrupted
            | Self::HostDied
            | Self::Idle => return None,
        };
        (!words.starts_with(label)).then_some(label)
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

impl Ending {
    /// The ending on a line of its own, said once. The words alone stand in records; they are told
    /// like this by whoever says how something ended, and nowhere else.
    pub fn sentence(&self) -> String {
        let words = &self.words;
        let label = match self.known() {
            Some(reason) => reason.label(words).map(str::to_owned),
            None => Some(self.reason.replace('_', " ")),
        };
        match label {
            Some(label) if words.is_empty() => label,
            Some(label) => format!("{label}: {words}"),
            None if words.is_empty() => self.reason.replace('_', " "),
            None => words.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_is_said_once() {
        for (reason, words, said) in [
            (
                "finished",
                "2 trials done, 1 kept",
                "finished: 2 trials done, 1 kept",
            ),
            ("finished", "baseline: m 10", "baseline: m 10"),
            (
                "target_reached",
                "target reached: m 5 confirmed",
                "target reached: m 5 confirmed",
            ),
            (
                "target_reached",
                "the target was reached before",
                "the target was reached before",
            ),
            (
                "wall_clock",
                "the wall clock limit of 5 s has passed",
                "the wall clock limit of 5 s has passed",
            ),
            (
                "budget",
                "the budget of steps is used up",
                "the budget of steps is used up",
            ),
            (
                "gave_up",
                "2 trials in a row came to no judgement",
                "gave up: 2 trials in a row came to no judgement",
            ),
            (
                "baseline_failed",
                "the baseline can't be measured: why",
                "the baseline can't be measured: why",
            ),
            ("waiting", "what now?", "it waits for you: what now?"),
            (
                "interrupted",
                "interrupted by SIGINT",
                "interrupted by SIGINT",
            ),
            ("host_died", "its host died", "its host died"),
            (
                "host_failed",
                "the disk is full",
                "the host could not go on: the disk is full",
            ),
            ("idle", "no invocation is open", "no invocation is open"),
            ("of_another_release", "why", "of another release: why"),
            ("wall_clock", "", "wall clock"),
            ("gave_up", "", "gave up"),
        ] {
            assert_eq!(Ending::new(reason, words).sentence(), said);
        }
    }

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
