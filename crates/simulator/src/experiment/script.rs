//! The scripted outside of an experiment run: proposals, measurements, keeps, of every kind.

use std::rc::Rc;

use loopwright_core::batch::Batch;
use loopwright_core::budget::Limits;
use loopwright_core::digest::Digest;
use loopwright_core::effect::Announced;
use loopwright_core::experiment::machine::settlement_of;
use loopwright_core::experiment::results::{
    Candidate, Ended, Findings, Kept, Measured, Ran, Reapplied,
};
use loopwright_core::experiment::rule::Arm;
use loopwright_core::experiment::{Caps, EffectPath, Experiment, HarnessStart, Mode, Named, Part};
use loopwright_core::ids::{BranchName, LoopName, RunId};
use loopwright_core::kernel::RunStarted;
use loopwright_core::machine::Machine as _;
use loopwright_core::metric::{MetricName, Reading, Readings, Real, Refusal};
use loopwright_core::turn::Run;
use loopwright_core::usage::Usage;
use serde_json::{Value, json};

use crate::hands::Performance;
use crate::plan::{Lost, Plan};
use crate::random::{Random, mixed};
use crate::scenario::{Command, Comparison, Scenario};
use crate::stage::Stage;

use super::orders::{Order, Progress, orders};

const LIMIT_US: u64 = 600_000_000;

/// An experiment run with a scripted outside.
#[derive(Clone, Debug)]
pub struct ExperimentScenario {
    seed: u64,
    specification: Value,
    orders: Vec<Order>,
    limits: Limits,
    give_up_after: u64,
    wall_clock_us: Option<u64>,
}

impl ExperimentScenario {
    /// The scenario of a plan.
    pub fn of(plan: &Plan) -> Self {
        let mut random = Random::of(plan.seed, "experiment");
        let orders = orders(&mut random, u64::from(plan.steps));
        let guards = if random.one_in(2) {
            json!([{
                "metric": "size", "max_rise": "20%", "max_drop": null,
                "max_rise_from_baseline": "50%", "max_drop_from_baseline": null,
                "floor": null, "ceiling": "180",
            }])
        } else {
            json!([])
        };
        let lost = match plan.lost {
            Lost::Retry => "retry",
            Lost::AskRetry | Lost::AskFail | Lost::NobodyToAsk => "ask",
            Lost::Fail => "fail",
        };
        let threshold = json!({
            "name": "threshold",
            "min_delta": random.pick(&["0", "2.5"]),
            "confirm": random.one_in(2),
        });
        let goal = random.pick(&["minimize", "maximize"]);
        // Dice of its own, so that a seed's other orders stay what they were.
        let mut of_rule = Random::of(plan.seed, "rule");
        let rule = if of_rule.one_in(2) {
            keep_rule(&mut of_rule)
        } else {
            threshold
        };
        let mut specification = specification(goal, &rule, &guards, lost);
        if of_rule.one_in(3) {
            specification["max_runs"] = json!(of_rule.between(3, 30));
        }
        Self {
            seed: plan.seed,
            specification,
            orders,
            limits: Limits {
                steps: plan.tokens.map(|tokens| 1 + tokens / 1000),
                ..Limits::default()
            },
            give_up_after: if random.one_in(4) {
                random.between(1, 3)
            } else {
                0
            },
            wall_clock_us: random.one_in(8).then(|| random.between(1, 4 * LIMIT_US)),
        }
    }

    fn caps(&self, order: &Order, decided: u64) -> Caps {
        let mut specification = self.specification.clone();
        if let Some(target) = order.target {
            specification["target"] = json!(tenths(target));
        }
        let harness = order.harness;
        // What is decided is not tried again; what follows from it is left to be done.
        let mode = if decided < order.trials {
            order.mode.clone()
        } else {
            Mode::Run
        };
        Caps {
            specification,
            mode,
            branch: BranchName::new(order.branch).expect("BUG: a plain name"),
            workdir: String::new(),
            harness: HarnessStart {
                digest: Digest::of_content(&harness.to_be_bytes()),
                commit: format!("commit-{harness}"),
                tree: format!("tree-{harness}"),
            },
            trials: Some(order.trials.saturating_sub(decided)),
            wall_clock_us: self.wall_clock_us,
            give_up_after: self.give_up_after,
        }
    }
}

fn tenths(number: u64) -> String {
    let (whole, tenth) = (number / 10, number % 10);
    if tenth == 0 {
        whole.to_string()
    } else {
        format!("{whole}.{tenth}")
    }
}

fn specification(goal: &str, rule: &Value, guards: &Value, lost: &str) -> Value {
    json!({
        "schema": 1, "name": "speed", "run": "sh run.sh", "metric": "m", "goal": goal,
        "propose": "true", "setup": null, "setup_inputs": [],
        "run_limit_us": LIMIT_US, "propose_limit_us": LIMIT_US, "setup_limit_us": LIMIT_US,
        "grace_us": 5_000_000, "max_output_bytes": 1_000_000,
        "protect": [], "link": [], "cache": [], "result_file": null, "strict_metric": false,
        "env": {}, "env_policy": "inherit", "pass_env": [], "guards": guards,
        "rule": rule,
        "target": null, "trials": null, "wall_clock_us": null, "give_up_after": 0,
        "budget": {"steps": null, "time_us": null, "tokens": null, "money": null},
        "brief": true, "branch": "main", "in_place": false,
        "on_unknown": {"proposer": lost, "experiment": lost, "setup": "retry"},
    })
}

fn keep_rule(random: &mut Random) -> Value {
    json!({
        "name": "keep",
        "doubt": random.pick(&["0.1", "0.4", "1"]),
        "worth": random.pick(&["0", "0", "1", "2%"]),
        "max_pairs": random.pick(&[2, 8, 24]),
        "noise": match random.below(4) {
            0 => json!("none"),
            1 => json!({"readings": ["1", "2.5", "2"]}),
            _ => json!("auto"),
        },
        "ratio": false,
        "coarse": random.one_in(4),
        "closing": random.pick(&[0, 1, 3]),
    })
}

impl Scenario for ExperimentScenario {
    type Machine = Experiment;

    fn run_id(&self) -> RunId {
        RunId::new("experiment").expect("BUG: a plain name")
    }

    fn started(&self) -> RunStarted {
        let policies =
            Experiment::start(&self.specification).map(|state| Experiment::policies(&state));
        RunStarted {
            loop_name: LoopName::new("speed").expect("BUG: a plain name"),
            kind: Experiment::KIND.to_owned(),
            machine: Experiment::VERSION,
            policies: policies.unwrap_or_default(),
            release: "simulator".to_owned(),
            limits: self.limits,
            parent: None,
            basis: None,
            specification: self.specification.clone(),
        }
    }

    fn command(&self, _run: &Run<Experiment>, batches: &[Batch]) -> Command {
        let progress = Progress::of(batches, &self.orders);
        match self.orders.get(progress.order) {
            Some(order) => Command::Invoke(settlement_of(&self.caps(order, progress.decided))),
            None => Command::Nothing,
        }
    }

    fn perform(&self, stage: &Rc<Stage>, announced: &Announced) -> Performance {
        stage.world.pay(announced, 0);
        let mut random = Random::of(self.seed, announced.effect.as_str());
        let request = &announced.request;
        let path = announced.effect.as_str();
        let part = EffectPath::of(&announced.effect)
            .expect("BUG: the machine's own effect")
            .part;
        let result = match part {
            Part::Propose => proposal(&mut random, path),
            Part::Reapply => settlement_of(&reapplied(&mut random, path)),
            Part::Keep { .. } => settlement_of(&keep(&mut random, path)),
            Part::Measure { .. } | Part::Target { .. } | Part::Closing { .. } => {
                let tree = request["tree"].as_str().unwrap_or("");
                let likely = matches!(part, Part::Measure { arm, .. } if arm == Arm::Incumbent);
                settlement_of(&measurement(self.seed, &mut random, tree, likely))
            }
        };
        Performance {
            result,
            usage: Usage::default().free_of_charge(),
            takes_us: (1_000, LIMIT_US),
        }
    }

    fn width(&self) -> usize {
        1
    }

    fn comparison(&self) -> Comparison {
        // Caps that count within one invocation, or by the clock, begin anew after a crash.
        if self.give_up_after > 0 || self.wall_clock_us.is_some() || self.limits.steps.is_some() {
            Comparison::None
        } else {
            Comparison::InOrder
        }
    }
}

fn ran(ended: Ended) -> Ran {
    Ran {
        ended,
        tail: "the end of it".to_owned(),
        output_blob: None,
        leftovers: Named::default(),
        containment: "weak".to_owned(),
    }
}

fn badly_ended(random: &mut Random) -> Ended {
    match random.below(4) {
        0 => Ended::Exited(random.between(1, 255) as i32),
        1 => Ended::Signaled(9),
        2 => Ended::TimedOut { limit_us: LIMIT_US },
        _ => Ended::Broken {
            why: "its supervisor was lost".to_owned(),
        },
    }
}

fn candidate(path: &str, what: &str) -> Candidate {
    let tree = format!("{what}-{}", path.replace('/', "-"));
    Candidate {
        commit: format!("commit-of-{tree}"),
        chain_commit: format!("link-of-{tree}"),
        tree,
        changes: 1,
        paths: vec!["x".to_owned()],
    }
}

/// A proposal's result as JSON: what is not said stands at its default.
fn proposal(random: &mut Random, path: &str) -> Value {
    let mut proposed = json!({
        "ran": ran(Ended::Exited(0)),
        "candidate": candidate(path, "tree"),
    });
    let found = match random.below(20) {
        0 => {
            proposed["candidate"] = Value::Null;
            return proposed;
        }
        1 => "protected",
        2 => "shadowing",
        3 => "refused",
        4 => "secrets",
        5 => {
            proposed["duplicate_of"] = json!(1);
            return proposed;
        }
        6 | 7 => {
            proposed["ran"] = settlement_of(&ran(badly_ended(random)));
            return proposed;
        }
        _ => return proposed,
    };
    proposed[found] = json!(["x"]);
    proposed
}

/// Mostly nothing speaks against what was not proposed just now.
fn findings(random: &mut Random) -> Findings {
    let found = |found: bool| {
        if found {
            Named::from_iter(["x"])
        } else {
            Named::default()
        }
    };
    let which = random.below(12);
    Findings {
        protected: found(which == 0),
        shadowing: found(which == 1),
        secrets: found(which == 2),
    }
}

fn reapplied(random: &mut Random, path: &str) -> Reapplied {
    match random.below(5) {
        0 => Reapplied::NoChange,
        1 => Reapplied::Conflict {
            paths: Named::from_iter(["x"]),
        },
        _ => Reapplied::Applied {
            candidate: candidate(path, "again"),
            findings: findings(random),
        },
    }
}

fn keep(random: &mut Random, path: &str) -> Kept {
    match random.below(12) {
        0 | 1 => Kept::Rewritten {
            candidate: candidate(path, "rewritten"),
            findings: findings(random),
        },
        2 => Kept::Refused {
            words: "the hook says no".to_owned(),
        },
        3 => Kept::Mismatch {
            found_tree: "another".to_owned(),
        },
        // What is kept is the same commit, however often it is done.
        more => Kept::Committed {
            commit: format!("kept-{}", path.replace('/', "-")),
            note: (more == 4).then(|| "somebody had moved the branch".to_owned()),
        },
    }
}

fn measurement(seed: u64, random: &mut Random, tree: &str, likely: bool) -> Measured {
    let name = |name: &str| MetricName::new(name).expect("BUG: a plain name");
    let value = |tenths: u64| {
        Reading::Value(Real::new(tenths as f64 / 10.0).expect("BUG: a finite number"))
    };
    let noise = random.below(30);
    let of_tree = mixed(seed, tree) % 1000;
    let mut readings = Readings::default();
    readings.insert(name("m"), value(of_tree + noise));
    readings.insert(name("size"), value(1000 + mixed(seed, tree) % 600));
    let mut measured = Measured {
        ran: ran(Ended::Exited(0)),
        in_setup: false,
        setup: None,
        readings,
        touched: Named::default(),
    };
    let line = || "m=?".to_owned();
    match random.below(if likely { 80 } else { 24 }) {
        0 => measured.touched = Named::from_iter(["run.sh"]),
        1 => {
            measured.in_setup = true;
            measured.ran = ran(badly_ended(random));
        }
        2 | 3 => measured.ran = ran(badly_ended(random)),
        4 => measured.readings.insert(name("m"), Refusal::missing()),
        5 => measured
            .readings
            .insert(name("m"), Refusal::Malformed { line: line() }),
        6 => measured
            .readings
            .insert(name("m"), Refusal::NotFinite { line: line() }),
        7 => {
            let (first, second) = (line(), line());
            measured
                .readings
                .insert(name("m"), Refusal::Ambiguous { first, second });
        }
        8 => measured.readings.insert(name("size"), Refusal::missing()),
        _ => {}
    }
    measured
}
