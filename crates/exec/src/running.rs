//! The engine's side of a command: start its supervisor, stop it, wait for its
//! end.
//!
//! Whoever waits reads (see `reader`); there is no thread behind. The limit, and the end of
//! the family if the engine dies, are the supervisor's business and depend on
//! nobody here: the end of the socket is all it needs.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{MemfdFlags, SeekFrom};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::command::{Command, Program, Stdin};
use crate::finished::Finished;
use crate::launch::{Shape, Supervisor};
use crate::orphan::SupervisorId;
use crate::patience::Patience;
use crate::plain;
use crate::procfs;
use crate::protocol::{Request, STOP_AT_ONCE, STOP_GENTLY};
use crate::reader::{Observer, Reader, Sources};

/// How long a supervisor may take to make room for a request that is longer than a socket holds.
const REQUEST_PATIENCE: Duration = Duration::from_secs(3);

/// Why a command's supervisor couldn't be started. (What keeps the command
/// itself from running is an [`Ending`](crate::Ending).)
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
    /// A pipe or socket couldn't be made.
    #[error("can't prepare a command ({what}): {source}; is there a limit on open files?")]
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
    patience: Arc<Patience>,
}

impl Stopper {
    /// Asks for the command's end; comes back at once.
    pub fn stop(&self, how: StopHow) {
        tell_to_stop(&self.control, how);
        self.patience.stop_asked(how);
    }
}

pub(crate) fn tell_to_stop(control: &UnixStream, how: StopHow) {
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
    patience: Arc<Patience>,
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
            patience: Arc::clone(&self.patience),
        }
    }

    /// Reads its output until the command has ended and the last process of its
    /// family is gone.
    pub fn wait(mut self) -> Finished {
        let reader = self.reader.take();
        let mut reader = reader.expect("BUG: a command can be waited for only once");
        let lost = reader.read_all();
        reader.finish(lost)
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

/// A command whose supervisor is there and waits for the word. Dropping it ends
/// the supervisor; the command is never run.
#[derive(Debug)]
pub struct Held {
    running: Option<Running>,
    message: Vec<u8>,
    stdin: Option<OwnedFd>,
}

impl Held {
    /// Which supervisor: to be noted down before the command is let go, so that
    /// whoever comes after a crash knows of it.
    pub fn id(&self) -> &SupervisorId {
        let running = self.running.as_ref();
        &running.expect("BUG: it is taken at its end only").id
    }

    /// Lets the command go.
    pub fn release(mut self) -> Running {
        let running = self.running.take();
        let running = running.expect("BUG: a held command is released once");
        let sent = send_request(&running.control, &self.message, self.stdin.as_ref());
        if let (Err(_), Some(reader)) = (sent, &running.reader) {
            // It has ended, or takes nothing: the reader finds out what there is to tell.
            reader.give_supervisor_up();
        }
        running.patience.released();
        running
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            // It waits for a request, not for a word to stop.
            let _ = running.control.shutdown(std::net::Shutdown::Write);
        }
    }
}

/// Starts a command under a supervisor of its own.
pub fn start(
    command: Command,
    observer: Option<Box<dyn Observer>>,
    supervisor: &Supervisor,
) -> Result<Running, StartError> {
    hold(command, observer, supervisor).map(Held::release)
}

/// Starts the supervisor of a command that it runs when it is released.
pub fn hold(
    command: Command,
    observer: Option<Box<dyn Observer>>,
    supervisor: &Supervisor,
) -> Result<Held, StartError> {
    let stdin = match &command.stdin {
        Stdin::Null => None,
        Stdin::Bytes(bytes) => Some(file_in_memory(bytes).map_err(resources("input"))?),
    };
    let shape = Shape {
        streams: command.streams,
        isolation: command.isolation,
    };
    let patience = Patience::new(&command).map_err(resources("event"))?;
    let patience = Arc::new(patience);
    let (channels, child) = supervisor.launch(shape)?;
    let pid = child.as_raw_pid() as u32;
    let id = SupervisorId {
        pid,
        // Unreaped, so that it is there even if it has ended already.
        start_time: procfs::start_time_of(pid).unwrap_or_default(),
        boot_id: procfs::boot_id().to_owned(),
    };
    let message = request(&command).encode();
    let control = Arc::new(channels.control);
    // Without a timeout one that is stopped could hold us.
    let _ = control.set_write_timeout(Some(REQUEST_PATIENCE));
    let sources = Sources {
        output: channels.output,
        errors: channels.errors,
        control: Arc::clone(&control),
        patience: Arc::clone(&patience),
        child,
        id: id.clone(),
        supervisor: supervisor.clone(),
    };
    let reader = Reader::new(sources, &command.capture, observer);
    let running = Running {
        id,
        control,
        patience,
        reader: Some(reader),
    };
    Ok(Held {
        running: Some(running),
        message,
        stdin,
    })
}

fn request(command: &Command) -> Request {
    let (argv, otherwise) = match &command.program {
        Program::Shell(line) => {
            let shell = ["/bin/sh", "-c", line].map(OsString::from).to_vec();
            match plain::words(line) {
                Some(words) => (words, shell),
                None => (shell, Vec::new()),
            }
        }
        Program::Argv(words) => (words.clone(), Vec::new()),
    };
    let mut env = command.env.clone();
    if matches!(command.program, Program::Shell(_)) {
        // As a shell would: ours names the directory that the engine was started in.
        // (Without a slash at its end, which joining nothing to a path leaves.)
        let here: PathBuf = command.cwd.components().collect();
        env.set.insert("PWD".into(), here.into());
    }
    Request {
        argv,
        otherwise,
        cwd: command.cwd.clone(),
        env,
        time_limit: command.time_limit,
        grace: command.grace,
        linger: command.linger,
        read_only: command.read_only.clone(),
    }
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
