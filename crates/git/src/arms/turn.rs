//! The parts of a turn: entering a slot, taking over the incumbent's cache, synchronising, and
//! looking at what a run did. In which order is said in `switch`.

use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::arms::cache::End;
use crate::arms::disk;
use crate::arms::error::ArmsError;
use crate::arms::inherit;
use crate::arms::patterns::Patterns;
use crate::arms::plan::Plan;
use crate::arms::scan::Scan;
use crate::arms::stage;
use crate::arms::stamp::{now_ns, wait_out_second};
use crate::arms::switch::{Arms, Role};
use crate::arms::synchronise::{self, Content};
use crate::arms::times;
use crate::types::RepoPath;

/// What a synchronisation did.
pub(super) struct Synchronised {
    pub(super) written: usize,
    pub(super) removed: usize,
    pub(super) waited: Duration,
}

impl Arms {
    /// Where the slot's checkout is right now.
    pub(super) fn place_of(&self, slot: usize) -> PathBuf {
        if self.stage.active == Some(slot) {
            self.stage.tree.clone()
        } else {
            self.slots[slot].parked()
        }
    }

    /// Makes sure the slot has a checkout of its own, in the active place or parked with that
    /// place free, and marks it busy.
    pub(super) fn enter(&mut self, slot: usize, role: Role) -> Result<(), ArmsError> {
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
    pub(super) fn start_candidate(&mut self, slot: usize, plan: &Arc<Plan>) -> bool {
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
    pub(super) fn changed_since_cache(&self, slot: usize, plan: &Arc<Plan>) -> Vec<bool> {
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

    pub(super) fn synchronise(
        &mut self,
        slot: usize,
        plan: &Arc<Plan>,
        changed: &[bool],
        content: &mut Content<'_, '_>,
    ) -> Result<Synchronised, ArmsError> {
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
        let faults = &mut self.faults;
        let mut former = Vec::new();
        if let Some(old) = state.plan.as_ref().filter(|old| !Arc::ptr_eq(old, plan)) {
            former = old.missing_in(plan);
            for path in &former {
                known.remove(path);
            }
            former.retain(|path| patterns.cover(path));
            synchronise::remove_former(root.as_fd(), &root_path, plan, &former, faults)?;
        }
        let work = Scan::run(root.as_fd(), &root_path, plan, patterns, known, forced)?;
        let mut waited = Duration::ZERO;
        if !self.rules.cache.is_empty() && !work.is_empty() {
            if let Some(ran_until_ns) = state.ran_until_ns.filter(|_| !self.never_wait) {
                waited = wait_out_second(ran_until_ns);
            }
            faults.reach("waited")?;
        }
        state.torn |= !work.is_empty();
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
        Ok(Synchronised {
            written: work.writes.len(),
            removed: work.removals.len() + former.len(),
            waited,
        })
    }

    /// Gives the candidate arm the incumbent's cache, and the times that belong to it.
    pub(super) fn inherit(
        &mut self,
        slot: usize,
        plan: &Plan,
        changed: &[bool],
    ) -> Result<usize, ArmsError> {
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
            copied = inherit::inherit(&from, &to, patterns, &mut self.pairs, faults)?;
        }
        let known = &mut own.known;
        times::align(to.as_fd(), &to_path, plan, changed, known, &other.known)?;
        own.take_cache = false;
        Ok(copied)
    }

    pub(super) fn touched(&mut self, slot: usize, watched: &[RepoPath]) -> Vec<RepoPath> {
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

    pub(super) fn save(&mut self, slot: usize) -> Result<(), ArmsError> {
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
