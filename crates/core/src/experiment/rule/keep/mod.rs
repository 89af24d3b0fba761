//! The keep rule, version 1: one draw screens, a duel decides, and doubt is a purse.
//!
//! A candidate's first draw is held against the remembered incumbent. If it looks promising, the
//! loop stakes a part of its [`Purse`] of tolerated false keeps on a duel: fresh runs of candidate
//! and incumbent, back to back, until it is clearly better, clearly not, or out of pairs. Only what
//! the pairs of a duel say can keep a candidate; the remembered incumbent saves runs and nothing
//! else. A metric that repeats exactly costs at most two runs more in a whole loop.
//!
//! [`Purse`] belongs to the loop, [`Standing`] to one branch in one segment, [`Case`] to one
//! candidate. `docs/decisions/0014-keep-rule.md` says why, and what it can't do.

mod case;
mod closing;
mod duel;
mod exact;
mod grain;
mod noise;
mod purse;
mod reference;
mod scale;
mod settings;
mod standing;
mod statistics;
mod words;

pub use case::{Case, Failed, Purpose};
pub use closing::{Claim, Closing, Side};
pub use purse::Purse;
pub use scale::{Scale, Unjudged};
pub use settings::{Keep, KnownNoise};
pub use standing::Standing;

/// The policy's name and version.
pub(super) const POLICY: &str = "keep/1";
