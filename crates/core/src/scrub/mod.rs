//! Scrubbing: taking secrets out of what is about to be recorded.
//!
//! Two kinds of things are taken out of any text: **known values**, those of the environment's
//! variables whose names say that they are secret ([`is_secret_name`]), and **token shapes**,
//! credentials that can be told by their form (a provider's prefix and enough random characters
//! behind it).
//!
//! What is taken out is replaced by `[redacted:KIND]`. Scrubbing twice changes nothing more. Prose,
//! code, hashes (a git object id) and numbers survive.
//!
//! The rules are recorded by [`RULES_VERSION`] with every event that went through them. What they
//! cannot see: a secret cut in two by whoever cut the text, one that is encoded anew (base64, hex),
//! and one without a shape whose value is not known.

mod names;
mod pass;
mod pieces;
mod private_key;
mod secrets;
mod shapes;
mod table;

#[cfg(test)]
mod tests;

pub use names::is_secret_name;
pub use pass::Finding;
pub use pieces::Pieces;
pub use secrets::{SHORTEST_KNOWN_BYTES, Secrets};

/// The version of the rules. Raised whenever a text may come out differently.
pub const RULES_VERSION: u32 = 1;
