//! The fence: whether what this process does to shared places is still its own to do.
//!
//! A process that slept while another took its run over can't write into the record any more; the
//! epoch sees to that. What it would do to checkouts and references meanwhile has to be kept from
//! it too, so it looks here after every command, which is where the time goes.

use std::cell::Cell;
use std::time::{Duration, Instant};

use loopwright_core::ids::RunId;
use loopwright_record::{CheckoutLock, Damage, Held, ReadError, RunState, Store};

use crate::committer::now;
use crate::error::EngineError;
use crate::views::loops_of;

/// What a process holds while it drives a run.
pub struct Fence {
    run: RunId,
    epoch: u64,
    checkout: Option<CheckoutLock>,
    /// When it was looked last, and all was well.
    seen_at: Cell<Option<Instant>>,
}

/// How long a look is good for: to look and to act take a moment too.
const LOOK_IS_GOOD_FOR: Duration = Duration::from_millis(20);

impl Fence {
    /// The fence of a run driven under `epoch`, in the user's checkout if that is held.
    pub fn new(run: RunId, epoch: u64, checkout: Option<CheckoutLock>) -> Self {
        Self {
            run,
            epoch,
            checkout,
            seen_at: Cell::new(None),
        }
    }

    /// Under which epoch the run is driven.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Says who drives the run now, where that is somebody else.
    pub fn check(&self, store: &Store) -> Result<(), EngineError> {
        let is_fresh = |seen_at: Instant| seen_at.elapsed() < LOOK_IS_GOOD_FOR;
        if self.seen_at.get().is_some_and(is_fresh) {
            return Ok(());
        }
        let looked_at = Instant::now();
        let Some(row) = store.lease_of(&self.run)? else {
            // Leases that are given up stay: somebody has laid hands on the record.
            return Err(EngineError::Read(ReadError::Damaged(Damage {
                run: self.run.clone(),
                batch: None,
                seq: None,
                what: "the lease under which it is driven is gone".to_owned(),
            })));
        };
        let is_ours = row.epoch == self.epoch;
        let in_checkout = self.checkout.as_ref().is_none_or(CheckoutLock::is_held);
        if is_ours && in_checkout {
            self.seen_at.set(Some(looked_at));
            return Ok(());
        }
        if is_ours {
            return Err(EngineError::Held(Box::new(checkout_held(store)?)));
        }
        Err(EngineError::Held(Box::new(Held {
            what: format!("run {}", self.run),
            since: Some(row.since),
            expires: Some(row.expires),
            holder: row.holder,
        })))
    }
}

/// Takes the user's checkout for one run, or says who has it.
pub(super) fn take_checkout(store: &Store, force: bool) -> Result<CheckoutLock, EngineError> {
    match CheckoutLock::acquire(store, force)? {
        Some(lock) => Ok(lock),
        None => Err(EngineError::Held(Box::new(checkout_held(store)?))),
    }
}

/// Who has the checkout, as far as leases tell: a run that is driven.
fn checkout_held(store: &Store) -> Result<Held, EngineError> {
    for name in loops_of(store)? {
        let Some(summary) = store.latest_run(&name)? else {
            continue;
        };
        if let RunState::Driven(row) = store.state_of(&summary, now())? {
            return Ok(Held {
                what: format!("this checkout, for loop {name},"),
                holder: row.holder,
                since: Some(row.since),
                expires: Some(row.expires),
            });
        }
    }
    Ok(Held {
        what: "this checkout".to_owned(),
        holder: None,
        since: None,
        expires: None,
    })
}
