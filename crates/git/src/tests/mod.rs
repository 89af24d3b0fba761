//! Tests that need real repositories.

mod branch;
mod proposer;
mod store;
