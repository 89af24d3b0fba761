//! The two arms: preparing one for a measurement, noting what the measurement did, and
//! changing roles.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::arms::disk;
use crate::arms::error::ArmsError;
use crate::arms::faults::{Faults, StopAt};
use crate::arms::inherit::Pairs;
use crate::arms::links::InputLink;
use crate::arms::patterns::{Patterns, SetupInputs};
use crate::arms::plan::{Plan, Plans, Submodules};
use crate::arms::slot::Slot;
use crate::arms::stage::{self, Stage};
use crate::arms::stamp::now_ns;
use crate::arms::synchronise::Content;
use crate::types::{Objects, RepoPath, TreeListing};

/// Which side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The best accepted tree.
    Incumbent,
    /// The tree under test.
    Candidate,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Incumbent => "incumbent",
            Self::Candidate => "candidate",
        })
    }
}

/// What the arms of a run hold besides the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArmRules {
    /// Paths that survive from one measurement to the next.
    pub cache: Patterns,
    /// Inputs shared with the user's checkout.
    pub links: Vec<InputLink>,
}

/// An arm that is ready for a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// Where it is: the same path for both arms.
    pub path: PathBuf,
    /// How many files of the tree were written.
    pub switched: usize,
    /// How many things that do not belong there were removed.
    pub removed: usize,
    /// How many files of the incumbent's cache were copied.
    pub cache_copied: usize,
    /// How long was waited for a second to be over.
    pub waited: Duration,
}

/// What a run did to its arm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTrace {
    /// The watched files that are not what they were, in order. A file changed and changed
    /// back counts.
    pub touched: Vec<RepoPath>,
}

/// Two checkouts that take turns at one path.
#[derive(Debug)]
pub struct Arms {
    pub(super) stage: Stage,
    pub(super) rules: ArmRules,
    pub(super) slots: [Slot; 2],
    pub(super) incumbent: usize,
    pub(super) inode: Option<u64>,
    pub(super) pairs: Pairs,
    pub(super) plans: Plans,
    pub(super) faults: Faults,
    pub(super) never_wait: bool,
    /// What the state on the disk of each slot says, to save it only when that changes.
    pub(super) saved: [Option<(Arc<Plan>, Option<disk::Digest>)>; 2],
}

impl Arms {
    /// Opens the arms kept in `directory` (made if missing), which must not lie in the user's
    /// repository. One process at a time; whatever a killed one left is put right.
    pub fn open(directory: &Path, rules: ArmRules) -> Result<Self, ArmsError> {
        let stage = Stage::open(directory)?;
        let mut slots = [0, 1].map(|slot| Slot::load(stage.home(slot), &rules.cache));
        let incumbent = stage.incumbent();
        // What is on the disk about a candidate may be older than its last run.
        slots[1 - incumbent].base = None;
        slots[1 - incumbent].setup = None;
        Ok(Self {
            stage,
            rules,
            slots,
            incumbent,
            inode: None,
            pairs: Pairs::default(),
            plans: Plans::default(),
            faults: Faults::default(),
            never_wait: false,
            saved: [None, None],
        })
    }

    /// The path every command of a measurement sees as its checkout.
    pub fn tree_path(&self) -> &Path {
        &self.stage.tree
    }

    /// What belongs into `GIT_CEILING_DIRECTORIES`, so that git in an arm finds no repository
    /// further up.
    pub fn ceiling(&self) -> &Path {
        self.stage.ceiling()
    }

    /// The rules the arms were opened with.
    pub fn rules(&self) -> &ArmRules {
        &self.rules
    }

    /// Brings the arm of `role` to exactly `target` and moves it to [`Self::tree_path`].
    ///
    /// Nothing may run in the arms meanwhile. After every run [`Self::after_run`] must be
    /// called. A candidate other than the last one starts with the incumbent's cache.
    pub fn prepare(
        &mut self,
        role: Role,
        target: &TreeListing,
        objects: &mut dyn Objects,
        mut submodules: Option<&mut (dyn Submodules + '_)>,
    ) -> Result<Prepared, ArmsError> {
        let plan = self
            .plans
            .plan(target, &self.rules.links, submodules.as_deref_mut())?;
        objects.enter_tree(target)?;
        let slot = self.slot_of(role);
        self.enter(slot, role)?;
        let inherits = role == Role::Candidate && self.start_candidate(slot, &plan);
        let changed = self.changed_since_cache(slot, &plan);
        let mut content = Content {
            objects,
            submodules,
        };
        let done = self.synchronise(slot, &plan, &changed, &mut content)?;
        let cache_copied = if inherits {
            self.inherit(slot, &plan, &changed)?
        } else {
            0
        };
        if self.stage.active.is_none() {
            self.inode = stage::inode(&self.slots[slot].parked());
            self.stage.move_in(slot, &mut self.faults)?;
        }
        Ok(Prepared {
            path: self.stage.tree.clone(),
            switched: done.written,
            removed: done.removed,
            cache_copied,
            waited: done.waited,
        })
    }

    /// Notes that a run in the arm of `role` is over, the last process of it dead, and finds
    /// out which of the `watched` files (the protected ones) the run itself changed.
    pub fn after_run(&mut self, role: Role, watched: &[RepoPath]) -> Result<RunTrace, ArmsError> {
        let slot = self.expect_active(role)?;
        let ended_ns = now_ns();
        let touched = self.touched(slot, watched);
        let state = &mut self.slots[slot];
        state.ran_until_ns = Some(ended_ns);
        state.base.clone_from(&state.plan);
        if role == Role::Incumbent {
            self.save(slot)?;
        }
        self.faults.reach("run noted")?;
        self.slots[slot].mark_idle()?;
        Ok(RunTrace { touched })
    }

    /// The candidate is kept: its arm is the incumbent's from now on, nothing is copied.
    pub fn promote(&mut self) -> Result<(), ArmsError> {
        let slot = self.slot_of(Role::Candidate);
        if self.slots[slot].busy || self.slots[slot].plan.is_none() {
            return Err(ArmsError::OutOfOrder {
                role: Role::Candidate,
                problem: "it was not measured to the end",
            });
        }
        self.save(slot)?;
        self.faults.reach("promote")?;
        self.stage.set_incumbent(slot)?;
        self.slots[self.incumbent].take_cache = true;
        self.incumbent = slot;
        self.faults.reach("promoted")
    }

    /// The candidate is not kept: whatever comes next in its arm starts from the incumbent's
    /// cache again. (Another tree does so anyway; this is for the same tree measured afresh.)
    pub fn reject(&mut self) {
        let slot = self.slot_of(Role::Candidate);
        self.slots[slot].take_cache = true;
    }

    /// The last run in the arm of `role` was cut off (a time limit, a crash): what it left in
    /// the cache may be half-written and goes before the next one. Said after
    /// [`Self::after_run`].
    pub fn discard_cache(&mut self, role: Role) -> Result<(), ArmsError> {
        let slot = self.slot_of(role);
        self.saved[slot] = None;
        self.slots[slot].discard_cache()
    }

    /// True if the setup must run in the arm of `role`: it never did, or not with what its
    /// `inputs` are now. What a setup makes must lie in `cache` (or come by a link):
    /// everything else is gone with the next preparation.
    pub fn needs_setup(&self, role: Role, inputs: &SetupInputs) -> Result<bool, ArmsError> {
        let slot = self.expect_active(role)?;
        let state = &self.slots[slot];
        Ok(state.plan.as_ref().map(|plan| plan.digest_of(inputs)) != state.setup)
    }

    /// The setup ran in the arm of `role`, and well. [`Self::after_run`] follows, as after
    /// every run, and then another [`Self::prepare`] before the measurement.
    pub fn setup_done(&mut self, role: Role, inputs: &SetupInputs) -> Result<(), ArmsError> {
        let slot = self.expect_active(role)?;
        let state = &mut self.slots[slot];
        state.setup = state.plan.as_ref().map(|plan| plan.digest_of(inputs));
        Ok(())
    }

    /// Moves the active checkout back to its slot. Preparing does this by itself.
    pub fn park(&mut self) -> Result<(), ArmsError> {
        if let Some((slot, false)) = self.stage.move_out(self.inode, &mut self.faults)? {
            // The run removed or replaced its own checkout.
            self.slots[slot].forget();
            self.pairs.forget();
        }
        Ok(())
    }

    /// Removes `folder`, in which the arms in `directory` are, unless a process has these open; says
    /// whether it did.
    pub fn remove_unused(folder: &Path, directory: &Path) -> Result<bool, ArmsError> {
        Stage::remove_unused(folder, directory)
    }

    /// Puts everything away for the next process, which then believes both checkouts by their
    /// stamps. Not calling this costs time there, no more.
    pub fn close(&mut self) -> Result<(), ArmsError> {
        self.park()?;
        for slot in [0, 1] {
            if !self.slots[slot].busy {
                self.saved[slot] = None;
                self.save(slot)?;
            }
        }
        Ok(())
    }

    /// Stops the work at steps of a test's choice, as if the process were killed there.
    #[doc(hidden)]
    pub fn stop_at(&mut self, stop_at: Option<StopAt>) {
        self.faults.set(stop_at);
    }

    /// Leaves out the waiting that keeps build tools honest, for tests that build nothing.
    #[doc(hidden)]
    pub fn never_wait(&mut self) {
        self.never_wait = true;
    }

    fn slot_of(&self, role: Role) -> usize {
        match role {
            Role::Incumbent => self.incumbent,
            Role::Candidate => 1 - self.incumbent,
        }
    }

    fn expect_active(&self, role: Role) -> Result<usize, ArmsError> {
        let slot = self.slot_of(role);
        if self.stage.active == Some(slot) {
            return Ok(slot);
        }
        Err(ArmsError::OutOfOrder {
            role,
            problem: "another one is in place",
        })
    }
}
