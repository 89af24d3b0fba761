//! What comes too late: words about something that is not open any more.
//!
//! They are found out before anything is recorded, and say what, which and when, so that a surface
//! can tell a person. An answer that was given before, word for word, is no fault of anybody's.

use crate::ids::EffectId;
use crate::kernel::{
    self, ClosedHow, InFlight, Kernel, OperatorAct, answer_digest, kind, resolved_effect,
};
use crate::machine::{Ending, Machine};
use crate::time::Micros;

use super::{Given, Run};

/// Why something that came from outside can't be recorded any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Late {
    /// The question is closed.
    #[error("{}", closed_in_words(effect, *at, *how, *is_repeat))]
    Closed {
        /// Which.
        effect: EffectId,
        /// Which time it was asked.
        attempt: u32,
        /// When it was closed.
        at: Micros,
        /// How.
        how: ClosedHow,
        /// Whether this is the answer that was given then: whoever repeats it has what he wanted.
        is_repeat: bool,
    },
    /// No such attempt is in flight: it came to its end, or was never made.
    #[error("attempt {attempt} of {effect} is not in flight{}", instead(*current))]
    NotInFlight {
        /// The effect.
        effect: EffectId,
        /// The attempt.
        attempt: u32,
        /// The attempt that is in flight instead.
        current: Option<u32>,
    },
    /// Nobody is asked what became of that effect.
    #[error("nobody was asked about {effect}, or it was answered before")]
    NotAsked {
        /// The effect.
        effect: EffectId,
    },
    /// The run is over.
    #[error("the run has ended ({} at {}): {what} comes too late", .ending.reason, .at.to_utc())]
    Ended {
        /// What was to be recorded.
        what: String,
        /// When the run ended.
        at: Micros,
        /// How.
        ending: Ending,
    },
}

fn closed_in_words(effect: &EffectId, at: Micros, how: ClosedHow, is_repeat: bool) -> String {
    let at = at.to_utc();
    match how {
        ClosedHow::Answered(_) if is_repeat => {
            format!("the question {effect} was given this answer already, at {at}")
        }
        ClosedHow::Answered(_) => {
            format!("the question {effect} was given another answer at {at}")
        }
        ClosedHow::Withdrawn => {
            format!("the question {effect} was withdrawn at {at}: nothing waits for an answer")
        }
    }
}

fn instead(current: Option<u32>) -> String {
    current.map_or_else(String::new, |current| {
        format!(" any more: attempt {current} is")
    })
}

impl Late {
    /// Whether it only says again what was said before.
    pub fn is_repeat(&self) -> bool {
        matches!(
            self,
            Self::Closed {
                is_repeat: true,
                ..
            }
        )
    }
}

impl<M: Machine> Run<M> {
    /// Whether what came from outside still fits: nothing that it is about has been closed.
    pub fn check(&self, given: &Given) -> Result<(), Late> {
        let kernel = &self.kernel;
        about_attempt(kernel, given)?;
        self.about_past_question(given)?;
        about_unknown(kernel, given)?;
        match (&kernel.ended, kernel.ended_at) {
            (Some(ending), Some(at)) if given.kind != kind::OPERATOR_NOTED => Err(Late::Ended {
                what: given.kind.to_owned(),
                at,
                ending: ending.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// An answer that arrives with what makes its question a thing of the past: no state will ever want
    /// it, and the turn's end withdraws the question.
    fn about_past_question(&self, given: &Given) -> Result<(), Late> {
        let Some((effect, attempt)) = &given.effect else {
            return Ok(());
        };
        let flight = self.kernel.in_flight.get(effect);
        let is_answer =
            given.kind == kind::EFFECT_SETTLED && flight.is_some_and(InFlight::is_question);
        let state = self.state.as_ref().filter(|_| is_answer);
        if !state.is_some_and(|state| M::is_past(state, effect)) {
            return Ok(());
        }
        Err(Late::Closed {
            effect: effect.clone(),
            attempt: *attempt,
            at: self.kernel.last_time,
            how: ClosedHow::Withdrawn,
            is_repeat: false,
        })
    }
}

fn about_attempt(kernel: &Kernel, given: &Given) -> Result<(), Late> {
    let Some((effect, attempt)) = &given.effect else {
        return Ok(());
    };
    let current = kernel.in_flight.get(effect).map(current_attempt);
    if current == Some(*attempt) {
        return Ok(());
    }
    let mut closed = kernel.closed.iter();
    let found = closed.find(|closed| closed.effect == *effect && closed.attempt == *attempt);
    let Some(closed) = found else {
        return Err(Late::NotInFlight {
            effect: effect.clone(),
            attempt: *attempt,
            current,
        });
    };
    let answer = (given.kind == kind::EFFECT_SETTLED)
        .then(|| answer_digest(given.body.get("result")?).ok())
        .flatten();
    let is_repeat = matches!(closed.how, ClosedHow::Answered(digest) if answer == Some(digest));
    Err(Late::Closed {
        effect: effect.clone(),
        attempt: *attempt,
        at: closed.at,
        how: closed.how,
        is_repeat,
    })
}

fn current_attempt(flight: &InFlight) -> u32 {
    flight.attempt
}

/// A word about an outcome that nobody asks about. One that names no effect at all is found out
/// when it is folded.
fn about_unknown(kernel: &Kernel, given: &Given) -> Result<(), Late> {
    if given.kind != kind::OPERATOR_ACT {
        return Ok(());
    }
    let act = serde_json::from_value::<OperatorAct>(given.body.clone()).ok();
    let resolves = act.filter(|act| act.act == kernel::ACT_RESOLVE);
    match resolves.as_ref().and_then(resolved_effect) {
        Some(effect) if !kernel.unknown.contains(&effect) => Err(Late::NotAsked { effect }),
        _ => Ok(()),
    }
}
