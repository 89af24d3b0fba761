//! A fault of the host: what keeps it from performing anything, whatever is tried. It is told apart
//! from what comes of a trial where it happens, and keeps its kind up to whoever says how it ended.

use loopwright_core::ids::EffectId;
use loopwright_core::scrub::Secrets;
use loopwright_record::{AppendError, BlobError, LoadError, OpenError, ReadError, StorageError};

use crate::error::EngineError;

use super::DriveError;

/// What kind of fault it is: it decides what is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The disk, the store, git, a supervisor: once that is put right, the run goes on.
    Host,
    /// The record, or an output in it, isn't what was written.
    Damage,
    /// Another process has the run, or its checkout, now.
    TakenOver,
}

/// A fault of the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct HostFault {
    /// Which kind.
    pub kind: FaultKind,
    /// What happened, for people; without secrets.
    pub words: String,
}

impl HostFault {
    /// One that nothing more is known of than its words.
    pub fn host(words: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::Host,
            words: words.into(),
        }
    }

    /// One that came up while `effect` was performed.
    pub fn while_performing(effect: &EffectId, error: &EngineError, secrets: &Secrets) -> Self {
        let words = format!("{effect}: {error}");
        Self {
            kind: FaultKind::of(error),
            words: secrets.scrub_text(&words).0.into_owned(),
        }
    }

    /// The same, and what else went wrong on account of it.
    #[must_use]
    pub fn and(mut self, words: impl std::fmt::Display) -> Self {
        self.words = format!("{}; {words}", self.words);
        self
    }
}

impl From<&EngineError> for HostFault {
    fn from(error: &EngineError) -> Self {
        Self {
            kind: FaultKind::of(error),
            words: error.to_string(),
        }
    }
}

impl FaultKind {
    /// The kind of an error that keeps the host from going on.
    pub fn of(error: &EngineError) -> Self {
        let is_damage = match error {
            EngineError::Held(_) => return Self::TakenOver,
            EngineError::Drive(error) => return Self::of_drive(error),
            EngineError::Open(OpenError::Storage { source, .. }) => is_damaged(source),
            EngineError::Open(error) => {
                matches!(error, OpenError::Damaged { .. } | OpenError::Missing(_))
            }
            EngineError::Read(error) | EngineError::Load(LoadError::Read(error)) => {
                is_misread(error)
            }
            EngineError::Load(error) => !matches!(error, LoadError::Undrivable { .. }),
            EngineError::Storage(error) | EngineError::Blob(BlobError::Storage(error)) => {
                is_damaged(error)
            }
            EngineError::Blob(error) => {
                matches!(error, BlobError::Damaged { .. } | BlobError::Missing(_))
            }
            // Objects of our own that are gone or broken are part of what a run rests on; they can
            // be had again where they came from, so the record is whole.
            EngineError::Git(_)
            | EngineError::Arms(_)
            | EngineError::Start(_)
            | EngineError::NotStarted(_)
            | EngineError::Io { .. }
            | EngineError::Refused { .. }
            | EngineError::Specification(_) => false,
        };
        if is_damage { Self::Damage } else { Self::Host }
    }

    fn of_drive(error: &DriveError) -> Self {
        match error {
            DriveError::Host(fault) => fault.kind,
            DriveError::Append(AppendError::Fenced { .. }) => Self::TakenOver,
            DriveError::Append(AppendError::Damaged(_)) | DriveError::Turn(_) => Self::Damage,
            DriveError::Append(_) | DriveError::Late(_) | DriveError::Ended(_) => Self::Host,
        }
    }
}

fn is_damaged(error: &StorageError) -> bool {
    matches!(error, StorageError::Damaged(_))
}

fn is_misread(error: &ReadError) -> bool {
    match error {
        ReadError::Damaged(_) => true,
        ReadError::Storage(error) => is_damaged(error),
        ReadError::Newer { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_core::ids::RunId;
    use loopwright_record::{Damage, Held};

    #[test]
    fn a_fault_keeps_its_kind_whatever_it_is_wrapped_in() {
        let run = RunId::new("0198c0de-0000-7000-8000-000000000001").unwrap();
        let damaged = || StorageError::Damaged("no such table".to_owned());
        let damage = Damage {
            run,
            batch: None,
            seq: None,
            what: "gone".to_owned(),
        };
        let held = Held {
            what: "run".to_owned(),
            holder: None,
            since: None,
            expires: None,
        };
        let open = |source| OpenError::Storage {
            path: "journal".into(),
            source,
        };
        let append = |error| EngineError::Drive(DriveError::Append(error));
        let of_host = |kind| HostFault {
            kind,
            words: "it".to_owned(),
        };
        let cases = [
            (EngineError::Storage(damaged()), FaultKind::Damage),
            (EngineError::Storage(StorageError::Full), FaultKind::Host),
            (EngineError::Open(open(damaged())), FaultKind::Damage),
            (EngineError::Open(open(StorageError::Full)), FaultKind::Host),
            (EngineError::Read(damage.clone().into()), FaultKind::Damage),
            (
                EngineError::Load(LoadError::Read(damage.into())),
                FaultKind::Damage,
            ),
            (
                EngineError::Blob(BlobError::Storage(damaged())),
                FaultKind::Damage,
            ),
            (append(AppendError::Full), FaultKind::Host),
            (
                append(AppendError::Damaged(String::new())),
                FaultKind::Damage,
            ),
            (
                EngineError::Drive(DriveError::Host(of_host(FaultKind::Damage))),
                FaultKind::Damage,
            ),
            (EngineError::Held(Box::new(held)), FaultKind::TakenOver),
            (EngineError::refused("it doesn't fit"), FaultKind::Host),
            (
                EngineError::NotStarted("no shell".to_owned()),
                FaultKind::Host,
            ),
        ];
        for (error, kind) in cases {
            assert_eq!(HostFault::from(&error).kind, kind, "{error:?}");
        }
        let both = of_host(FaultKind::TakenOver).and("and more");
        assert_eq!(
            (both.kind, both.words.as_str()),
            (FaultKind::TakenOver, "it; and more")
        );
    }
}
