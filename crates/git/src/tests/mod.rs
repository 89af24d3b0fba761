//! Tests that need real repositories.

mod adopt;
mod branch;
mod discover;
mod proposer;
mod store;
