//! What the kernel keeps is bounded, however long a run is.

use loopwright_core::budget::Limits;
use loopwright_core::effect::Booking;
use loopwright_core::ids::EffectId;
use loopwright_core::kernel::{AbandonedWhy, CLOSED_MAX, UNKNOWN_MAX, kind};
use loopwright_core::role::Role;
use loopwright_core::turn::Given;
use proptest::prelude::*;
use serde_json::json;

use crate::table::{Table, abandoned, act, announced, answer, begun, paths, settled, want};

/// How much the kernel keeps of effects that are not in flight.
fn kept(table: &Table) -> usize {
    let kernel = &table.run.kernel;
    kernel.given_up.len() + kernel.unknown.len() + kernel.closed.len()
}

/// Ten thousand iterations: each abandons one effect, withdraws one question, leaves one outcome
/// unknown, and is over.
#[test]
fn ten_thousand_iterations_leave_nothing_behind() {
    let mut table = Table::limited(Limits::default());
    table.turn(vec![begun(1)]);
    let mut invocation = 1;
    let mut sizes = Vec::new();
    for iteration in 1..=10_000u64 {
        let id = |part: &str| format!("i{iteration}/{part}");
        let (work, ask, odd) = (id("work"), id("ask"), id("odd"));
        if table.run.kernel.invocation.is_none() {
            invocation += 1;
            table.turn(vec![
                want(&work, Role::Actor, 0),
                want(&ask, Role::Human, 0),
                want(&odd, Role::Actor, 0),
                begun(invocation),
            ]);
        }
        let unknown = Given::about(kind::EFFECT_UNKNOWN, &EffectId::new(&*odd), 1, &json!({}));
        table.turn(vec![
            paths("toy.drop", &[&work, &ask, &odd]),
            abandoned(&work, 1, AbandonedWhy::Unwanted),
            unknown,
        ]);
        let before = kept(&table);
        assert!(before >= 3, "attempts are kept while they may go on");
        table.turn(vec![paths("toy.past", &[&format!("i{iteration}")])]);
        // What was recorded is not kept.
        table.batches.clear();
        sizes.push(kept(&table));
    }
    let most = sizes.iter().max().unwrap();
    assert_eq!(*most, CLOSED_MAX + UNKNOWN_MAX, "and no attempts");
    let bytes = serde_json::to_vec(&table.run.kernel).unwrap().len();
    assert!(bytes < 8 * 1024, "{bytes} bytes");
}

/// What may be wanted again goes on counting, however much is forgotten around it.
#[test]
fn what_is_not_past_is_not_forgotten() {
    let mut table = Table::limited(Limits::default());
    table.turn(vec![want("i2/work", Role::Actor, 0), begun(1)]);
    for attempt in 1..200 {
        table.turn(vec![
            abandoned("i2/work", attempt, AbandonedWhy::Unwanted),
            paths("toy.past", &["i1"]),
        ]);
        assert_eq!(
            table.run.kernel.in_flight[&EffectId::new("i2/work")].attempt,
            attempt + 1
        );
    }
    table.turn(vec![settled("i2/work", 200)]);
    assert_eq!(kept(&table), 0);
    table.verify();
}

/// A step of a random run.
#[derive(Clone, Copy, Debug)]
enum Step {
    Settle,
    Abandon,
    Drop,
    Again,
    Over,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// No (effect, attempt, kind) is ever recorded twice, and no more is kept than effects that
    /// may come again.
    #[test]
    fn no_attempt_is_recorded_twice(
        steps in prop::collection::vec(
            (prop::sample::select(vec![Step::Settle, Step::Abandon, Step::Drop, Step::Again, Step::Over]), 0usize..3),
            1..60),
    ) {
        let mut table = Table::limited(Limits::default());
        // Keeps the invocation open.
        table.turn(vec![want("keep", Role::Actor, 0), begun(1)]);
        let mut iteration = 1;
        for (step, which) in steps {
            let id = format!("i{iteration}/e{which}");
            let attempt = table.run.kernel.in_flight.get(&EffectId::new(&*id)).map(|flight| flight.attempt);
            let given = match (step, attempt) {
                (Step::Over, _) => {
                    iteration += 1;
                    let over: Vec<String> = (0..3).map(|which| format!("i{}/e{which}", iteration - 1)).collect();
                    let over: Vec<&str> = over.iter().map(String::as_str).collect();
                    let mut given = vec![paths("toy.drop", &over)];
                    let in_flight = table.run.kernel.in_flight.iter();
                    given.extend(in_flight.filter(|(id, _)| id.as_str() != "keep").map(|(id, flight)| {
                        abandoned(id.as_str(), flight.attempt, AbandonedWhy::Unwanted)
                    }));
                    let past: Vec<String> = (1..iteration).map(|number| format!("i{number}")).collect();
                    let past: Vec<&str> = past.iter().map(String::as_str).collect();
                    given.push(paths("toy.past", &past));
                    given
                }
                (Step::Settle, Some(attempt)) => vec![settled(&id, attempt)],
                (Step::Abandon, Some(attempt)) => vec![abandoned(&id, attempt, AbandonedWhy::HostDied)],
                (Step::Drop, Some(attempt)) => vec![
                    paths("toy.drop", &[&id]),
                    abandoned(&id, attempt, AbandonedWhy::Unwanted),
                ],
                (Step::Again, None) => {
                    let settled_once = table.batches.iter().flat_map(|batch| &batch.events).any(|sealed| {
                        sealed.event.kind == kind::EFFECT_SETTLED
                            && sealed.event.effect.as_ref().is_some_and(|effect| effect.as_str() == id)
                    });
                    if settled_once {
                        continue;
                    }
                    vec![want(&id, Role::Actor, 0)]
                }
                _ => continue,
            };
            table.turn(given);
            prop_assert!(kept(&table) <= 3);
        }
        let mut seen = std::collections::BTreeSet::new();
        for sealed in table.batches.iter().flat_map(|batch| &batch.events) {
            let event = &sealed.event;
            if let (Some(effect), Some(attempt)) = (&event.effect, event.attempt) {
                prop_assert!(seen.insert((effect.clone(), attempt, event.kind.clone())), "{effect} {attempt} {}", event.kind);
            }
        }
        table.verify();
    }
}

/// Withdrawn questions and answers are kept apart from attempts, and bounded alike.
#[test]
fn a_question_asked_again_and_again_takes_one_place() {
    let mut table = Table::limited(Limits::default());
    table.turn(vec![want("work", Role::Actor, 0), begun(1)]);
    for attempt in 1..=50 {
        assert_eq!(
            announced(&table.turn(vec![want("ask", Role::Human, 0)])),
            [("ask", attempt)]
        );
        table.turn(vec![paths("toy.drop", &["ask"])]);
        assert_eq!(table.run.kernel.given_up.len(), 1);
    }
    table.turn(vec![want("ask", Role::Human, 0)]);
    table.turn(vec![
        answer("ask", 51, json!(Booking::EachAttempt)),
        act("toy.end", json!({})),
    ]);
    assert_eq!(table.run.kernel.given_up.len(), 0);
    table.verify();
}
