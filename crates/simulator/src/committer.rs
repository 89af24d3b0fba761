//! The committer of a simulated life: writes through the life's journal, and fails where the plan
//! says so.

use std::rc::Rc;

use loopwright_core::batch::Batch;
use loopwright_core::event::Sealed;
use loopwright_core::machine::Machine;
use loopwright_core::turn::{Run, TurnError};
use loopwright_engine::{Committer, Watcher};
use loopwright_record::{Along, AppendError, Journal as _, Snapshot};

use crate::laws;
use crate::medium::SimJournal;
use crate::plan::Disturbance;
use crate::stage::Stage;
use crate::violation::{Law, Violation};

/// Commits a life's batches.
pub struct SimCommitter<'a> {
    stage: Rc<Stage>,
    journal: &'a mut SimJournal,
    disturbance: Option<Disturbance>,
    commits: u32,
    shut_out: bool,
}

impl<'a> SimCommitter<'a> {
    /// A committer into `journal`.
    pub fn new(
        stage: &Rc<Stage>,
        journal: &'a mut SimJournal,
        disturbance: Option<Disturbance>,
    ) -> Self {
        Self {
            stage: Rc::clone(stage),
            journal,
            disturbance,
            commits: 0,
            shut_out: false,
        }
    }

    fn append<M: Machine>(&mut self, batch: &Batch, run: &Run<M>) -> Result<(), AppendError> {
        let every = self.stage.plan.snapshot_every.max(1);
        let due = batch.header.n % every == every - 1;
        let snapshot = if due { Snapshot::of(run) } else { None };
        let along = Along {
            snapshot: snapshot.as_ref(),
        };
        self.journal.append_with(batch, along)
    }
}

impl<M: Machine> Committer<M> for SimCommitter<'_> {
    fn commit(&mut self, batch: &Batch, run: &Run<M>) -> Result<(), AppendError> {
        self.commits += 1;
        let small = || {
            if batch.header.n.is_multiple_of(8) {
                laws::is_small(run)
            } else {
                Ok(())
            }
        };
        if let Err(violation) = laws::hold_now(run).and_then(|()| small()) {
            Violation::throw(violation.law, violation.words);
        }
        match self.disturbance {
            Some(Disturbance::WriteFails { append, reached }) if append == self.commits => {
                if reached {
                    self.append(batch, run)?;
                }
                return Err(AppendError::Io("no space is left".to_owned()));
            }
            Some(Disturbance::Usurped(append)) if append == self.commits => {
                if let Err(violation) = self.journal.usurp(&batch.header.run) {
                    Violation::throw(violation.law, violation.words);
                }
                self.shut_out = true;
            }
            _ => {}
        }
        self.append(batch, run)?;
        if self.shut_out {
            Violation::throw(Law::Fenced, "a holder that was shut out went on writing");
        }
        self.stage.world.learn(batch);
        Ok(())
    }
}

/// Sees that what a watcher is told of is durable.
pub struct SimWatcher {
    stage: Rc<Stage>,
}

impl SimWatcher {
    /// A watcher of that stage.
    pub fn new(stage: &Rc<Stage>) -> Self {
        Self {
            stage: Rc::clone(stage),
        }
    }
}

impl Watcher for SimWatcher {
    fn committed(&mut self, events: &[Sealed]) {
        let run = events.first().map(|sealed| &sealed.event.run);
        let durable = run.and_then(|run| self.stage.world.returned(run));
        if durable.is_none() {
            Violation::throw(Law::Durable, "a watcher heard of what is not durable");
        }
    }

    fn notice(&mut self, _words: &str) {}

    fn refused(&mut self, why: &TurnError) {
        if !matches!(why, TurnError::Late(_)) {
            Violation::throw(Law::Late, format!("a word was refused: {why}"));
        }
        self.stage.world.refuse();
    }
}
