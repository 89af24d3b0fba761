//! The record's medium: in memory, or a real store on the disk, and what a crash leaves of it.
//!
//! A process that dies doesn't close its database. The files are therefore copied at the moment of
//! the crash, before unwinding lets SQLite tidy up, and the next life begins on the copy.

use std::fs;
use std::path::{Path, PathBuf};

use loopwright_core::batch::{Batch, Head};
use loopwright_core::ids::RunId;
use loopwright_record::{
    Along, AppendError, Batches, Holder, InMemory, JOURNAL_FILE, Journal, Lease, OpenMode,
    ReadError, Snapshot, Store, Terms,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::fuse::Blow;
use crate::plan::Medium;
use crate::stage::Stage;
use crate::violation::{Law, Violation};
use crate::wal;

const LEASE_TTL: Duration = Duration::from_secs(60);

/// The medium with what is on it.
#[derive(Debug)]
pub enum Disk {
    /// In memory.
    Memory(Rc<RefCell<InMemory>>),
    /// In a folder.
    Folder(Folder),
}

/// A folder with one store a generation: each crash begins a new one.
#[derive(Debug)]
pub struct Folder {
    root: tempfile::TempDir,
    generation: u32,
    frozen: bool,
    /// The log as it was when the append under way began.
    synced: wal::Extent,
}

impl Disk {
    /// An empty one.
    pub fn new(medium: Medium) -> Result<Self, Violation> {
        Ok(match medium {
            Medium::Memory => Self::Memory(Rc::default()),
            Medium::Store => Self::Folder(Folder {
                root: tempfile::tempdir().map_err(|error| broken("making a folder", &error))?,
                generation: 0,
                frozen: false,
                synced: wal::Extent::default(),
            }),
        })
    }

    /// Notes how much of the log is synced, before an append begins.
    pub fn note_synced(&mut self, _append: u32) {
        if let Self::Folder(folder) = self {
            folder.synced = wal::Extent::of(&log_file(&folder.store()));
        }
    }

    /// Keeps the files as they are now, or as a power loss leaves them.
    pub fn freeze(&mut self, blow: Blow) -> Result<(), Violation> {
        let Self::Folder(folder) = self else {
            return Ok(());
        };
        let (from, to) = (
            folder.store(),
            folder.generation_path(folder.generation + 1),
        );
        fs::create_dir_all(&to).map_err(|error| broken("freezing", &error))?;
        for suffix in ["", "-wal", "-shm"] {
            let name = format!("{JOURNAL_FILE}{suffix}");
            if from.join(&name).exists() {
                fs::copy(from.join(&name), to.join(&name))
                    .map_err(|error| broken("freezing", &error))?;
            }
        }
        if let Blow::PowerLoss { tear } = blow {
            // The index of the log is not a file that anybody syncs.
            let _ = fs::remove_file(to.join(format!("{JOURNAL_FILE}-shm")));
            wal::tear(&log_file(&to), folder.synced, tear)
                .map_err(|error| broken("tearing", &error))?;
        }
        folder.frozen = true;
        Ok(())
    }

    /// After a crash: goes on with what was kept.
    pub fn thaw(&mut self) {
        if let Self::Folder(folder) = self
            && std::mem::take(&mut folder.frozen)
        {
            // What is left behind goes with the whole folder.
            let _ = fs::remove_dir_all(folder.store());
            folder.generation += 1;
        }
    }

    fn open(&self) -> Result<Opened, Violation> {
        Ok(match self {
            Self::Memory(journal) => Opened::Memory(Rc::clone(journal)),
            Self::Folder(folder) => {
                let store = Store::open(&folder.store(), OpenMode::Create).map_err(|error| {
                    Violation::new(Law::GoesOn, format!("opening the store: {error}"))
                })?;
                Opened::Store(Box::new(store))
            }
        })
    }
}

impl Folder {
    fn store(&self) -> PathBuf {
        self.generation_path(self.generation)
    }

    fn generation_path(&self, generation: u32) -> PathBuf {
        self.root.path().join(format!("life-{generation}"))
    }
}

fn log_file(store: &Path) -> PathBuf {
    store.join(format!("{JOURNAL_FILE}-wal"))
}

fn broken(what: &str, error: &std::io::Error) -> Violation {
    Violation::new(Law::GoesOn, format!("{what} failed: {error}"))
}

enum Opened {
    Memory(Rc<RefCell<InMemory>>),
    Store(Box<Store>),
}

/// An open journal of one life, of either medium.
pub struct SimJournal {
    stage: Rc<Stage>,
    opened: Opened,
    leases: Vec<Lease>,
}

impl SimJournal {
    /// Opens the journal on the stage's disk.
    pub fn open(stage: &Rc<Stage>) -> Result<Self, Violation> {
        let opened = stage.disk.borrow().open()?;
        Ok(Self {
            stage: Rc::clone(stage),
            opened,
            leases: Vec::new(),
        })
    }

    /// Takes the lease of a run; the new epoch.
    pub fn take_over(&mut self, run: &RunId) -> Result<u64, Violation> {
        match &self.opened {
            Opened::Memory(journal) => {
                self.stage.pass("lease.locked");
                let epoch = journal.borrow_mut().take_over(run);
                self.stage.pass("lease.committed");
                Ok(epoch)
            }
            Opened::Store(store) => {
                let lease = self.acquire(store, run, false)?;
                let epoch = lease.epoch();
                self.leases.push(lease);
                Ok(epoch)
            }
        }
    }

    /// Somebody else takes the lease, and lets it go at once.
    pub fn usurp(&self, run: &RunId) -> Result<(), Violation> {
        match &self.opened {
            Opened::Memory(journal) => {
                journal.borrow_mut().take_over(run);
            }
            Opened::Store(store) => {
                self.acquire(store, run, true)?;
            }
        }
        Ok(())
    }

    fn acquire(&self, store: &Store, run: &RunId, force: bool) -> Result<Lease, Violation> {
        let terms = Terms {
            now: self.stage.world.now(),
            ttl: LEASE_TTL,
            force,
        };
        Lease::acquire(store, run, &Holder::current("simulator"), terms).map_err(|error| {
            Violation::new(Law::GoesOn, format!("taking the lease of {run}: {error}"))
        })
    }

    /// Ends a life in good order.
    pub fn close(self) -> Result<(), Violation> {
        let Opened::Store(store) = self.opened else {
            return Ok(());
        };
        let failed = |what: &str| Violation::new(Law::GoesOn, format!("closing: {what}"));
        for lease in self.leases {
            lease
                .release(&store)
                .map_err(|error| failed(&error.to_string()))?;
        }
        store.close().map_err(|error| failed(&error.to_string()))
    }

    /// The batches of a run from number `from_n` on, each verified by the journal.
    pub fn from(&self, run: &RunId, from_n: u64) -> Result<Vec<Batch>, Violation> {
        let unreadable =
            |error: ReadError| Violation::new(Law::Chain, format!("reading {run}: {error}"));
        let batches = self.batches(run, from_n).map_err(unreadable)?;
        batches.map(|batch| batch.map_err(unreadable)).collect()
    }

    /// The store, where the record lies in one.
    pub fn store(&self) -> Option<&Store> {
        match &self.opened {
            Opened::Memory(_) => None,
            Opened::Store(store) => Some(store),
        }
    }
}

impl Journal for SimJournal {
    fn append_with(&mut self, batch: &Batch, along: Along<'_>) -> Result<(), AppendError> {
        match &mut self.opened {
            // Its crash points come back to the stage by the hook.
            Opened::Store(store) => store.append_with(batch, along),
            Opened::Memory(journal) => {
                self.stage.pass("append.begin");
                if let Some(tear) = self.stage.fuse.power_fails_now()
                    && tear % 2 == 0
                {
                    self.stage.blow(Blow::PowerLoss { tear }, "append.inserted");
                }
                self.stage.pass("append.inserted");
                let appended = journal.borrow_mut().append_with(batch, along);
                self.stage.pass("append.committed");
                appended
            }
        }
    }

    fn head(&self, run: &RunId) -> Result<Option<Head>, ReadError> {
        match &self.opened {
            Opened::Memory(journal) => journal.borrow().head(run),
            Opened::Store(store) => store.head(run),
        }
    }

    fn batches(&self, run: &RunId, from_n: u64) -> Result<Batches<'_>, ReadError> {
        match &self.opened {
            Opened::Store(store) => store.batches(run, from_n),
            Opened::Memory(journal) => {
                let journal = journal.borrow();
                let all: Vec<_> = journal.batches(run, from_n)?.collect();
                Ok(Box::new(all.into_iter()))
            }
        }
    }

    fn snapshots(&self, run: &RunId) -> Result<Vec<Snapshot>, ReadError> {
        match &self.opened {
            Opened::Memory(journal) => journal.borrow().snapshots(run),
            Opened::Store(store) => store.snapshots(run),
        }
    }
}
