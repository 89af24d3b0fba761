//! One life of the host: a process that opens the record, carries out one command, and ends, by
//! itself or otherwise.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use loopwright_core::batch::Batch;
use loopwright_core::event::Event;
use loopwright_core::ids::EffectId;
use loopwright_core::kernel::{ACT_RESOLVE, OperatorAct, kind};
use loopwright_core::machine::{Machine, Status};
use loopwright_core::role::Role;
use loopwright_core::turn::{Given, Late, Run};
use loopwright_engine::driver::{DriveError, Driver};
use loopwright_record::crash;

use crate::committer::{SimCommitter, SimWatcher};
use crate::fuse::Crash;
use crate::hands::SimHands;
use crate::laws::{self, Inspector};
use crate::medium::SimJournal;
use crate::plan::{Disturbance, Lost};
use crate::random::{Random, mixed};
use crate::scenario::{Command, Scenario};
use crate::stage::Stage;
use crate::violation::{Law, Violation, ensure};

/// How a life ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifeEnd {
    /// There was nothing to do.
    Nothing,
    /// The command was carried out.
    Done,
    /// The driver gave up, and said why: the record can't be written, or the host can't go on.
    Failed,
    /// The process died.
    Crashed(&'static str),
}

/// Lives one life, and catches its death.
pub fn live<S: Scenario>(
    stage: &Rc<Stage>,
    scenario: &Rc<S>,
    inspector: &mut Inspector<S::Machine>,
    life: u64,
    disturbance: Option<Disturbance>,
) -> Result<LifeEnd, Violation> {
    stage.fuse.arm(disturbance);
    let hooked = Rc::clone(stage);
    let body = || {
        crash::with_hook(
            move |point| hooked.pass(point),
            || carry_out(stage, scenario, inspector, life, disturbance),
        )
    };
    let end = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|why| died(&*why));
    stage.fuse.arm(None);
    stage.disk.borrow_mut().thaw();
    end
}

fn died(why: &(dyn Any + Send)) -> Result<LifeEnd, Violation> {
    if let Some(Crash { point }) = why.downcast_ref() {
        return Ok(LifeEnd::Crashed(point));
    }
    if let Some(violation) = why.downcast_ref::<Violation>() {
        return Err(violation.clone());
    }
    let words = why
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let words = words.unwrap_or_else(|| "without a word".to_owned());
    Err(Violation::new(Law::NoPanic, words))
}

/// Opens the record, checks it, and carries out the next command.
pub fn carry_out<S: Scenario>(
    stage: &Rc<Stage>,
    scenario: &Rc<S>,
    inspector: &mut Inspector<S::Machine>,
    life: u64,
    disturbance: Option<Disturbance>,
) -> Result<LifeEnd, Violation> {
    let id = scenario.run_id();
    let mut journal = SimJournal::open(stage)?;
    let found = inspector.inspect(&journal, &stage.world)?;
    let is_new = found.is_none();
    let mut run = found.unwrap_or_else(|| Run::new(id.clone()));
    few_in_flight(&run, scenario.width())?;
    late_words(&run, inspector.batches())?;
    let scripts = stage
        .plan
        .seed
        .wrapping_add(mixed(stage.plan.order, "order"));
    let scripts = if stage.plan.order == 0 {
        stage.plan.seed
    } else {
        scripts
    };
    let seed = mixed(scripts, &format!("{id} life {life}"));
    let mut random = Random::new(seed);
    stage.world.pass(random.between(1, 3_600_000_000));
    let command = if is_new {
        Command::Nothing
    } else {
        command(stage, scenario, &run, inspector.batches(), &mut random)
    };
    if command == Command::Nothing && !is_new {
        journal.close()?;
        return Ok(LifeEnd::Nothing);
    }
    let epoch = journal.take_over(&id)?;
    let driven = {
        let mut hands = SimHands::new(stage, scenario, seed, disturbance);
        let mut committer = SimCommitter::new(stage, &mut journal, disturbance);
        let mut watcher = SimWatcher::new(stage);
        let can_ask = stage.plan.can_ask();
        let mut driver = Driver::new(
            &mut run,
            &mut hands,
            &mut committer,
            &mut watcher,
            epoch,
            can_ask,
        );
        match command {
            Command::Nothing => {
                let started = Given::new(kind::RUN_STARTED, &scenario.started());
                driver.record(vec![started])
            }
            Command::Say { after_us, given } => {
                stage.world.pass(after_us);
                driver.record(given.clone()).and_then(|()| {
                    // Said once more, it is recorded no second time.
                    repeated(driver.record(given))
                })
            }
            Command::Invoke(caps) => driver.invoke(caps).map(|_| ()),
        }
    };
    match driven {
        Ok(()) => {
            journal.close()?;
            Ok(LifeEnd::Done)
        }
        Err(error) => failed(disturbance, &error),
    }
}

/// What is said a second time: an answer and a word about a lost effect are known to be late, a
/// cancellation finds the run ended.
fn repeated(said: Result<(), DriveError>) -> Result<(), DriveError> {
    match said {
        Err(DriveError::Late(late)) => {
            let is_said = !late.to_string().is_empty();
            let fits = match &late {
                Late::Closed { is_repeat, .. } => *is_repeat,
                Late::NotAsked { .. } | Late::Ended { .. } => true,
                Late::NotInFlight { .. } => false,
            };
            if is_said && fits {
                return Ok(());
            }
            Violation::throw(Law::Late, format!("said twice: {late}"))
        }
        // Limits are the same when they are set twice.
        other => other,
    }
}

/// The last answer, once more and changed: both are late, and told apart.
fn late_words<M: Machine>(run: &Run<M>, batches: &[Batch]) -> Result<(), Violation> {
    let Some(closed) = run.kernel.closed.back() else {
        return Ok(());
    };
    let its = |event: &&Event| {
        event.kind == kind::EFFECT_SETTLED
            && event.effect.as_ref() == Some(&closed.effect)
            && event.attempt == Some(closed.attempt)
    };
    let answered = laws::events(batches).find(its);
    let body = answered.map_or(serde_json::json!({"result": 1}), |event| event.body.clone());
    let other = serde_json::json!({"result": {"never": "said"}});
    for (body, repeats) in [(body, answered.is_some()), (other, false)] {
        let given = Given::about(kind::EFFECT_SETTLED, &closed.effect, closed.attempt, &body);
        let late = run.check(&given).err();
        let fits = matches!(&late, Some(Late::Closed { at, is_repeat, .. })
            if *is_repeat == repeats && answered.is_none_or(|event| event.time == *at));
        ensure(fits, Law::Late, || format!("{}: {late:?}", closed.effect))?;
    }
    Ok(())
}

/// The driver gives up where the plan makes it, and nowhere else.
fn failed(disturbance: Option<Disturbance>, error: &DriveError) -> Result<LifeEnd, Violation> {
    let expected = match disturbance {
        Some(Disturbance::WriteFails { .. } | Disturbance::Usurped(_)) => {
            matches!(error, DriveError::Append(_))
        }
        Some(Disturbance::Broken(_) | Disturbance::InterruptThenBroken(_)) => {
            matches!(error, DriveError::Host(_))
        }
        _ => false,
    };
    ensure(expected, Law::GoesOn, || error.to_string())?;
    Ok(LifeEnd::Failed)
}

fn few_in_flight<M: Machine>(run: &Run<M>, width: usize) -> Result<(), Violation> {
    let in_flight = run.kernel.in_flight.values();
    let busy = in_flight
        .filter(|flight| flight.announcement.role != Role::Human)
        .count();
    ensure(busy <= width, Law::FewRepeats, || {
        format!("{busy} effects are in flight, and {width} may be")
    })
}

/// The next command: what a person has to say about lost effects comes before all else.
fn command<S: Scenario>(
    stage: &Rc<Stage>,
    scenario: &Rc<S>,
    run: &Run<S::Machine>,
    batches: &[Batch],
    random: &mut Random,
) -> Command {
    let unknown: Vec<&EffectId> = run.kernel.unknown.iter().collect();
    let idle = run.kernel.invocation.is_none() && run.kernel.ended.is_none();
    if idle && !unknown.is_empty() && matches!(run.status(), Some(Status::Waiting { .. })) {
        let effect = random.pick(&unknown);
        let word = match stage.plan.lost {
            Lost::AskFail => "fail",
            _ => "retry",
        };
        let act = OperatorAct {
            act: ACT_RESOLVE.to_owned(),
            arguments: serde_json::json!({"effect": effect, "as": word}),
        };
        return Command::Say {
            after_us: random.below(86_400_000_000),
            given: vec![Given::new(kind::OPERATOR_ACT, &act)],
        };
    }
    scenario.command(run, batches)
}
