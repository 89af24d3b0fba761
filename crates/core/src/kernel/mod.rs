//! The bookkeeping that all kinds of loop share: invocations, effects in flight, budgets, ends.
//!
//! The kernel folds its own kinds of events; a machine never has to know what an attempt or an
//! epoch is. Its events fall in two groups. *Given* ones record what came from outside (an
//! invocation, a settled effect, a person's word); *derived* ones follow from them (announcements,
//! refusals, a machine's own end). [`crate::turn`] makes the second from the first, which is why a
//! replay can check them byte for byte.
//!
//! `bodies` says what stands in its events, `state` what it knows of a run, `fold` how the second
//! comes from the first.

mod bodies;
mod fold;
mod state;

pub use bodies::*;
pub use state::*;
