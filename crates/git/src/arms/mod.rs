//! The arms: clean checkouts in which the trees of candidate and incumbent are measured.
//!
//! # One path for both
//!
//! A program may run faster or slower for the name of the directory it is in (the stack starts
//! elsewhere, tables hash otherwise), and a faster arm would forge keeps. So both arms are
//! measured at the *same* path, `active/tree`. Each has a directory of its own, moved there by
//! a rename before its measurement and back afterwards. A bind mount would do the same, but
//! takes a privilege; a rename needs none, is atomic, keeps every inode and stamp, and absolute
//! paths in build caches are right in both arms.
//!
//! ```text
//! <directory>/
//!   active/tree        the arm that is being measured; commands see no other path
//!   a/  b/             the two slots: tree (when parked), state, busy
//!   incumbent          which slot holds the incumbent
//!   lock
//! ```
//!
//! A keep swaps the roles of the slots; nothing is copied.
//!
//! # Exactly the tree
//!
//! Before a measurement an arm is brought to its tree by difference: files byte- and
//! mode-exact, directories 0755, everything that is neither in the tree nor `cache` nor a
//! declared `link` deleted. Nothing a measurement left behind is believed: files are believed
//! by their change time, which can't be forged, and the young ones by their content.
//!
//! # No stale output
//!
//! Build tools tell old from new by modification times, make even by the order of seconds on
//! some disks, Python by the second and the size. Three rules keep a declared cache honest:
//!
//! 1. Written files get the time of now, and an arm with a cache is written only after the
//!    second in which a run last touched that cache is over.
//! 2. Every file whose content differs from that of the tree the cache was built from is
//!    written anew, even if the arm already holds the right content: else an older source could
//!    stand beside a newer output made from another one.
//! 3. Where both trees agree, a candidate that inherits the incumbent's cache also has the
//!    incumbent's time on the file (see `times`): the cache is as warm in both arms.
//!
//! Without a cache there is no waiting at all.
//!
//! # A hidden cache can't buy a win
//!
//! Only measurements write a cache. What a proposer leaves in `cache` in its own workspace is
//! not part of its tree, so it never gets here; if it forces such a file into the tree, it is a
//! file like any other, is in the kept commit too, and is gone with the next tree that does not
//! have it. A candidate's cache starts from the
//! incumbent's, and is thrown away unless the candidate is kept.
//!
//! # Crashes
//!
//! The work can stop anywhere. See `slot` and `stage` for what is trusted afterwards: single
//! files by their stamps, a cache only if no synchronisation or run was under way.

mod cache;
mod disk;
mod error;
mod faults;
mod inherit;
mod links;
mod patterns;
mod plan;
mod scan;
mod slot;
mod stage;
mod stamp;
mod switch;
mod synchronise;
#[cfg(test)]
mod tests;
mod times;
mod turn;

pub use error::ArmsError;
pub use links::{ChangedLink, InputLink, LinkFingerprint};
pub use patterns::{Patterns, SetupInputs};
pub use plan::Submodules;
pub use switch::{ArmRules, Arms, Prepared, Role, RunTrace};
