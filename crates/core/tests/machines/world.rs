//! A world that is the same every time, and what must hold of every history whatever happened.

use std::collections::BTreeMap;

use loopwright_core::digest::Digest;
use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::{Ended, Findings, Kept, Measured, Proposed, Reapplied};
use loopwright_core::experiment::rule::RuleSettings;
use loopwright_core::experiment::state::Origin;
use loopwright_core::experiment::{Decided, Named, Settings, kind};
use loopwright_core::kernel::{self, kind as kernel_kind};
use loopwright_core::metric::{MetricName, Real, Refusal};
use loopwright_core::spec::Goal;
use serde_json::Value;

use crate::support::{Bench, candidate, measured, proposed, ran};

/// Dice whose throws follow from their seed alone.
pub struct Dice(u64);

impl Dice {
    /// Dice for one thing: equal things, equal throws.
    pub fn of(seed: u64, thing: &str) -> Self {
        let digest = Digest::of_content(format!("{seed} {thing}").as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest.as_bytes()[..8]);
        Self(u64::from_le_bytes(bytes) | 1)
    }

    /// A number under `sides`.
    pub fn throw(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// What the world answers to the effect of that path.
pub fn answer(dice: &mut Dice, path: &str) -> Value {
    match path.split('/').nth(1) {
        Some("propose") => settlement_of(&a_proposal(dice, path)),
        Some("measure" | "target" | "closing") => settlement_of(&a_measurement(dice)),
        Some("reapply") => settlement_of(&match dice.throw(4) {
            0 => Reapplied::NoChange,
            1 => Reapplied::Conflict {
                paths: Named::from_iter(["x"]),
            },
            _ => Reapplied::Applied {
                candidate: candidate(&format!("tree-of-{path}")),
                findings: findings(dice),
            },
        }),
        Some("keep") => settlement_of(&match dice.throw(8) {
            0 => Kept::Refused {
                words: "no".to_owned(),
            },
            1 => Kept::Mismatch {
                found_tree: "z".to_owned(),
            },
            2 | 3 => Kept::Rewritten {
                candidate: candidate(&format!("tree-of-{path}")),
                findings: findings(dice),
            },
            _ => Kept::Committed {
                commit: format!("commit-of-{path}"),
                note: None,
            },
        }),
        _ => panic!("nobody knows {path:?}"),
    }
}

/// Mostly nothing speaks against what was not proposed just now.
fn findings(dice: &mut Dice) -> Findings {
    let mut findings = Findings::default();
    let file = Named::from_iter(["x"]);
    match dice.throw(12) {
        0 => findings.protected = file,
        1 => findings.shadowing = file,
        2 => findings.secrets = file,
        _ => {}
    }
    findings
}

fn a_proposal(dice: &mut Dice, path: &str) -> Proposed {
    let mut result = proposed(&format!("tree-of-{path}"));
    let file = Named::from_iter(["x"]);
    match dice.throw(20) {
        0 => result.candidate = None,
        1 => result.findings.protected = file,
        2 => result.findings.shadowing = file,
        3 => result.refused = file,
        4 => result.findings.secrets = file,
        5 => result.duplicate_of = Some(0),
        6 => result.ran = ran(Ended::Exited(1)),
        7 => result.ran = ran(Ended::TimedOut { limit_us: 1 }),
        _ => {}
    }
    result
}

fn a_measurement(dice: &mut Dice) -> Measured {
    let value = dice.throw(12) as f64;
    let mut result = measured(&[("m", value), ("size", 95.0 + dice.throw(12) as f64)]);
    let name = MetricName::new("m").unwrap();
    let line = "m=?".to_owned();
    match dice.throw(24) {
        0 => result.ran = ran(Ended::Exited(1)),
        1 => result.ran = ran(Ended::Signaled(9)),
        2 => result.touched = Named::from_iter(["x"]),
        3 => result.readings.insert(name, Refusal::missing()),
        4 => result.readings.insert(name, Refusal::NotFinite { line }),
        5 => result = measured(&[("m", value)]),
        _ => {}
    }
    result
}

fn beats(settings: &Settings, value: Real, bar: Real) -> bool {
    let delta = match settings.rule {
        RuleSettings::Threshold(rule) => rule.min_delta.get(),
        RuleSettings::Keep(_) => 0.0,
    };
    match settings.goal {
        Goal::Minimize => value.get() < bar.get() - delta,
        Goal::Maximize => value.get() > bar.get() + delta,
    }
}

/// Nothing is kept that doesn't beat the incumbent of its branch and segment under the rule in
/// force, so that the kept values are a chain that only gets better.
pub fn verify_kept_chain(bench: &Bench) {
    let mut settings = None;
    let mut bars: BTreeMap<(String, u64), Real> = BTreeMap::new();
    for event in bench.events() {
        if event.kind == kernel_kind::INVOCATION_BEGUN {
            settings = Some(Settings::of(&event.body["caps"]["specification"]).unwrap());
        }
        if event.kind != kind::TRIAL_DECIDED {
            continue;
        }
        let decided: Decided = kernel::body(event).unwrap();
        let settings = settings.as_ref().expect("a decision before any invocation");
        let branch = event.scope.branch.as_ref().unwrap().to_string();
        let key = (branch, decided.segment);
        if !decided.outcome.is_keep() {
            continue;
        }
        let value = decided.value.expect("something was kept without a value");
        assert!(
            decided
                .readings
                .last()
                .is_some_and(|taken| taken.value.is_some())
        );
        if decided.origin == Origin::Baseline {
            bars.entry(key).or_insert(value);
            continue;
        }
        let RuleSettings::Threshold(rule) = settings.rule else {
            // Held against what the incumbent was in its duel, or is remembered as.
            let against = decided.against.expect("kept against nothing");
            assert!(
                beats(settings, value, against),
                "{value} was kept against {against}"
            );
            bars.insert(key, value);
            continue;
        };
        let bar = bars[&key];
        assert_eq!(
            decided.against,
            Some(bar),
            "held against another value than the incumbent's"
        );
        assert!(
            beats(settings, value, bar),
            "{value} was kept against {bar}"
        );
        for taken in decided
            .readings
            .iter()
            .rev()
            .take(1 + usize::from(rule.confirm))
        {
            let value = taken.value.expect("kept with a reading that failed");
            assert!(
                beats(settings, value, bar),
                "{value} did not beat {bar}, and yet"
            );
        }
        bars.insert(key, value);
    }
}
