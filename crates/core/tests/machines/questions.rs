//! Questions to people: asked, answered once, withdrawn, and never answered too late.

use loopwright_core::budget::{Limits, Unknown};
use loopwright_core::effect::Settlement;
use loopwright_core::ids::EffectId;
use loopwright_core::kernel::{
    AbandonedWhy, CLOSED_MAX, ClosedHow, EffectAbandoned, OperatorNoted, kind,
};
use loopwright_core::role::Role;
use loopwright_core::time::Micros;
use loopwright_core::turn::{Given, Late, Turn};
use loopwright_core::usage::Usage;
use serde_json::json;

use crate::table::{Table, abandoned, act, announced, answer, begun, paths, settled, want};

fn asked() -> Table {
    let mut table = Table::limited(Limits::default());
    table.turn(vec![
        want("ask", Role::Human, 1),
        want("work", Role::Actor, 0),
        begun(1),
    ]);
    table
}

fn late(table: &Table, given: &Given) -> Late {
    table.run.check(given).unwrap_err()
}

#[test]
fn a_question_costs_nothing_whatever_is_said_of_it() {
    let mut table = asked();
    assert_eq!(table.run.kernel.account.reserved.steps, 0);
    let body = Settlement {
        result: json!("yes"),
        usage: Usage {
            wall_us: Some(86_400_000_000),
            tokens: Some(7),
            money_micros: Some(9),
            ..Usage::default()
        },
    };
    table.turn(vec![Given::about(
        kind::EFFECT_SETTLED,
        &EffectId::new("ask"),
        1,
        &body,
    )]);
    let account = table.run.kernel.account;
    assert_eq!(
        (
            account.spent.time_us,
            account.spent.tokens,
            account.spent.steps
        ),
        (0, 0, 0)
    );
    assert_eq!(account.unknown, Unknown::default());
    table.verify();
}

#[test]
fn a_question_that_nothing_waits_for_is_withdrawn_in_the_same_batch() {
    let mut table = asked();
    let outcome = table.turn(vec![paths("toy.drop", &["ask"])]);
    assert!(outcome.unwanted.is_empty(), "nobody has to be stopped");
    let batch = outcome.batch.unwrap();
    let withdrawn = &batch.events.last().unwrap().event;
    assert_eq!(withdrawn.kind, kind::EFFECT_ABANDONED);
    let body: EffectAbandoned = loopwright_core::kernel::body(withdrawn).unwrap();
    assert_eq!(body.why, AbandonedWhy::Withdrawn);
    assert_eq!(table.in_flight(), ["work"]);
    let late = late(&table, &answer("ask", 1, json!("yes")));
    assert!(late.to_string().contains("ask was withdrawn at"), "{late}");
    // Asked again, it is another question.
    let outcome = table.turn(vec![want("ask", Role::Human, 0)]);
    assert_eq!(announced(&outcome), [("ask", 2)]);
    let late = self::late(&table, &answer("ask", 1, json!("yes")));
    assert!(matches!(late, Late::Closed { attempt: 1, .. }), "{late}");
    table.turn(vec![answer("ask", 2, json!("yes")), settled("work", 1)]);
    table.verify();
}

#[test]
fn at_rest_a_question_ends_when_it_is_past_and_stays_open_otherwise() {
    let mut table = asked();
    table.turn(vec![settled("work", 1)]);
    assert_eq!(table.ended(), "waiting");
    // Nothing is wanted while nobody drives the run; that alone takes no question away.
    table.turn(vec![paths("toy.past", &["other"])]);
    assert_eq!(table.in_flight(), ["ask"]);
    // Words of a person that no answer fits any more: one that comes with them is late.
    let mut turn = Turn::new(&mut table.run, Micros(0), 1);
    turn.give(paths("toy.past", &["ask"])).unwrap();
    let late = turn.give(answer("ask", 1, json!("yes"))).unwrap_err();
    assert!(late.to_string().contains("ask was withdrawn at"), "{late}");
    let batch = turn.finish().unwrap().batch.unwrap();
    let last = &batch.events.last().unwrap().event;
    let body: EffectAbandoned = loopwright_core::kernel::body(last).unwrap();
    assert_eq!(body.why, AbandonedWhy::Withdrawn);
    table.batches.push(batch);
    assert!(table.in_flight().is_empty());
    let late = self::late(&table, &answer("ask", 1, json!("yes")));
    assert!(late.to_string().contains("ask was withdrawn at"), "{late}");
    table.verify();
}

#[test]
fn with_the_run_all_questions_end() {
    // While it is driven, and while nobody drives it.
    for driven in [true, false] {
        let mut table = asked();
        table.turn(vec![settled("work", 1)]);
        assert_eq!(table.ended(), "waiting");
        if driven {
            table.turn(vec![want("more", Role::Actor, 0), begun(2)]);
            table.turn(vec![act("toy.end", json!({}))]);
            table.turn(vec![settled("more", 1)]);
        } else {
            table.turn(vec![act("toy.end", json!({}))]);
        }
        assert!(table.in_flight().is_empty());
        assert_eq!(table.kinds().last(), Some(&kind::RUN_ENDED));
        let late = late(&table, &answer("ask", 1, json!("yes")));
        assert!(
            matches!(
                late,
                Late::Closed {
                    how: ClosedHow::Withdrawn,
                    ..
                }
            ),
            "{late}"
        );
        table.verify();
    }
}

#[test]
fn an_answer_given_twice_is_known_and_another_one_is_refused() {
    let mut table = asked();
    table
        .try_turn(
            1_700_000_000_000_000,
            vec![answer("ask", 1, json!({"b": 1, "a": 2}))],
        )
        .unwrap();
    let again = late(&table, &answer("ask", 1, json!({"a": 2, "b": 1})));
    assert!(again.is_repeat());
    assert!(
        again
            .to_string()
            .contains("this answer already, at 2023-11-14 22:13:20 UTC"),
        "{again}"
    );
    let other = late(&table, &answer("ask", 1, json!("no")));
    assert!(!other.is_repeat());
    let words = "the question ask was given another answer at 2023-11-14 22:13:20 UTC";
    assert_eq!(other.to_string(), words);
    assert!(matches!(
        other,
        Late::Closed {
            at: Micros(1_700_000_000_000_000),
            ..
        }
    ));
    table.verify();
}

#[test]
fn what_comes_too_late_records_nothing_and_the_turn_goes_on() {
    let mut table = asked();
    table.turn(vec![answer("ask", 1, json!("yes"))]);
    let before = table.run.clone();
    let mut turn = Turn::new(&mut table.run, before.kernel.last_time, 1);
    for given in [
        answer("ask", 1, json!("no")),
        settled("work", 2),
        abandoned("work", 3, AbandonedWhy::Unwanted),
        settled("nobody", 1),
        act("unknown.resolve", json!({"effect": "work", "as": "fail"})),
    ] {
        turn.give(given).unwrap_err();
    }
    turn.give(settled("work", 1)).unwrap();
    table.batches.extend(turn.finish().unwrap().batch);
    assert_eq!(table.ended(), "finished");
    table.verify();
    // A result of an attempt that was followed by another names that one.
    let mut table = asked();
    table.turn(vec![abandoned("work", 1, AbandonedWhy::HostDied)]);
    let late = late(&table, &settled("work", 1));
    assert_eq!(
        late.to_string(),
        "attempt 1 of work is not in flight any more: attempt 2 is"
    );
}

#[test]
fn after_the_end_only_remarks_are_recorded() {
    let mut table = asked();
    table.turn(vec![
        answer("ask", 1, json!("yes")),
        act("toy.end", json!({})),
    ]);
    table.turn(vec![settled("work", 1)]);
    let decisions = table.run.kernel.decisions;
    for given in [begun(2), act("toy.drop", json!({})), settled("work", 1)] {
        let late = late(&table, &given);
        let is_said =
            late.to_string().contains("has ended") || late.to_string().contains("not in flight");
        assert!(is_said, "{late}");
    }
    assert!(
        late(&table, &answer("ask", 1, json!("yes"))).is_repeat(),
        "also after the end"
    );
    let note = OperatorNoted {
        note: "tag.set".to_owned(),
        arguments: json!({"name": "good"}),
    };
    table.turn(vec![Given::new(kind::OPERATOR_NOTED, &note)]);
    assert_eq!(table.kinds().last(), Some(&kind::OPERATOR_NOTED));
    assert_eq!(
        table.run.kernel.decisions, decisions,
        "nothing follows from it"
    );
    table.verify();
}

#[test]
fn only_the_last_questions_are_remembered() {
    let mut table = Table::limited(Limits::default());
    for number in 1..=CLOSED_MAX as u64 + 3 {
        let id = format!("ask{number}");
        table.turn(vec![want(&id, Role::Human, 0), begun(number)]);
        table.turn(vec![answer(&id, 1, json!(number))]);
    }
    assert_eq!(table.run.kernel.closed.len(), CLOSED_MAX);
    assert!(late(&table, &answer("ask4", 1, json!(4))).is_repeat());
    let forgotten = late(&table, &answer("ask3", 1, json!(3)));
    assert!(
        matches!(forgotten, Late::NotInFlight { current: None, .. }),
        "{forgotten}"
    );
    table.verify();
}
