//! The engine's side of a command: start its supervisor, read its output, wait
//! for its end.
//!
//! Whoever waits reads; there is no thread behind. The limit, and the end of
//! the family if the engine dies, are the supervisor's business and depend on
//! nobody here: the end of the socket is all it needs.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, OFlags, SeekFrom};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::capture::Keeper;
use crate::command::{Command, Program, Stdin, Streams};
use crate::finished::{Ending, Finished};
use crate::orphan::{SupervisorId, sweep};
use crate::procfs;
use crate::protocol::{End, News, Report, Request, STOP_AT_ONCE, STOP_GENTLY, split_message};
use crate::supervisor::SUPERVISE_ARGUMENT;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// Room in a pipe, so that a talkative command and the reader take fewer turns.
const PIPE_BYTES: usize = 256 * 1024;

/// How often an old kernel, which can't tell, is asked for a supervisor's end.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// How long the family of a supervisor that was killed from outside may take
/// to end.
const LOST_PATIENCE: Duration = Duration::from_secs(10);

/// Sees every byte of the output (standard output where streams are separate),
/// in order, as it arrives. It runs inside [`Running::wait`]: a slow observer
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

/// What is executed as supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supervisor {
    program: PathBuf,
}

impl Supervisor {
    /// The binary this process runs, even if its file was replaced meanwhile. Its
    /// `main` must call [`supervisor_main`](crate::supervisor_main).
    pub fn this_program() -> Self {
        Self::program("/proc/self/exe")
    }

    /// Another binary whose `main` does.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self {
            program: path.into(),
        }
    }
}

/// Why a command's supervisor couldn't be started. (What keeps the command
/// itself from running is an [`Ending`].)
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The supervisor's binary can't be executed.
    #[error("can't start the supervisor {program}: {source}")]
    Supervisor {
        /// Its path.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A pipe, socket or thread couldn't be made.
    #[error(
        "can't prepare a command ({what}): {source}; are there limits on open files or threads?"
    )]
    Resources {
        /// Which.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

fn resources(what: &'static str) -> impl Fn(io::Error) -> StartError {
    move |source| StartError::Resources { what, source }
}

/// How a command is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopHow {
    /// SIGTERM to the whole family, its grace, then SIGKILL.
    Gently,
    /// SIGKILL now; also hurries a gentle stop.
    AtOnce,
}

/// Stops a command, from any thread. Stopping one that has ended does nothing.
#[derive(Clone, Debug)]
pub struct Stopper {
    control: Arc<UnixStream>,
}

impl Stopper {
    /// Asks for the command's end; comes back at once.
    pub fn stop(&self, how: StopHow) {
        stop(&self.control, how);
    }
}

fn stop(control: &UnixStream, how: StopHow) {
    let word = match how {
        StopHow::Gently => STOP_GENTLY,
        StopHow::AtOnce => STOP_AT_ONCE,
    };
    // A supervisor that can't be told any more has ended, or has so many words
    // before it that another one changes nothing.
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = rustix::net::send(control, &[word], flags);
}

/// A command on its way. Dropping it ends the command and its family.
///
/// Its output is read by [`Running::wait`]. Until that is called a command that
/// prints more than a pipe holds waits for its reader; its time limit counts.
pub struct Running {
    id: SupervisorId,
    control: Arc<UnixStream>,
    reader: Option<Reader>,
}

impl Running {
    /// Which supervisor: what an engine notes down for the one after it.
    pub fn id(&self) -> &SupervisorId {
        &self.id
    }

    /// A handle to stop it with.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            control: Arc::clone(&self.control),
        }
    }

    /// Reads its output until the command has ended and the last process of its
    /// family is gone.
    pub fn wait(mut self) -> Finished {
        let reader = self.reader.take();
        let mut reader = reader.expect("BUG: a command can be waited for only once");
        let (status, unswept) = reader.read_all();
        reader.finish(status, unswept)
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Running")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Starts a command under a supervisor of its own.
pub fn start(
    command: Command,
    observer: Option<Box<dyn Observer>>,
    supervisor: &Supervisor,
) -> Result<Running, StartError> {
    let stdin = match &command.stdin {
        Stdin::Null => None,
        Stdin::Bytes(bytes) => Some(file_in_memory(bytes).map_err(resources("input"))?),
    };
    let (control, theirs) = UnixStream::pair().map_err(resources("socket"))?;
    let (output, output_writer) = pipe().map_err(resources("pipe"))?;
    let (errors, errors_writer) = match command.streams {
        Streams::Merged => (None, output_writer.try_clone()),
        Streams::Separate => {
            let (errors, writer) = pipe().map_err(resources("pipe"))?;
            (Some(errors), Ok(writer))
        }
    };
    let errors_writer = errors_writer.map_err(resources("pipe"))?;
    let child = process::Command::new(&supervisor.program)
        .arg0("loopwright")
        .arg(SUPERVISE_ARGUMENT)
        .stdin(OwnedFd::from(theirs))
        .stdout(output_writer)
        .stderr(errors_writer)
        // No signal of the terminal reaches it from here on: see `supervisor`.
        .process_group(0)
        .spawn()
        .map_err(|source| StartError::Supervisor {
            program: supervisor.program.clone(),
            source,
        })?;
    let id = SupervisorId {
        pid: child.id(),
        // Unreaped, so that it is there even if it has ended already.
        start_time: procfs::start_time_of(child.id()).unwrap_or_default(),
        boot_id: procfs::boot_id().to_owned(),
    };
    let message = request(&command).encode();
    let control = Arc::new(control);
    let reader = Reader {
        keeper: Keeper::new(&command.capture),
        errors: errors.map(|pipe| (pipe, Keeper::without_spill(&command.capture))),
        end_fd: pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok(),
        output,
        control: Arc::clone(&control),
        child,
        id: id.clone(),
        observer,
        started: Instant::now(),
        report: None,
        buffer: vec![0; READ_BYTES],
        is_over: false,
    };
    // If it can't be told it has ended: the reader finds out why.
    let _ = send_request(&control, &message, stdin.as_ref());
    Ok(Running {
        id,
        control,
        reader: Some(reader),
    })
}

fn request(command: &Command) -> Request {
    let argv = match &command.program {
        Program::Shell(line) => {
            let words = ["/bin/sh", "-c", line];
            words.into_iter().map(OsString::from).collect()
        }
        Program::Argv(words) => words.clone(),
    };
    Request {
        argv,
        cwd: command.cwd.clone(),
        env: command.env.clone(),
        time_limit: command.time_limit,
        grace: command.grace,
        linger: command.linger,
        isolation: command.isolation,
    }
}

/// A pipe whose reading end never blocks. The room is a wish.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK)?;
    let _ = rustix::pipe::fcntl_setpipe_size(&reader, PIPE_BYTES);
    Ok((reader, writer))
}

fn file_in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::Write;
    let mut file = std::fs::File::from(rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    rustix::fs::seek(&file, SeekFrom::Start(0))?;
    Ok(file.into())
}

fn send_request(control: &UnixStream, message: &[u8], stdin: Option<&OwnedFd>) -> io::Result<()> {
    let descriptors: Vec<BorrowedFd<'_>> = stdin.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let parts = [io::IoSlice::new(message)];
    let sent = rustix::net::sendmsg(control, &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
    let mut rest = &message[sent..];
    while !rest.is_empty() {
        let sent = rustix::net::send(control, rest, SendFlags::NOSIGNAL)?;
        rest = &rest[sent..];
    }
    Ok(())
}

/// Everything that is read from, and what has been read. Whoever drops it ends
/// the command first.
struct Reader {
    output: OwnedFd,
    keeper: Keeper,
    errors: Option<(OwnedFd, Keeper)>,
    control: Arc<UnixStream>,
    child: Child,
    /// Readable once the supervisor has ended; `None` on an old kernel.
    end_fd: Option<OwnedFd>,
    id: SupervisorId,
    observer: Option<Box<dyn Observer>>,
    started: Instant,
    report: Option<Report>,
    buffer: Vec<u8>,
    is_over: bool,
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
    Output,
    Errors,
}

impl Reader {
    /// Reads everything to the end; gives how the supervisor ended and, if it
    /// left a family behind that couldn't be ended, who.
    fn read_all(&mut self) -> (io::Result<ExitStatus>, Option<String>) {
        let mut open = vec![Source::Output];
        if self.errors.is_some() {
            open.push(Source::Errors);
        }
        // Only the supervisor's end counts: a pipe may end long before, if the
        // command closes it, or be held open by nobody of the family.
        while !self.turn(&mut open) {}
        self.listen();
        let unswept = match self.report {
            Some(_) => None,
            None => self.end_lost_family(),
        };
        let status = self.child.wait();
        // Nobody is left to write: what the pipes hold is the rest.
        while self.read(Source::Output) == Some(true) {}
        while self.read(Source::Errors) == Some(true) {}
        self.is_over = true;
        (status, unswept)
    }

    /// Waits for something and deals with it; gives whether the supervisor is
    /// dead. It isn't collected yet: that keeps its process id from being used
    /// again.
    fn turn(&mut self, open: &mut Vec<Source>) -> bool {
        let mut fds = Vec::with_capacity(3);
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
            if *source != Source::SupervisorsEnd && self.read(*source).is_none() {
                open.retain(|still| still != source);
            }
        }
        match self.end_fd {
            Some(_) => ready.contains(&Source::SupervisorsEnd),
            None => procfs::read(self.id.pid as i32).is_none_or(|process| process.is_dead()),
        }
    }

    fn descriptor(&self, source: Source) -> Option<BorrowedFd<'_>> {
        match source {
            Source::SupervisorsEnd => self.end_fd.as_ref().map(AsFd::as_fd),
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

    /// Takes the report, if there is one: the supervisor has ended.
    fn listen(&mut self) {
        let mut arrived = Vec::new();
        loop {
            match rustix::net::recv(&self.control, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => break,
                Ok((_, length)) => arrived.extend_from_slice(&self.buffer[..length]),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if let Ok(Some((body, _))) = split_message(&arrived) {
            self.report = Report::decode(body);
        }
    }

    /// Ends the family of a supervisor that was killed; says if that failed.
    fn end_lost_family(&self) -> Option<String> {
        // Should the namespace's first process live on, that ends it.
        let _ = rustix::net::shutdown(&self.control, Shutdown::Write);
        let swept = sweep(&self.id, LOST_PATIENCE);
        swept.err().map(|error| error.to_string())
    }

    fn finish(mut self, status: io::Result<ExitStatus>, unswept: Option<String>) -> Finished {
        let keeper = std::mem::replace(&mut self.keeper, Keeper::nothing());
        let mut finished = Finished {
            ending: Ending::SupervisorLost {
                detail: lost(status, unswept),
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

fn lost(status: io::Result<ExitStatus>, unswept: Option<String>) -> String {
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
