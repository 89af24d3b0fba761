//! What the file system says about a file, and when that may be believed.
//!
//! A stamp taken of a file whose content is known proves later that the content is still the
//! same, because nobody can set a change time (ctime) by hand. One gap: file systems count
//! time in ticks of some milliseconds, so a file changed again within the tick of its stamp
//! looks unchanged. Such a stamp is *racy*, and content is compared instead of believed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

const SECOND_NS: i64 = 1_000_000_000;
/// Longer than two ticks of the slowest kernel clock (100 a second).
const TICK_NS: i64 = 25_000_000;

/// The identity of one state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) mtime_ns: i64,
    pub(crate) ctime_ns: i64,
}

impl Stamp {
    /// The stamp of a file as it stands.
    #[expect(
        clippy::unnecessary_cast,
        reason = "the widths of these fields differ between platforms"
    )]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            mode: stat.st_mode as u32,
            mtime_ns: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime_ns: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    /// True if a change made after `known_at_ns` could leave this very stamp.
    pub(crate) fn is_racy(&self, known_at_ns: i64) -> bool {
        // A change time on a full second is the mark of a file system that has no finer ones.
        let slack_ns = if self.ctime_ns % SECOND_NS == 0 {
            2 * SECOND_NS
        } else {
            TICK_NS
        };
        self.ctime_ns.saturating_add(slack_ns) > known_at_ns
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(SECOND_NS).saturating_add(rest)
}

/// The wall clock, in nanoseconds since 1970.
pub(crate) fn now_ns() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
        })
}

/// Returns when the wall-clock second of `moment_ns` is over for the file system too; at once
/// if it already is. Says how long that took.
pub(crate) fn wait_out_second(moment_ns: i64) -> Duration {
    let over_ns = (moment_ns / SECOND_NS + 1) * SECOND_NS + TICK_NS;
    let mut waited = Duration::ZERO;
    loop {
        let left_ns = over_ns - now_ns();
        // A clock that was set back must not stop the loop for longer than the rule is worth.
        if left_ns <= 0 || waited > Duration::from_secs(3) {
            return waited;
        }
        let pause = Duration::from_nanos(left_ns.clamp(0, SECOND_NS + TICK_NS) as u64);
        std::thread::sleep(pause);
        waited += pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(ctime_ns: i64) -> Stamp {
        Stamp {
            inode: 1,
            size: 1,
            mode: 0o100_644,
            mtime_ns: 0,
            ctime_ns,
        }
    }

    #[test]
    fn young_stamps_are_racy() {
        let base = 5 * SECOND_NS + 7;
        assert!(stamp(base).is_racy(base));
        assert!(stamp(base).is_racy(base + 4_000_000));
        assert!(!stamp(base).is_racy(base + 40_000_000));
        assert!(stamp(5 * SECOND_NS).is_racy(6 * SECOND_NS));
        assert!(stamp(base + SECOND_NS).is_racy(base), "clock set back");
    }

    #[test]
    fn waiting_ends_after_the_second() {
        let moment = now_ns();
        wait_out_second(moment);
        assert!(now_ns() / SECOND_NS > moment / SECOND_NS);
        assert_eq!(wait_out_second(moment - 3 * SECOND_NS), Duration::ZERO);
    }
}
