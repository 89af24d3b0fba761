//! The stage of one simulated run: what all lives of its host share.

use std::cell::RefCell;

use crate::fuse::{Blow, Crash, Fuse};
use crate::medium::Disk;
use crate::plan::Plan;
use crate::violation::Violation;
use crate::world::World;

/// What all lives of one simulated host share.
#[derive(Debug)]
pub struct Stage {
    /// What is to happen.
    pub plan: Plan,
    /// The outside.
    pub world: World,
    /// The record.
    pub disk: RefCell<Disk>,
    /// What ends a life.
    pub fuse: Fuse,
}

impl Stage {
    /// An empty stage.
    pub fn new(plan: &Plan) -> Result<Self, Violation> {
        Ok(Self {
            plan: plan.clone(),
            world: World::new(),
            disk: RefCell::new(Disk::new(plan.medium)?),
            fuse: Fuse::default(),
        })
    }

    /// Passes a crash point. If the process dies here, the disk is left as it is at this moment,
    /// and the life is left by unwinding; what unwinding writes is lost.
    pub fn pass(&self, point: &'static str) {
        if point == "append.begin" {
            self.disk.borrow_mut().note_synced(self.fuse.appends() + 1);
        }
        let Some(blow) = self.fuse.pass(point) else {
            return;
        };
        self.blow(blow, point);
    }

    /// The process dies now.
    pub fn blow(&self, blow: Blow, point: &'static str) -> ! {
        if let Err(violation) = self.disk.borrow_mut().freeze(blow) {
            std::panic::resume_unwind(Box::new(violation));
        }
        std::panic::resume_unwind(Box::new(Crash { point }));
    }
}
