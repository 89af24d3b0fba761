//! How long a supervisor is waited for.
//!
//! It keeps the command's limit itself and ends the family, so that nobody here has to. But it is a
//! process as any other: whoever may signal it can stop it, and then no limit comes and no stop is
//! heard. What it was told to do by when is known here too, and one that doesn't answer a little
//! after that is dealt with from outside (see `reader`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use crate::command::Command;
use crate::running::StopHow;

/// What a supervisor that goes about its work takes to end a family and to say so, on a busy machine.
const MARGIN: Duration = Duration::from_secs(1);

/// By when there has to be an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) at: Instant,
    pub(crate) why: Why,
}

/// What is to be answered by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The command's time is up.
    Limit,
    /// It was to be stopped.
    Stop,
    /// The report is there; only the supervisor's own end is not.
    Report,
}

/// By when a supervisor has to answer, and a bell for whoever waits for that.
#[derive(Debug)]
pub(crate) struct Patience {
    /// From its start to the end of all it may still do after its limit.
    whole: Option<Duration>,
    grace: Duration,
    due: Mutex<Option<Due>>,
    bell: OwnedFd,
}

impl Patience {
    pub(crate) fn new(command: &Command) -> io::Result<Self> {
        let grace = command.grace;
        let after_limit = grace.saturating_add(command.linger);
        Ok(Self {
            whole: command
                .time_limit
                .map(|limit| limit.saturating_add(after_limit)),
            grace,
            due: Mutex::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// The command was let go: its limit counts from now on.
    pub(crate) fn released(&self) {
        if let Some(whole) = self.whole {
            self.expect(whole, Why::Limit);
        }
    }

    /// It was asked to stop; whoever waits learns of it.
    pub(crate) fn stop_asked(&self, how: StopHow) {
        let grace = match how {
            StopHow::Gently => self.grace,
            StopHow::AtOnce => Duration::ZERO,
        };
        self.expect(grace, Why::Stop);
        // A bell that has been rung for ever is rung.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// The report has come.
    pub(crate) fn reported(&self) {
        self.expect(Duration::ZERO, Why::Report);
    }

    pub(crate) fn due(&self) -> Option<Due> {
        *self.lock()
    }

    /// Readable after a stop was asked for, until it is hushed.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    pub(crate) fn hush(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    /// The first reason stays where a later one gives more time. What can't be counted never comes.
    fn expect(&self, after: Duration, why: Why) {
        let at = Instant::now().checked_add(after.saturating_add(MARGIN));
        let Some(at) = at else { return };
        let mut due = self.lock();
        if due.is_none_or(|due| at < due.at) {
            *due = Some(Due { at, why });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Due>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(limit: Duration, grace: Duration) -> Patience {
        let mut command = Command::shell("true", "/");
        (command.time_limit, command.grace) = (Some(limit), grace);
        Patience::new(&command).unwrap()
    }

    #[test]
    fn whatever_comes_first_is_waited_for() {
        let patience = of(Duration::from_secs(60), Duration::from_secs(5));
        assert_eq!(patience.due(), None);
        patience.released();
        let by_limit = patience.due().unwrap();
        assert_eq!(by_limit.why, Why::Limit);
        let left = by_limit.at - Instant::now();
        assert!(left > Duration::from_secs(64), "{left:?}");
        patience.stop_asked(StopHow::Gently);
        let by_stop = patience.due().unwrap();
        assert!(by_stop.why == Why::Stop && by_stop.at < by_limit.at);
        patience.stop_asked(StopHow::AtOnce);
        let hurried = patience.due().unwrap();
        assert!(hurried.at < by_stop.at);
        // More time is not given.
        patience.stop_asked(StopHow::Gently);
        patience.released();
        assert_eq!(patience.due(), Some(hurried));
    }

    #[test]
    fn a_limit_for_ever_never_comes() {
        let patience = of(Duration::MAX, Duration::MAX);
        patience.released();
        assert_eq!(patience.due(), None);
    }
}
