//! The pure ring of Loopwright.
//!
//! Nothing here reads a clock, a file, the environment or a random source: time, ids and seeds
//! arrive as inputs, and what the outside world should do leaves as effects. The same journal
//! therefore always gives the same state and the same next effects, which is what makes resume,
//! replay and the simulator possible.
//!
//! Where to look: [`event`] and [`batch`] are what is recorded, [`effect`] what is asked of the
//! world, [`ending`] why anything is over, [`machine`] the door every kind of loop has, [`kernel`]
//! the bookkeeping all kinds share, [`turn`] how one input becomes one batch, [`replay`] how a record
//! is checked, [`foreign`] what may only be read, [`experiment`] the experiment loop, [`spec`] what a
//! loop is, [`metric`] and [`guard`] what its numbers say, [`near`] what a mistyped word may have
//! meant, [`scrub`] what never gets into a record.

pub mod batch;
pub mod budget;
pub mod canonical;
pub mod digest;
pub mod effect;
pub mod ending;
pub mod event;
pub mod experiment;
pub mod foreign;
pub mod guard;
pub mod ids;
pub mod kernel;
pub mod machine;
pub mod metric;
pub mod near;
pub mod replay;
pub mod role;
pub mod scrub;
pub mod spec;
pub mod time;
pub mod turn;
pub mod usage;
