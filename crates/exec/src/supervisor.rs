//! The supervisor's entry, and its choice of fence.
//!
//! A copy of the fork server (see `fork_server`): descriptor 0 is
//! a socket to the engine, 1 and 2 are the command's output. It has one thread,
//! a session of its own, and obeys nobody but the engine.
//!
//! ```text
//!  engine ── supervisor ── [first process of the namespace] ── command ── …
//!    │            │                     │
//!    └─ socket ───┴─────────────────────┘   its end: the engine is dead
//! ```
//!
//! With a PID namespace the supervisor starts the namespace's first process,
//! which leads the family, and sleeps until its end; else the supervisor leads
//! the family itself.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recv, recvmsg};
use rustix::process::{
    DumpableBehavior, Gid, Signal, Uid, getegid, geteuid, getpgid, getpid, getppid,
    set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal, setpgid, setsid,
};

use crate::command::Isolation;
use crate::family::Family;
use crate::finished::Containment;
use crate::fork_server::{Role, serve};
use crate::leader::{Preparation, lead, send};
use crate::orphan::{FAMILY_MARK, family_mark};
use crate::procfs;
use crate::protocol::{Fence, MAX_MESSAGE_BYTES, News, Report, Request};
use crate::sys::{self, Status};

/// The first argument that makes a binary a supervisor: see [`supervisor_main`].
pub const SUPERVISE_ARGUMENT: &str = "__supervise";

/// What such a binary does: to be called first thing in `main`, before
/// threads, argument parsing and open files, when the first argument is
/// [`SUPERVISE_ARGUMENT`]. It is the fork server of the engine on the other end
/// of its standard input; its copies run one command each and end here.
pub fn supervisor_main() -> ExitCode {
    sys::close_inherited();
    sys::be_deaf();
    leave_session();
    // Executed by way of /proc, it would be listed as "exe".
    let _ = rustix::thread::set_name(c"loopwright-fork");
    match serve(rustix::stdio::stdin()) {
        Ok(Role::Supervisor(isolation)) => {
            leave_session();
            let _ = rustix::thread::set_name(c"loopwright-sup");
            let done = supervise(rustix::stdio::stdin(), isolation);
            sys::end_copy(done.map_or_else(|why| refuse(&why), |()| 0))
        }
        Ok(Role::Server) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(refuse(&error.to_string())),
    }
}

/// The command to run; `None` if there is none, because the engine is gone or has
/// no use for this supervisor.
fn next_command(
    control: BorrowedFd<'static>,
) -> Result<Option<(Request, Option<OwnedFd>)>, String> {
    let Some((body, stdin)) = receive(control).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let request = Request::decode(&body).ok_or("the request is damaged or of another version")?;
    Ok(Some((request, stdin)))
}

/// Only somebody who started this by hand sees it, or a broken installation.
fn refuse(why: &str) -> u8 {
    let text = format!("supervisor: {why}; this command is for internal use\n");
    let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
    2
}

/// Leaves the session one was started in, and with it any terminal. The fork
/// server is the leader of a process group of its own, so that no signal of the
/// terminal comes between; a leader has to leave its group first.
fn leave_session() {
    if setsid().is_ok() {
        return;
    }
    let group = getppid().and_then(|parent| getpgid(Some(parent)).ok());
    let joined = setpgid(None, group);
    if joined.is_ok() {
        let _ = setsid();
    }
}

/// Reads the request and, where the command has input, its descriptor. Not a
/// byte more: the next may be a word to stop, which is the leader's to read.
fn receive(control: BorrowedFd<'static>) -> io::Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
    let mut stdin = None;
    let mut length = [0; 4];
    let mut filled = 0;
    while filled < length.len() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [io::IoSliceMut::new(&mut length[filled..])];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let message = recvmsg(control, &mut parts, &mut ancillary, flags)?;
        for extra in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = extra {
                stdin = descriptors.last().or(stdin);
            }
        }
        if message.bytes == 0 && filled == 0 {
            return Ok(None);
        }
        if message.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += message.bytes;
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_MESSAGE_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    let mut rest = body.as_mut_slice();
    while !rest.is_empty() {
        let (_, read) = recv(control, &mut *rest, RecvFlags::empty())?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        rest = &mut rest[read..];
    }
    Ok(Some((body, stdin)))
}

/// Prepares the strongest fence that can be had, waits for the command, and runs it
/// in there.
fn supervise(control: BorrowedFd<'static>, isolation: Isolation) -> Result<(), String> {
    let mut refusals = Vec::new();
    if isolation == Isolation::Auto {
        for &kind in Namespaces::to_try() {
            match in_namespaces(kind, control, &refusals) {
                Ok(()) => return Ok(()),
                Err(refusal) => refusals.push(refusal),
            }
        }
    }
    let scope = if isolation == Isolation::SubreaperOnly {
        None
    } else {
        sys::signal_scope()
            .inspect_err(|error| refusals.push(format!("no signal scope: {error}")))
            .ok()
    };
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        refusals.push(format!("no subreaper: {error}"));
    }
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let containment = match scope {
        Some(_) => Containment::SubreaperScoped,
        None => Containment::Subreaper,
    };
    let own = procfs::read_self();
    let Some((request, stdin)) = next_command(control)? else {
        return Ok(());
    };
    lead(Preparation {
        control,
        request: &request,
        stdin,
        family: Family::Tree,
        fence: fence(containment, &refusals),
        scope,
        mark: own.map(|own| (FAMILY_MARK, family_mark(own.pid as u32, own.start_time))),
    });
    Ok(())
}

fn fence(containment: Containment, refusals: &[String]) -> Fence {
    Fence {
        containment,
        note: (!refusals.is_empty()).then(|| refusals.join("; ")),
    }
}

/// Which namespaces are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Namespaces {
    /// With the privilege one has.
    Plain,
    /// With a user namespace, which grants it.
    User,
}

impl Namespaces {
    fn to_try() -> &'static [Self] {
        if geteuid().is_root() {
            &[Self::Plain, Self::User]
        } else {
            &[Self::User]
        }
    }

    fn flags(self) -> i32 {
        let common = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
        match self {
            Self::Plain => common,
            Self::User => common | libc::CLONE_NEWUSER,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "PID namespace",
            Self::User => "PID namespace in a user namespace",
        }
    }
}

/// The steps into a namespace; a refused one is told by the exit code of the
/// namespace's first process.
const STEPS: [&str; 4] = [
    "tying it to the supervisor",
    "mapping the user",
    "making mounts private",
    "mounting /proc",
];
const STEP_REFUSED: i32 = 100;
/// The first process of a namespace didn't understand what it is to run.
const REQUEST_REFUSED: i32 = 2;

/// Waits for the command in a PID namespace and runs it there, or says why there
/// is none.
fn in_namespaces(
    kind: Namespaces,
    control: BorrowedFd<'static>,
    refusals: &[String],
) -> Result<(), String> {
    let (uid, gid) = (geteuid(), getegid());
    let fence = fence(Containment::PidNamespace, refusals);
    let ended = sys::run_in_namespaces(kind.flags(), || match enter(kind, uid, gid) {
        Ok(()) => first_process(control, fence.clone()),
        Err(step) => STEP_REFUSED + step as i32,
    });
    let detail = match ended {
        Err(error) => return Err(format!("no {}: {error}", kind.name())),
        Ok(Status::Exited(0)) => return Ok(()),
        Ok(Status::Exited(code)) => {
            let step = usize::try_from(code - STEP_REFUSED).unwrap_or(usize::MAX);
            if let Some(step) = STEPS.get(step) {
                return Err(format!("no {}: {step} was refused", kind.name()));
            }
            format!("the first process of its namespace failed with code {code}")
        }
        Ok(Status::Signaled(signal)) => {
            format!("signal {signal} ended the first process of its namespace")
        }
    };
    // Its end was everybody's end.
    let news = News::LeaderLost { detail };
    send(control, &Report { fence, news });
    Ok(())
}

/// What the first process of a namespace does, and its exit code.
fn first_process(control: BorrowedFd<'static>, mut fence: Fence) -> i32 {
    let (request, stdin) = match next_command(control) {
        Ok(Some(command)) => command,
        Ok(None) => return 0,
        Err(why) => {
            refuse(&why);
            return REQUEST_REFUSED;
        }
    };
    if let Err(error) = protect(&request.read_only) {
        fence.note = Some(match fence.note {
            Some(note) => format!("{note}; {error}"),
            None => error,
        });
    }
    lead(Preparation {
        control,
        request: &request,
        stdin,
        family: Family::Namespace,
        fence,
        scope: None,
        mark: None,
    });
    0
}

/// Makes this new process a proper first process; gives the step that failed.
fn enter(kind: Namespaces, uid: Uid, gid: Gid) -> Result<(), usize> {
    // If the supervisor is killed the kernel kills us, and with us everybody.
    // (Its one thread started us: no pool thread's end can be mistaken for it.)
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|_| 0_usize)?;
    if kind == Namespaces::User {
        map_user(uid, gid).map_err(|_| 1_usize)?;
    }
    let private = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|_| 2_usize)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(|_| 3_usize)?;
    // The command runs as the same user: it shall not trace us.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    Ok(())
}

/// Makes what is named read-only for everybody in this namespace of mounts.
fn protect(paths: &[PathBuf]) -> Result<(), String> {
    let mut failed = Vec::new();
    for path in paths {
        let bound = mount_bind_recursive(path, path).map_err(io::Error::from);
        match bound.and_then(|()| sys::make_mount_read_only(path)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => failed.push(format!("{} is not read-only: {error}", path.display())),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(failed.join("; "))
}

/// Everybody stays who they are.
fn map_user(uid: Uid, gid: Gid) -> io::Result<()> {
    // Required before an unprivileged process may map its group.
    fs::write("/proc/self/setgroups", "deny")?;
    let (uid, gid) = (uid.as_raw(), gid.as_raw());
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1\n"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1\n"))
}
