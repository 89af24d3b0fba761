//! Tests that need real repositories.

mod branch;
mod discover;
mod proposer;
mod store;
