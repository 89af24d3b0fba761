//! The two arms: preparing one for a measurement, noting what the measurement did, and
//! changing roles.

use std::fmt;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::arms::cache::{self, End, Pairs};
use crate::arms::disk;
use crate::arms::error::ArmsError;
use crate::arms::faults::{Faults, StopAt};
use crate::arms::links::InputLink;
use crate::arms::patterns::Patterns;
use crate::arms::plan::{Plan, Plans, Submodules};
use crate::arms::scan::{Scan, Work};
use crate::arms::slot::Slot;
use crate::arms::stage::{self, Stage};
use crate::arms::stamp::{now_ns, wait_out_second};
use crate::arms::synchronise::{self, Content};
use crate::arms::times;
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
    stage: Stage,
    rules: ArmRules,
    slots: [Slot; 2],
    incumbent: usize,
    inode: Option<u64>,
    pairs: Pairs,
    plans: Plans,
    faults: Faults,
    never_wait: bool,
    /// What the state on the disk of each slot says, to save it only when that changes.
    saved: [Option<(Arc<Plan>, Option<disk::Digest>)>; 2],
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
        let (work, waited) = self.synchronise(slot, &plan, &changed, &mut content)?;
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
            switched: work.writes.len(),
            removed: work.removals.len() + work.former.len(),
            cache_copied,
            waited,
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

    /// True if the setup must run in the arm of `role`: it never did, or not with the content
    /// its `inputs` have now. What a setup makes must lie in `cache` (or come by a link):
    /// everything else is gone with the next preparation.
    pub fn needs_setup(&self, role: Role, inputs: &Patterns) -> Result<bool, ArmsError> {
        let slot = self.expect_active(role)?;
        let state = &self.slots[slot];
        Ok(state.plan.as_ref().map(|plan| plan.digest_of(inputs)) != state.setup)
    }

    /// The setup ran in the arm of `role`, and well. [`Self::after_run`] follows, as after
    /// every run, and then another [`Self::prepare`] before the measurement.
    pub fn setup_done(&mut self, role: Role, inputs: &Patterns) -> Result<(), ArmsError> {
        let slot = self.expect_active(role)?;
        let state = &mut self.slots[slot];
        state.setup = state.plan.as_ref().map(|plan| plan.digest_of(inputs));
        Ok(())
    }

    /// The paths of a tree that lie in the declared cache. They are checked out like any other,
    /// but a proposal that adds one may be worth a word.
    pub fn tracked_cache_paths(&self, target: &TreeListing) -> Vec<RepoPath> {
        let covered = |path: &&RepoPath| self.rules.cache.cover(path);
        target.keys().filter(covered).cloned().collect()
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

    /// Puts everything away for the next process. Not calling this costs time there, no more.
    pub fn close(mut self) -> Result<(), ArmsError> {
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

    /// Where the slot's checkout is right now.
    fn place_of(&self, slot: usize) -> PathBuf {
        if self.stage.active == Some(slot) {
            self.stage.tree.clone()
        } else {
            self.slots[slot].parked()
        }
    }

    /// Makes sure the slot has a checkout of its own, in the active place or parked with that
    /// place free, and marks it busy.
    fn enter(&mut self, slot: usize, role: Role) -> Result<(), ArmsError> {
        if self.stage.active != Some(slot) || !self.stage.holds(self.inode) {
            self.park()?;
        }
        if self.slots[slot].busy {
            // Somebody may have run here, and nobody said that it came to an end.
            self.slots[slot].take_cache = true;
            self.slots[slot].drop_cache |= role == Role::Incumbent;
        }
        self.slots[slot].mark_busy()?;
        self.faults.reach("marked busy")?;
        self.slots[slot].forget_dropped_cache();
        let path = self.place_of(slot);
        if stage::is_real_directory(&path) {
            return Ok(());
        }
        stage::remove_all(&path)?;
        self.slots[slot].forget();
        self.pairs.forget();
        self.faults.reach("make tree")?;
        fs::create_dir(&path).map_err(ArmsError::io("make directory", &path))
    }

    /// True if the candidate arm has to start from the incumbent's cache; takes over what is
    /// known about that cache.
    fn start_candidate(&mut self, slot: usize, plan: &Arc<Plan>) -> bool {
        let state = &self.slots[slot];
        let same = state
            .plan
            .as_ref()
            .is_some_and(|old| Arc::ptr_eq(old, plan) || old == plan);
        if self.rules.cache.is_empty() || (same && !state.take_cache) {
            return false;
        }
        let incumbent = &self.slots[self.incumbent];
        let (base, setup) = (incumbent.base.clone(), incumbent.setup);
        let has_cache = !incumbent.drop_cache && stage::is_real_directory(&incumbent.parked());
        let ran_until_ns = incumbent.ran_until_ns.max(state.ran_until_ns);
        let state = &mut self.slots[slot];
        state.base = base;
        state.setup = setup;
        state.ran_until_ns = ran_until_ns;
        // Without one to copy, the old one goes with everything else that does not belong here.
        state.drop_cache |= !has_cache;
        // Set until the copy is complete.
        state.take_cache = true;
        true
    }

    /// By item: true if the cache was built from another content of it.
    fn changed_since_cache(&self, slot: usize, plan: &Arc<Plan>) -> Vec<bool> {
        let state = &self.slots[slot];
        let mut changed = vec![false; plan.items.len()];
        if self.rules.cache.is_empty() {
            return changed;
        }
        if let Some(base) = state.base.as_ref().filter(|base| !Arc::ptr_eq(base, plan)) {
            for index in plan.changed_since(base) {
                changed[index] = true;
            }
        }
        changed
    }

    fn synchronise(
        &mut self,
        slot: usize,
        plan: &Arc<Plan>,
        changed: &[bool],
        content: &mut Content<'_, '_>,
    ) -> Result<(Work, Duration), ArmsError> {
        let root_path = self.place_of(slot);
        let state = &mut self.slots[slot];
        let root = disk::open_root(&root_path).map_err(ArmsError::io("open", &root_path))?;
        let nothing = Patterns::default();
        let patterns = if state.drop_cache {
            &nothing
        } else {
            &self.rules.cache
        };
        let reconverted =
            state.torn || state.plan.as_ref().map(|old| &old.attributes) != Some(&plan.attributes);
        let all;
        let forced = if reconverted {
            all = vec![true; plan.items.len()];
            &all
        } else {
            changed
        };
        let known = &mut state.known;
        let mut work = Scan::run(root.as_fd(), &root_path, plan, patterns, known, forced)?;
        if let Some(old) = state.plan.as_ref().filter(|old| !Arc::ptr_eq(old, plan)) {
            for path in old.missing_in(plan) {
                known.remove(&path);
                if patterns.cover(&path) {
                    work.former.push(path);
                }
            }
        }
        let mut waited = Duration::ZERO;
        if !self.rules.cache.is_empty() && !work.is_empty() {
            if let Some(ran_until_ns) = state.ran_until_ns.filter(|_| !self.never_wait) {
                waited = wait_out_second(ran_until_ns);
            }
            self.faults.reach("waited")?;
        }
        state.torn |= !work.is_empty();
        let faults = &mut self.faults;
        synchronise::apply(
            root.as_fd(),
            &root_path,
            plan,
            &work,
            known,
            content,
            faults,
        )?;
        state.plan = Some(Arc::clone(plan));
        state.torn = false;
        state.drop_cache = false;
        Ok((work, waited))
    }

    /// Gives the candidate arm the incumbent's cache, and the times that belong to it.
    fn inherit(&mut self, slot: usize, plan: &Plan, changed: &[bool]) -> Result<usize, ArmsError> {
        let to_path = self.place_of(slot);
        let (first, second) = self.slots.split_at_mut(1);
        let (own, other) = match slot {
            0 => (&mut first[0], &second[0]),
            _ => (&mut second[0], &first[0]),
        };
        let to = disk::open_root(&to_path).map_err(ArmsError::io("open", &to_path))?;
        let from_path = other.parked();
        let empty = Plan::default();
        let mut copied = 0;
        if stage::is_real_directory(&from_path) && !other.drop_cache {
            let from = disk::open_root(&from_path).map_err(ArmsError::io("open", &from_path))?;
            let from = End {
                root: from.as_fd(),
                path: &from_path,
                plan: other.plan.as_deref().unwrap_or(&empty),
                slot: 1 - slot,
            };
            let to = End {
                root: to.as_fd(),
                path: &to_path,
                plan,
                slot,
            };
            let (patterns, faults) = (&self.rules.cache, &mut self.faults);
            copied = cache::inherit(&from, &to, patterns, &mut self.pairs, faults)?;
        }
        let known = &mut own.known;
        times::align(to.as_fd(), &to_path, plan, changed, known, &other.known)?;
        own.take_cache = false;
        Ok(copied)
    }

    fn touched(&mut self, slot: usize, watched: &[RepoPath]) -> Vec<RepoPath> {
        let mut touched = Vec::new();
        let now_ns = now_ns();
        let root = match disk::open_root(&self.stage.tree) {
            Ok(root) if self.stage.holds(self.inode) => root,
            // The run did away with its checkout.
            _ => return watched.to_vec(),
        };
        let mut opener = disk::Opener::new(root.as_fd());
        for path in watched {
            let Some(known) = self.slots[slot].known.get_mut(path) else {
                continue;
            };
            let (parent, name) = disk::split(path.as_bytes());
            let intact = opener
                .directory(parent)
                .and_then(|parent| known.still_holds(parent, name, now_ns))
                // Not even readable is not intact.
                .unwrap_or(false);
            if !intact {
                touched.push(path.clone());
            }
        }
        touched
    }

    fn save(&mut self, slot: usize) -> Result<(), ArmsError> {
        let state = &self.slots[slot];
        let Some(plan) = state.plan.as_ref().filter(|_| !state.drop_cache) else {
            return Ok(());
        };
        let same = self.saved[slot]
            .as_ref()
            .is_some_and(|(saved, setup)| Arc::ptr_eq(saved, plan) && *setup == state.setup);
        if !same {
            state.save(&self.rules.cache)?;
            self.saved[slot] = Some((Arc::clone(plan), state.setup));
        }
        Ok(())
    }
}
