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
];
