//! A run's books, kept a second time from its record alone: what was used, and how long it ran.

use std::collections::BTreeMap;

use loopwright_core::effect::{Booking, Settlement};
use loopwright_core::ending::Reason;
use loopwright_core::event::Event;
use loopwright_core::ids::EffectId;
use loopwright_core::kernel::{EffectAbandoned, EffectAnnounced, InvocationEnded, Kernel, kind};
use loopwright_core::role::Role;
use loopwright_core::time::Micros;
use loopwright_core::usage::Usage;

use crate::laws::body;
use crate::violation::{Law, Violation, ensure};

/// The books of one run.
#[derive(Debug, Default)]
pub struct Books {
    /// Tokens booked for each effect.
    tokens: BTreeMap<EffectId, u64>,
    /// Announced and not landed.
    in_flight: BTreeMap<EffectId, EffectAnnounced>,
    is_open: bool,
    last: Micros,
    ran_us: u64,
}

impl Books {
    /// Notes the next event.
    pub fn note(&mut self, event: &Event) {
        let only_questions = !self.in_flight.is_empty()
            && self
                .in_flight
                .values()
                .all(|announced| announced.role == Role::Human);
        let died = body::<InvocationEnded>(event)
            .is_some_and(|ended| ended.ending.known() == Some(Reason::HostDied));
        if self.is_open && !only_questions && !died {
            self.ran_us += event.time.since(self.last);
        }
        self.last = event.time;
        match event.kind.as_str() {
            kind::INVOCATION_BEGUN => self.is_open = true,
            kind::INVOCATION_ENDED => self.is_open = false,
            kind::EFFECT_ANNOUNCED => self.announced(event),
            kind::EFFECT_SETTLED => {
                let usage = body::<Settlement>(event).map(|settled| settled.usage);
                self.landed(event, usage);
            }
            kind::EFFECT_ABANDONED => {
                let usage = body::<EffectAbandoned>(event).map(|abandoned| abandoned.usage);
                self.landed(event, usage);
            }
            kind::EFFECT_UNKNOWN | kind::EFFECT_LOST => self.landed(event, None),
            _ => {}
        }
    }

    fn announced(&mut self, event: &Event) {
        let (Some(effect), Some(announced)) = (&event.effect, body::<EffectAnnounced>(event))
        else {
            return;
        };
        if announced.booking == Booking::AllAttempts {
            self.tokens.remove(effect);
        }
        self.in_flight.insert(effect.clone(), announced);
    }

    fn landed(&mut self, event: &Event, usage: Option<Usage>) {
        let Some(effect) = &event.effect else { return };
        let Some(announced) = self.in_flight.remove(effect) else {
            return;
        };
        if announced.role != Role::Human {
            let reported = usage.and_then(|usage| usage.tokens);
            let tokens = reported.or(announced.ceiling.tokens).unwrap_or(0);
            *self.tokens.entry(effect.clone()).or_default() += tokens;
        }
    }

    /// The kernel's books say the same.
    pub fn agree(&self, kernel: &Kernel) -> Result<(), Violation> {
        let tokens: u64 = self.tokens.values().sum();
        let spent = kernel.account.spent;
        ensure(tokens == spent.tokens, Law::Books, || {
            format!("{tokens} tokens were used, {} are booked", spent.tokens)
        })?;
        ensure(self.ran_us == spent.wall_us, Law::Clock, || {
            format!(
                "it ran for {} us, and the clock says {}",
                self.ran_us, spent.wall_us
            )
        })
    }
}
