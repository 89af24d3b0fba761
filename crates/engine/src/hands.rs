//! The hands of the embedded host: a worker thread performs effects, one at a time, and says what
//! happened through one channel, in which signals arrive too.
//!
//! Effects run at once are the business of later workers; the driver doesn't know how many there
//! are.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use loopwright_core::effect::{Announced, Settlement};
use loopwright_core::event::Scrub;
use loopwright_core::ids::EffectId;
use loopwright_core::time::Micros;
use loopwright_core::usage::Usage;
use loopwright_exec::{StopHow, Stopper};

use crate::committer::{LEASE_TTL, now};
use crate::driver::{Hands, Happening, Haste, HostFault};
use crate::error::EngineError;

/// Trees are walked by recursion, and a path can have some two thousand names.
const WORKER_STACK_BYTES: usize = 64 << 20;

/// How an attempt at an effect ended, as its performer says it.
pub enum Performed {
    /// It came to its end.
    Settled {
        /// How.
        settlement: Settlement,
        /// What was scrubbed from it.
        scrub: Scrub,
    },
    /// It was stopped as asked.
    Stopped {
        /// What it had used.
        usage: Usage,
    },
    /// The performer can't go on.
    Broken(HostFault),
}

/// Performs effects; lives on the worker's thread.
pub trait Performer: Send {
    /// Makes ready what is likely to be performed next, as far as that is free, harmless, and as well
    /// done then.
    fn make_ready(&mut self, _announced: &Announced) {}

    /// Performs one, and is stopped through `control`.
    fn perform(&mut self, announced: &Announced, control: &Control) -> Performed;

    /// Its result was handed on. What comes next is not known yet; whatever it is, there may be
    /// something to clear away or to set up for it.
    fn between(&mut self) {}
}

/// What stops the effect that is being performed.
#[derive(Clone, Default)]
pub struct Control {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    /// What was ordered and has not come to its end; the first is being performed.
    orders: VecDeque<Order>,
    /// Stops the running command of the first.
    stopper: Option<Stopper>,
}

/// An effect between its order and its end. A stop asked for before the worker comes to it
/// counts all the same.
struct Order {
    effect: EffectId,
    stop: Option<Haste>,
}

impl Control {
    /// One for a single thing that is done apart from a run's effects, under this name.
    pub fn of(name: EffectId) -> Self {
        let control = Self::default();
        control.ordered(&name);
        control
    }

    /// Stops what is being done: gently the first time, at once after that.
    pub fn interrupt(&self) {
        let first = {
            let shared = self.lock();
            let order = shared.orders.front();
            order.map(|order| (order.effect.clone(), order.stop.is_some()))
        };
        let Some((effect, was_asked)) = first else {
            return;
        };
        let haste = if was_asked {
            Haste::AtOnce
        } else {
            Haste::Gently
        };
        self.stop(&effect, haste);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over what stops the command that was just started. If a stop was asked for
    /// meanwhile, it is done at once.
    pub fn running(&self, stopper: Stopper) {
        let mut shared = self.lock();
        if let Some(haste) = shared.orders.front().and_then(|order| order.stop) {
            stopper.stop(how(haste));
        }
        shared.stopper = Some(stopper);
    }

    /// The command has ended.
    pub fn ended(&self) {
        self.lock().stopper = None;
    }

    /// Whether a stop was asked for: to be looked at before each long step.
    pub fn is_stopping(&self) -> bool {
        let shared = self.lock();
        shared
            .orders
            .front()
            .is_some_and(|order| order.stop.is_some())
    }

    fn is_idle(&self) -> bool {
        self.lock().orders.is_empty()
    }

    fn ordered(&self, effect: &EffectId) {
        self.lock().orders.push_back(Order {
            effect: effect.clone(),
            stop: None,
        });
    }

    fn performed(&self) {
        let mut shared = self.lock();
        shared.orders.pop_front();
        shared.stopper = None;
    }

    fn stop(&self, effect: &EffectId, haste: Haste) {
        let mut shared = self.lock();
        // The newest of that name: an earlier attempt, stopped before, may still be ending.
        let found = shared
            .orders
            .iter()
            .rposition(|order| order.effect == *effect);
        let Some(at) = found else { return };
        let order = &mut shared.orders[at];
        if order.stop >= Some(haste) {
            return;
        }
        order.stop = Some(haste);
        if let (0, Some(stopper)) = (at, &shared.stopper) {
            stopper.stop(how(haste));
        }
    }
}

fn how(haste: Haste) -> StopHow {
    match haste {
        Haste::Gently => StopHow::Gently,
        Haste::AtOnce => StopHow::AtOnce,
    }
}

/// Ends the invocation from outside: the first call gently, every further one at once.
#[derive(Clone)]
pub struct Interrupter {
    happenings: Sender<Happening>,
    asked: Arc<Mutex<bool>>,
}

impl Interrupter {
    /// Asks for the end; `by` says what asked, in words.
    pub fn interrupt(&self, by: &str) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let haste = if *asked { Haste::AtOnce } else { Haste::Gently };
        *asked = true;
        // A driver that is gone needs no interrupt.
        let _ = self.happenings.send(Happening::Interrupt {
            haste,
            by: by.to_owned(),
        });
    }
}

/// The channel between whatever happens and the driver; made first, so that signals are caught
/// before anything is started.
pub struct Happenings {
    sender: Sender<Happening>,
    receiver: Receiver<Happening>,
}

impl Default for Happenings {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, receiver }
    }
}

impl Happenings {
    /// What ends an invocation from outside.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter {
            happenings: self.sender.clone(),
            asked: Arc::default(),
        }
    }
}

/// What the worker is told.
enum Task {
    MakeReady(Announced),
    Perform(Announced),
}

/// Hands with one worker.
pub struct WorkerHands<'a> {
    happenings: Happenings,
    orders: Option<Sender<Task>>,
    worker: Option<JoinHandle<()>>,
    control: Control,
    /// Renews the lease; called about three times in its life.
    renew: Box<dyn FnMut() -> Result<(), EngineError> + 'a>,
    renew_at: Micros,
}

impl<'a> WorkerHands<'a> {
    /// Starts the worker.
    pub fn new(
        happenings: Happenings,
        mut performer: Box<dyn Performer>,
        renew: Box<dyn FnMut() -> Result<(), EngineError> + 'a>,
    ) -> std::io::Result<Self> {
        let (orders, inbox) = mpsc::channel::<Task>();
        let control = Control::default();
        let (sender, on_worker) = (happenings.sender.clone(), control.clone());
        let work = move || {
            for task in inbox {
                let announced = match task {
                    Task::MakeReady(announced) => {
                        performer.make_ready(&announced);
                        continue;
                    }
                    Task::Perform(announced) => announced,
                };
                let performed = if on_worker.is_stopping() {
                    let usage = Usage::default().free_of_charge();
                    Performed::Stopped { usage }
                } else {
                    performer.perform(&announced, &on_worker)
                };
                on_worker.performed();
                if sender.send(happening(announced, performed)).is_err() {
                    return;
                }
                performer.between();
            }
        };
        let worker = std::thread::Builder::new()
            .name("worker".to_owned())
            .stack_size(WORKER_STACK_BYTES)
            .spawn(work)?;
        Ok(Self {
            happenings,
            orders: Some(orders),
            worker: Some(worker),
            control,
            renew,
            renew_at: renewal_after(now()),
        })
    }

    fn renew_if_due(&mut self) -> Option<Happening> {
        if now() < self.renew_at {
            return None;
        }
        self.renew_at = renewal_after(now());
        let failed = (self.renew)().err()?;
        Some(Happening::Broken(HostFault::from(&failed)))
    }
}

fn worker_gone() -> Happening {
    Happening::Broken(HostFault::host("the worker is gone"))
}

fn renewal_after(moment: Micros) -> Micros {
    moment.plus(LEASE_TTL.as_micros() as u64 / 3)
}

fn happening(announced: Announced, performed: Performed) -> Happening {
    let Announced {
        effect, attempt, ..
    } = announced;
    match performed {
        Performed::Settled { settlement, scrub } => Happening::Settled {
            effect,
            attempt,
            settlement,
            scrub,
        },
        Performed::Stopped { usage } => Happening::Stopped {
            effect,
            attempt,
            usage,
        },
        Performed::Broken(fault) => Happening::Broken(fault),
    }
}

impl Hands for WorkerHands<'_> {
    fn make_ready(&mut self, announced: &Announced) {
        // A worker that is busy has no time to spare.
        if let (true, Some(orders)) = (self.control.is_idle(), &self.orders) {
            let _ = orders.send(Task::MakeReady(announced.clone()));
        }
    }

    fn begin(&mut self, announced: Announced) {
        self.control.ordered(&announced.effect);
        let sent = self
            .orders
            .as_ref()
            .is_some_and(|orders| orders.send(Task::Perform(announced)).is_ok());
        if !sent {
            // The receiver is ours, so this can't fail.
            let _ = self.happenings.sender.send(worker_gone());
        }
    }

    fn stop(&mut self, effect: &EffectId, haste: Haste) {
        self.control.stop(effect, haste);
    }

    fn wait(&mut self, until: Option<Micros>) -> Happening {
        loop {
            if let Some(broken) = self.renew_if_due() {
                return broken;
            }
            let present = now();
            if until.is_some_and(|until| present >= until) {
                return Happening::TimeReached;
            }
            let wake = until.map_or(self.renew_at, |until| until.min(self.renew_at));
            let patience = Duration::from_micros(wake.since(present).max(1));
            match self.happenings.receiver.recv_timeout(patience) {
                Ok(happening) => return happening,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return worker_gone();
                }
            }
        }
    }

    fn now(&mut self) -> Micros {
        now()
    }
}

impl Drop for WorkerHands<'_> {
    fn drop(&mut self) {
        // Without orders the worker ends; what it performs was stopped before.
        self.orders = None;
        if let Some(worker) = self.worker.take() {
            // A worker that panicked has said so on stderr.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_core::event::Scope;
    use loopwright_core::ids::RunId;
    use loopwright_core::role::Role;

    /// Says that it began, then waits to be let go.
    struct Slow {
        began: Sender<()>,
        go: Receiver<()>,
    }

    impl Performer for Slow {
        fn perform(&mut self, announced: &Announced, control: &Control) -> Performed {
            assert_eq!(
                announced.effect.as_str(),
                "first",
                "a stopped effect was begun"
            );
            self.began.send(()).unwrap();
            self.go.recv().unwrap();
            assert!(control.is_stopping());
            Performed::Broken(HostFault::host("done"))
        }
    }

    fn announced(effect: &str) -> Announced {
        Announced {
            run: RunId::new("0198c0de-0000-7000-8000-000000000001").unwrap(),
            effect: EffectId::new(effect),
            role: Role::Actor,
            attempt: 1,
            epoch: 1,
            scope: Scope::default(),
            request: serde_json::Value::Null,
            ceiling: loopwright_core::budget::Ceiling::nothing(),
            left: loopwright_core::budget::Limits::default(),
            asked_at: Micros::default(),
        }
    }

    #[test]
    fn a_stop_counts_before_the_worker_comes_to_the_effect() {
        let (began, has_begun) = mpsc::channel();
        let (let_go, go) = mpsc::channel();
        let performer = Box::new(Slow { began, go });
        let renew = Box::new(|| Ok(()));
        let mut hands = WorkerHands::new(Happenings::default(), performer, renew).unwrap();
        hands.begin(announced("first"));
        hands.begin(announced("second"));
        has_begun.recv().unwrap();
        hands.stop(&EffectId::new("second"), Haste::Gently);
        hands.stop(&EffectId::new("first"), Haste::Gently);
        let_go.send(()).unwrap();
        assert!(matches!(hands.wait(None), Happening::Broken(fault) if fault.words == "done"));
        let stopped = hands.wait(None);
        assert!(
            matches!(&stopped, Happening::Stopped { effect, .. } if effect.as_str() == "second"),
            "{stopped:?}"
        );
        // And one that is stopped in the same breath as it is begun.
        hands.begin(announced("third"));
        hands.stop(&EffectId::new("third"), Haste::Gently);
    }
}
