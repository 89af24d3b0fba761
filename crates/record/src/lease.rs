//! Leases: who drives a run.
//!
//! Two guards stand together. A file lock is free the moment its holder dies, so that a resume
//! after a crash waits for nothing. A row with an epoch is read within every append, so that a
//! holder that was shut out (it slept, and somebody forced a takeover) can't write any more.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::time::Micros;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::crash_point;
use crate::error::{Held, LeaseError, StorageError};
use crate::holder::Holder;
use crate::lock;
use crate::read::natural;
use crate::store::Store;
use crate::transaction::Write;

/// How a lease is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The time now.
    pub now: Micros,
    /// How long it holds against other hosts unless renewed.
    pub ttl: Duration,
    /// Whether to take it from a holder that lives. Its epoch shuts that one out.
    pub force: bool,
}

/// The right to append to a run. Dropping it frees the lock as dying does, but leaves the row;
/// [`release`](Lease::release) clears that too.
#[derive(Debug)]
pub struct Lease {
    run: RunId,
    epoch: u64,
    expires: Micros,
    lock: File,
}

/// The newest lease of a run as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRow {
    /// Its epoch.
    pub epoch: u64,
    /// Who has it; none when it was given up.
    pub holder: Option<Holder>,
    /// Since when.
    pub since: Micros,
    /// Until when at least.
    pub expires: Micros,
}

impl Lease {
    /// Takes the lease of `run`, or says who has it.
    ///
    /// A holder on this host has it as long as its process lives, however long ago it should have
    /// renewed it; one on another host until it expires.
    pub fn acquire(
        store: &Store,
        run: &RunId,
        holder: &Holder,
        terms: Terms,
    ) -> Result<Self, LeaseError> {
        let path = lock_path(store, run);
        let locked = lock::try_lock(&path)?;
        let row = newest_lease(store.connection(), run)?;
        let lock = match locked {
            Some(lock) => {
                if let Some(held) = held_elsewhere(run, row.as_ref(), terms) {
                    return Err(LeaseError::Held(Box::new(held)));
                }
                lock
            }
            None if terms.force => lock::replace(&path)?,
            None => return Err(LeaseError::Held(Box::new(held(run, row)))),
        };
        crash_point!("lease.locked");
        let epoch = record(store.connection(), run, holder, terms)?;
        crash_point!("lease.committed");
        Ok(Self {
            run: run.clone(),
            epoch,
            expires: expiry(terms.now, terms.ttl),
            lock,
        })
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The fencing token: every batch carries it.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Until when it holds against other hosts.
    pub fn expires(&self) -> Micros {
        self.expires
    }

    /// Holds it for another `ttl` from `now`. One that expired meanwhile goes on, unless somebody
    /// else has taken the run.
    pub fn renew(&mut self, store: &Store, now: Micros, ttl: Duration) -> Result<(), LeaseError> {
        let expires = expiry(now, ttl);
        let connection = store.connection();
        let write = Write::begin(connection)?;
        let renewed = connection
            .prepare_cached("UPDATE lease SET expires_us = ?3 WHERE run = ?1 AND epoch = ?2")?
            .execute(params![
                self.run.as_str(),
                self.epoch.cast_signed(),
                expires.0
            ])?;
        if renewed == 0 {
            let row = newest_lease(connection, &self.run)?;
            return Err(LeaseError::Held(Box::new(held(&self.run, row))));
        }
        write.commit()?;
        self.expires = expires;
        Ok(())
    }

    /// Gives it up: nobody drives the run any more.
    pub fn release(self, store: &Store) -> Result<(), LeaseError> {
        let connection = store.connection();
        let write = Write::begin(connection)?;
        connection
            .prepare_cached(
                "UPDATE lease SET holder = NULL, expires_us = 0 WHERE run = ?1 AND epoch = ?2",
            )?
            .execute(params![self.run.as_str(), self.epoch.cast_signed()])?;
        write.commit()?;
        drop(self.lock);
        Ok(())
    }
}

fn lock_path(store: &Store, run: &RunId) -> PathBuf {
    store.locks_dir().join(format!("{run}.lock"))
}

fn expiry(now: Micros, ttl: Duration) -> Micros {
    now.plus(u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX))
}

/// The holder of a lock that we have got, where it may live nevertheless: on another host.
fn held_elsewhere(run: &RunId, row: Option<&LeaseRow>, terms: Terms) -> Option<Held> {
    let row = row?;
    let holder = row.holder.as_ref()?;
    let expired = terms.now >= row.expires;
    let gone = terms.force || expired || holder.is_of_this_host();
    (!gone).then(|| held(run, Some(row.clone())))
}

fn held(run: &RunId, row: Option<LeaseRow>) -> Held {
    let since = row.as_ref().map(|row| row.since);
    let expires = row.as_ref().map(|row| row.expires);
    Held {
        what: format!("run {run}"),
        holder: row.and_then(|row| row.holder),
        since,
        expires,
    }
}

fn record(
    connection: &Connection,
    run: &RunId,
    holder: &Holder,
    terms: Terms,
) -> Result<u64, LeaseError> {
    let holder = serde_json::to_string(holder).expect("BUG: a holder is plain data");
    let write = Write::begin(connection)?;
    let epoch = connection
        .prepare_cached(
            "INSERT INTO lease (run, epoch, holder, since_us, expires_us)
             VALUES (?1, 1, ?2, ?3, ?4)
             ON CONFLICT (run) DO UPDATE SET epoch = epoch + 1, holder = excluded.holder,
                 since_us = excluded.since_us, expires_us = excluded.expires_us
             RETURNING epoch",
        )?
        .query_row(
            params![
                run.as_str(),
                holder,
                terms.now.0,
                expiry(terms.now, terms.ttl).0
            ],
            |row| natural(row, 0),
        )?;
    write.commit()?;
    Ok(epoch)
}

/// The newest lease of a run; none where nobody ever drove it.
pub fn newest_lease(
    connection: &Connection,
    run: &RunId,
) -> Result<Option<LeaseRow>, StorageError> {
    let row = connection
        .prepare_cached("SELECT epoch, holder, since_us, expires_us FROM lease WHERE run = ?1")?
        .query_row([run.as_str()], |row| {
            let holder: Option<String> = row.get(1)?;
            let row = LeaseRow {
                epoch: natural(row, 0)?,
                holder: None,
                since: Micros(row.get(2)?),
                expires: Micros(row.get(3)?),
            };
            Ok((row, holder))
        })
        .optional()?;
    let Some((row, holder)) = row else {
        return Ok(None);
    };
    let holder = holder
        .map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| StorageError::Damaged(format!("the lease of run {run}: {error}")))?;
    Ok(Some(LeaseRow { holder, ..row }))
}

/// Whether somebody drives a run: its holder, where it is seen to live.
pub(crate) fn driver(
    store: &Store,
    run: &RunId,
    now: Micros,
) -> Result<Option<LeaseRow>, StorageError> {
    let Some(row) = newest_lease(store.connection(), run)? else {
        return Ok(None);
    };
    let Some(holder) = &row.holder else {
        return Ok(None);
    };
    let drives = if holder.is_of_this_boot() {
        // A process of another PID namespace isn't seen, but its lock is.
        holder.is_alive() || lock::is_locked(&lock_path(store, run))
    } else {
        !holder.is_of_this_host() && now < row.expires
    };
    Ok(drives.then_some(row))
}

/// The right to work in the user's own checkout, which is one run's at a time, of whichever loop.
#[derive(Debug)]
pub struct CheckoutLock {
    file: File,
    path: PathBuf,
}

impl CheckoutLock {
    /// Takes it; none where somebody has it who lives. With `force` it is taken from that one, who
    /// finds [`is_held`](Self::is_held) untrue from then on.
    pub fn acquire(store: &Store, force: bool) -> Result<Option<Self>, StorageError> {
        let path = store.locks_dir().join("checkout.place");
        let file = match lock::try_lock(&path)? {
            None if force => Some(lock::replace(&path)?),
            locked => locked,
        };
        Ok(file.map(|file| Self { file, path }))
    }

    /// Whether it was not taken by force meanwhile.
    pub fn is_held(&self) -> bool {
        lock::is_at(&self.file, &self.path)
    }
}

/// The right to start a run of a loop, so that two that start at once don't make two.
#[derive(Debug)]
pub struct StartLock {
    _lock: File,
}

impl StartLock {
    /// Waits up to `wait` for the right to start a run of `loop_name`. Held while the caller looks
    /// for an open run and records the first batch of a new one.
    pub fn acquire(
        store: &Store,
        loop_name: &LoopName,
        wait: Duration,
    ) -> Result<Self, LeaseError> {
        let path = store.locks_dir().join(format!("start-{loop_name}.start"));
        let deadline = Instant::now() + wait;
        loop {
            if let Some(lock) = lock::try_lock(&path)? {
                return Ok(Self { _lock: lock });
            }
            if Instant::now() >= deadline {
                return Err(LeaseError::Held(Box::new(Held {
                    what: format!("the start of loop {loop_name}"),
                    holder: None,
                    since: None,
                    expires: None,
                })));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
