//! Limits that are set anew: recorded, effective at once, and not after the end.

use loopwright_core::budget::Limits;
use loopwright_core::kernel::{AbandonedWhy, kind};
use loopwright_core::role::Role;
use loopwright_core::turn::{Late, TurnError};
use serde_json::json;

use crate::table::{
    Table, abandoned, act, announced, answer, begun, host_died, limits_set, used, want,
};
use crate::toy::Wanted;

fn tokens(limit: u64) -> Limits {
    Limits {
        tokens: Some(limit),
        ..Limits::default()
    }
}

#[test]
fn what_was_refused_fits_in_the_next_invocation_after_a_raise() {
    let mut table = Table::limited(tokens(100));
    table.turn(vec![Wanted::tokens("a", 150).given(), begun(1)]);
    assert_eq!((table.ended(), table.in_flight().len()), ("finished", 0));
    // `resume --add-tokens 100`: one batch with the invocation's beginning.
    table.turn(vec![Wanted::tokens("a", 150).given()]);
    let outcome = table.turn(vec![limits_set(tokens(200)), begun(2)]);
    assert_eq!(announced(&outcome), [("a", 1)]);
    assert_eq!(table.state().limits, tokens(200), "the machine was told");
    table.turn(vec![used("a", 1, 120)]);
    table.verify();
}

#[test]
fn what_waits_begins_with_the_raise() {
    let mut table = Table::limited(tokens(100));
    table.turn(vec![
        Wanted::tokens("a", 80).given(),
        Wanted::tokens("b", 80).given(),
        begun(1),
    ]);
    assert_eq!(table.in_flight(), ["a"]);
    assert_eq!(
        announced(&table.turn(vec![limits_set(tokens(160))])),
        [("b", 1)]
    );
    // Said again it changes nothing.
    let before = table.run.kernel.account;
    let outcome = table.turn(vec![limits_set(tokens(160))]);
    let after = table.run.kernel.account;
    assert_eq!(
        (after.limits, after.reserved),
        (before.limits, before.reserved)
    );
    assert!(outcome.announced.is_empty());
    // Below what is in flight: it stays there, and nothing more begins.
    table.turn(vec![
        limits_set(tokens(10)),
        Wanted::tokens("c", 20).given(),
    ]);
    table.turn(vec![used("a", 1, 80), used("b", 1, 80)]);
    assert_eq!((table.in_flight().len(), table.ended()), (0, "finished"));
    table.verify();
}

#[test]
fn every_dimension_can_be_raised() {
    let all = Limits {
        steps: Some(1),
        time_us: Some(2),
        tokens: Some(3),
        money_micros: Some(4),
        wall_us: Some(5),
    };
    let mut table = Table::limited(Limits::default());
    table.turn(vec![limits_set(all)]);
    assert_eq!(table.run.kernel.account.limits, all);
    table.turn(vec![limits_set(Limits::default())]);
    assert_eq!(table.run.kernel.account.limits, Limits::default());
    table.verify();
}

#[test]
fn a_raise_comes_with_its_answer_or_not_at_all() {
    let mut table = Table::limited(tokens(100));
    table.turn(vec![want("ask", Role::Human, 0), begun(1)]);
    table.turn(vec![answer("ask", 1, json!("on")), limits_set(tokens(200))]);
    let before = table.run.clone();
    let mut turn = loopwright_core::turn::Turn::new(&mut table.run, before.kernel.last_time, 1);
    // The raise stands first, and would fit alone.
    let error = turn
        .say(vec![
            limits_set(tokens(300)),
            answer("ask", 1, json!("off")),
        ])
        .unwrap_err();
    assert!(
        matches!(
            error,
            TurnError::Late(Late::Closed {
                is_repeat: false,
                ..
            })
        ),
        "{error}"
    );
    assert!(turn.finish().unwrap().batch.is_none());
    assert_eq!(table.run, before);
    table.verify();
}

#[test]
fn after_the_end_there_is_nothing_to_raise() {
    let mut table = Table::limited(tokens(100));
    table.turn(vec![act("toy.end", json!({}))]);
    let words = table.refused(limits_set(tokens(200)));
    assert!(words.contains("the run has ended (stopped"), "{words}");
    assert!(words.contains(kind::LIMITS_SET), "{words}");
}

/// Killed at any moment, a raise that was recorded holds.
#[test]
fn a_raise_survives_a_death() {
    let mut table = Table::limited(tokens(100));
    table.turn(vec![
        Wanted::tokens("a", 80).given(),
        begun(1),
        limits_set(tokens(160)),
    ]);
    table.turn(vec![
        host_died(1),
        abandoned("a", 1, AbandonedWhy::HostDied),
    ]);
    assert_eq!(announced(&table.turn(vec![begun(2)])), [("a", 2)]);
    assert_eq!(table.run.kernel.account.limits, tokens(160));
    table.verify();
}
