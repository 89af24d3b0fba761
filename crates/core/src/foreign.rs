//! Runs that another release wrote: what this one may drive, and what it may only read.
//!
//! Reading is lenient: an event of an unknown kind is a decision that changes nothing known. Driving
//! on from there would be wrong, because nobody here knows what it changed.

use crate::kernel::{RunStarted, kind};
use crate::machine::Machine;

/// Why a run can be read, but not driven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undrivable {
    /// It is no run of this kind of loop.
    #[error("it is a run of another kind of loop ({found})")]
    Kind {
        /// Its kind.
        found: String,
    },
    /// Its machine is a later one.
    #[error(
        "it was begun by a newer loopwright ({release}, machine {found}; this one knows {known})"
    )]
    Newer {
        /// The release that began it.
        release: String,
        /// Its machine's version.
        found: u32,
        /// The newest one known.
        known: u32,
    },
    /// Its decisions go by policies that this release doesn't have.
    #[error("it decides by what this loopwright doesn't know: {}", .0.join(", "))]
    Policies(Vec<String>),
    /// It holds events whose meaning this release doesn't know.
    #[error("it holds events that this loopwright doesn't know: {}", .0.join(", "))]
    Events(Vec<String>),
}

/// Whether a run that began so, and holds events of these kinds, may be driven on by `M`.
pub fn check<'a, M: Machine>(
    started: &RunStarted,
    kinds: impl IntoIterator<Item = &'a str>,
) -> Result<(), Undrivable> {
    if started.kind != M::KIND {
        return Err(Undrivable::Kind {
            found: started.kind.clone(),
        });
    }
    if started.machine > M::VERSION {
        return Err(Undrivable::Newer {
            release: started.release.clone(),
            found: started.machine,
            known: M::VERSION,
        });
    }
    let policies = started.policies.iter().map(String::as_str);
    let policies = strange(policies, |policy| M::POLICIES.contains(&policy));
    if !policies.is_empty() {
        return Err(Undrivable::Policies(policies));
    }
    let is_known = |found: &str| kind::ALL.contains(&found) || M::KINDS.contains(&found);
    let events = strange(kinds, is_known);
    if !events.is_empty() {
        return Err(Undrivable::Events(events));
    }
    Ok(())
}

fn strange<'a>(
    found: impl IntoIterator<Item = &'a str>,
    is_known: impl Fn(&str) -> bool,
) -> Vec<String> {
    let strange = found.into_iter().filter(|word| !is_known(word));
    strange.map(str::to_owned).collect()
}
