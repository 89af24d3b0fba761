//! The wall clock: what the times of events say, without deaths, pauses and people.

use loopwright_core::budget::Limits;
use loopwright_core::kernel::{AbandonedWhy, kind};
use loopwright_core::role::Role;
use loopwright_core::time::Micros;
use loopwright_core::turn::Given;
use loopwright_core::usage::Dimension;
use serde_json::json;

use crate::table::{
    Table, abandoned, act, answer, begun, host_died, host_ended, limits_set, settled, want,
};

fn wall(limit_us: Option<u64>) -> Limits {
    Limits {
        wall_us: limit_us,
        ..Limits::default()
    }
}

fn ran(table: &Table) -> u64 {
    table.run.kernel.account.spent.wall_us
}

fn at(table: &mut Table, time: i64, given: Vec<Given>) -> loopwright_core::turn::Outcome {
    table.try_turn(time, given).unwrap()
}

fn woken() -> Given {
    Given::new(kind::CLOCK_REACHED, &json!({}))
}

#[test]
fn it_runs_while_an_invocation_is_open_and_something_is_done() {
    let mut table = Table::limited(wall(None));
    at(&mut table, 100, vec![want("a", Role::Actor, 0)]);
    at(&mut table, 1_000, vec![begun(1)]);
    at(&mut table, 1_040, vec![want("b", Role::Actor, 0)]);
    at(
        &mut table,
        1_050,
        vec![
            host_ended(1),
            abandoned("a", 1, AbandonedWhy::Interrupted),
            settled("b", 1),
        ],
    );
    assert_eq!(ran(&table), 50);
    // A day passes.
    at(&mut table, 90_000, vec![begun(2)]);
    at(&mut table, 90_007, vec![settled("a", 2)]);
    assert_eq!((ran(&table), table.ended()), (57, "finished"));
    table.verify();
}

#[test]
fn it_stands_still_while_only_a_person_is_waited_for() {
    let mut table = Table::limited(wall(Some(1_000)));
    at(
        &mut table,
        100,
        vec![
            want("ask", Role::Human, 0),
            want("a", Role::Actor, 0),
            begun(1),
        ],
    );
    // Somebody works beside the question.
    assert_eq!(table.run.deadline(), Some(Micros(1_100)));
    at(&mut table, 300, vec![settled("a", 1)]);
    assert_eq!((ran(&table), table.ended()), (200, "waiting"));
    at(&mut table, 9_000_000, vec![answer("ask", 1, json!("yes"))]);
    assert_eq!(ran(&table), 200);
    table.verify();
}

/// A machine that waits for a person with a deadline of its own keeps the invocation open.
#[test]
fn it_stands_still_in_an_open_invocation_too() {
    let mut table = Table::limited(wall(Some(1_000)));
    at(&mut table, 0, vec![act("toy.wake", json!({"at": 5_000}))]);
    at(
        &mut table,
        100,
        vec![
            want("a", Role::Actor, 0),
            want("ask", Role::Human, 0),
            begun(1),
        ],
    );
    at(&mut table, 200, vec![settled("a", 1)]);
    assert!(table.run.kernel.invocation.is_some());
    assert_eq!(
        table.run.deadline(),
        Some(Micros(5_000)),
        "the machine's alone"
    );
    at(&mut table, 3_000, vec![want("b", Role::Actor, 0)]);
    assert_eq!(ran(&table), 100);
    at(&mut table, 3_050, vec![settled("b", 1)]);
    assert_eq!(ran(&table), 150);
    table.verify();
}

#[test]
fn nobody_knows_when_a_host_died() {
    let mut table = Table::limited(wall(None));
    at(&mut table, 100, vec![want("a", Role::Actor, 0), begun(1)]);
    at(&mut table, 150, vec![want("b", Role::Actor, 0)]);
    let given = vec![
        host_died(1),
        abandoned("a", 1, AbandonedWhy::HostDied),
        abandoned("b", 1, AbandonedWhy::HostDied),
    ];
    at(&mut table, 77_000_000, given);
    assert_eq!(ran(&table), 50);
    table.verify();
}

#[test]
fn its_end_is_said_once_and_nothing_new_begins_until_it_is_raised() {
    let mut table = Table::limited(wall(Some(100)));
    at(&mut table, 1_000, vec![want("a", Role::Actor, 0), begun(1)]);
    assert_eq!(table.run.deadline(), Some(Micros(1_100)));
    at(&mut table, 1_090, vec![woken()]);
    assert_eq!(
        (table.state().exhausted, table.run.deadline()),
        (0, Some(Micros(1_100)))
    );
    at(&mut table, 1_100, vec![woken()]);
    assert_eq!((table.state().exhausted, table.run.deadline()), (1, None));
    // What is in flight may finish; what is new is refused.
    at(&mut table, 1_120, vec![want("b", Role::Actor, 0)]);
    assert_eq!(
        (table.in_flight(), table.kinds().last().copied()),
        (vec!["a"], Some(kind::EFFECT_REFUSED))
    );
    // A person can be asked all the same.
    at(
        &mut table,
        1_130,
        vec![want("ask", Role::Human, 0), settled("a", 1)],
    );
    assert_eq!((table.in_flight(), table.ended()), (vec!["ask"], "waiting"));
    assert_eq!(
        (ran(&table), table.run.kernel.account.left(Dimension::Wall)),
        (130, Some(0))
    );
    let given = vec![answer("ask", 1, json!("on")), limits_set(wall(Some(200)))];
    at(&mut table, 5_000_000, given);
    at(
        &mut table,
        6_000_000,
        vec![want("c", Role::Actor, 0), begun(2)],
    );
    assert_eq!(table.in_flight(), ["c"]);
    assert_eq!(table.run.deadline(), Some(Micros(6_000_070)));
    at(&mut table, 6_000_070, vec![woken()]);
    assert_eq!(table.state().exhausted, 2);
    table.verify();
}
