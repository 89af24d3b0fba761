//! The fuse: ends a simulated life at a chosen point, as a kill or a power cut would.

use std::cell::Cell;

use crate::plan::Disturbance;

/// How a life is left where the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The crash point.
    pub point: &'static str,
}

/// How the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// It alone: what it wrote is there.
    Kill,
    /// With the machine: what it did not sync is not certain.
    PowerLoss {
        /// Seed of what becomes of it.
        tear: u32,
    },
}

/// Counts the crash points that a life passes, and ends it at one of them.
#[derive(Debug, Default)]
pub struct Fuse {
    disturbance: Cell<Option<Disturbance>>,
    passed: Cell<u32>,
    passed_in_all: Cell<u64>,
    appends: Cell<u32>,
}

impl Fuse {
    /// Begins a life.
    pub fn arm(&self, disturbance: Option<Disturbance>) {
        self.disturbance.set(disturbance);
        self.passed.set(0);
        self.appends.set(0);
    }

    /// How many points all lives have passed.
    pub fn passed_in_all(&self) -> u64 {
        self.passed_in_all.get()
    }

    /// How many appends this life has begun.
    pub fn appends(&self) -> u32 {
        self.appends.get()
    }

    /// Whether the power fails in the append that is under way.
    pub fn power_fails_now(&self) -> Option<u32> {
        match self.disturbance.get() {
            Some(Disturbance::PowerLoss { append, tear }) if append == self.appends.get() => {
                Some(tear)
            }
            _ => None,
        }
    }

    /// Passes a point; says how the life ends here, if it does.
    pub fn pass(&self, point: &'static str) -> Option<Blow> {
        self.passed.set(self.passed.get() + 1);
        self.passed_in_all.set(self.passed_in_all.get() + 1);
        if point == "append.begin" {
            self.appends.set(self.appends.get() + 1);
        }
        match self.disturbance.get() {
            Some(Disturbance::Crash(at)) if at == self.passed.get() => Some(Blow::Kill),
            Some(Disturbance::PowerLoss { append, tear })
                if point == "append.committed" && append == self.appends.get() =>
            {
                Some(Blow::PowerLoss { tear })
            }
            _ => None,
        }
    }
}
