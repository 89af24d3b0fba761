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
//! A copy prepares its fence, then waits for its command: where the engine knows
//! that another command will follow, it orders the copy before (see `launch`).
//!
//! It is no part of any promise: it holds no state, no family descends from it,
//! and if it is gone the next command starts another. It ends with the engine,
//! whose end it sees as the end of their socket.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};
use rustix::process::Pid;

use crate::command::Isolation;
use crate::protocol::{fence_byte, isolation_of};
use crate::supervisor::SUPERVISE_ARGUMENT;
use crate::sys;

/// What every request is made of: the three standard descriptors of the
/// supervisor to be, beside one byte.
pub(crate) const STREAMS: usize = 3;

/// The first message's word: it brings the bell.
const BELL: u8 = b'b';

/// How long a fork server may take to copy itself. One that somebody stopped must not make the engine
/// deaf.
const PATIENCE: Duration = Duration::from_secs(5);

/// The engine's side of a running fork server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    socket: UnixStream,
    /// Rung for every order. A message alone would wake the server on the engine's own processor,
    /// since the system expects its sender to wait for the answer; we have something better to do.
    bell: OwnedFd,
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
    pub(crate) fn start(program: &Path) -> io::Result<Self> {
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
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let server = Self {
            child,
            socket,
            bell,
        };
        // Should it have ended already, the first order finds that out.
        let _ = server.send(BELL, &[server.bell.as_fd()]);
        Ok(server)
    }

    fn send(&self, word: u8, descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
        let words = [word];
        let message = [io::IoSlice::new(&words)];
        let flags = SendFlags::NOSIGNAL;
        retry(|| sendmsg(&self.socket, &message, &mut ancillary, flags)).map(drop)
    }

    /// Asks for a copy with these standard streams and this fence. It answers by
    /// [`Server::answer`]: to be read before anything else is asked.
    pub(crate) fn order(
        &self,
        streams: [BorrowedFd<'_>; STREAMS],
        isolation: Isolation,
    ) -> Result<(), Refusal> {
        self.send(fence_byte(isolation), &streams)
            .and_then(|()| rustix::io::write(&self.bell, &1_u64.to_ne_bytes()))
            .map_err(|_| Refusal::Gone)?;
        Ok(())
    }

    /// The copy that was ordered last, as a child of this process, which has to
    /// collect it.
    pub(crate) fn answer(&self) -> Result<Pid, Refusal> {
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
    /// A copy: a supervisor, with its command's streams in place and this fence to prepare.
    Supervisor(Isolation),
    /// The fork server itself, at its end: the engine is gone.
    Server,
}

/// Makes supervisors until the engine is gone. Comes back once in the fork
/// server, and once in each of its copies.
pub(crate) fn serve(engine: BorrowedFd<'_>) -> io::Result<Role> {
    let Some((_, descriptors)) = next_message(engine)? else {
        return Ok(Role::Server);
    };
    let bell = descriptors.into_iter().next();
    let bell = bell.ok_or_else(|| io::Error::other("the first message brings no bell"))?;
    while await_order(engine, bell.as_fd())? {
        let Some((word, descriptors)) = next_message(engine)? else {
            break;
        };
        let streams: [OwnedFd; STREAMS] = descriptors
            .try_into()
            .map_err(|_| io::Error::other("the request has not three streams"))?;
        let answer = match sys::fork_sibling() {
            Ok(None) => {
                let [control, output, errors] = streams;
                rustix::stdio::dup2_stdin(&control)?;
                rustix::stdio::dup2_stdout(&output)?;
                rustix::stdio::dup2_stderr(&errors)?;
                return Ok(Role::Supervisor(isolation_of(word)));
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

/// Waits for the bell; false if the engine is gone. (Of the socket only its end is watched.)
fn await_order(engine: BorrowedFd<'_>, bell: BorrowedFd<'_>) -> io::Result<bool> {
    let mut fds = [
        PollFd::from_borrowed_fd(bell, PollFlags::IN),
        PollFd::from_borrowed_fd(engine, PollFlags::empty()),
    ];
    retry(|| poll(&mut fds, None))?;
    // One order at a time: however often it was rung, there is one message.
    let mut count = [0; 8];
    let is_rung = rustix::io::read(bell, &mut count).is_ok();
    Ok(is_rung || fds[1].revents().is_empty())
}

/// The next message's word and descriptors; `None` if the engine is gone.
fn next_message(engine: BorrowedFd<'_>) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut descriptors = Vec::with_capacity(STREAMS);
    let mut word = [0];
    let received = retry(|| {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [io::IoSliceMut::new(&mut word)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let message = recvmsg(engine, &mut parts, &mut ancillary, flags)?;
        for extra in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(found) = extra {
                descriptors.extend(found);
            }
        }
        Ok(message.bytes)
    })?;
    Ok((received > 0).then_some((word[0], descriptors)))
}
