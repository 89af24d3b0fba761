//! Crash points: named places where a test can end the process as a power cut would.
//!
//! A point is disarmed unless the environment names it, and costs one relaxed atomic load then.
//! `LOOPWRIGHT_CRASH=name:count[:group]` kills the process (or its whole process group) at the
//! `count`-th pass of the point `name`; `LOOPWRIGHT_CRASH_LOG=file` appends the name of every point
//! passed, so that a test can list them and sweep point × count. Within one process a test can set
//! a [`with_hook`] of its own that unwinds instead.

mod points;

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};

use points::POINTS;

/// Names the point to crash at: `name:count[:group]`.
pub const CRASH_VARIABLE: &str = "LOOPWRIGHT_CRASH";
/// Names the file that lists the points passed.
pub const CRASH_LOG_VARIABLE: &str = "LOOPWRIGHT_CRASH_LOG";

const UNREAD: u8 = 0;
const DISARMED: u8 = 1;
const ARMED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNREAD);
static PLAN: OnceLock<Plan> = OnceLock::new();

type Hook = Box<dyn FnMut(&'static str)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// What the environment asks for.
#[derive(Debug, Default)]
struct Plan {
    kill: Option<Kill>,
    log: Option<PathBuf>,
}

#[derive(Debug)]
struct Kill {
    point: String,
    left: AtomicU64,
    group: bool,
}

/// Marks a crash point.
#[macro_export]
macro_rules! crash_point {
    ($name:literal) => {
        $crate::crash::hit($name)
    };
}

/// Every crash point there is.
pub fn points() -> &'static [&'static str] {
    POINTS
}

/// Passes a crash point; called by [`crash_point!`](crate::crash_point).
#[inline]
pub fn hit(name: &'static str) {
    if STATE.load(Ordering::Relaxed) != DISARMED {
        pass(name);
    }
}

/// Runs `body` with `hook` called at every crash point that this thread passes. The hook may
/// panic, to leave `body` as a crash would; hooks don't nest.
pub fn with_hook<T>(hook: impl FnMut(&'static str) + 'static, body: impl FnOnce() -> T) -> T {
    struct Unset;
    impl Drop for Unset {
        fn drop(&mut self) {
            HOOK.set(None);
        }
    }
    let _unset = Unset;
    HOOK.set(Some(Box::new(hook)));
    STATE.store(ARMED, Ordering::Relaxed);
    body()
}

#[cold]
fn pass(name: &'static str) {
    debug_assert!(
        POINTS.contains(&name),
        "BUG: the crash point {name} is not in the list"
    );
    let plan = PLAN.get_or_init(Plan::read);
    let asked = plan.kill.is_some() || plan.log.is_some();
    // A hook that was set meanwhile has stored ARMED, which must stay.
    let wanted = if asked { ARMED } else { DISARMED };
    let _ = STATE.compare_exchange(UNREAD, wanted, Ordering::Relaxed, Ordering::Relaxed);
    if let Some(log) = &plan.log {
        note(log, name);
    }
    if let Some(kill) = &plan.kill {
        kill.maybe(name);
    }
    // Taken out for the call, so that what the hook does may pass points of its own; a hook that
    // panics has done its work and is not put back.
    if let Some(mut hook) = HOOK.take() {
        hook(name);
        HOOK.set(Some(hook));
    }
}

/// A crash log that can't be written must not change what the program does.
fn note(log: &std::path::Path, name: &str) {
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(log) {
        let _ = file.write_all(format!("{name}\n").as_bytes());
    }
}

impl Plan {
    fn read() -> Self {
        let kill = std::env::var(CRASH_VARIABLE).ok().map(|text| {
            Kill::parse(&text).unwrap_or_else(|| {
                panic!("{CRASH_VARIABLE} is {text:?}; wanted <crash point>:<count>[:group]")
            })
        });
        let log = std::env::var_os(CRASH_LOG_VARIABLE).map(PathBuf::from);
        Self { kill, log }
    }
}

impl Kill {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let point = parts.next().filter(|name| POINTS.contains(name))?;
        let count: u64 = parts.next()?.parse().ok().filter(|count| *count > 0)?;
        let group = match parts.next() {
            None => false,
            Some("group") => true,
            Some(_) => return None,
        };
        parts.next().is_none().then(|| Self {
            point: point.to_owned(),
            left: AtomicU64::new(count),
            group,
        })
    }

    fn maybe(&self, name: &str) {
        if self.point != name || self.left.fetch_sub(1, Ordering::Relaxed) != 1 {
            return;
        }
        let _ = if self.group {
            kill_current_process_group(Signal::KILL)
        } else {
            kill_process(getpid(), Signal::KILL)
        };
        loop {
            std::thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_hook_sees_the_points_of_its_thread_and_may_unwind() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let body = move || {
            crash_point!("append.begin");
            crash_point!("append.inserted");
            crash_point!("append.committed");
        };
        let hook = move |name| {
            log.lock().unwrap().push(name);
            assert!(name != "append.inserted", "crash");
        };
        let outcome =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| with_hook(hook, body)));
        assert!(outcome.is_err());
        assert_eq!(*seen.lock().unwrap(), ["append.begin", "append.inserted"]);
        crash_point!("append.begin");
        assert_eq!(seen.lock().unwrap().len(), 2, "the hook is gone");
    }

    #[test]
    fn the_list_names_each_point_once() {
        let mut names: Vec<_> = points().to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), points().len());
    }

    #[test]
    fn a_plan_is_read_strictly() {
        let plan = Kill::parse("append.begin:3:group").unwrap();
        assert!(plan.group);
        assert_eq!(plan.left.load(Ordering::Relaxed), 3);
        for bad in [
            "",
            "append.begin",
            "append.begin:0",
            "nowhere:1",
            "append.begin:1:x",
            "append.begin:1:group:x",
        ] {
            assert!(Kill::parse(bad).is_none(), "{bad}");
        }
    }
}
