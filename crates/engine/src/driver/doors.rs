//! The driver's doors: hands that perform, a committer that writes, a watcher that is told.

use loopwright_core::batch::Batch;
use loopwright_core::effect::{Announced, Settlement};
use loopwright_core::event::{Scrub, Sealed};
use loopwright_core::ids::EffectId;
use loopwright_core::machine::{Ending, Machine};
use loopwright_core::time::Micros;
use loopwright_core::turn::{Given, Late, Run, TurnError};
use loopwright_core::usage::Usage;
use loopwright_record::AppendError;

use super::HostFault;

/// How urgently work in flight is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Haste {
    /// Ask first, then end.
    Gently,
    /// End at once.
    AtOnce,
}

/// Something that happened outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// An effect came to its end.
    Settled {
        /// Which.
        effect: EffectId,
        /// Which attempt.
        attempt: u32,
        /// How, scrubbed.
        settlement: Settlement,
        /// What was scrubbed from it.
        scrub: Scrub,
    },
    /// An effect was stopped as asked.
    Stopped {
        /// Which.
        effect: EffectId,
        /// Which attempt.
        attempt: u32,
        /// What it had used.
        usage: Usage,
    },
    /// A person said something while the run is driven: words that belong together, recorded all or
    /// not at all. Where they come too late, the watcher is told.
    Said(Vec<Given>),
    /// The time waited for has come.
    TimeReached,
    /// The invocation is to end: a signal, or a cancellation.
    Interrupt {
        /// How urgently.
        haste: Haste,
        /// By what, in words: `SIGINT`.
        by: String,
    },
    /// The host itself can't go on: its disk is full, its object store is broken.
    Broken(HostFault),
}

/// The hands of the host: performs effects, says what happened. The only door to the world.
pub trait Hands {
    /// Says what will be begun once its announcement is durable. What costs nothing, can be seen by
    /// nobody and may be done twice can be made ready while that is written. Nobody has to.
    fn make_ready(&mut self, _announced: &Announced) {}

    /// Begins to perform an announced effect; doesn't wait for it.
    fn begin(&mut self, announced: Announced);

    /// Stops one in flight; [`Happening::Stopped`] follows, or [`Happening::Settled`] where it was
    /// faster.
    fn stop(&mut self, effect: &EffectId, haste: Haste);

    /// Waits until something happens, at the latest until `until`.
    fn wait(&mut self, until: Option<Micros>) -> Happening;

    /// The time.
    fn now(&mut self) -> Micros;
}

/// The one place where batches become durable.
pub trait Committer<M: Machine> {
    /// Writes a batch; on return it survives everything. `run` is the state after it, for a
    /// snapshot.
    fn commit(&mut self, batch: &Batch, run: &Run<M>) -> Result<(), AppendError>;
}

/// Is told of every event once it is durable, and of what is worth saying.
pub trait Watcher {
    /// These events were committed.
    fn committed(&mut self, events: &[Sealed]);

    /// Something worth saying that stops nobody.
    fn notice(&mut self, words: &str);

    /// What a person said while the run is driven was not recorded.
    fn refused(&mut self, why: &TurnError) {
        self.notice(&why.to_string());
    }
}

/// Why a run stopped without an end of its own.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The record could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The record doesn't fit the machine.
    #[error(transparent)]
    Turn(TurnError),
    /// What was to be recorded came too late; nothing was.
    #[error(transparent)]
    Late(Late),
    /// The host could not go on.
    #[error(transparent)]
    Host(HostFault),
    /// The run is over; nothing can begin.
    #[error("the run has ended: {}", .0.sentence())]
    Ended(Ending),
}

impl From<TurnError> for DriveError {
    fn from(error: TurnError) -> Self {
        match error {
            TurnError::Late(late) => Self::Late(late),
            error => Self::Turn(error),
        }
    }
}

/// How a drive came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driven {
    /// Why the invocation ended.
    pub ending: Ending,
    /// What the run waits for, where it waits for a person.
    pub waiting: Option<String>,
}
