//! Reading a command to its end: its pipes, its supervisor's report, and its
//! supervisor's death.
//!
//! It ends when the supervisor has, whoever holds the pipes; and if the
//! supervisor was killed before it could report, it ends the family. The first
//! process of a namespace reports when all others are gone, and then only has to
//! end itself: that isn't waited for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, Shutdown};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};

use crate::capture::Capture;
use crate::finished::{Containment, Ending, Finished};
use crate::keeper::Keeper;
use crate::launch::Supervisor;
use crate::orphan::{SupervisorId, sweep};
use crate::procfs;
use crate::protocol::{End, News, Report, split_message};
use crate::running::{StopHow, stop};

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// How often is read at most once everybody is dead: far more than pipes hold.
const LAST_READS: usize = 256;

/// How often an old kernel, which can't tell, is asked for a supervisor's end.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// How long the family of a supervisor that was killed from outside may take
/// to end.
const LOST_PATIENCE: Duration = Duration::from_secs(10);

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
    is_over: bool,
}

/// What a reader reads from.
pub(crate) struct Sources {
    pub(crate) output: OwnedFd,
    pub(crate) errors: Option<OwnedFd>,
    pub(crate) control: Arc<UnixStream>,
    pub(crate) child: Pid,
    pub(crate) id: SupervisorId,
    pub(crate) supervisor: Supervisor,
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Also if the observer panics in the middle of it all.
        if !self.is_over {
            self.observer = None;
            stop(&self.control, StopHow::AtOnce);
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
            is_over: false,
        }
    }

    /// Reads everything to the end; in words, why there is no report.
    pub(crate) fn read_all(&mut self) -> Option<String> {
        let mut open = vec![Source::Output, Source::Report];
        if self.errors.is_some() {
            open.push(Source::Errors);
        }
        // A pipe's end means nothing: it may end long before, if the command closes
        // it, or be held open by nobody of the family.
        while !self.turn(&mut open) {}
        self.listen();
        let mut lost = None;
        if self.family_is_gone() {
            self.supervisor.collect_later(self.child);
        } else {
            let unswept = match self.report {
                Some(_) => None,
                None => self.end_lost_family(),
            };
            let status = collect(self.child);
            lost = self.report.is_none().then(|| why_lost(status, unswept));
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
        let ready = wait_for_any(fds, self.end_fd.is_none().then_some(LOOK_AGAIN));
        for source in &ready {
            let goes_on = match source {
                Source::SupervisorsEnd => true,
                Source::Report => self.listen(),
                Source::Output | Source::Errors => self.read(*source).is_some(),
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
        let mut finished = Finished {
            ending: Ending::SupervisorLost {
                detail: lost.unwrap_or_default(),
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
fn wait_for_any(sources: Vec<(Source, PollFd<'_>)>, limit: Option<Timespec>) -> Vec<Source> {
    let (names, mut fds): (Vec<Source>, Vec<PollFd<'_>>) = sources.into_iter().unzip();
    // A failed wait (a signal's handler ran) finds nothing ready: one comes back.
    let _ = poll(&mut fds, limit.as_ref());
    let ready = names.into_iter().zip(&fds);
    ready
        .filter(|(_, fd)| !fd.revents().is_empty())
        .map(|(name, _)| name)
        .collect()
}

fn why_lost(status: io::Result<ExitStatus>, unswept: Option<String>) -> String {
    let mut detail = match status {
        Ok(status) => format!("the supervisor ended without a report ({status})"),
        Err(error) => format!("the supervisor ended without a report ({error})"),
    };
    if let Some(unswept) = unswept {
        detail.push_str("; ");
        detail.push_str(&unswept);
    }
    detail
}
