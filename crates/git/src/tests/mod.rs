//! Tests that need real repositories.

mod proposer;
mod store;
