//! Signals: the first asks the run to end what it runs, record that, and go; the second hurries.
//! A terminal that is gone (SIGHUP) is one of them, and what can't be written any more is let go; so is
//! SIGQUIT, which would leave a core file and no word of what happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use loopwright_engine::Interrupter;
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

/// Hands signals on to `interrupter` from now on; `say` tells whoever is there.
pub fn forward(
    interrupter: Interrupter,
    say: impl Fn(&str) + Send + 'static,
) -> Result<Caught, Failure> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT]).map_err(Failure::io("catch signals"))?;
    let caught = Caught::default();
    let first = caught.clone();
    let work = move || {
        for signal in signals.forever() {
            let is_first = first
                .0
                .compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire)
                .is_ok();
            interrupter.interrupt(name(signal));
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
