//! A whole simulated run: life after life until nothing is left to do, then the comparison with
//! the same run undisturbed.

use std::collections::BTreeSet;
use std::rc::Rc;

use loopwright_core::batch::Batch;
use loopwright_core::digest::Digest;
use loopwright_core::effect::Booking;
use loopwright_core::event::{Event, Scope};
use loopwright_core::ids::RunId;
use loopwright_core::kernel::{EffectAnnounced, kind};
use loopwright_core::machine::Machine;
use loopwright_core::role::Role;
use loopwright_core::turn::Run;
use serde_json::Value;

use crate::agent::AgentScenario;
use crate::experiment::ExperimentScenario;
use crate::laws::{self, Inspector};
use crate::life::{LifeEnd, live};
use crate::medium::SimJournal;
use crate::plan::{Kind, Plan};
use crate::scenario::{Comparison, Scenario};
use crate::search::SearchScenario;
use crate::stage::Stage;
use crate::violation::{Law, Violation, ensure};

/// How many lives a run may need beside those that were disturbed.
const CALM_LIVES_MAX: u64 = 80;

/// A decision as runs are compared by it.
pub type Decision = (String, Scope, Value);

/// What a simulated run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How many lives it took.
    pub lives: u64,
    /// How each ended.
    pub ends: Vec<LifeEnd>,
    /// How many crash points were passed in all lives.
    pub points: u64,
    /// How many paid calls were made.
    pub calls: usize,
    /// How many of them were repeats.
    pub repeats: usize,
    /// How many events were recorded.
    pub events: u64,
    /// The end of the run's chain.
    pub head: Option<Digest>,
    /// What was decided.
    pub decisions: Vec<Decision>,
    /// The digest of what was decided.
    pub decided: Digest,
    /// The machine's state at the end.
    pub state: Value,
    /// How it ended: the run's reason, else the last invocation's.
    pub reason: String,
    /// How runs like it are compared.
    pub comparison: Comparison,
    /// Rare things that happened.
    pub marks: BTreeSet<&'static str>,
}

/// Simulates a plan, and compares it with the same run undisturbed and with itself.
pub fn examine(plan: &Plan) -> Result<Report, Violation> {
    let calm = simulate(&plan.undisturbed())?;
    let report = examine_beside(plan, &calm)?;
    if plan.seed.is_multiple_of(8) {
        let again = simulate(plan)?;
        ensure(again == report, Law::Deterministic, || {
            format!("once {:?}, once {:?}", report.head, again.head)
        })?;
    }
    Ok(report)
}

/// Simulates a plan, and compares it with `calm`, the report of the same run undisturbed.
pub fn examine_beside(plan: &Plan, calm: &Report) -> Result<Report, Violation> {
    let report = simulate(plan)?;
    compare(plan, &report, calm)?;
    Ok(report)
}

/// Simulates a plan.
pub fn simulate(plan: &Plan) -> Result<Report, Violation> {
    match plan.kind {
        Kind::Experiment => play(plan, ExperimentScenario::of(plan)),
        Kind::Agent => play(plan, AgentScenario::of(plan)),
        Kind::Search => play(plan, SearchScenario::of(plan)),
    }
}

fn play<S: Scenario>(plan: &Plan, scenario: S) -> Result<Report, Violation> {
    let stage = Rc::new(Stage::new(plan)?);
    let scenario = Rc::new(scenario);
    let mut inspector = Inspector::new(&scenario.run_id());
    let mut ends = Vec::new();
    let lives_max = CALM_LIVES_MAX + 2 * plan.disturbances.len() as u64;
    loop {
        let life = ends.len() as u64;
        ensure(life < lives_max, Law::ComesToItsEnd, || {
            format!("after {life} lives it still goes on")
        })?;
        let disturbance = plan.disturbances.get(life as usize).copied();
        let end = live(&stage, &scenario, &mut inspector, life, disturbance)?;
        let over = end == LifeEnd::Nothing;
        ends.push(end);
        if over {
            break;
        }
    }
    finish(&stage, &*scenario, inspector, ends)
}

fn finish<S: Scenario>(
    stage: &Rc<Stage>,
    scenario: &S,
    mut inspector: Inspector<S::Machine>,
    ends: Vec<LifeEnd>,
) -> Result<Report, Violation> {
    let id = scenario.run_id();
    let journal = SimJournal::open(stage)?;
    let Some(run) = inspector.inspect(&journal, &stage.world)? else {
        return Err(Violation::new(Law::ComesToItsEnd, "it never started"));
    };
    laws::load_alike::<S::Machine>(&journal, &id)?;
    laws::store_is_sound::<S::Machine>(&journal, &id)?;
    // The last life finds nothing to do. What a host that died before it had begun may be left so:
    // nobody goes on with what was not needed.
    let before = ends.iter().rev().nth(1);
    let has_died = matches!(before, Some(LifeEnd::Crashed(_) | LifeEnd::Failed));
    ensure(
        has_died || run.kernel.invocation.is_none(),
        Law::Reasons,
        || "an invocation was left open".to_owned(),
    )?;
    let (calls, repeats) = till(stage, &id, inspector.given_up(), &run)?;
    let state = serde_json::to_value(&run.state).unwrap_or_default();
    Ok(Report {
        lives: ends.len() as u64,
        ends,
        points: stage.fuse.passed_in_all(),
        calls,
        repeats,
        events: run.kernel.next_seq,
        head: run.batch.map(|(_, digest)| digest),
        decisions: decisions(inspector.batches()),
        decided: run.kernel.decisions,
        state,
        reason: run
            .kernel
            .ended
            .or(run.kernel.last_ending)
            .map(|ending| ending.reason)
            .unwrap_or_default(),
        comparison: scenario.comparison(),
        marks: marks(inspector.batches(), stage.world.refused()),
    })
}

/// Counts what was paid: repeats are few, and the budget held.
fn till<M: Machine>(
    stage: &Stage,
    id: &RunId,
    given_up: usize,
    run: &Run<M>,
) -> Result<(usize, usize), Violation> {
    let ledger = stage.world.ledger(0);
    let mine: Vec<_> = ledger.iter().filter(|call| call.run == *id).collect();
    let mut effects: Vec<_> = mine.iter().map(|call| &call.effect).collect();
    effects.sort_unstable();
    effects.dedup();
    let repeats = mine.len() - effects.len();
    ensure(repeats <= given_up, Law::FewRepeats, || {
        format!("{repeats} calls were repeated, and {given_up} attempts given up")
    })?;
    let tokens: u64 = ledger.iter().map(|call| call.tokens).sum();
    let booked = run.kernel.account.spent.tokens;
    ensure(tokens <= booked, Law::Books, || {
        format!("{tokens} tokens were used, children's along, and {booked} are booked")
    })?;
    if let Some(limit) = run.kernel.account.limits.tokens {
        ensure(tokens <= limit, Law::Budget, || {
            format!("{tokens} tokens were used, and {limit} allowed")
        })?;
    }
    Ok((mine.len(), repeats))
}

/// The rare things that happened in a run, for whoever asks whether they are tried at all.
fn marks(batches: &[Batch], refused: u32) -> BTreeSet<&'static str> {
    let mut marks = BTreeSet::new();
    let mut is_open = false;
    let mut questions = BTreeSet::new();
    for event in laws::events(batches) {
        let announced = (event.kind == kind::EFFECT_ANNOUNCED)
            .then(|| laws::body::<EffectAnnounced>(event))
            .flatten();
        if let Some(announced) = announced {
            if announced.role == Role::Human {
                questions.insert(event.effect.clone());
            }
            if announced.booking == Booking::AllAttempts && event.attempt > Some(1) {
                marks.insert("a child went on");
            }
        }
        match event.kind.as_str() {
            kind::INVOCATION_BEGUN => is_open = true,
            kind::INVOCATION_ENDED => is_open = false,
            kind::LIMITS_SET => drop(marks.insert("limits were set")),
            kind::CLOCK_EXHAUSTED => drop(marks.insert("the clock ran out")),
            kind::EFFECT_ABANDONED if event.body["why"] == "withdrawn" => {
                marks.insert(if is_open {
                    "a question was withdrawn"
                } else {
                    "a question ended with its run"
                });
            }
            kind::EFFECT_SETTLED if questions.contains(&event.effect) => {
                marks.insert(if is_open {
                    "an answer came while it was driven"
                } else {
                    "an answer came at rest"
                });
            }
            _ => {}
        }
    }
    if refused > 0 {
        marks.insert("a word came too late");
    }
    marks
}

fn decisions(batches: &[Batch]) -> Vec<Decision> {
    // When somebody raises the limits depends on what repeats have cost.
    let kernels = [
        "run.",
        "invocation.",
        "effect.",
        "clock.",
        "operator.",
        "limits.",
    ];
    let own = |event: &&Event| !kernels.iter().any(|start| event.kind.starts_with(start));
    let decision = |event: &Event| (event.kind.clone(), event.scope.clone(), event.body.clone());
    laws::events(batches).filter(own).map(decision).collect()
}

fn compare(plan: &Plan, report: &Report, calm: &Report) -> Result<(), Violation> {
    if report.comparison == Comparison::None || !plan.repeats_what_is_lost() {
        return Ok(());
    }
    if report.reason == "budget" {
        // Repeats are paid for: the money may have run out earlier, not otherwise.
        let early = &calm.decisions[..report.decisions.len().min(calm.decisions.len())];
        let same = report.comparison == Comparison::AsSet || early == report.decisions;
        return ensure(same, Law::SameDecisions, || first_difference(report, calm));
    }
    if report.comparison == Comparison::AsSet && calm.reason == "budget" {
        // In another order less may be tried in vain: the money may have lasted longer.
        return Ok(());
    }
    let same = match report.comparison {
        Comparison::AsSet => sorted(&report.decisions) == sorted(&calm.decisions),
        _ => report.decided == calm.decided && report.decisions == calm.decisions,
    };
    ensure(same, Law::SameDecisions, || first_difference(report, calm))?;
    ensure(report.state == calm.state, Law::SameState, || {
        format!("undisturbed {}; disturbed {}", calm.state, report.state)
    })
}

fn sorted(decisions: &[Decision]) -> Vec<String> {
    let mut texts: Vec<String> = decisions
        .iter()
        .map(|(kind, scope, body)| format!("{kind} {scope:?} {body}"))
        .collect();
    texts.sort_unstable();
    texts
}

fn first_difference(report: &Report, calm: &Report) -> String {
    let longer = report.decisions.len().max(calm.decisions.len());
    let at = (0..longer).find(|&at| report.decisions.get(at) != calm.decisions.get(at));
    let at = at.unwrap_or(0);
    format!(
        "decision {at}: undisturbed {:?}; disturbed {:?}",
        calm.decisions.get(at),
        report.decisions.get(at)
    )
}
