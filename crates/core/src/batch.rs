//! Batches: the journal's unit of writing, the events of one transaction.
//!
//! A batch names the batch before it by digest, so that the batches of a run are a chain: nothing
//! can be dropped from its middle, swapped or repeated without being seen.

use serde::{Deserialize, Serialize};

use crate::canonical::{CanonicalError, to_canonical};
use crate::digest::Digest;
use crate::event::Sealed;
use crate::ids::RunId;

const BATCH_DOMAIN: &str = "loopwright/batch/1";

/// What a batch's digest covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchHeader {
    /// The run.
    pub run: RunId,
    /// The place in the run, from 0, without gaps.
    pub n: u64,
    /// The digest of batch `n - 1`; none for the first.
    pub previous: Option<Digest>,
    /// The writer's epoch (fencing token) under the run's lease.
    pub epoch: u64,
    /// The ids of its events, in order.
    pub events: Vec<Digest>,
}

impl BatchHeader {
    /// The batch's digest.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Ok(Digest::of(BATCH_DOMAIN, &to_canonical(self)?))
    }
}

/// The events of one transaction, ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What its digest covers.
    pub header: BatchHeader,
    /// Its digest.
    pub digest: Digest,
    /// Its events; never empty.
    pub events: Vec<Sealed>,
}

impl Batch {
    /// A batch over `events`.
    pub fn new(
        run: RunId,
        n: u64,
        previous: Option<Digest>,
        epoch: u64,
        events: Vec<Sealed>,
    ) -> Result<Self, CanonicalError> {
        assert!(!events.is_empty(), "BUG: a batch without events");
        let ids = events.iter().map(|sealed| sealed.id).collect();
        let header = BatchHeader {
            run,
            n,
            previous,
            epoch,
            events: ids,
        };
        let digest = header.digest()?;
        Ok(Self {
            header,
            digest,
            events,
        })
    }
}

/// Where a run's chain of batches ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last batch's number.
    pub n: u64,
    /// Its digest.
    pub digest: Digest,
    /// The last event's number.
    pub seq: u64,
    /// The last event's id.
    pub event: Digest,
}
