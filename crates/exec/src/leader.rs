//! The loop that starts the command and outlives its family.
//!
//! It runs in the supervisor itself or, where there is a PID namespace, in that
//! namespace's first process. It waits for four things at once: a child's end,
//! a word from the engine, the engine's end, and the next deadline; and comes
//! back when no child is left.
//!
//! ```text
//!            the command ends            linger over           grace over
//!  Running ───────────────────► Lingering ─────────► Terminating ─────────► Killing
//!     └──────────── limit, gentle stop ──────────────────┘                     ▲
//!     └──────────── stop at once, the engine's end ────────────────────────────┘
//! ```

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::Signal;

use crate::family::Family;
use crate::finished::{Finished, Leftover};
use crate::protocol::{End, Fence, News, Outcome, Report, Request, STOP_AT_ONCE};
use crate::sys::{self, Reaped, Status};

/// The most time processes get that a finished command left behind: nobody
/// waits for their work.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);

/// How often killing is repeated: in a tree, processes may be started while
/// their parents are being killed.
const KILL_AGAIN: Duration = Duration::from_millis(5);

/// When a tree's unreachable members (set-user-id, hung in the kernel) are left
/// behind. A namespace's are waited for, as the kernel would.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// What the supervisor prepared.
pub(crate) struct Preparation<'a> {
    pub(crate) control: BorrowedFd<'static>,
    pub(crate) request: &'a Request,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) family: Family,
    pub(crate) fence: Fence,
    /// The domain the command enters, where signals are scoped.
    pub(crate) scope: Option<OwnedFd>,
    /// A variable that marks the family, where it isn't a namespace.
    pub(crate) mark: Option<(&'static str, String)>,
}

/// Runs the command, ends its family and reports to the engine.
pub(crate) fn lead(preparation: Preparation<'_>) {
    let control = preparation.control;
    let fence = preparation.fence.clone();
    let news = match run(preparation) {
        Ok(Some(outcome)) => News::Finished(outcome),
        // The engine is dead: nobody listens.
        Ok(None) => return,
        Err(reason) => News::NotStarted { reason },
    };
    send(control, &Report { fence, news });
}

/// Sends a report. An engine that is gone can't be told anything.
pub(crate) fn send(control: BorrowedFd<'_>, report: &Report) {
    let message = report.encode();
    let mut rest = message.as_slice();
    while !rest.is_empty() {
        match rustix::net::send(control, rest, SendFlags::NOSIGNAL) {
            Ok(sent) => rest = &rest[sent..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn run(preparation: Preparation<'_>) -> Result<Option<Outcome>, String> {
    let started = Instant::now();
    let main = match spawn(&preparation, &preparation.request.argv)? {
        Err(_) if !preparation.request.otherwise.is_empty() => {
            spawn(&preparation, &preparation.request.otherwise)?
        }
        spawned => spawned,
    };
    let Preparation {
        control,
        request,
        family,
        ..
    } = preparation;
    let main = main.map_err(|error| why_not(request, &error))?;
    // Only now: the command would inherit the blocked SIGCHLD. If it has ended
    // already, the first look finds it.
    let child_ends = sys::child_signal_fd().map_err(|error| {
        family.signal(Signal::KILL);
        format!("the supervisor can't watch its children: {error}")
    })?;
    let leader = Leader {
        control,
        child_ends,
        request,
        family,
        main_pid: main.id() as i32,
        main_status: None,
        started,
        ended: None,
        cause: None,
        phase: Phase::Running,
        leftovers: Vec::new(),
        engine_is_dead: false,
    };
    Ok(leader.lead())
}

/// Starts these words; the inner error is the system's.
fn spawn(preparation: &Preparation<'_>, argv: &[OsString]) -> Result<io::Result<Child>, String> {
    let copy = |descriptor: &Option<OwnedFd>| {
        let copied = descriptor.as_ref().map(OwnedFd::try_clone).transpose();
        copied.map_err(|error| format!("the supervisor can't copy a descriptor: {error}"))
    };
    let mut command = command(preparation.request, argv, copy(&preparation.stdin)?)?;
    if let Some((name, value)) = &preparation.mark {
        command.env(name, value);
    }
    if let Some(scope) = copy(&preparation.scope)? {
        sys::enter_scope_before_exec(&mut command, scope);
    }
    Ok(command.spawn())
}

/// The command for the standard library, which starts it without copying this
/// process where it can.
fn command(
    request: &Request,
    argv: &[OsString],
    stdin: Option<OwnedFd>,
) -> Result<Command, String> {
    use std::os::unix::process::CommandExt;
    let (program, arguments) = argv
        .split_first()
        .ok_or("the command is empty: it names no program")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&request.cwd);
    if !request.env.inherit {
        command.env_clear();
    }
    for name in &request.env.remove {
        command.env_remove(name);
    }
    command.envs(&request.env.set);
    command.stdin(stdin.map_or_else(Stdio::null, Stdio::from));
    // `kill 0` is a common farewell: it must not reach the supervisor.
    command.process_group(0);
    Ok(command)
}

fn why_not(request: &Request, error: &io::Error) -> String {
    let cwd = request.cwd.display();
    if !request.cwd.is_dir() {
        return format!("its working directory {cwd} is not there");
    }
    let program = request.argv.first().map(|word| word.display().to_string());
    format!(
        "can't run {} in {cwd}: {error}",
        program.unwrap_or_default()
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Lingering { until: Instant },
    Terminating { until: Instant },
    Killing { since: Instant },
}

struct Leader<'a> {
    control: BorrowedFd<'static>,
    child_ends: OwnedFd,
    request: &'a Request,
    family: Family,
    main_pid: i32,
    main_status: Option<Status>,
    started: Instant,
    ended: Option<Instant>,
    /// Why the command is being ended, if not by itself.
    cause: Option<End>,
    phase: Phase,
    leftovers: Vec<Leftover>,
    engine_is_dead: bool,
}

impl Leader<'_> {
    fn lead(mut self) -> Option<Outcome> {
        while self.reap() {
            let now = Instant::now();
            self.advance(now);
            if self.gives_up(now) {
                self.name_survivors();
                break;
            }
            self.wait(now);
        }
        (!self.engine_is_dead).then(|| self.outcome())
    }

    /// Collects the dead; gives whether anybody is left.
    fn reap(&mut self) -> bool {
        loop {
            match sys::reap_one() {
                Ok(Reaped::One(pid, status)) => {
                    if pid == self.main_pid && self.main_status.is_none() {
                        self.main_status = Some(status);
                        self.ended = Some(Instant::now());
                    }
                }
                Ok(Reaped::NoneYet) => return true,
                Ok(Reaped::NoChildren) | Err(_) => return false,
            }
        }
    }

    /// Takes the steps that are due.
    fn advance(&mut self, now: Instant) {
        match self.phase {
            Phase::Running if self.main_status.is_some() => {
                self.phase = Phase::Lingering {
                    until: later(now, self.request.linger),
                };
                self.advance(now);
            }
            Phase::Running if self.limit().is_some_and(|limit| now >= limit) => {
                self.cause = Some(End::TimedOut);
                self.terminate(now, self.request.grace);
            }
            Phase::Lingering { until } if now >= until => self.end_leftovers(now),
            Phase::Terminating { until } if now >= until => self.kill(now),
            Phase::Killing { .. } => self.family.signal(Signal::KILL),
            _ => {}
        }
    }

    fn limit(&self) -> Option<Instant> {
        let limit = self.request.time_limit?;
        self.started.checked_add(limit)
    }

    fn end_leftovers(&mut self, now: Instant) {
        self.name_leftovers();
        self.terminate(now, self.request.grace.min(LEFTOVER_GRACE));
    }

    fn name_leftovers(&mut self) {
        let members = self.family.members().into_iter();
        self.leftovers = members
            .take(Finished::MAX_LEFTOVERS)
            .map(|process| Leftover {
                pid: process.pid as u32,
                name: process.name,
                ended: true,
            })
            .collect();
    }

    fn terminate(&mut self, now: Instant, grace: Duration) {
        if grace.is_zero() {
            return self.kill(now);
        }
        self.phase = Phase::Terminating {
            until: later(now, grace),
        };
        self.family.signal(Signal::TERM);
        // A stopped process can't end well before it goes on.
        self.family.signal(Signal::CONT);
    }

    fn kill(&mut self, now: Instant) {
        self.phase = Phase::Killing { since: now };
        self.family.signal(Signal::KILL);
    }

    fn gives_up(&self, now: Instant) -> bool {
        matches!(self.phase, Phase::Killing { since }
            if self.family == Family::Tree && now >= later(since, GIVE_UP_AFTER))
    }

    fn name_survivors(&mut self) {
        let survivors = self.family.members();
        for leftover in &mut self.leftovers {
            leftover.ended = !survivors
                .iter()
                .any(|process| process.pid as u32 == leftover.pid);
        }
        for process in survivors {
            if !self
                .leftovers
                .iter()
                .any(|known| known.pid == process.pid as u32)
            {
                self.leftovers.push(Leftover {
                    pid: process.pid as u32,
                    name: process.name,
                    ended: false,
                });
            }
        }
    }

    /// Waits for the next thing to happen.
    fn wait(&mut self, now: Instant) {
        let deadline = match self.phase {
            Phase::Running => self.limit(),
            Phase::Lingering { until } | Phase::Terminating { until } => Some(until),
            Phase::Killing { .. } => Some(now + KILL_AGAIN),
        };
        let timeout = deadline.map(|deadline| timespec(deadline.saturating_duration_since(now)));
        let children = PollFd::new(&self.child_ends, PollFlags::IN);
        let control = PollFd::from_borrowed_fd(self.control, PollFlags::IN);
        let mut fds = [children, control];
        let watched = if self.engine_is_dead { 1 } else { 2 };
        if poll(&mut fds[..watched], timeout.as_ref()).is_err() {
            return;
        }
        let (child_ended, engine_spoke) =
            (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if child_ended {
            drain(self.child_ends.as_fd());
        }
        if engine_spoke && !self.engine_is_dead {
            self.listen();
        }
    }

    fn listen(&mut self) {
        let mut words = [0; 16];
        let now = Instant::now();
        match rustix::net::recv(self.control, &mut words, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => {
                self.engine_is_dead = true;
                self.kill(now);
            }
            Ok((_, length)) => words[..length]
                .iter()
                .for_each(|word| self.stop(*word, now)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => {
                self.engine_is_dead = true;
                self.kill(now);
            }
        }
    }

    fn stop(&mut self, word: u8, now: Instant) {
        // The command may have ended since the last look.
        self.reap();
        if self.main_status.is_none() && self.cause.is_none() {
            self.cause = Some(End::Stopped);
        }
        let at_once = word == STOP_AT_ONCE;
        match self.phase {
            Phase::Killing { .. } => {}
            Phase::Terminating { .. } if !at_once => {}
            Phase::Running | Phase::Lingering { .. } if self.main_status.is_some() => {
                self.end_leftovers(now);
                if at_once {
                    self.kill(now);
                }
            }
            _ if at_once => self.kill(now),
            _ => self.terminate(now, self.request.grace),
        }
    }

    fn outcome(self) -> Outcome {
        let usage = sys::usage_of_children();
        let own_end = match self.main_status {
            Some(Status::Exited(code)) => End::Exited(code),
            Some(Status::Signaled(signal)) => End::Signaled(signal),
            // Only if the main process itself couldn't be ended.
            None => End::TimedOut,
        };
        Outcome {
            end: self.cause.unwrap_or(own_end),
            wall: self.ended.unwrap_or_else(Instant::now) - self.started,
            cpu_user: usage.user,
            cpu_system: usage.system,
            max_rss_bytes: usage.max_rss_bytes,
            leftovers: self.leftovers,
        }
    }
}

/// A time so far ahead that it can't be counted is as good as a year.
fn later(now: Instant, by: Duration) -> Instant {
    now.checked_add(by)
        .unwrap_or_else(|| now + Duration::from_secs(365 * 86_400))
}

/// Rounded up to a millisecond's thousandth, so that a deadline is never
/// polled for in vain.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    let duration = duration + Duration::from_micros(1);
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

fn drain(fd: BorrowedFd<'_>) {
    let mut buffer = [0; 1024];
    while rustix::io::read(fd, &mut buffer).is_ok_and(|length| length == buffer.len()) {}
}
