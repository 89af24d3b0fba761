//! What a scenario has to say: the machine, the scripted roles, and what is commanded when.

use std::rc::Rc;

use loopwright_core::batch::Batch;
use loopwright_core::effect::Announced;
use loopwright_core::ids::{EffectId, RunId};
use loopwright_core::kernel::RunStarted;
use loopwright_core::machine::Machine;
use loopwright_core::turn::{Given, Run};
use serde_json::Value;

use crate::hands::Performance;
use crate::stage::Stage;

/// What the person at the keyboard does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `run` or `resume`, with these caps.
    Invoke(Value),
    /// Says something, after a while.
    Say {
        /// After how long.
        after_us: u64,
        /// What is recorded of it.
        given: Vec<Given>,
    },
    /// Nothing more.
    Nothing,
}

/// How the decisions of two runs of a scenario are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same decisions in the same order.
    InOrder,
    /// The same decisions, in any order: results that arrive otherwise may be decided about
    /// otherwise in time.
    AsSet,
    /// Not at all: what is lost is decided about.
    None,
}

/// A machine with scripted roles.
pub trait Scenario: 'static {
    /// The machine.
    type Machine: Machine;

    /// The run's id.
    fn run_id(&self) -> RunId;

    /// What the run is started with.
    fn started(&self) -> RunStarted;

    /// What is commanded now. `batches` is the whole record so far.
    fn command(&self, run: &Run<Self::Machine>, batches: &[Batch]) -> Command;

    /// Performs an effect: the same answer for every attempt.
    fn perform(&self, stage: &Rc<Stage>, announced: &Announced) -> Performance;

    /// What a person says about a question while the run is driven: it may be open, or closed.
    fn word(&self, _question: &EffectId, _attempt: u32) -> Option<Vec<Given>> {
        None
    }

    /// The most effects that are in flight at once.
    fn width(&self) -> usize;

    /// How runs of it are compared.
    fn comparison(&self) -> Comparison;
}
