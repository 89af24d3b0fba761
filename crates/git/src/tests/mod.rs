//! Tests that need real repositories.

mod adopt;
mod branch;
mod convert;
mod discover;
mod in_place;
mod proposer;
mod random;
mod store;
