//! The kernel and its turns, driven with a toy machine that wants what it is told to want.

use std::collections::BTreeMap;

use loopwright_core::budget::{Ceiling, Limits};
use loopwright_core::digest::Digest;
use loopwright_core::effect::{Effect, Settlement};
use loopwright_core::event::{Event, Scope};
use loopwright_core::ids::{EffectId, LoopName, RunId};
use loopwright_core::kernel::{
    self, AbandonedWhy, EffectAbandoned, EndedBy, InvocationBegun, InvocationEnded, OperatorAct,
    RunStarted, kind,
};
use loopwright_core::machine::{Draft, Ending, Input, Machine, Misfit, Next, Status};
use loopwright_core::replay::Replay;
use loopwright_core::role::{OnUnknown, Role};
use loopwright_core::time::Micros;
use loopwright_core::turn::{Given, Outcome, Run, Turn, TurnError};
use loopwright_core::usage::{Dimension, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Wants what `toy.want` says until it is settled, refused or no longer wanted (`toy.drop`).
#[derive(Clone, Debug, PartialEq)]
struct Toy;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Wants {
    wanted: BTreeMap<String, Wanted>,
    ended: bool,
    stubborn: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Wanted {
    role: Role,
    steps: u64,
}

impl Machine for Toy {
    type State = Wants;
    const KIND: &str = "toy";
    const VERSION: u32 = 1;

    fn start(specification: &Value) -> Result<Wants, String> {
        let stubborn = specification["stubborn"]
            .as_bool()
            .ok_or("it says nothing")?;
        Ok(Wants {
            stubborn,
            ..Wants::default()
        })
    }

    fn policies(_state: &Wants) -> Vec<String> {
        Vec::new()
    }

    fn decide(_state: &Wants, input: &Input, _now: Micros) -> Vec<Draft> {
        match input {
            Input::Settled { effect, .. } => {
                vec![Draft::new(
                    "toy.done",
                    Scope::run(),
                    &json!({"effect": effect}),
                )]
            }
            Input::Lost { effect } => {
                vec![Draft::new(
                    "toy.lost",
                    Scope::run(),
                    &json!({"effect": effect}),
                )]
            }
            _ => Vec::new(),
        }
    }

    fn apply(state: &mut Wants, event: &Event, _id: Digest) -> Result<(), Misfit> {
        let named = event.body["effect"].as_str().unwrap_or("");
        match event.kind.as_str() {
            "toy.done" | "toy.lost" => drop(state.wanted.remove(named)),
            kind::EFFECT_REFUSED if !state.stubborn => {
                let id = event.effect.as_ref().unwrap();
                state.wanted.remove(id.as_str());
            }
            kind::OPERATOR_ACT => {
                let act: OperatorAct = kernel::body(event)?;
                let id = act.arguments["id"].as_str().unwrap_or("").to_owned();
                match act.act.as_str() {
                    "toy.want" => {
                        let wanted = act.arguments["what"].clone();
                        state
                            .wanted
                            .insert(id, serde_json::from_value(wanted).unwrap());
                    }
                    "toy.drop" => drop(state.wanted.remove(&id)),
                    "toy.end" => state.ended = true,
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn next(state: &Wants) -> Next {
        let effect = |(id, wanted): (&String, &Wanted)| Effect {
            id: EffectId::new(id.clone()),
            role: wanted.role,
            scope: Scope::iteration(1),
            after: None,
            request: json!({"do": id}),
            ceiling: Ceiling {
                steps: wanted.steps,
                ..Ceiling::time(None)
            },
            on_unknown: OnUnknown::Retry,
        };
        Next {
            effects: state.wanted.iter().map(effect).collect(),
            deadline: None,
        }
    }

    fn status(state: &Wants) -> Status {
        if state.ended {
            return Status::Ended(Ending::new("stopped", "stopped by hand"));
        }
        if state.wanted.is_empty() {
            return Status::Idle(Ending::new("finished", "nothing is wanted"));
        }
        if state
            .wanted
            .values()
            .all(|wanted| wanted.role == Role::Human)
        {
            return Status::Waiting {
                question: "well?".to_owned(),
            };
        }
        Status::Working
    }
}

struct Table {
    run: Run<Toy>,
    batches: Vec<loopwright_core::batch::Batch>,
}

impl Table {
    fn new(steps: Option<u64>, stubborn: bool) -> Self {
        let mut table = Self {
            run: Run::new(RunId::new("toy-1").unwrap()),
            batches: Vec::new(),
        };
        let started = RunStarted {
            loop_name: LoopName::new("toy").unwrap(),
            kind: Toy::KIND.to_owned(),
            machine: 1,
            policies: Vec::new(),
            release: "0.1.0".to_owned(),
            limits: Limits {
                steps,
                ..Limits::default()
            },
            parent: None,
            basis: None,
            specification: json!({"stubborn": stubborn}),
        };
        table.turn(vec![Given::new(kind::RUN_STARTED, &started)]);
        table
    }

    fn try_turn(&mut self, at: i64, given: Vec<Given>) -> Result<Outcome, TurnError> {
        let mut turn = Turn::new(&mut self.run, Micros(at), 1);
        for given in given {
            turn.give(given)?;
        }
        let outcome = turn.finish()?;
        self.batches.extend(outcome.batch.clone());
        Ok(outcome)
    }

    fn turn(&mut self, given: Vec<Given>) -> Outcome {
        let at = self.run.kernel.last_time.0 + 1;
        self.try_turn(at, given).unwrap()
    }

    /// A given event that must not fit.
    fn refused(&self, given: Given) -> String {
        let mut run = self.run.clone();
        let mut turn = Turn::new(&mut run, Micros(0), 1);
        turn.give(given).unwrap_err().to_string()
    }

    fn verify(&self) {
        let mut replay = Replay::<Toy>::new(self.run.kernel.run.clone());
        for batch in &self.batches {
            replay.batch(batch).unwrap();
        }
        assert_eq!(replay.run(), &self.run);
    }

    fn kinds(&self) -> Vec<&str> {
        let events = self.batches.iter().flat_map(|batch| &batch.events);
        events.map(|sealed| sealed.event.kind.as_str()).collect()
    }
}

fn act(name: &str, arguments: Value) -> Given {
    let body = OperatorAct {
        act: name.to_owned(),
        arguments,
    };
    Given::new(kind::OPERATOR_ACT, &body)
}

fn want(id: &str, role: Role, steps: u64) -> Given {
    act(
        "toy.want",
        json!({"id": id, "what": Wanted { role, steps }}),
    )
}

fn begun(invocation: u64) -> Given {
    Given::new(
        kind::INVOCATION_BEGUN,
        &InvocationBegun {
            invocation,
            caps: json!({}),
        },
    )
}

fn host_ended(invocation: u64) -> Given {
    let ending = Ending::new("interrupted", "interrupted");
    Given::new(
        kind::INVOCATION_ENDED,
        &InvocationEnded {
            invocation,
            by: EndedBy::Host,
            ending,
        },
    )
}

fn settled(id: &str, attempt: u32) -> Given {
    let body = Settlement {
        result: json!({}),
        usage: Usage::default(),
    };
    Given::about(kind::EFFECT_SETTLED, &EffectId::new(id), attempt, &body)
}

fn abandoned(id: &str, attempt: u32, why: AbandonedWhy) -> Given {
    let body = EffectAbandoned {
        why,
        usage: Usage::default(),
    };
    Given::about(kind::EFFECT_ABANDONED, &EffectId::new(id), attempt, &body)
}

fn announced(outcome: &Outcome) -> Vec<(&str, u32)> {
    let named = |effect: &loopwright_core::effect::Announced| effect.attempt;
    let announced = outcome.announced.iter();
    announced
        .map(|effect| (effect.effect.as_str(), named(effect)))
        .collect()
}

#[test]
fn nothing_is_announced_before_an_invocation_and_everything_at_its_beginning() {
    let mut table = Table::new(None, false);
    let first = table.turn(vec![want("b", Role::Actor, 1), want("a", Role::Actor, 1)]);
    assert!(first.announced.is_empty());
    let outcome = table.turn(vec![begun(1)]);
    assert_eq!(announced(&outcome), [("a", 1), ("b", 1)]);
    // Results arrive in any order; the end comes when all are there.
    table.turn(vec![settled("b", 1)]);
    assert!(table.run.kernel.invocation.is_some());
    table.turn(vec![settled("a", 1)]);
    assert_eq!(
        table.run.kernel.last_ending.as_ref().unwrap().reason,
        "finished"
    );
    table.verify();
}

#[test]
fn a_result_follows_from_its_announcement_and_time_never_goes_back() {
    let mut table = Table::new(None, false);
    table
        .try_turn(1_000, vec![want("a", Role::Actor, 1), begun(1)])
        .unwrap();
    table.try_turn(10, vec![settled("a", 1)]).unwrap();
    let events: Vec<_> = table
        .batches
        .iter()
        .flat_map(|batch| &batch.events)
        .collect();
    let of = |kind: &str| {
        events
            .iter()
            .find(|sealed| sealed.event.kind == kind)
            .unwrap()
    };
    assert_eq!(
        of(kind::EFFECT_SETTLED).event.parents,
        [of(kind::EFFECT_ANNOUNCED).id]
    );
    assert_eq!(of(kind::EFFECT_SETTLED).event.scope, Scope::iteration(1));
    assert!(
        events
            .windows(2)
            .all(|pair| pair[0].event.time <= pair[1].event.time)
    );
    table.verify();
}

#[test]
fn what_does_not_fit_the_budget_is_refused_and_the_rest_goes_on() {
    let mut table = Table::new(Some(2), false);
    let wants = ["a", "b", "c", "d"].map(|id| want(id, Role::Actor, 1));
    table.turn(wants.into());
    let outcome = table.turn(vec![begun(1)]);
    assert_eq!(announced(&outcome), [("a", 1), ("b", 1)]);
    let refused = table
        .kinds()
        .iter()
        .filter(|name| **name == kind::EFFECT_REFUSED)
        .count();
    assert_eq!(refused, 2);
    let account = &table.run.kernel.account;
    assert_eq!(
        (account.reserved.steps, account.left(Dimension::Steps)),
        (2, Some(0))
    );
    table.turn(vec![settled("a", 1), settled("b", 1)]);
    assert_eq!(table.run.kernel.account.spent.steps, 2);
    table.verify();
}

/// A machine that wants on and on what it can't have is found out instead of filling the record.
#[test]
fn a_machine_that_never_rests_is_stopped() {
    let mut table = Table::new(Some(0), true);
    table.turn(vec![want("a", Role::Actor, 1)]);
    let error = table.try_turn(9, vec![begun(1)]).unwrap_err();
    assert!(matches!(error, TurnError::Restless), "{error}");
}

#[test]
fn what_is_not_wanted_any_more_is_said_until_it_is_given_up() {
    let mut table = Table::new(Some(1), false);
    table.turn(vec![want("a", Role::Actor, 1)]);
    table.turn(vec![begun(1)]);
    let outcome = table.turn(vec![act("toy.drop", json!({"id": "a"}))]);
    assert_eq!(outcome.unwanted, [EffectId::new("a")]);
    assert!(
        table.run.kernel.invocation.is_some(),
        "it waits for the stopping"
    );
    let outcome = table.turn(vec![abandoned("a", 1, AbandonedWhy::Unwanted)]);
    assert!(outcome.unwanted.is_empty());
    assert_eq!(
        table.run.kernel.last_ending.as_ref().unwrap().reason,
        "finished"
    );
    // Wanted again it is another attempt, and the step it gave back fits again.
    table.turn(vec![want("a", Role::Actor, 1)]);
    assert_eq!(announced(&table.turn(vec![begun(2)])), [("a", 2)]);
    table.verify();
}

#[test]
fn a_question_to_a_person_stays_open_between_invocations() {
    let mut table = Table::new(None, false);
    table.turn(vec![want("ask", Role::Human, 0)]);
    let outcome = table.turn(vec![begun(1)]);
    assert_eq!(announced(&outcome), [("ask", 1)]);
    assert!(outcome.unwanted.is_empty());
    assert_eq!(
        table.run.kernel.last_ending.as_ref().unwrap().reason,
        "waiting"
    );
    assert!(matches!(table.run.status(), Some(Status::Waiting { .. })));
    // Another invocation waits for the same answer, and asks nothing twice.
    let outcome = table.turn(vec![begun(2)]);
    assert!(outcome.announced.is_empty() && outcome.unwanted.is_empty());
    // It doesn't keep other work from being done.
    table.turn(vec![want("work", Role::Actor, 0)]);
    assert_eq!(announced(&table.turn(vec![begun(3)])), [("work", 1)]);
    let outcome = table.turn(vec![
        host_ended(3),
        abandoned("work", 1, AbandonedWhy::Interrupted),
    ]);
    assert!(outcome.unwanted.is_empty());
    // The answer may come while nobody drives.
    table.turn(vec![settled("ask", 1)]);
    assert_eq!(announced(&table.turn(vec![begun(4)])), [("work", 2)]);
    table.turn(vec![settled("work", 2)]);
    table.verify();
}

#[test]
fn a_run_may_end_while_nobody_drives_it_and_is_over_then() {
    let mut table = Table::new(None, false);
    table.turn(vec![act("toy.end", json!({}))]);
    assert_eq!(table.kinds().last(), Some(&kind::RUN_ENDED));
    assert!(table.refused(begun(1)).contains("the run has ended"));
    let mut table = Table::new(None, false);
    table.turn(vec![want("a", Role::Actor, 1), begun(1)]);
    table.turn(vec![act("toy.end", json!({}))]);
    assert!(
        table.run.kernel.ended.is_none(),
        "something is still in flight"
    );
    table.turn(vec![settled("a", 1)]);
    let kinds = table.kinds();
    assert_eq!(
        kinds[kinds.len() - 2..],
        [kind::INVOCATION_ENDED, kind::RUN_ENDED]
    );
    // A second word says it no second time.
    table.turn(vec![act("toy.end", json!({}))]);
    assert_eq!(
        table
            .kinds()
            .iter()
            .filter(|name| **name == kind::RUN_ENDED)
            .count(),
        1
    );
    table.verify();
}

#[test]
fn what_does_not_fit_the_state_is_refused_with_words() {
    let mut table = Table::new(None, false);
    table.turn(vec![want("a", Role::Actor, 1)]);
    let nothing = act(kernel::ACT_RESOLVE, json!({"effect": "a", "as": "fail"}));
    assert!(table.refused(nothing).contains("nobody was asked about a"));
    assert!(
        table
            .refused(act(kernel::ACT_RESOLVE, json!({})))
            .contains("names no effect")
    );
    assert!(table.refused(begun(2)).contains("number is wrong"));
    assert!(table.refused(host_ended(1)).contains("not open"));
    assert!(
        table
            .refused(settled("a", 1))
            .contains("attempt 1 of a is not in flight")
    );
    table.turn(vec![begun(1)]);
    assert!(
        table
            .refused(begun(2))
            .contains("another invocation is open")
    );
    assert!(table.refused(host_ended(2)).contains("not open"));
    assert!(
        table
            .refused(settled("a", 2))
            .contains("attempt 2 of a is not in flight")
    );
    table.turn(vec![host_ended(1)]);
    assert!(table.refused(begun(2)).contains("still in flight"));
}

#[test]
fn an_effect_of_unknown_outcome_waits_for_a_word() {
    let unknown = |id: &str| Given::about(kind::EFFECT_UNKNOWN, &EffectId::new(id), 1, &json!({}));
    for (word, next) in [("retry", vec![("a", 2)]), ("fail", vec![])] {
        let mut table = Table::new(None, false);
        table.turn(vec![want("a", Role::Actor, 1), begun(1)]);
        table.turn(vec![host_ended(1), unknown("a")]);
        let outcome = table.turn(vec![begun(2)]);
        assert!(outcome.announced.is_empty());
        assert_eq!(
            table.run.kernel.last_ending.as_ref().unwrap().reason,
            "waiting"
        );
        table.turn(vec![act(
            kernel::ACT_RESOLVE,
            json!({"effect": "a", "as": word}),
        )]);
        assert_eq!(announced(&table.turn(vec![begun(3)])), next);
        table.verify();
    }
}

#[test]
fn equal_decisions_have_equal_digests_whatever_the_attempts_and_times() {
    let mut plain = Table::new(None, false);
    plain.turn(vec![want("a", Role::Actor, 1), begun(1)]);
    plain.turn(vec![settled("a", 1)]);
    let mut disturbed = Table::new(None, false);
    disturbed.turn(vec![want("a", Role::Actor, 1), begun(1)]);
    disturbed.turn(vec![
        host_ended(1),
        abandoned("a", 1, AbandonedWhy::HostDied),
    ]);
    disturbed.try_turn(5_000, vec![begun(2)]).unwrap();
    disturbed.turn(vec![settled("a", 2)]);
    assert_eq!(plain.run.kernel.decisions, disturbed.run.kernel.decisions);
    let mut other = Table::new(None, false);
    other.turn(vec![want("b", Role::Actor, 1), begun(1)]);
    other.turn(vec![settled("b", 1)]);
    assert_ne!(plain.run.kernel.decisions, other.run.kernel.decisions);
}
