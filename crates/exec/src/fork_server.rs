//! A small process that waits to become supervisors.
//!
//! Executing a binary of some megabytes for every command would cost more than
//! the command's fence and its end together. So the engine executes it once, as
//! a **fork server**: a process with one thread, a session of its own and
//! nothing open, which copies itself whenever a command is to be run. The copy
//! is the supervisor.
//!
//! ```text
//!  engine ──┬── fork server          asked with three descriptors, answers a process id
//!           ├── supervisor ── …      made by the fork server, but the engine's own child
//!           └── supervisor ── …
//! ```
//!
//! It is no part of any promise: it holds no state, no family descends from it,
//! and if it is gone the next command starts another. It ends with the engine,
//! whose end it sees as the end of their socket.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};
use rustix::process::Pid;

use crate::supervisor::SUPERVISE_ARGUMENT;
use crate::sys;

/// What every request is made of: the three standard descriptors of the
/// supervisor to be, beside one byte.
const STREAMS: usize = 3;

/// How long a fork server may take to copy itself. One that somebody stopped must not make the engine
/// deaf.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is executed as supervisor. Copies share one fork server, which ends with
/// the last of them.
#[derive(Clone, Debug)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    server: Mutex<Option<Server>>,
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
                server: Mutex::new(None),
            }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.shared.program
    }

    /// A new supervisor with these standard streams, as a child of this process
    /// (which has to collect it). If the fork server had to be given up the
    /// streams must not be used again: a copy that nobody knows may hold them.
    pub(crate) fn fork(&self, streams: [BorrowedFd<'_>; STREAMS]) -> Result<Pid, Refusal> {
        let server = self.shared.server.lock();
        let mut server = server.unwrap_or_else(PoisonError::into_inner);
        if server.is_none() {
            *server = Some(Server::start(&self.shared.program).map_err(Refusal::Failed)?);
        }
        let pid = server
            .as_ref()
            .map_or(Err(Refusal::Gone), |server| server.fork(streams));
        if matches!(pid, Err(Refusal::Gone)) {
            *server = None;
        }
        pid
    }
}

/// The engine's side of a running fork server.
#[derive(Debug)]
struct Server {
    child: Child,
    socket: UnixStream,
}

/// Why there is no new supervisor.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The fork server has ended, or doesn't answer: another one may do better.
    Gone,
    /// The system allows no more processes, or there is no such program.
    Failed(io::Error),
}

impl Refusal {
    pub(crate) fn into_error(self) -> io::Error {
        match self {
            Self::Failed(error) => error,
            Self::Gone => io::Error::other("it ended at once; is it the right program?"),
        }
    }
}

impl Server {
    fn start(program: &Path) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let child = Command::new(program)
            .arg0("loopwright")
            .arg(SUPERVISE_ARGUMENT)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // No signal of the terminal reaches it from here on: see `leave_session`.
            .process_group(0)
            .spawn()?;
        Ok(Self { child, socket })
    }

    fn fork(&self, streams: [BorrowedFd<'_>; STREAMS]) -> Result<Pid, Refusal> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&streams));
        let request = [io::IoSlice::new(b"f")];
        let flags = SendFlags::NOSIGNAL;
        retry(|| sendmsg(&self.socket, &request, &mut ancillary, flags))
            .map_err(|_| Refusal::Gone)?;
        let mut answer = [0; 4];
        let received = retry(|| recv(&self.socket, &mut answer, RecvFlags::WAITALL));
        match received {
            Ok((_, length)) if length == answer.len() => {}
            _ => return Err(Refusal::Gone),
        }
        // A process id, or the system's error number below zero.
        let answer = i32::from_le_bytes(answer);
        let failed = || Refusal::Failed(io::Error::from_raw_os_error(-answer));
        (answer > 0)
            .then(|| Pid::from_raw(answer))
            .flatten()
            .ok_or_else(failed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It does nothing at the moment, and nothing is lost with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            result => return result,
        }
    }
}

/// What a process of the fork server finds itself to be.
pub(crate) enum Role {
    /// A copy: a supervisor, with its command's streams in place.
    Supervisor,
    /// The fork server itself, at its end: the engine is gone.
    Server,
}

/// Makes supervisors until the engine is gone. Comes back once in the fork
/// server, and once in each of its copies.
pub(crate) fn serve(engine: BorrowedFd<'_>) -> io::Result<Role> {
    while let Some(streams) = next_request(engine)? {
        let answer = match sys::fork_sibling() {
            Ok(None) => {
                let [control, output, errors] = streams;
                rustix::stdio::dup2_stdin(&control)?;
                rustix::stdio::dup2_stdout(&output)?;
                rustix::stdio::dup2_stderr(&errors)?;
                return Ok(Role::Supervisor);
            }
            Ok(Some(pid)) => pid,
            Err(error) => -error.raw_os_error().unwrap_or(libc::EAGAIN),
        };
        let answer = answer.to_le_bytes();
        if retry(|| rustix::net::send(engine, &answer, SendFlags::NOSIGNAL)).is_err() {
            break;
        }
    }
    Ok(Role::Server)
}

/// The streams of the next supervisor; `None` if the engine is gone.
fn next_request(engine: BorrowedFd<'_>) -> io::Result<Option<[OwnedFd; STREAMS]>> {
    let mut streams = Vec::with_capacity(STREAMS);
    let mut byte = [0];
    let received = retry(|| {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [io::IoSliceMut::new(&mut byte)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let message = recvmsg(engine, &mut parts, &mut ancillary, flags)?;
        for extra in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = extra {
                streams.extend(descriptors);
            }
        }
        Ok(message.bytes)
    })?;
    if received == 0 {
        return Ok(None);
    }
    let streams = streams.try_into();
    streams
        .map(Some)
        .map_err(|_| io::Error::other("the request has not three streams"))
}
