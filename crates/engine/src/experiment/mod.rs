//! The host of experiment loops.
//!
//! [`session`] takes a loop from its specification to the end of an invocation; [`preflight`]
//! refuses what can't work before anything is spent; [`harness`] says what judges the work and
//! where a segment starts; [`workshop`] performs the machine's effects, one file for each:
//! [`propose`], [`measure`], [`keep`]. What was made goes through [`examine`] before it is measured;
//! what commands get and leave lies on the [`desk`].

pub mod adopt;
mod assembly;
pub mod briefing;
pub mod checkup;
mod claim;
mod desk;
pub mod environment;
mod examine;
pub mod fence;
mod harness;
pub mod keep;
mod loop_branch;
pub mod measure;
mod notices;
mod own_commit;
pub mod preflight;
pub mod propose;
pub mod request;
mod retrying;
pub mod session;
pub mod site;
pub mod unfinished;
mod user_git;
mod workable;
pub mod workshop;

pub use adopt::{Adoption, Means, Wanted, adopt};
pub use checkup::{Finding, Level, check_loop, check_project, would_be_refused};
pub use request::{KEYS, Purpose, Request, SessionReport, is_in_place, pinned};
pub use session::Session;
pub use unfinished::{Unfinished, unfinished};
pub use workable::project_to_drive;
