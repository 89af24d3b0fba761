//! The bench: drives a run of an experiment loop with scripted results, as the engine's driver
//! does, and checks after every turn what must always hold.

use std::collections::BTreeSet;

use loopwright_core::batch::Batch;
use loopwright_core::digest::Digest;
use loopwright_core::effect::{Announced, Settlement};
use loopwright_core::event::Event;
use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::{
    Candidate, Ended, Kept, Measured, Proposed, Ran, Reapplied,
};
use loopwright_core::experiment::{Caps, Decided, Experiment, HarnessStart, Mode, State, kind};
use loopwright_core::ids::{LoopName, RunId};
use loopwright_core::kernel::{
    self, AbandonedWhy, EffectAbandoned, EndedBy, InvocationBegun, InvocationEnded, OperatorAct,
    RunStarted, kind as kernel_kind,
};
use loopwright_core::machine::{Ending, Status};
use loopwright_core::metric::{MetricName, Reading, Readings, Real};
use loopwright_core::replay::Replay;
use loopwright_core::role::{OnUnknown, Role};
use loopwright_core::time::Micros;
use loopwright_core::turn::{Given, Run, Turn, TurnError};
use loopwright_core::usage::Usage;
use serde_json::{Value, json};

/// The most a machine's state may take when it is written down.
const STATE_BYTES_MAX: usize = 64 * 1024;

/// A run under test, with all it recorded.
pub struct Bench {
    pub run: Run<Experiment>,
    pub batches: Vec<Batch>,
    pub now: Micros,
    pub specification: Value,
    /// Whether somebody can be asked about effects whose outcome is unknown.
    pub can_ask: bool,
    /// The same run folded from the bytes it recorded.
    folded: Run<Experiment>,
    attempts: BTreeSet<(String, u32, String)>,
    /// Record and check nothing, for runs of many thousand turns.
    pub hasty: bool,
}

/// A specification that says nothing special: metric `m`, less is better, plain threshold.
pub fn specification() -> Value {
    json!({
        "schema": 1, "name": "speed", "run": "sh run.sh", "metric": "m", "goal": "minimize",
        "propose": "true", "setup": null, "setup_inputs": [],
        "run_limit_us": 60_000_000, "propose_limit_us": 600_000_000, "setup_limit_us": 600_000_000,
        "grace_us": 5_000_000, "max_output_bytes": 1_000_000,
        "protect": [], "link": [], "cache": [], "result_file": null, "strict_metric": false,
        "env": {}, "env_policy": "inherit", "pass_env": [], "guards": [],
        "rule": {"name": "threshold", "min_delta": "0", "confirm": false},
        "target": null, "trials": null, "wall_clock_us": null, "give_up_after": 0,
        "budget": {"steps": null, "time_us": null, "tokens": null, "money": null},
        "brief": true, "branch": "main", "in_place": false,
        "on_unknown": {"proposer": "retry", "experiment": "retry", "setup": "retry"},
    })
}

/// The keep rule as nobody set it, with some settings replaced.
pub fn keep_rule(changes: Value) -> Value {
    let mut rule = json!({
        "name": "keep", "doubt": "0.1", "worth": "0", "max_pairs": 24, "noise": "auto",
        "ratio": false, "coarse": false, "closing": 6,
    });
    for (key, value) in changes.as_object().expect("an object of settings") {
        assert!(rule.get(key).is_some(), "no setting {key}");
        rule[key] = value.clone();
    }
    rule
}

/// The same with some settings replaced.
pub fn specification_with(changes: Value) -> Value {
    let mut specification = specification();
    for (key, value) in changes.as_object().expect("an object of settings") {
        // Left out where it is not set.
        let known = specification.get(key).is_some() || key == "max_runs";
        assert!(known, "no setting {key}");
        specification[key] = value.clone();
    }
    specification
}

/// The caps of a plain invocation with that harness.
pub fn caps(specification: &Value, mode: Mode) -> Caps {
    read(json!({
        "specification": specification, "mode": mode, "branch": "main",
        "harness": harness("h1"), "give_up_after": 0,
    }))
}

/// A harness of that name, starting from a commit of its own.
pub fn harness(name: &str) -> HarnessStart {
    HarnessStart {
        digest: Digest::of_content(name.as_bytes()),
        commit: format!("commit-{name}"),
        tree: format!("tree-{name}"),
    }
}

pub fn ran(ended: Ended) -> Ran {
    read(json!({"ended": ended}))
}

pub fn candidate(tree: &str) -> Candidate {
    Candidate {
        tree: tree.to_owned(),
        commit: format!("commit-of-{tree}"),
        chain_commit: format!("link-of-{tree}"),
        changes: 1,
        paths: vec!["x".to_owned()],
    }
}

/// A proposal that left that tree. Read from its recorded form, as are the others here: fields that
/// may be left out there need not be named here.
pub fn proposed(tree: &str) -> Proposed {
    read(json!({"ran": {"ended": {"exited": 0}}, "candidate": candidate(tree)}))
}

fn read<T: serde::de::DeserializeOwned>(recorded: Value) -> T {
    serde_json::from_value(recorded).expect("a recorded form")
}

/// A measurement that went well with those readings.
pub fn measured(values: &[(&str, f64)]) -> Measured {
    let mut readings = Readings::default();
    for (name, value) in values {
        readings.insert(
            MetricName::new(*name).unwrap(),
            Reading::Value(Real::new(*value).unwrap()),
        );
    }
    read(json!({"ran": ran(Ended::Exited(0)), "readings": readings}))
}

impl Bench {
    /// A run of that loop that has started, and nothing more.
    pub fn new(specification: Value) -> Self {
        let id = RunId::new("run-1").unwrap();
        let mut bench = Self {
            run: Run::new(id.clone()),
            batches: Vec::new(),
            now: Micros(1_000_000),
            specification,
            can_ask: true,
            folded: Run::new(id),
            attempts: BTreeSet::new(),
            hasty: false,
        };
        let mut limits = bench.specification["budget"].clone();
        let fields = limits.as_object_mut().unwrap();
        fields.remove("money");
        let started = RunStarted {
            loop_name: LoopName::new("speed").unwrap(),
            kind: "experiment".to_owned(),
            machine: 1,
            policies: vec!["threshold/1".to_owned()],
            release: "0.1.0".to_owned(),
            limits: serde_json::from_value(limits).unwrap(),
            parent: None,
            basis: None,
            specification: bench.specification.clone(),
        };
        bench.turn(vec![Given::new(kernel_kind::RUN_STARTED, &started)]);
        bench
    }

    /// A run whose baseline is 10, with an open invocation that waits for the first proposal.
    pub fn with_baseline(changes: Value) -> Self {
        let mut bench = Self::new(specification_with(changes));
        bench.begin(|_| {}).measure(10.0);
        bench
    }

    /// The same run as another process would find it: folded from what was recorded up to `batches`.
    pub fn reloaded(&self, batches: usize) -> Self {
        let mut bench = Self {
            run: Run::new(self.run.kernel.run.clone()),
            batches: Vec::new(),
            now: self.now,
            specification: self.specification.clone(),
            can_ask: self.can_ask,
            folded: Run::new(self.run.kernel.run.clone()),
            attempts: BTreeSet::new(),
            hasty: self.hasty,
        };
        for batch in &self.batches[..batches] {
            bench.fold(batch);
            bench.batches.push(batch.clone());
        }
        bench.run = bench.folded.clone();
        bench
    }

    pub fn state(&self) -> &State {
        self.run.state.as_ref().expect("a run that has started")
    }

    // ---- turns ----

    /// One turn, recorded and checked; the time goes on by a second.
    pub fn try_turn(&mut self, given: Vec<Given>) -> Result<Vec<Announced>, TurnError> {
        self.now = self.now.plus(1_000_000);
        let mut turn = Turn::new(&mut self.run, self.now, 1);
        for given in given {
            turn.give(given)?;
        }
        let outcome = turn.finish()?;
        if let (Some(batch), false) = (outcome.batch, self.hasty) {
            self.fold(&batch);
            self.batches.push(batch);
            self.check_invariants();
        }
        Ok(outcome.announced)
    }

    pub fn turn(&mut self, given: Vec<Given>) -> &mut Self {
        self.try_turn(given).expect("a turn that fits");
        self
    }

    /// Folds a recorded batch from its bytes.
    fn fold(&mut self, batch: &Batch) {
        for sealed in &batch.events {
            let event = Event::decode(&sealed.bytes).unwrap();
            if let (Some(effect), Some(attempt)) = (&event.effect, event.attempt) {
                let key = (effect.as_str().to_owned(), attempt, event.kind.clone());
                assert!(self.attempts.insert(key.clone()), "recorded twice: {key:?}");
            }
            self.folded.apply(&event, sealed.id).unwrap();
        }
        self.folded.close_batch(batch.header.n, batch.digest);
    }

    fn check_invariants(&self) {
        assert_eq!(self.folded, self.run, "the fold differs from the live run");
        let text = serde_json::to_string(self.state()).unwrap();
        assert!(
            text.len() < STATE_BYTES_MAX,
            "a state of {} bytes",
            text.len()
        );
        let back: State = serde_json::from_str(&text).unwrap();
        assert_eq!(
            &back,
            self.state(),
            "the state doesn't survive being written down"
        );
        let kernel = &self.run.kernel;
        assert!(
            kernel.in_flight.len() <= 1,
            "two effects in flight: {:?}",
            kernel.in_flight
        );
        if kernel.invocation.is_some() {
            assert!(kernel.busy(), "an open invocation that waits for nothing");
        }
        assert!(self.run.status().is_some());
    }

    /// The one effect in flight.
    pub fn in_flight(&self) -> Option<(loopwright_core::ids::EffectId, u32)> {
        let (effect, flight) = self.run.kernel.in_flight.first_key_value()?;
        Some((effect.clone(), flight.attempt))
    }

    /// The path of the one effect in flight, or nothing.
    pub fn waits_for(&self) -> String {
        self.in_flight()
            .map_or_else(String::new, |(effect, _)| effect.to_string())
    }

    // ---- invocations ----

    /// Recovers as the driver does, and begins an invocation in run mode.
    pub fn begin(&mut self, change: impl FnOnce(&mut Caps)) -> &mut Self {
        self.begin_announcing(change);
        self
    }

    /// The same; what it announced.
    pub fn begin_announcing(&mut self, change: impl FnOnce(&mut Caps)) -> Vec<Announced> {
        self.recover();
        let mut caps = caps(&self.specification, Mode::Run);
        change(&mut caps);
        let begun = InvocationBegun {
            invocation: self.run.kernel.invocations + 1,
            caps: serde_json::to_value(caps).unwrap(),
        };
        self.try_turn(vec![Given::new(kernel_kind::INVOCATION_BEGUN, &begun)])
            .expect("a turn that fits")
    }

    /// Closes what a dead host left open, as `recover` of the engine's driver does.
    pub fn recover(&mut self) -> &mut Self {
        let mut given = Vec::new();
        if let Some(open) = self.run.kernel.invocation {
            given.push(host_ended(open.number, "host_died", "its host died"));
        }
        for (effect, flight) in &self.run.kernel.in_flight {
            if flight.announcement.role == Role::Human {
                continue;
            }
            let nothing = json!({});
            let abandoned = EffectAbandoned {
                why: AbandonedWhy::HostDied,
                usage: Usage::default(),
            };
            let attempt = flight.attempt;
            given.push(match flight.announcement.on_unknown {
                OnUnknown::Retry => {
                    Given::about(kernel_kind::EFFECT_ABANDONED, effect, attempt, &abandoned)
                }
                OnUnknown::Ask if self.can_ask => {
                    Given::about(kernel_kind::EFFECT_UNKNOWN, effect, attempt, &nothing)
                }
                OnUnknown::Ask | OnUnknown::Fail => {
                    Given::about(kernel_kind::EFFECT_LOST, effect, attempt, &nothing)
                }
            });
        }
        if !given.is_empty() {
            self.turn(given);
        }
        self
    }

    fn abandoned(&self) -> Vec<Given> {
        let abandoned = EffectAbandoned {
            why: AbandonedWhy::Interrupted,
            usage: Usage::default(),
        };
        self.in_flight()
            .map(|(effect, attempt)| {
                Given::about(kernel_kind::EFFECT_ABANDONED, &effect, attempt, &abandoned)
            })
            .into_iter()
            .collect()
    }

    fn end_by_signal(&self) -> Given {
        let open = self.run.kernel.invocation.expect("an open invocation");
        host_ended(open.number, "interrupted", "interrupted by SIGINT")
    }

    /// A signal: the end first, then the attempt that was stopped.
    pub fn interrupt(&mut self) -> &mut Self {
        let mut given = vec![self.end_by_signal()];
        given.extend(self.abandoned());
        self.turn(given)
    }

    /// A signal, and the effect in flight is faster than its stopping.
    pub fn interrupt_while_settling(&mut self, result: Value) -> &mut Self {
        let given = vec![self.end_by_signal(), self.settled(result)];
        self.turn(given)
    }

    /// A deadline has come.
    pub fn wake(&mut self, at: Micros) -> &mut Self {
        self.now = self.now.max(at);
        self.turn(vec![Given::new(kernel_kind::CLOCK_REACHED, &json!({}))])
    }

    /// What is not wanted any more was stopped.
    pub fn stopped(&mut self) -> &mut Self {
        let given = self.abandoned();
        self.turn(given)
    }

    /// A person says what becomes of an effect whose outcome is unknown.
    pub fn resolve(&mut self, effect: &str, how: &str) -> &mut Self {
        let act = OperatorAct {
            act: kernel::ACT_RESOLVE.to_owned(),
            arguments: json!({"effect": effect, "as": how}),
        };
        self.turn(vec![Given::new(kernel_kind::OPERATOR_ACT, &act)])
    }

    // ---- results ----

    fn settled(&self, result: Value) -> Given {
        let (effect, attempt) = self.in_flight().expect("an effect in flight");
        let usage = Usage {
            wall_us: Some(1_000_000),
            ..Usage::default()
        };
        let settlement = Settlement { result, usage };
        Given::about(kernel_kind::EFFECT_SETTLED, &effect, attempt, &settlement)
    }

    /// The effect in flight ends like that.
    pub fn settle(&mut self, part: &str, result: Value) -> &mut Self {
        let waits_for = self.waits_for();
        assert!(
            waits_for.split('/').nth(1) == Some(part),
            "{part} was expected, but it waits for {waits_for:?}"
        );
        let given = self.settled(result);
        self.turn(vec![given])
    }

    pub fn propose(&mut self, tree: &str) -> &mut Self {
        self.proposed(proposed(tree))
    }

    pub fn proposed(&mut self, proposed: Proposed) -> &mut Self {
        self.settle("propose", settlement_of(&proposed))
    }

    pub fn reapplied(&mut self, reapplied: Reapplied) -> &mut Self {
        self.settle("reapply", settlement_of(&reapplied))
    }

    /// A measurement whose metric is `value`.
    pub fn measure(&mut self, value: f64) -> &mut Self {
        self.measured(measured(&[("m", value)]))
    }

    pub fn measured(&mut self, measured: Measured) -> &mut Self {
        self.settle("measure", settlement_of(&measured))
    }

    /// The confirming run for the target.
    pub fn confirm(&mut self, value: f64) -> &mut Self {
        self.settle("target", settlement_of(&measured(&[("m", value)])))
    }

    /// One more run of the closing check.
    pub fn close_with(&mut self, value: f64) -> &mut Self {
        self.settle("closing", settlement_of(&measured(&[("m", value)])))
    }

    pub fn commit(&mut self, commit: &str) -> &mut Self {
        let commit = commit.to_owned();
        self.kept(Kept::Committed { commit, note: None })
    }

    pub fn kept(&mut self, kept: Kept) -> &mut Self {
        self.settle("keep", settlement_of(&kept))
    }

    // ---- what was recorded ----

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        let sealed = self.batches.iter().flat_map(|batch| &batch.events);
        sealed.map(|sealed| &sealed.event)
    }

    /// The decisions, with the trials' numbers.
    pub fn decisions(&self) -> Vec<(u64, Decided)> {
        self.events()
            .filter(|event| event.kind == kind::TRIAL_DECIDED)
            .map(|event| (event.scope.trial.unwrap(), kernel::body(event).unwrap()))
            .collect()
    }

    /// The bodies of all events of that kind.
    pub fn bodies(&self, kind: &str) -> Vec<Value> {
        let of_kind = self.events().filter(|event| event.kind == kind);
        of_kind.map(|event| event.body.clone()).collect()
    }

    /// The outcomes in order, baselines included.
    pub fn outcomes(&self) -> Vec<&'static str> {
        let decisions = self.decisions();
        decisions
            .iter()
            .map(|(_, decided)| decided.outcome.name())
            .collect()
    }

    /// How many effects of that part were announced.
    pub fn announced(&self, part: &str) -> usize {
        let announced = self
            .events()
            .filter(|event| event.kind == kernel_kind::EFFECT_ANNOUNCED);
        let named = |event: &&Event| {
            let path = event.effect.as_ref().map_or("", |effect| effect.as_str());
            path.split('/').nth(1) == Some(part)
        };
        announced.filter(named).count()
    }

    /// The reasons with which invocations ended.
    pub fn endings(&self) -> Vec<String> {
        let bodies = self.bodies(kernel_kind::INVOCATION_ENDED);
        bodies
            .iter()
            .map(|body| body["ending"]["reason"].as_str().unwrap().to_owned())
            .collect()
    }

    /// How the last invocation ended, after making sure that none is open.
    #[track_caller]
    pub fn ended(&mut self, reason: &str) -> &mut Self {
        assert!(
            self.run.kernel.invocation.is_none(),
            "it waits for {}",
            self.waits_for()
        );
        assert_eq!(self.endings().last().map(String::as_str), Some(reason));
        self
    }

    /// Checks the whole history: replay, numbers, counts, the kept chain.
    pub fn verify(&self) {
        let mut replay = Replay::<Experiment>::new(self.run.kernel.run.clone());
        for batch in &self.batches {
            replay.batch(batch).unwrap();
        }
        assert_eq!(replay.run(), &self.run, "replayed to another state");
        self.verify_numbers();
        crate::world::verify_kept_chain(self);
    }

    fn verify_numbers(&self) {
        let decisions = self.decisions();
        let numbers: Vec<u64> = decisions.iter().map(|(number, _)| *number).collect();
        let expected: Vec<u64> = (0..numbers.len() as u64).collect();
        assert_eq!(numbers, expected, "gaps or duplicates among trials");
        let open = u64::from(self.state().trial.is_some());
        assert_eq!(self.state().next_trial, numbers.len() as u64 + open);
        let counted: u64 = self.state().counts.values().sum();
        let not_baselines = decisions.iter().filter(|(_, decided)| {
            decided.origin != loopwright_core::experiment::state::Origin::Baseline
        });
        assert_eq!(counted, not_baselines.count() as u64, "counts differ");
        let begun = self.bodies(kernel_kind::INVOCATION_BEGUN).len();
        let open = usize::from(self.run.kernel.invocation.is_some());
        assert_eq!(
            begun,
            self.endings().len() + open,
            "an invocation without an end"
        );
        assert!(self.endings().iter().all(|reason| !reason.is_empty()));
    }
}

/// An invocation's end from outside.
fn host_ended(invocation: u64, reason: &str, words: &str) -> Given {
    let ended = InvocationEnded {
        invocation,
        by: EndedBy::Host,
        ending: Ending::new(reason, words),
    };
    Given::new(kernel_kind::INVOCATION_ENDED, &ended)
}

/// What a run waits for a person to say.
pub fn question(bench: &Bench) -> Option<String> {
    match bench.run.status() {
        Some(Status::Waiting { question }) => Some(question),
        _ => None,
    }
}
