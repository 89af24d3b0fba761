//! Puts reverted trials behind a loop, as fast as the disk takes them: for benchmarks that ask
//! what a long history costs. The real driver and the real record; only the commands are made up,
//! so the git objects that the trials name do not exist.
//!
//! Usage: `seed_history STORE LOOP TRIALS`. The loop must have its baseline.

use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitCode;

use loopwright_core::digest::Digest;
use loopwright_core::effect::{Announced, Settlement};
use loopwright_core::event::{Scrub, Sealed};
use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::{Candidate, Ended, Findings, Measured, Proposed, Ran};
use loopwright_core::experiment::{EffectPath, Experiment, Mode, Named, Part};
use loopwright_core::ids::{EffectId, LoopName};
use loopwright_core::metric::{MetricName, Readings, Real};
use loopwright_core::time::Micros;
use loopwright_core::turn::Run;
use loopwright_core::usage::Usage;
use loopwright_engine::committer::{LEASE_TTL, StoreCommitter, now};
use loopwright_engine::experiment::{KEYS, pinned};
use loopwright_engine::views::LISTING;
use loopwright_engine::{Driver, Hands, Happening, Haste, HostFault, Watcher};
use loopwright_record::{Holder, Lease, OpenMode, Store, Terms, load};

/// Hands that make every proposal worse than the one before.
struct MadeUp {
    metric: MetricName,
    done: VecDeque<Happening>,
}

fn ran(tail: String) -> Ran {
    Ran {
        ended: Ended::Exited(0),
        tail,
        output_blob: None,
        leftovers: Named::default(),
        containment: "pid_namespace".to_owned(),
    }
}

impl Hands for MadeUp {
    fn begin(&mut self, announced: Announced) {
        let trial = announced.scope.trial.unwrap_or(0);
        let name = |what: &str| {
            Digest::of_content(format!("{what} {trial}").as_bytes()).hex()[..40].to_owned()
        };
        let path = EffectPath::of(&announced.effect).expect("an effect of the machine's");
        let result = if path.part == Part::Propose {
            settlement_of(&Proposed {
                ran: ran(String::new()),
                candidate: Some(Candidate {
                    tree: name("tree"),
                    commit: name("commit"),
                    chain_commit: name("chain"),
                    changes: 1,
                    paths: vec!["x".to_owned()],
                }),
                findings: Findings::default(),
                refused: Named::default(),
                undone: Named::default(),
                duplicate_of: None,
                brief_digest: None,
            })
        } else {
            let value = Real::new(11.0 + trial as f64).unwrap_or(Real::ZERO);
            let mut readings = Readings::default();
            readings.insert(self.metric.clone(), value);
            let measured = Measured {
                ran: ran(format!("m={value}\n")),
                in_setup: false,
                setup: None,
                readings,
                touched: Named::default(),
            };
            settlement_of(&measured)
        };
        self.done.push_back(Happening::Settled {
            effect: announced.effect,
            attempt: announced.attempt,
            settlement: Settlement {
                result,
                usage: Usage::default(),
            },
            scrub: Scrub {
                rules: 1,
                values: 0,
            },
        });
    }

    fn stop(&mut self, _effect: &EffectId, _haste: Haste) {}

    fn wait(&mut self, _until: Option<Micros>) -> Happening {
        self.done
            .pop_front()
            .unwrap_or(Happening::Broken(HostFault::host("nothing was begun")))
    }

    fn now(&mut self) -> Micros {
        now()
    }
}

struct Silent;

impl Watcher for Silent {
    fn committed(&mut self, _events: &[Sealed]) {}
    fn notice(&mut self, _words: &str) {}
}

fn seed(store: &str, loop_name: &str, trials: u64) -> Result<(), Box<dyn std::error::Error>> {
    let loop_name = LoopName::new(loop_name)?;
    let mut store = Store::open(Path::new(store), OpenMode::Write)?;
    store.index_keys(KEYS)?;
    store.keep_listing(LISTING)?;
    let (run_id, mut caps) = pinned(&store, &loop_name)?.ok_or("the loop has no baseline")?;
    caps.mode = Mode::Run;
    caps.trials = Some(trials);
    caps.wall_clock_us = None;
    let mut run: Run<Experiment> = load(&store, &run_id)?;
    let metric = run
        .state
        .as_ref()
        .ok_or("the run has no state")?
        .settings
        .metric
        .clone();
    let terms = Terms {
        now: now(),
        ttl: LEASE_TTL,
        force: false,
    };
    let lease = Lease::acquire(&store, &run_id, &Holder::current("seed_history"), terms)?;
    let epoch = lease.epoch();
    let mut hands = MadeUp {
        metric,
        done: VecDeque::new(),
    };
    let mut committer = StoreCommitter::new(&mut store);
    let mut silent = Silent;
    let mut driver = Driver::new(
        &mut run,
        &mut hands,
        &mut committer,
        &mut silent,
        epoch,
        false,
    );
    driver.invoke(serde_json::to_value(caps)?)?;
    lease.release(&store)?;
    store.close()?;
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [store, loop_name, trials] => match trials.parse() {
            Ok(trials) => seed(store, loop_name, trials),
            Err(error) => Err(error.into()),
        },
        _ => Err("usage: seed_history STORE LOOP TRIALS".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}
