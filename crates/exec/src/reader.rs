//! Reading a command to its end: its pipes, its supervisor's report, and its
//! supervisor's death.
//!
//! It ends when the supervisor has, whoever holds the pipes; and if the
//! supervisor was killed before it could report, it ends the family. The first
//! process of a namespace reports when all others are gone, and then only has to
//! end itself: that isn't waited for.
//!
//! A supervisor that doesn't answer when it must (see `patience`) is stopped, most
//! likely: it is woken and told to end everything at once, again and again for a
//! while, and then killed with its family.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, Shutdown};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};

use crate::capture::Capture;
use crate::finished::{Containment, Ending, Finished};
use crate::keeper::Keeper;
use crate::launch::Supervisor;
use crate::leader::timespec;
use crate::orphan::{SupervisorId, sweep, wake};
use crate::patience::{Due, Patience, Why};
use crate::procfs;
use crate::protocol::{End, News, Report, split_message};
use crate::running::{StopHow, tell_to_stop};

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// How often is read at most once everybody is dead: far more than pipes hold.
const LAST_READS: usize = 256;

/// How often an old kernel, which can't tell, is asked for a process's end.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How long the family of a supervisor that was killed from outside may take
/// to end.
const LOST_PATIENCE: Duration = Duration::from_secs(10);

/// How long a supervisor that was woken may take: longer than it works at a family that can't be ended
/// before it gives up, and than much memory takes to be given back.
const WOKEN_PATIENCE: Duration = Duration::from_secs(30);

/// How often a supervisor is woken while that lasts.
const WAKE_AGAIN: Duration = Duration::from_millis(50);

/// One that was found stopped so often is being stopped again and again.
const STOPPED_MOST: u32 = 10;

/// Sees every byte of the output (standard output where streams are separate),
/// in order, as it arrives. It runs inside [`Running::wait`](crate::Running::wait): a slow observer
/// slows the command down.
pub trait Observer: Send {
    /// The next bytes. Where they are cut means nothing.
    fn chunk(&mut self, bytes: &[u8]);
}

impl<F: FnMut(&[u8]) + Send> Observer for F {
    fn chunk(&mut self, bytes: &[u8]) {
        self(bytes);
    }
}

/// Everything that is read from, and what has been read. Whoever drops it ends
/// the command first.
pub(crate) struct Reader {
    output: OwnedFd,
    keeper: Keeper,
    errors: Option<(OwnedFd, Keeper)>,
    control: Arc<UnixStream>,
    child: Pid,
    /// Readable once the supervisor has ended; `None` on an old kernel.
    end_fd: Option<OwnedFd>,
    id: SupervisorId,
    supervisor: Supervisor,
    observer: Option<Box<dyn Observer>>,
    started: Instant,
    /// The beginning of a report.
    arrived: Vec<u8>,
    report: Option<Report>,
    buffer: Vec<u8>,
    patience: Arc<Patience>,
    overdue: Option<Overdue>,
    is_over: bool,
}

/// A supervisor that did not answer when it had to.
struct Overdue {
    why: Why,
    since: Instant,
    found_stopped: u32,
    /// Its family could not be ended.
    is_stuck: bool,
}

/// What a reader reads from.
pub(crate) struct Sources {
    pub(crate) output: OwnedFd,
    pub(crate) errors: Option<OwnedFd>,
    pub(crate) control: Arc<UnixStream>,
    pub(crate) patience: Arc<Patience>,
    pub(crate) child: Pid,
    pub(crate) id: SupervisorId,
    pub(crate) supervisor: Supervisor,
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Also if the observer panics in the middle of it all.
        if !self.is_over {
            self.observer = None;
            tell_to_stop(&self.control, StopHow::AtOnce);
            self.patience.stop_asked(StopHow::AtOnce);
            let _ = self.read_all();
        }
    }
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    SupervisorsEnd,
    Report,
    Output,
    Errors,
    Bell,
}

impl Reader {
    pub(crate) fn new(
        sources: Sources,
        capture: &Capture,
        observer: Option<Box<dyn Observer>>,
    ) -> Self {
        let errors = sources.errors;
        Self {
            keeper: Keeper::new(capture),
            errors: errors.map(|pipe| (pipe, Keeper::without_spill(capture))),
            end_fd: pidfd_open(sources.child, PidfdFlags::empty()).ok(),
            output: sources.output,
            control: sources.control,
            child: sources.child,
            id: sources.id,
            supervisor: sources.supervisor,
            observer,
            started: Instant::now(),
            arrived: Vec::new(),
            report: None,
            buffer: vec![0; READ_BYTES],
            patience: sources.patience,
            overdue: None,
            is_over: false,
        }
    }

    /// Kills a supervisor that takes no request: nothing of its command was started.
    pub(crate) fn give_supervisor_up(&self) {
        let _ = kill_process(self.child, Signal::KILL);
    }

    /// Reads everything to the end; in words, why there is no report.
    pub(crate) fn read_all(&mut self) -> Option<String> {
        let mut open = vec![Source::Bell, Source::Output, Source::Report];
        if self.errors.is_some() {
            open.push(Source::Errors);
        }
        // A pipe's end means nothing: it may end long before, if the command closes
        // it, or be held open by nobody of the family.
        while !self.turn(&mut open) && !self.is_given_up() {}
        self.listen();
        let mut lost = None;
        if self.family_is_gone() {
            self.supervisor.collect_later(self.child);
        } else {
            let is_unended = self.report.is_none() || self.overdue.is_some();
            let unswept = is_unended.then(|| self.end_lost_family()).flatten();
            lost = self.collect_lost(unswept);
        }
        // Nobody is left to write: what the pipes hold is the rest. (Bounded, lest
        // a survivor of a weak fence writes for ever.)
        for source in [Source::Output, Source::Errors] {
            let mut reads = 0..LAST_READS;
            while reads.next().is_some() && self.read(source) == Some(true) {}
        }
        self.is_over = true;
        lost
    }

    /// Collects the supervisor; in words, why there is no report.
    fn collect_lost(&mut self, unswept: Option<String>) -> Option<String> {
        if let Some(unswept) = unswept {
            if let Some(overdue) = &mut self.overdue {
                overdue.is_stuck = true;
            }
            // It may be one of those that can't be ended.
            self.supervisor.collect_later(self.child);
            return Some(format!("the supervisor can't be waited for; {unswept}"));
        }
        let status = collect(self.child);
        self.report.is_none().then(|| why_lost(status))
    }

    /// Whether a supervisor that doesn't answer is to be killed. Before that it is woken, and told that
    /// there is no time left.
    fn is_given_up(&mut self) -> bool {
        let now = Instant::now();
        let Some(Due { why, .. }) = self.patience.due().filter(|due| now >= due.at) else {
            return false;
        };
        if self.overdue.is_none() {
            tell_to_stop(&self.control, StopHow::AtOnce);
        }
        let overdue = self.overdue.get_or_insert(Overdue {
            why,
            since: now,
            found_stopped: 0,
            is_stuck: false,
        });
        overdue.found_stopped += u32::from(wake(&self.id));
        overdue.found_stopped > STOPPED_MOST || now >= overdue.since + WOKEN_PATIENCE
    }

    /// How long there is nothing to do but to read; `None`: as long as it takes.
    fn quiet_time(&self) -> Option<Duration> {
        let until = match (&self.overdue, self.patience.due()) {
            (Some(_), _) => Some(WAKE_AGAIN),
            (None, Some(due)) => Some(due.at.saturating_duration_since(Instant::now())),
            (None, None) => None,
        };
        match self.end_fd {
            Some(_) => until,
            None => Some(until.map_or(LOOK_AGAIN, |until| until.min(LOOK_AGAIN))),
        }
    }

    /// Whether the first process of a namespace has said that nobody else is left.
    fn family_is_gone(&self) -> bool {
        let report = self.report.as_ref();
        report.is_some_and(|report| {
            report.fence.containment == Containment::PidNamespace
                && matches!(report.news, News::Finished(_))
        })
    }

    /// Waits for something and deals with it; gives whether it is over: the family
    /// gone, or the supervisor dead. It isn't collected yet: that keeps its process
    /// id from being used again.
    fn turn(&mut self, open: &mut Vec<Source>) -> bool {
        let mut fds = Vec::with_capacity(4);
        for source in open.iter() {
            if let Some(fd) = self.descriptor(*source) {
                fds.push((*source, PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            }
        }
        if let Some(fd) = self.descriptor(Source::SupervisorsEnd) {
            let fd = PollFd::from_borrowed_fd(fd, PollFlags::IN);
            fds.push((Source::SupervisorsEnd, fd));
        }
        let ready = wait_for_any(fds, self.quiet_time());
        for source in &ready {
            let goes_on = match source {
                Source::SupervisorsEnd => true,
                Source::Report => self.listen(),
                Source::Output | Source::Errors => self.read(*source).is_some(),
                Source::Bell => {
                    self.patience.hush();
                    true
                }
            };
            if !goes_on {
                open.retain(|still| still != source);
            }
        }
        if self.family_is_gone() {
            return true;
        }
        match self.end_fd {
            Some(_) => ready.contains(&Source::SupervisorsEnd),
            None => procfs::read(self.id.pid as i32).is_none_or(|process| process.is_dead()),
        }
    }

    fn descriptor(&self, source: Source) -> Option<BorrowedFd<'_>> {
        match source {
            Source::SupervisorsEnd => self.end_fd.as_ref().map(AsFd::as_fd),
            Source::Report => Some(self.control.as_fd()),
            Source::Bell => Some(self.patience.bell()),
            Source::Output => Some(self.output.as_fd()),
            Source::Errors => self.errors.as_ref().map(|(pipe, _)| pipe.as_fd()),
        }
    }

    /// Reads once. `None`: the pipe's end; else whether there was something.
    fn read(&mut self, source: Source) -> Option<bool> {
        let pipe = match (source, &self.errors) {
            (Source::Output, _) => &self.output,
            (Source::Errors, Some((pipe, _))) => pipe,
            _ => return None,
        };
        let length = match rustix::io::read(pipe, &mut self.buffer[..]) {
            Ok(0) => return None,
            Ok(length) => length,
            Err(rustix::io::Errno::AGAIN) => return Some(false),
            Err(rustix::io::Errno::INTR) => return Some(true),
            Err(_) => return None,
        };
        let chunk = &self.buffer[..length];
        if let (Source::Errors, Some((_, keeper))) = (source, &mut self.errors) {
            keeper.take(chunk);
            return Some(true);
        }
        self.keeper.take(chunk);
        if let Some(observer) = &mut self.observer {
            observer.chunk(chunk);
        }
        Some(true)
    }

    /// Takes what there is of the report; gives whether more of it can come.
    fn listen(&mut self) -> bool {
        let goes_on = loop {
            match rustix::net::recv(&self.control, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => break false,
                Ok((_, length)) => self.arrived.extend_from_slice(&self.buffer[..length]),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break true,
                Err(_) => break false,
            }
        };
        if let Ok(Some((body, _))) = split_message(&self.arrived) {
            self.report = Report::decode(body);
            self.patience.reported();
        }
        goes_on
    }

    /// Ends the family of a supervisor that was killed; says if that failed.
    fn end_lost_family(&self) -> Option<String> {
        // Should the namespace's first process live on, that ends it.
        let _ = rustix::net::shutdown(&self.control, Shutdown::Write);
        let swept = sweep(&self.id, LOST_PATIENCE);
        swept.err().map(|error| error.to_string())
    }

    /// What came of it all; `lost` says why there is no report.
    pub(crate) fn finish(mut self, lost: Option<String>) -> Finished {
        let keeper = std::mem::replace(&mut self.keeper, Keeper::nothing());
        let ended = self.overdue.as_ref().filter(|overdue| !overdue.is_stuck);
        let overdue = ended.map(|overdue| overdue.why);
        let mut finished = Finished {
            ending: match overdue {
                Some(Why::Limit) => Ending::TimedOut,
                Some(Why::Stop) => Ending::Stopped,
                _ => Ending::SupervisorLost {
                    detail: lost.unwrap_or_default(),
                },
            },
            output: keeper.finish(),
            stderr: self.errors.take().map(|(_, keeper)| keeper.finish()),
            wall: self.started.elapsed(),
            cpu_user: None,
            cpu_system: None,
            max_rss_bytes: None,
            leftovers: Vec::new(),
            containment: None,
            containment_note: None,
        };
        let Some(Report { fence, news }) = self.report.take() else {
            return finished;
        };
        finished.containment = Some(fence.containment);
        finished.containment_note = fence.note;
        match news {
            News::LeaderLost { detail } => finished.ending = Ending::SupervisorLost { detail },
            News::NotStarted { reason } => {
                finished.ending = Ending::NotStarted { reason };
                finished.wall = Duration::ZERO;
            }
            News::Finished(outcome) => {
                finished.ending = match outcome.end {
                    // When it ended, nobody saw.
                    _ if overdue == Some(Why::Limit) => Ending::TimedOut,
                    End::Exited(code) => Ending::Exited(code),
                    End::Signaled(signal) => Ending::Signaled(signal),
                    End::TimedOut => Ending::TimedOut,
                    End::Stopped => Ending::Stopped,
                };
                finished.wall = outcome.wall;
                finished.cpu_user = Some(outcome.cpu_user);
                finished.cpu_system = Some(outcome.cpu_system);
                finished.max_rss_bytes = Some(outcome.max_rss_bytes);
                finished.leftovers = outcome.leftovers;
            }
        }
        finished
    }
}

/// Waits for a child of ours that has ended or is about to.
fn collect(child: Pid) -> io::Result<ExitStatus> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(ExitStatus::from_raw(status.as_raw())),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until something is readable or has ended, at most for `limit`.
fn wait_for_any(sources: Vec<(Source, PollFd<'_>)>, limit: Option<Duration>) -> Vec<Source> {
    let (names, mut fds): (Vec<Source>, Vec<PollFd<'_>>) = sources.into_iter().unzip();
    let limit = limit.map(timespec);
    // A failed wait (a signal's handler ran) finds nothing ready: one comes back.
    let _ = poll(&mut fds, limit.as_ref());
    let ready = names.into_iter().zip(&fds);
    ready
        .filter(|(_, fd)| !fd.revents().is_empty())
        .map(|(name, _)| name)
        .collect()
}

fn why_lost(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => format!("the supervisor ended without a report ({status})"),
        Err(error) => format!("the supervisor ended without a report ({error})"),
    }
}
