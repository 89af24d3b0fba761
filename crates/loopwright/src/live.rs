//! The live line on a terminal: what runs now, for how long, and the best so far. It is redrawn in
//! place and gone before anything else is printed. In a pipe there is none.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::output::{Output, cut, span, talk};

/// How often the line is redrawn.
const REDRAW_EVERY: Duration = Duration::from_millis(200);

/// What runs now.
#[derive(Clone, Debug)]
pub struct Doing {
    /// In words: `trial 7: measuring`.
    pub words: String,
    /// Since when.
    pub since: Instant,
    /// Its limit.
    pub limit_us: Option<u64>,
}

#[derive(Default)]
struct State {
    doing: Option<Doing>,
    best: String,
    drawn: bool,
    ended: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    width: usize,
    on: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self, state: &mut State) {
        let Some(doing) = &state.doing else {
            erase(state);
            return;
        };
        let elapsed_us = doing.since.elapsed().as_micros() as u64;
        // Tenths from the start: what changes its unit while it runs is hard to follow.
        let elapsed = match elapsed_us {
            0..60_000_000 => format!("{:.1}s", elapsed_us as f64 / 1e6),
            _ => span(elapsed_us),
        };
        let mut text = format!("{}  {elapsed}", doing.words);
        if let Some(limit_us) = doing.limit_us {
            let _ = write!(text, " of {}", span(limit_us));
        }
        if !state.best.is_empty() {
            let _ = write!(text, "  {}", state.best);
        }
        // The last column stays free, so that no terminal wraps.
        let text = cut(&text, self.width.saturating_sub(1));
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[2K{text}").and_then(|()| stderr.flush());
        state.drawn = true;
    }
}

fn erase(state: &mut State) {
    if state.drawn {
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[2K").and_then(|()| stderr.flush());
        state.drawn = false;
    }
}

/// The live line; gone when it is dropped.
pub struct Live {
    shared: Arc<Shared>,
    painter: Option<JoinHandle<()>>,
}

/// Says things without tearing the live line.
#[derive(Clone)]
pub struct Speaker(Arc<Shared>);

impl Speaker {
    /// Says something on stderr.
    pub fn say(&self, text: &str) {
        let mut state = self.0.lock();
        erase(&mut state);
        talk(text);
    }
}

impl Live {
    /// A live line, where stderr can show one.
    pub fn new(output: &Output) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            width: output.width,
            on: output.live,
        });
        let painter = output.live.then(|| {
            let shared = Arc::clone(&shared);
            let work = move || paint(&shared);
            std::thread::Builder::new()
                .name("live".to_owned())
                .spawn(work)
        });
        Self {
            shared,
            // Without a thread for it there is no live line; the run goes on.
            painter: painter.and_then(Result::ok),
        }
    }

    /// Something that says things beside it.
    pub fn speaker(&self) -> Speaker {
        Speaker(Arc::clone(&self.shared))
    }

    /// What runs from now on; none while nothing does.
    pub fn doing(&self, doing: Option<Doing>) {
        if self.shared.on {
            self.shared.lock().doing = doing;
        }
    }

    /// The best so far.
    pub fn best(&self, text: String) {
        self.shared.lock().best = text;
    }

    /// Does something with both streams while the line is away.
    pub fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut state = self.shared.lock();
        erase(&mut state);
        work()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.ended = true;
            state.doing = None;
            erase(&mut state);
        }
        self.shared.changed.notify_all();
        if let Some(painter) = self.painter.take() {
            // A painter that panicked has nothing to add.
            let _ = painter.join();
        }
    }
}

fn paint(shared: &Shared) {
    let mut state = shared.lock();
    while !state.ended {
        let waited = shared.changed.wait_timeout(state, REDRAW_EVERY);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if !state.ended {
            shared.draw(&mut state);
        }
    }
}
