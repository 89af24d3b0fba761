//! A simulator of Loopwright: one seed, one run, everything that can go wrong.
//!
//! It drives the real machines through the real driver onto the real record. Only the outside is
//! scripted: roles, the clock, the person at the keyboard, and what goes wrong. A [`Plan`] says all
//! a run depends on; [`examine`] lives it through, life after life, checks the [`Law`]s after each,
//! and compares the end with the same run undisturbed; [`shrink()`] makes a failing plan small.
//!
//! | module | subject |
//! |---|---|
//! | `plan`, `random` | what is to happen, from a seed |
//! | `stage`, `world`, `medium`, `wal`, `fuse` | what outlives a crash: clock, ledger, record; and the crash |
//! | `life`, `hands`, `committer` | one process: the real driver with simulated hands |
//! | `laws`, `books`, `violation` | what must hold |
//! | `simulate`, `shrink` | whole runs |
//! | `scenario` | what a machine under simulation brings along |
//! | `experiment` | the real experiment machine's scripts |
//! | `agent`, `search` | little machines of the other two kinds, as proof that the kernel fits them |

pub mod agent;
mod books;
mod committer;
pub mod experiment;
mod fuse;
mod hands;
mod laws;
mod life;
mod medium;
mod plan;
mod random;
mod scenario;
pub mod search;
mod shrink;
mod simulate;
mod stage;
mod violation;
mod wal;
mod world;

pub use hands::Performance;
pub use life::LifeEnd;
pub use plan::{Disturbance, Kind, Lost, Medium, Plan};
pub use random::Random;
pub use scenario::{Command, Comparison, Scenario};
pub use shrink::shrink;
pub use simulate::{Decision, Report, examine, examine_beside, simulate};
pub use stage::Stage;
pub use violation::{Law, Violation};
