//! The experiment loop: propose a change, measure it, keep it only if it measurably helps.
//!
//! [`machine`] is the state machine, [`state`] what it folds, [`results`] what the outside world
//! answers, [`EffectPath`] the ids of what is asked, [`rule`] the decision point (which arm to measure next, or the verdict), [`outcome`]
//! the closed list of ends a trial can have, [`brief`] what a proposer is told.

mod books;
pub mod brief;
mod closing;
mod conclude;
mod decide;
mod events;
mod fold;
pub mod machine;
mod means;
mod named;
pub mod outcome;
mod path;
pub mod results;
pub mod rule;
pub mod settings;
mod settle;
pub mod shadow;
pub mod state;
mod wanted;

pub use closing::OpenClosing;
pub use events::{ClosingChecked, Decided, SegmentStarted, Taken, TargetChecked, kind};
pub use machine::Experiment;
pub use means::Means;
pub use named::{NAMES_MAX, Named};
pub use outcome::Outcome;
pub use path::{EffectPath, NotOurs, Part};
pub use settings::{Caps, HarnessStart, Mode, RetryOf, Settings};
pub use state::State;
pub use wanted::keep_due;
