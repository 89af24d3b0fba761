//! The only unsafe code: system calls that have no safe wrapper.
//!
//! Everything here runs in the fork server and its copies, which have exactly one thread. Each block says why it is sound; each function is as small as
//! its system call.
#![expect(
    unsafe_code,
    reason = "clone, wait4, signal dispositions and Landlock have no safe wrappers"
)]

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

/// What [`reap_one`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaped {
    /// A child is dead and now forgotten.
    One(i32, Status),
    /// There are children, and none of them is dead.
    NoneYet,
    /// There is no child left.
    NoChildren,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Exited(i32),
    Signaled(i32),
}

/// What a family used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    pub(crate) max_rss_bytes: u64,
}

/// Copies this process; the copy is a child of its parent, as this process is.
/// `None` in the copy, its process id in the original.
///
/// The caller must have one thread, or the copy may find locks held for ever.
pub(crate) fn fork_sibling() -> io::Result<Option<i32>> {
    // SAFETY: no memory is shared, and no stack is given: both go on from here.
    // The caller's one thread holds no lock, and the C library keeps nothing of
    // a thread that it would have to be told of (it asks for its numbers anew).
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::CLONE_PARENT | libc::SIGCHLD,
            0,
            0,
            0,
            0,
        )
    };
    match pid {
        0 => Ok(None),
        pid if pid > 0 => Ok(Some(pid as i32)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends a copy of this process at once: what is done at the end of a program, once for all its copies,
/// is the original's to do.
pub(crate) fn end_copy(code: u8) -> ! {
    // SAFETY: it doesn't return, and nothing of ours waits to be written.
    unsafe { libc::_exit(i32::from(code)) }
}

/// Room for the namespace's first process. It reads `/proc` and starts one
/// command: a few kilobytes deep.
const STACK_BYTES: usize = 1024 * 1024;
/// Never touched: running out of the room is a fault, not a corruption.
const GUARD_BYTES: usize = 64 * 1024;

/// Runs `child` as a new process in new namespaces (`CLONE_NEW*` flags) and
/// waits for its end, which is its code or a signal.
///
/// The new process shares this one's memory, and this one sleeps until it ends,
/// as after `vfork`: nothing is copied, and nothing happens twice at once.
pub(crate) fn run_in_namespaces<F: FnOnce() -> i32>(flags: i32, child: F) -> io::Result<Status> {
    extern "C" fn enter<F: FnOnce() -> i32>(child: *mut libc::c_void) -> libc::c_int {
        // SAFETY: it is the pointer to the `Option` below, which outlives us:
        // its owner sleeps until we end.
        let child = unsafe { &mut *child.cast::<Option<F>>() };
        // (A panic can't leave an `extern "C"` function: it aborts.)
        child.take().map_or(101, |child| child())
    }
    let mut child = Some(child);
    let stack = Stack::new()?;
    let flags = flags | libc::SIGCHLD | libc::CLONE_VM | libc::CLONE_VFORK;
    // SAFETY: the process has one thread, which CLONE_VFORK suspends until the
    // new process has ended, so that memory is never used by two at once. The
    // stack is the new process's alone and is unmapped after its end; the
    // descriptors are copied, so that what it closes stays open here. The
    // argument outlives it for the same reason.
    let pid = unsafe {
        libc::clone(
            enter::<F>,
            stack.top(),
            flags,
            (&raw mut child).cast::<libc::c_void>(),
        )
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    wait_for(pid)
}

/// Memory to run on, with a guard below.
struct Stack(*mut libc::c_void);

impl Stack {
    fn new() -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: a new mapping at an address of the kernel's choice; the guard
        // is its lowest part, and nothing is there yet.
        unsafe {
            let room = libc::mmap(std::ptr::null_mut(), STACK_BYTES, protection, flags, -1, 0);
            if room == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::mprotect(room, GUARD_BYTES, libc::PROT_NONE);
            Ok(Self(room))
        }
    }

    /// Stacks grow downwards.
    fn top(&self) -> *mut libc::c_void {
        self.0.wrapping_byte_add(STACK_BYTES)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and who ran on it has ended.
        unsafe { libc::munmap(self.0, STACK_BYTES) };
    }
}

/// Collects one dead child of any kind, without waiting. Only for a process
/// whose children are all its own business.
pub(crate) fn reap_one() -> io::Result<Reaped> {
    let mut status = 0;
    // SAFETY: `status` is a live integer; a null usage is allowed.
    let pid = unsafe {
        libc::wait4(
            -1,
            &raw mut status,
            libc::WNOHANG | libc::__WALL,
            std::ptr::null_mut(),
        )
    };
    match pid {
        0 => Ok(Reaped::NoneYet),
        pid if pid > 0 => Ok(Reaped::One(pid, decode(status))),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => Ok(Reaped::NoChildren),
            error => Err(error),
        },
    }
}

/// Waits for one child to end.
fn wait_for(pid: i32) -> io::Result<Status> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live integer.
        if unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } == pid {
            return Ok(decode(status));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn decode(status: i32) -> Status {
    if libc::WIFSIGNALED(status) {
        Status::Signaled(libc::WTERMSIG(status))
    } else {
        Status::Exited(libc::WEXITSTATUS(status))
    }
}

/// What all collected children of this process, and theirs, have used.
pub(crate) fn usage_of_children() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to room for one `rusage`, which zeroes are a valid
    // value of, so that it may be assumed initialised even on failure.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    Usage {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss as u64 * 1024,
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}

/// Empties the signal mask and makes this process deaf: every classic signal
/// that can be caught runs a handler that does nothing. Handlers, unlike ignored or
/// blocked signals, don't survive `exec`: what is started gets all defaults and
/// an empty mask, by any way of starting it.
pub(crate) fn be_deaf() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = nothing;
    // Faults would come back for ever from a handler that does nothing.
    let faults = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGTRAP,
        libc::SIGSYS,
        libc::SIGABRT,
    ];
    // Real-time signals too would be a hundred system calls at every start.
    for signal in 1..=31 {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: zeroes are a valid `sigaction` (the default, no flags, an
        // empty mask); the handler touches nothing and is async-signal-safe.
        // Signals that can't be changed are refused with an error.
        unsafe {
            if !faults.contains(&signal) {
                (*action.as_mut_ptr()).sa_sigaction = handler as libc::sighandler_t;
                (*action.as_mut_ptr()).sa_flags = libc::SA_RESTART;
            }
            libc::sigaction(signal, action.as_ptr(), std::ptr::null_mut());
        }
    }
    let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set it is given; sigprocmask reads it
    // and may write no old one.
    unsafe {
        libc::sigemptyset(mask.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, mask.as_ptr(), std::ptr::null_mut());
    }
}

/// A descriptor that becomes readable when a child ends. It blocks SIGCHLD:
/// children started later would inherit that.
pub(crate) fn child_signal_fd() -> io::Result<OwnedFd> {
    let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before the others read it; the
    // descriptor is new and nobody else's.
    unsafe {
        libc::sigemptyset(mask.as_mut_ptr());
        libc::sigaddset(mask.as_mut_ptr(), libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, mask.as_ptr(), std::ptr::null_mut());
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        match libc::signalfd(-1, mask.as_ptr(), flags) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Makes the mount at `path`, and all below, read-only; their other restrictions
/// stay. Fails on kernels before 5.12.
pub(crate) fn make_mount_read_only(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path ends with a zero; pointer and size describe `attributes`;
    // both outlive the call, which writes nothing.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Closes every descriptor from 3 on. For the beginning of the supervisor,
/// before it has opened any.
pub(crate) fn close_inherited() {
    // SAFETY: nothing in this process owns a descriptor above 2 yet: this is
    // the first thing the supervisor does. A kernel without the call leaves
    // open what the engine's parent leaked, which is harmless.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// Sends a signal to every process in this PID namespace but its first, which
/// the caller must be. The kernel does it in one step: a process that forks
/// meanwhile takes its child with it.
pub(crate) fn signal_all(signal: i32) {
    // SAFETY: no memory is touched. Guarded against being called outside of a
    // namespace, where it would reach every process of the user.
    unsafe {
        if libc::getpid() == 1 {
            libc::kill(-1, signal);
        }
    }
}

/// A Landlock ruleset that forbids signals to processes outside of the domain
/// (and nothing else). Fails where the kernel has no such scope.
pub(crate) fn signal_scope() -> io::Result<OwnedFd> {
    #[repr(C)]
    struct RulesetAttribute {
        handled_access_fs: u64,
        handled_access_net: u64,
        scoped: u64,
    }
    const SCOPE_SIGNAL: u64 = 1 << 1;
    let attribute = RulesetAttribute {
        handled_access_fs: 0,
        handled_access_net: 0,
        scoped: SCOPE_SIGNAL,
    };
    // SAFETY: the pointer and the size describe `attribute`, which outlives the
    // call; the descriptor is new and nobody else's.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attribute,
            size_of::<RulesetAttribute>(),
            0_u32,
        );
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Makes `command` enter the ruleset's domain before it is executed.
pub(crate) fn enter_scope_before_exec(command: &mut std::process::Command, ruleset: OwnedFd) {
    let enter = move || {
        // SAFETY: plain system calls with integer arguments.
        unsafe {
            let restrict =
                || libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32);
            if restrict() == 0 {
                return Ok(());
            }
            // Without the privilege, set-user-id programs must be given up.
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && restrict() == 0 {
                return Ok(());
            }
        }
        Err(io::Error::last_os_error())
    };
    // SAFETY: between fork and exec the closure makes only system calls: it
    // allocates nothing and takes no lock.
    unsafe { command.pre_exec(enter) };
}
