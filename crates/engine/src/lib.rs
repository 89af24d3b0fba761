//! The embedded host of Loopwright: what drives runs in this process, over its own store.
//!
//! [`driver`] drives one run of any kind of loop; [`hands`] performs its effects on a worker of its
//! own; [`committer`] makes batches durable under a lease. [`experiment`] is the host of experiment
//! loops: it finds out what a run starts from, refuses what can't work before anything is spent,
//! and performs proposals, measurements and keeps. [`views`] are what surfaces show: everything in
//! them is derived from the journal. [`project`] says where things lie on the disk.

pub mod commands;
pub mod committer;
pub mod detection;
pub mod driver;
pub mod error;
pub mod experiment;
pub mod hands;
pub mod locate;
pub mod project;
pub mod replay;
pub mod scrubbing;
pub mod verify;
pub mod views;

pub use detection::propose_loop;
pub use driver::{
    Committer, Driven, Driver, FaultKind, Hands, Happening, Haste, HostFault, Watcher,
};
pub use error::EngineError;
pub use hands::{Control, Happenings, Interrupter, Performed, Performer, WorkerHands};
pub use locate::{Located, locate};
pub use project::Project;
pub use replay::{Replayed, replay};
pub use verify::verify;
