//! The exit codes: one closed table, part of what users may rely on.

use loopwright_core::ending::Reason;
use loopwright_core::machine::Ending;

/// How a command ended, as its exit status says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Finished, whatever came of it: also with nothing kept, at the target, with all trials or
    /// the wall clock used up.
    Finished,
    /// A failure of loopwright, of git or of the storage; the run can be resumed.
    Failure,
    /// Refused before anything was spent, or used wrongly.
    Refused,
    /// The baseline can't be measured.
    Baseline,
    /// Gave up: too many trials in a row without a judgement.
    GaveUp,
    /// The loop's budget is used up.
    Budget,
    /// Another process drives the run.
    Held,
    /// The record is damaged, doesn't verify, or doesn't replay.
    Damaged,
    /// It waits for a person.
    Waiting,
    /// Ended by this signal.
    Signal(i32),
}

impl Exit {
    /// The table, for the help text.
    pub const TABLE: &'static str = "\
Exit status:
  0  finished (also with nothing kept, at the target, with all trials or the wall clock used up)
  1  a failure of loopwright, git or the storage; the run can be resumed
  2  refused before anything was spent, or used wrongly
  3  the baseline can't be measured
  4  gave up: too many trials in a row came to no judgement
  5  the loop's budget is used up
  6  another process drives the run
  7  the record is damaged, doesn't verify, or doesn't replay
  8  it waits for a person
  128+N  ended by signal N (130: Ctrl-C)";

    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Finished => 0,
            Self::Failure => 1,
            Self::Refused => 2,
            Self::Baseline => 3,
            Self::GaveUp => 4,
            Self::Budget => 5,
            Self::Held => 6,
            Self::Damaged => 7,
            Self::Waiting => 8,
            Self::Signal(signal) => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(127)),
        }
    }

    /// How an invocation that ended for `reason` ends the command.
    pub fn of_ending(ending: &Ending, signal: Option<i32>) -> Self {
        let Some(reason) = ending.known() else {
            // Of another release: nothing says that it finished.
            return Self::Failure;
        };
        match reason {
            Reason::Finished | Reason::TargetReached | Reason::WallClock => Self::Finished,
            Reason::BaselineFailed => Self::Baseline,
            Reason::GaveUp => Self::GaveUp,
            Reason::Budget => Self::Budget,
            Reason::Waiting => Self::Waiting,
            Reason::HostDied | Reason::HostFailed | Reason::Idle => Self::Failure,
            Reason::Interrupted => signal.map_or(Self::Failure, Self::Signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_table() {
        for exit in [
            Exit::Finished,
            Exit::Failure,
            Exit::Refused,
            Exit::Baseline,
            Exit::GaveUp,
            Exit::Budget,
            Exit::Held,
            Exit::Damaged,
            Exit::Waiting,
        ] {
            let row = format!("\n  {}  ", exit.code());
            assert!(Exit::TABLE.contains(&row), "{exit:?}");
        }
        assert_eq!(Exit::Signal(2).code(), 130);
    }

    #[test]
    fn only_what_finished_exits_with_zero() {
        let code = |reason: &str, signal| Exit::of_ending(&Ending::new(reason, ""), signal).code();
        for (reason, expected) in [
            ("finished", 0),
            ("target_reached", 0),
            ("wall_clock", 0),
            ("baseline_failed", 3),
            ("gave_up", 4),
            ("budget", 5),
            ("waiting", 8),
            ("host_died", 1),
            ("host_failed", 1),
            ("interrupted", 1),
            ("of_another_release", 1),
        ] {
            assert_eq!(code(reason, None), expected, "{reason}");
        }
        assert_eq!(code("interrupted", Some(15)), 143);
        for reason in Reason::ALL {
            let finished = Exit::of_ending(&Ending::because(reason, ""), None) == Exit::Finished;
            let is_end = matches!(
                reason,
                Reason::Finished | Reason::TargetReached | Reason::WallClock
            );
            assert_eq!(finished, is_end, "{reason}");
        }
    }
}
