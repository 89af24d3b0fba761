//! The exit codes: one closed table, part of what users may rely on.

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
    pub fn of_ending(reason: &str, signal: Option<i32>) -> Self {
        match reason {
            "baseline_failed" => Self::Baseline,
            "gave_up" => Self::GaveUp,
            "budget" => Self::Budget,
            "waiting" => Self::Waiting,
            "storage" | "host_died" => Self::Failure,
            "interrupted" => signal.map_or(Self::Failure, Self::Signal),
            _ => Self::Finished,
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
}
