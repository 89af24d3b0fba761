//! What the file system says about a file: enough to know it was not touched since.
//!
//! The change time can't be set by a program, so equal stamps mean equal content, except for
//! files stamped so soon after a change that another change could carry the same time: those
//! are *racy* and are read again.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Stat};

/// Two ticks of the slowest usual kernel clock.
const TICK_NS: i64 = 20_000_000;

/// For file systems that keep whole seconds only.
const COARSE_NS: i64 = 2_000_000_000;

/// The facts that change when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) inode: u64,
    pub(crate) changed_ns: i64,
    pub(crate) modified_ns: i64,
    pub(crate) size: u64,
    pub(crate) mode: u32,
}

impl Stamp {
    #[allow(clippy::cast_lossless, clippy::unnecessary_cast)] // field types differ by platform
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            inode: stat.st_ino,
            changed_ns: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            modified_ns: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            size: stat.st_size as u64,
            mode: stat.st_mode,
        }
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// True if a change right after this stamp was taken could go unseen.
    pub(crate) fn is_racy(&self, taken_ns: i64) -> bool {
        let slack = if self.changed_ns % 1_000_000_000 == 0 {
            COARSE_NS
        } else {
            TICK_NS
        };
        self.changed_ns >= taken_ns - slack
    }
}

/// Now, on the clock file systems stamp with.
pub(crate) fn now_ns() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as i64)
}
