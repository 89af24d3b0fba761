//! The keep rule: the trace it was designed with, its equality with the peer it was simulated by,
//! what the peer leaves out, and how often it errs.

mod awkward;
mod bench;
mod golden;
mod peer;
mod streams;
mod worlds;
