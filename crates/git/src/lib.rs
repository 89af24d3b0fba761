//! Everything that touches git for experiment loops.
//!
//! The rules (see the crate's modules for how each is kept):
//! - The user's checkout, configuration and references are read, never written, but for the
//!   loop's own branch (`branch`), `adopt` and `in_place`.
//! - Nothing a proposer leaves in its private repository is ever run or obeyed.
//! - What an event names is on the disk first: objects, then directories, then references.
//! - On the plain path a trial starts no git process; long-lived ones answer.

pub mod adopt;
pub mod arms;
mod aside;
pub mod branch;
mod convert;
mod disk;
pub mod error;
pub mod git;
mod handout;
mod hash;
pub mod in_place;
mod opened;
mod place;
mod plain;
pub mod proposer;
pub mod quote;
mod reader;
pub mod store;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
#[cfg(test)]
mod tests;
mod traps;
pub mod types;
mod untrusted;
pub mod user;
pub mod user_commands;
mod worktree;

pub use adopt::{Adopted, Obstacle, adopt_branch, adopt_candidate};
pub use branch::{Published, UserBranch};
pub use error::{GitError, Refusal, Trap, TrapKind};
pub use handout::Handout;
pub use in_place::{InPlace, InPlaceCommit, Interrupted, Owner, UserSettings};
pub use opened::Opened;
pub use proposer::{AgentHead, ProposerRepository, Snapshot};
pub use quote::quoted;
pub use store::{CommitFacts, CommitSpec, ObjectStore, Person, SubmoduleContent};
pub use traps::common_directory;
pub use types::{
    Change, Entry, Mode, ObjectFormat, Objects, Oid, RepoPath, TreeListing, apply_changes,
    diff_listings,
};
pub use untrusted::{Found, UntrustedDirectory};
pub use user::{Dirty, Environment, UserRepository};
pub use user_commands::{UserCommand, UserCommands, UserEnd, UserRun};
pub use worktree::RefusedPath;
