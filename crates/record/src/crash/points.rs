//! The closed list of crash points. A new `crash_point!` is entered here, so that a sweep can't
//! miss it.

/// Every crash point there is: `where.when`.
pub(super) const POINTS: &[&str] = &[
    // The journal.
    "append.begin",
    "append.inserted",
    "append.committed",
    // Leases.
    "lease.locked",
    "lease.committed",
    // Blobs.
    "blob.written",
    "blob.synced",
    "blob.renamed",
    "blob.settled",
    // Refs.
    "ref.begin",
    "ref.moved",
    "ref.committed",
    // The engine: turns, commands, the places of an experiment loop.
    "turn.before_commit",
    "turn.after_commit",
    "command.noted",
    "command.running",
    "command.ended",
    "propose.ready",
    "propose.snapshot",
    "candidate.chained",
    "measure.ready",
    "keep.committed",
    "keep.published",
];
