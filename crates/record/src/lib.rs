//! The durable record of Loopwright.
//!
//! A [`Store`] is one directory: the journal (SQLite), the blobs (compressed files named by their
//! content), the locks behind leases, and notes of the commands that run now. The engine knows the
//! journal as the trait [`Journal`]; everything in a journal is verified as it is read.
//!
//! | module | subject |
//! |---|---|
//! | `journal` | the trait, with its promises |
//! | `store` | the directory, opened and closed |
//! | `schema`, `transaction` | tables, versions, connections, write transactions |
//! | `append`, `read` | batches in, batches out |
//! | `snapshot`, `load` | folding a run, from a cached state where there is one |
//! | `index` | events by kind, trial, key; following a run |
//! | `listing` | one small row per decision, for long listings |
//! | `runs` | listing runs, and what each is doing |
//! | `presence` | whether the files are still those that were opened |
//! | `lease`, `lock`, `holder` | one writer per run |
//! | `running` | the supervisors in flight |
//! | `blobs` | big values |
//! | `refs` | movable names |
//! | `verify`, `surroundings`, `claims`, `report` | checking a run against everything it names |
//! | `memory` | a journal for tests and simulations |
//! | `crash` | places where a test can kill the process |

mod append;
mod blobs;
mod claims;
pub mod crash;
mod error;
mod holder;
mod index;
mod journal;
mod lease;
mod listing;
mod load;
mod lock;
mod memory;
mod plain;
mod presence;
mod read;
mod refs;
mod report;
mod running;
mod runs;
mod schema;
mod snapshot;
mod store;
mod surroundings;
mod transaction;
mod verify;

pub use blobs::{BlobBatch, BlobInfo, BlobReader, Blobs};
pub use error::{
    AppendError, BlobError, Damage, Held, LeaseError, OpenError, ReadError, RefError, StorageError,
};
pub use holder::Holder;
pub use index::{Key, KeySource, Select};
pub use journal::{Along, Batches, Journal};
pub use lease::{CheckoutLock, Lease, LeaseRow, StartLock, Terms};
pub use listing::{Listed, ListingSource};
pub use load::{LoadError, check_drivable, fold_batch, load, load_from_scratch, load_to_drive};
pub use memory::InMemory;
pub use read::Entry;
pub use refs::{REF_FAMILIES, Ref, RefAct, RefMove, RefTarget, check_ref_name};
pub use report::{Checks, Counts, Finding, FindingKind, FoldCheck, Folding, GitCheck, Report};
pub use running::{Running, RunningCommand};
pub use runs::{RunState, RunSummary};
pub use schema::{INDEX_VERSION, STORE_VERSION};
pub use snapshot::Snapshot;
pub use store::{JOURNAL_FILE, OpenMode, Store};
pub use verify::{VerifyError, verify};
