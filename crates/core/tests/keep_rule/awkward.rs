//! What the peer leaves out.
