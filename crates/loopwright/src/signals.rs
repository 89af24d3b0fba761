//! Signals: the first asks the run to end what it runs, record that, and go; the second hurries.
//! A terminal that is gone (SIGHUP, unless it is ignored) is one of them, and what can't be written any more is let go; so is
//! SIGQUIT, which would leave a core file and no word of what happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;

/// The first signal that came.
#[derive(Clone, Debug, Default)]
pub struct Caught(Arc<AtomicI32>);

impl Caught {
    /// Which one; none where none came.
    pub fn signal(&self) -> Option<i32> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            signal => Some(signal),
        }
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        SIGINT => "SIGINT",
        SIGTERM => "SIGTERM",
        SIGHUP => "SIGHUP",
        SIGQUIT => "SIGQUIT",
        _ => "a signal",
    }
}

/// Whether whoever started this process had hangups ignored: what `nohup` does, so that the run
/// outlives the terminal.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}

/// Hands signals on to `interrupt`, by name, from now on; `say` tells whoever is there.
pub fn forward(
    interrupt: impl Fn(&str) + Send + 'static,
    say: impl Fn(&str) + Send + 'static,
) -> Result<Caught, Failure> {
    let mut wanted = vec![SIGINT, SIGTERM, SIGQUIT];
    if !is_hangup_ignored() {
        wanted.push(SIGHUP);
    }
    let mut signals = Signals::new(wanted).map_err(Failure::io("catch signals"))?;
    let caught = Caught::default();
    let first = caught.clone();
    let work = move || {
        for signal in signals.forever() {
            let is_first = first
                .0
                .compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire)
                .is_ok();
            interrupt(name(signal));
            if is_first {
                say("ending what runs; once more to hurry");
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(work)
        .map_err(Failure::io("start a thread"))?;
    Ok(caught)
}
