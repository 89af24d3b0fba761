//! A run as it goes on: trial lines on stdout as they are decided, what runs now on a live line,
//! and everything else worth saying on stderr.

use std::collections::BTreeMap;
use std::time::Instant;

use loopwright_core::event::{Event, Sealed};
use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{Outcome, SegmentStarted, TargetChecked, kind};
use loopwright_core::kernel::{self, EffectAnnounced, kind as kernel_kind};
use loopwright_engine::Watcher;
use loopwright_engine::views::{TrialRow, effect_words, undone_by};

use crate::live::{Doing, Live};
use crate::output::{self, Output, harmless, one_line};
use crate::trial_line;

/// Watches a run and shows it.
pub struct Progress<'a> {
    output: &'a Output,
    live: &'a Live,
    metric: String,
    rows: BTreeMap<u64, TrialRow>,
}

impl<'a> Progress<'a> {
    /// Shows a run whose metric is `metric`; `open` is what is known of trials that are open.
    pub fn new(output: &'a Output, live: &'a Live, metric: &str, open: Option<TrialRow>) -> Self {
        Self {
            output,
            live,
            metric: metric.to_owned(),
            rows: open.into_iter().map(|row| (row.trial, row)).collect(),
        }
    }

    /// Shows one event.
    pub fn show(&mut self, event: &Event) {
        if let Some(trial) = event.scope.trial {
            let branch = event
                .scope
                .branch
                .as_ref()
                .map_or("main", |branch| branch.as_str());
            self.rows
                .entry(trial)
                .or_insert_with(|| TrialRow::new(trial, branch))
                .apply(event);
        }
        match event.kind.as_str() {
            kernel_kind::EFFECT_ANNOUNCED => self.announced(event),
            kernel_kind::EFFECT_SETTLED => {
                self.live.doing(None);
                self.undone(event);
            }
            kernel_kind::EFFECT_ABANDONED | kernel_kind::INVOCATION_ENDED => self.live.doing(None),
            kind::TRIAL_DECIDED => self.decided(event),
            kind::SEGMENT_STARTED => {
                if let Ok(started) = kernel::body::<SegmentStarted>(event)
                    && started.segment > 1
                {
                    self.say(&format!("segment {}: {}", started.segment, started.why));
                }
            }
            kind::TARGET_CHECKED => {
                if let Ok(checked) = kernel::body::<TargetChecked>(event) {
                    self.say(&checked.why);
                }
            }
            _ => {}
        }
    }

    fn announced(&mut self, event: &Event) {
        let (Some(effect), Ok(announced)) = (&event.effect, kernel::body::<EffectAnnounced>(event))
        else {
            return;
        };
        let trial = event.scope.trial.unwrap_or(0);
        self.live.doing(Some(Doing {
            words: format!("trial {trial}: {}", effect_words(effect)),
            since: Instant::now(),
            limit_us: announced.ceiling.time_us,
        }));
    }

    fn decided(&mut self, event: &Event) {
        let trial = event.scope.trial.unwrap_or(0);
        let Some(row) = self.rows.remove(&trial) else {
            return;
        };
        if let (Some(value), true) = (row.value, row.outcome.is_some_and(Outcome::is_keep)) {
            let from = match row.origin {
                Some(Origin::Baseline) => "baseline".to_owned(),
                _ => format!("trial {trial}"),
            };
            self.live
                .best(format!("best {}: {} ({from})", self.metric, value.short()));
        }
        let Some(line) = trial_line::of_row(&row, self.output) else {
            return;
        };
        self.live.aside(|| {
            // A reader that has gone doesn't end a run.
            let _ = output::line(&line);
            if let Some(tail) = trial_line::tail_of(&row) {
                let _ = output::line(&tail);
            }
        });
    }

    /// What a proposal in place did to the user's repository.
    fn undone(&self, event: &Event) {
        for words in undone_by(event) {
            self.say(&format!("note: undone in your checkout: {words}"));
        }
    }

    fn say(&self, text: &str) {
        self.live.speaker().say(&one_line(text));
    }
}

impl Watcher for Progress<'_> {
    fn committed(&mut self, events: &[Sealed]) {
        for sealed in events {
            self.show(&sealed.event);
        }
    }

    fn notice(&mut self, words: &str) {
        self.say(&format!("note: {}", harmless(words)));
    }
}
