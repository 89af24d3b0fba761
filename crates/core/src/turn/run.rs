//! A run: the kernel's state and the machine's, folded from the same events.

use crate::digest::Digest;
use crate::event::Event;
use crate::ids::{EffectId, RunId};
use crate::kernel::{self, Kernel, kind};
use crate::machine::{Machine, Status};
use crate::role::OnUnknown;
use crate::time::Micros;

use super::TurnError;

/// A run as it stands: the kernel's state and the machine's.
#[derive(Clone, Debug, PartialEq)]
pub struct Run<M: Machine> {
    /// The kernel's state.
    pub kernel: Kernel,
    /// The machine's; none before the run has started.
    pub state: Option<M::State>,
    /// The newest batch: its number and digest.
    pub batch: Option<(u64, Digest)>,
}

impl<M: Machine> Run<M> {
    /// A run before its first event.
    pub fn new(run: RunId) -> Self {
        Self {
            kernel: Kernel::new(run),
            state: None,
            batch: None,
        }
    }

    /// Folds one recorded event.
    pub fn apply(&mut self, event: &Event, id: Digest) -> Result<(), TurnError> {
        self.kernel.apply(event, id)?;
        if event.kind == kind::RUN_STARTED {
            let started: kernel::RunStarted = kernel::body(event)?;
            let state = M::start(&started.specification).map_err(TurnError::Specification)?;
            self.state = Some(state);
        } else if let Some(state) = &mut self.state {
            M::apply(state, event, id)?;
        }
        if let Some(state) = &self.state {
            self.kernel.forget(|effect| M::is_past(state, effect));
        }
        Ok(())
    }

    /// Notes that the events folded so far are those up to this batch.
    pub fn close_batch(&mut self, n: u64, digest: Digest) {
        self.batch = Some((n, digest));
    }

    /// What the run is doing.
    pub fn status(&self) -> Option<Status> {
        if let Some(ending) = &self.kernel.ended {
            return Some(Status::Ended(ending.clone()));
        }
        if let Some(effect) = self.asked_about() {
            let question =
                format!("the outcome of {effect} is unknown: do it again, or count it as failed?");
            return Some(Status::Waiting { question });
        }
        self.state.as_ref().map(M::status)
    }

    /// The effect of unknown outcome that a person has to say something about before the run can
    /// go on. One that the machine has no use for any more (its trial is over) holds nothing up.
    fn asked_about(&self) -> Option<&EffectId> {
        let unknown = &self.kernel.unknown;
        let Some(state) = self.state.as_ref().filter(|_| !unknown.is_empty()) else {
            return unknown.first();
        };
        if self.kernel.invocation.is_none() {
            return unknown.iter().find(|id| !M::is_past(state, id));
        }
        let wanted = M::next(state).effects;
        unknown
            .iter()
            .find(|id| wanted.iter().any(|effect| effect.id == **id))
    }

    /// The effects of unknown outcome that a person is asked about, or will be as soon as somebody
    /// takes up the run: those whose host died with them in flight.
    pub fn asks_about(&self) -> Vec<EffectId> {
        let is_past = |effect: &EffectId| {
            let state = self.state.as_ref();
            state.is_some_and(|state| M::is_past(state, effect))
        };
        let asked = self.kernel.unknown.iter().filter(|id| !is_past(id));
        let lost = self.kernel.in_flight.iter().filter(|(_, flight)| {
            !flight.is_question() && flight.announcement.on_unknown == OnUnknown::Ask
        });
        asked.chain(lost.map(|(id, _)| id)).cloned().collect()
    }

    /// When the run is to be woken, while an invocation is open: for the machine, or because the
    /// wall clock runs out.
    pub fn deadline(&self) -> Option<Micros> {
        self.kernel.invocation?;
        let machine = self
            .state
            .as_ref()
            .and_then(|state| M::next(state).deadline);
        let clock = self.kernel.out_of_time_at();
        machine.into_iter().chain(clock).min()
    }
}
