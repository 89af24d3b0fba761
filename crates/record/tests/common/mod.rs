//! A little machine and helpers that all tests of the record share.
#![allow(dead_code, missing_docs)]

use std::ops::ControlFlow;
use std::time::Duration;

use loopwright_core::batch::Batch;
use loopwright_core::budget::Limits;
use loopwright_core::digest::Digest;
use loopwright_core::effect::{Announced, Effect, Settlement};
use loopwright_core::event::{Event, Scope};
use loopwright_core::ids::{BranchName, EffectId, LoopName, RunId};
use loopwright_core::kernel::{InvocationBegun, RunStarted, kind};
use loopwright_core::machine::{Draft, Ending, Input, Machine, Misfit, Next, Status};
use loopwright_core::time::Micros;
use loopwright_core::turn::{Given, Outcome, Run, Turn};
use loopwright_core::usage::Usage;
use loopwright_record::{
    Holder, Key, KeySource, Lease, ListingSource, OpenMode, ReadError, Select, Store, Terms,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Measures one trial after the other, and decides each.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TallyState {
    pub trials: u64,
    pub wanted: u64,
    pub log: Vec<String>,
    pub policy: u32,
}

impl Machine for Tally {
    type State = TallyState;
    const KIND: &'static str = "experiment";
    const VERSION: u32 = 1;
    const KINDS: &'static [&'static str] = &["trial.decided"];
    const POLICIES: &'static [&'static str] = &["tally/1", "other/1"];

    fn start(specification: &Value) -> Result<TallyState, String> {
        Ok(TallyState {
            trials: 0,
            wanted: specification["trials"].as_u64().ok_or("no trials")?,
            log: Vec::new(),
            policy: 1,
        })
    }

    fn policies(state: &TallyState) -> Vec<String> {
        vec![format!("tally/{}", state.policy), "other/1".to_owned()]
    }

    fn decide(state: &TallyState, input: &Input, _now: Micros) -> Vec<Draft> {
        match input {
            Input::Settled { settlement, .. } => vec![Draft::new(
                "trial.decided",
                Scope::trial(&BranchName::main(), state.trials + 1),
                &json!({
                    "outcome": "kept",
                    "tree": settlement.result["tree"],
                    "log_blob": settlement.result["log_blob"],
                }),
            )],
            _ => Vec::new(),
        }
    }

    fn apply(state: &mut TallyState, event: &Event, _id: Digest) -> Result<(), Misfit> {
        if event.kind == "trial.decided" {
            state.trials += 1;
            state
                .log
                .push(event.body["outcome"].as_str().unwrap_or("?").to_owned());
            if state.log.len() > 3 {
                state.log.remove(0);
            }
        }
        Ok(())
    }

    fn next(state: &TallyState) -> Next {
        let mut next = Next::default();
        if state.trials < state.wanted {
            let trial = state.trials + 1;
            next.effects.push(Effect::builtin(
                format!("t{trial}/measure"),
                Scope::trial(&BranchName::main(), trial),
                json!({"trial": trial}),
            ));
        }
        next
    }

    fn status(state: &TallyState) -> Status {
        if state.trials < state.wanted {
            Status::Working
        } else {
            Status::Ended(Ending::new("finished", "all trials are done"))
        }
    }

    fn is_past(state: &TallyState, effect: &EffectId) -> bool {
        let trial = effect.as_str().split('/').next();
        let number = trial.and_then(|trial| trial.strip_prefix('t')?.parse::<u64>().ok());
        number.is_some_and(|number| number <= state.trials)
    }
}

pub fn keys_of(event: &Event) -> Vec<Key> {
    let tree = event.body.get("tree").and_then(Value::as_str);
    tree.filter(|_| event.kind == "trial.decided")
        .map(|tree| Key {
            name: "tree",
            value: tree.to_owned(),
        })
        .into_iter()
        .collect()
}

pub const KEYS: KeySource = KeySource {
    version: 1,
    keys_of,
};

/// The numbers and kinds of a trial's events, and what was decided.
fn row_of(events: &[Event]) -> Result<Vec<u8>, String> {
    let last = events.last().ok_or("nothing")?;
    let tree = last.body["tree"].as_str().ok_or("it has no tree")?;
    let kinds: Vec<String> = events
        .iter()
        .map(|event| format!("{} {}", event.seq, event.kind))
        .collect();
    Ok(format!("{tree}: {}", kinds.join(", ")).into_bytes())
}

pub const LISTING: ListingSource = ListingSource {
    version: 1,
    kind: "trial.decided",
    row_of,
};

/// The listing as it is read, and as a source of another version reads it: from the journal alone.
pub fn listings(store: &Store, run: &RunId, select: Select) -> [Result<Rows, ReadError>; 2] {
    let journal = ListingSource {
        version: u32::MAX,
        ..LISTING
    };
    [LISTING, journal].map(|source| {
        let mut rows = Vec::new();
        store.visit_listing(&source, run, select, |row| {
            rows.push((row.seq, String::from_utf8(row.bytes.to_vec()).unwrap()));
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    })
}

pub type Rows = Vec<(u64, String)>;

/// A folder in memory where that can be had, for tests that write much and ask nothing of the disk.
pub fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

pub fn run_id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

pub fn open(folder: &std::path::Path) -> Store {
    Store::open(folder, OpenMode::Create).unwrap()
}

pub fn terms(now: i64) -> Terms {
    Terms {
        now: Micros(now),
        ttl: Duration::from_secs(60),
        force: false,
    }
}

pub fn lease(store: &Store, run: &RunId) -> Lease {
    Lease::acquire(store, run, &Holder::current("a test"), terms(0)).unwrap()
}

/// Drives a [`Tally`] by hand, one batch per call.
pub struct Driver {
    pub run: Run<Tally>,
    pub epoch: u64,
    pub now: i64,
    pub announced: Vec<Announced>,
}

impl Driver {
    pub fn new(run: &RunId, epoch: u64) -> Self {
        Self::over(Run::new(run.clone()), epoch)
    }

    pub fn over(run: Run<Tally>, epoch: u64) -> Self {
        let now = run.kernel.last_time.0;
        Self {
            run,
            epoch,
            now,
            announced: Vec::new(),
        }
    }

    pub fn turn(&mut self, given: Vec<Given>) -> Batch {
        self.now += 1_000;
        let mut turn = Turn::new(&mut self.run, Micros(self.now), self.epoch);
        for given in given {
            turn.give(given).unwrap();
        }
        let Outcome {
            batch, announced, ..
        } = turn.finish().unwrap();
        self.announced = announced;
        batch.unwrap()
    }

    pub fn start(&mut self, trials: u64) -> Batch {
        let started = RunStarted {
            loop_name: LoopName::new("speed").unwrap(),
            kind: "experiment".to_owned(),
            machine: 1,
            policies: vec!["tally/1".to_owned()],
            release: "0.0.0".to_owned(),
            limits: Limits::default(),
            parent: None,
            basis: None,
            specification: json!({"trials": trials}),
        };
        let begun = InvocationBegun {
            invocation: 1,
            caps: json!({}),
        };
        self.turn(vec![
            Given::new(kind::RUN_STARTED, &started),
            Given::new(kind::INVOCATION_BEGUN, &begun),
        ])
    }

    /// Settles the effect in flight; its trial is decided and the next one announced.
    pub fn settle(&mut self, result: Value) -> Batch {
        let (effect, attempt) = {
            let (effect, flight) = self.run.kernel.in_flight.iter().next().unwrap();
            (effect.clone(), flight.attempt)
        };
        let settlement = Settlement {
            result,
            usage: Usage::default(),
        };
        self.turn(vec![Given::about(
            kind::EFFECT_SETTLED,
            &effect,
            attempt,
            &settlement,
        )])
    }

    pub fn settle_plain(&mut self) -> Batch {
        let tree = tree_of(self.run.state.as_ref().unwrap().trials + 1);
        self.settle(json!({"tree": tree}))
    }
}

pub fn tree_of(trial: u64) -> String {
    format!("{trial:040x}")
}

pub fn effect(text: &str) -> EffectId {
    EffectId::new(text)
}
