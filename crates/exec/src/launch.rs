//! Launching supervisors: the channels to each, and the one that is made ready
//! before it is asked for.
//!
//! Copying the fork server, making namespaces and mounting takes about as long as
//! a small command. Where another command is likely to follow, the engine orders
//! its supervisor as soon as the last command has ended, and goes on with its own
//! work meanwhile. A ready supervisor has run nothing: it waits for its request,
//! and the end of its socket is its end, as for every other.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, pidfd_open, waitid,
    waitpid,
};

use crate::command::{Isolation, Streams};
use crate::fork_server::{Refusal, Server};
use crate::leader::timespec;
use crate::reader::LOOK_AGAIN;
use crate::running::StartError;

/// Room in a pipe, so that a talkative command and the reader take fewer turns.
const PIPE_BYTES: usize = 256 * 1024;

/// How long is waited at the end for those who only have to end themselves. One that hangs in the kernel
/// does so without us.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// What is executed as supervisor. Copies share one fork server, which ends with
/// the last of them.
#[derive(Clone, Debug)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    server: Option<Server>,
    /// Ordered from that server, which has not been asked for anything since.
    ready: Option<(Shape, Channels)>,
    /// Children whose command is over, and who have nothing left to do but to end.
    ending: Vec<Pid>,
}

/// What a supervisor is made for, before its command is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) streams: Streams,
    pub(crate) isolation: Isolation,
}

/// The engine's ends of what connects it with a supervisor.
#[derive(Debug)]
pub(crate) struct Channels {
    pub(crate) control: UnixStream,
    pub(crate) output: OwnedFd,
    pub(crate) errors: Option<OwnedFd>,
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
            shared: Arc::new(Shared {
                program: path.into(),
                state: Mutex::default(),
            }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.shared.program
    }

    /// Has a supervisor made ready for a command with merged streams and the
    /// strongest fence. Doesn't wait for it; without it the next command starts all
    /// the same.
    pub fn make_ready(&self) {
        let shape = Shape {
            streams: Streams::Merged,
            isolation: Isolation::Auto,
        };
        let mut state = self.state();
        // What can't be made now is tried again when it is needed, and then told.
        if state.ready.is_none()
            && let Some(server) = &state.server
            && let Ok(Ok(channels)) = order(server, shape)
        {
            state.ready = Some((shape, channels));
        }
    }

    /// A supervisor, ready or new, as a child of this process. A fork server that
    /// somebody killed is replaced, once, and everything is made anew with it.
    pub(crate) fn launch(&self, shape: Shape) -> Result<(Channels, Pid), StartError> {
        let mut state = self.state();
        state.collect_ended();
        if let Some(ready) = state.take_ready(shape) {
            return Ok(ready);
        }
        let mut is_second = false;
        loop {
            match state.attempt(self.path(), shape)? {
                Ok(launched) => return Ok(launched),
                Err(Refusal::Gone) if !is_second => is_second = true,
                Err(refusal) => {
                    return Err(StartError::Supervisor {
                        program: self.path().to_owned(),
                        source: refusal.into_error(),
                    });
                }
            }
        }
    }

    /// Leaves a supervisor whose command is over to be collected some time later.
    pub(crate) fn collect_later(&self, child: Pid) {
        self.state().ending.push(child);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// If the fork server has to be given up the channels are too: a copy that
    /// nobody knows may hold their other ends.
    fn attempt(
        &mut self,
        program: &Path,
        shape: Shape,
    ) -> Result<Result<(Channels, Pid), Refusal>, StartError> {
        let server = match self.server.take() {
            Some(server) => server,
            None => match Server::start(program) {
                Ok(server) => server,
                Err(error) => return Ok(Err(Refusal::Failed(error))),
            },
        };
        let ordered = order(&server, shape)?;
        let launched = ordered.and_then(|channels| server.answer().map(|child| (channels, child)));
        if !matches!(launched, Err(Refusal::Gone)) {
            self.server = Some(server);
        }
        Ok(launched)
    }

    /// The one that was made ready, if it is of this shape and lives.
    fn take_ready(&mut self, shape: Shape) -> Option<(Channels, Pid)> {
        let (made_for, channels) = self.ready.take()?;
        let child = match self.server.as_ref()?.answer() {
            Ok(child) => child,
            Err(refusal) => {
                if matches!(refusal, Refusal::Gone) {
                    self.server = None;
                }
                return None;
            }
        };
        if made_for == shape && !has_ended(child) {
            return Some((channels, child));
        }
        self.ending.push(child);
        None
    }

    fn collect_ended(&mut self) {
        self.ending.retain(|child| {
            let found = waitpid(Some(*child), WaitOptions::NOHANG);
            matches!(found, Ok(None) | Err(rustix::io::Errno::INTR))
        });
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some((_, channels)) = self.ready.take() {
            let child = self.server.as_ref().map(Server::answer);
            self.ending.extend(child.and_then(Result::ok));
            drop(channels);
        }
        // Nothing is left to do for them; and one that somebody stopped would never end.
        for child in &self.ending {
            let _ = kill_process(*child, Signal::KILL);
        }
        let give_up_at = Instant::now() + LAST_PATIENCE;
        while !self.ending.is_empty() && Instant::now() < give_up_at {
            await_end(self.ending[0], give_up_at);
            self.collect_ended();
        }
    }
}

/// Waits for a child's end, or until then.
fn await_end(child: Pid, until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    match pidfd_open(child, PidfdFlags::empty()) {
        Ok(end) => {
            let mut fds = [PollFd::new(&end, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&timespec(left)));
        }
        // An old kernel: one looks again.
        Err(_) => std::thread::sleep(left.min(LOOK_AGAIN)),
    }
}

fn has_ended(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(child), options), Ok(None))
}

/// Orders a supervisor; the answer is still to be read.
fn order(server: &Server, shape: Shape) -> Result<Result<Channels, Refusal>, StartError> {
    let resources = |what| move |source| StartError::Resources { what, source };
    let (control, theirs) = UnixStream::pair().map_err(resources("socket"))?;
    let (output, output_writer) = pipe().map_err(resources("pipe"))?;
    let (errors, errors_writer) = match shape.streams {
        Streams::Merged => (None, None),
        Streams::Separate => {
            let (errors, writer) = pipe().map_err(resources("pipe"))?;
            (Some(errors), Some(writer))
        }
    };
    // Their ends are closed here at the end: a supervisor's end has to be seen.
    let errors_end = errors_writer.as_ref().unwrap_or(&output_writer);
    let streams = [theirs.as_fd(), output_writer.as_fd(), errors_end.as_fd()];
    let channels = Channels {
        control,
        output,
        errors,
    };
    Ok(server.order(streams, shape.isolation).map(|()| channels))
}

/// A pipe whose reading end never blocks. The room is a wish.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK)?;
    let _ = rustix::pipe::fcntl_setpipe_size(&reader, PIPE_BYTES);
    Ok((reader, writer))
}
