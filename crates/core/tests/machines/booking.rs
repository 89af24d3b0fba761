//! Children, and whoever else keeps an account of his own: over any row of losses and stops they are
//! booked once.

use loopwright_core::budget::{Ceiling, Limits};
use loopwright_core::effect::Booking;
use loopwright_core::ids::EffectId;
use loopwright_core::kernel::{self, AbandonedWhy, EffectAbandoned, kind};
use loopwright_core::role::Role;
use loopwright_core::turn::Given;
use loopwright_core::usage::Usage;
use proptest::prelude::*;
use serde_json::json;

use crate::table::{
    Table, abandoned, act, announced, begun, host_died, host_ended, tokens_used, used,
};
use crate::toy::Wanted;

fn tokens(limit: u64) -> Table {
    Table::limited(Limits {
        tokens: Some(limit),
        ..Limits::default()
    })
}

fn spent(table: &Table) -> u64 {
    table.run.kernel.account.spent.tokens
}

fn stopped(id: &str, attempt: u32, so_far: u64) -> Given {
    let body = EffectAbandoned {
        why: AbandonedWhy::Interrupted,
        usage: tokens_used(so_far),
    };
    Given::about(kind::EFFECT_ABANDONED, &EffectId::new(id), attempt, &body)
}

#[test]
fn a_lost_child_holds_its_ceiling_until_it_goes_on_and_is_booked_once() {
    let mut table = tokens(1000);
    table.turn(vec![Wanted::tokens("child", 900).child().given(), begun(1)]);
    table.turn(vec![
        host_died(1),
        abandoned("child", 1, AbandonedWhy::HostDied),
    ]);
    assert_eq!(spent(&table), 900, "it may have used all of it");
    let outcome = table.turn(vec![begun(2)]);
    assert_eq!(announced(&outcome), [("child", 2)]);
    assert_eq!(outcome.announced[0].ceiling.tokens, Some(900));
    assert_eq!(
        (spent(&table), table.run.kernel.account.reserved.tokens),
        (0, 900)
    );
    table.turn(vec![used("child", 2, 600)]);
    assert_eq!(spent(&table), 600);
    table.verify();
}

#[test]
fn every_attempt_of_a_call_is_paid_for() {
    let mut table = tokens(1000);
    table.turn(vec![Wanted::tokens("call", 300).given(), begun(1)]);
    table.turn(vec![
        host_died(1),
        abandoned("call", 1, AbandonedWhy::HostDied),
    ]);
    table.turn(vec![begun(2)]);
    table.turn(vec![used("call", 2, 200)]);
    assert_eq!(spent(&table), 500);
    table.verify();
}

#[test]
fn a_child_of_unknown_outcome_that_counts_as_failed_stays_booked() {
    let mut table = tokens(1000);
    table.turn(vec![Wanted::tokens("child", 400).child().given(), begun(1)]);
    let unknown = Given::about(kind::EFFECT_UNKNOWN, &EffectId::new("child"), 1, &json!({}));
    table.turn(vec![host_died(1), unknown]);
    let resolved = act(
        kernel::ACT_RESOLVE,
        json!({"effect": "child", "as": "fail"}),
    );
    table.turn(vec![resolved]);
    assert_eq!(spent(&table), 400);
    table.verify();
}

#[test]
fn a_child_without_a_ceiling_reserves_all_that_is_free() {
    let mut table = tokens(1000);
    let child = Wanted::new("child", Role::Actor, Ceiling::default()).child();
    assert_eq!(child.booking, Booking::AllAttempts);
    table.turn(vec![
        Wanted::tokens("a", 300).given(),
        child.given(),
        begun(1),
    ]);
    let reserved = |table: &Table| {
        table.run.kernel.in_flight[&EffectId::new("child")]
            .announcement
            .ceiling
    };
    assert_eq!(
        (reserved(&table).tokens, reserved(&table).money_micros),
        (Some(700), None)
    );
    // Nobody else can spend what it may spend.
    table.turn(vec![Wanted::tokens("b", 200).given()]);
    assert_eq!(table.in_flight(), ["a", "child"]);
    table.turn(vec![
        host_ended(1),
        used("a", 1, 100),
        stopped("child", 1, 250),
    ]);
    assert_eq!(spent(&table), 350);
    // It goes on with what is free now, its own taken back.
    assert_eq!(announced(&table.turn(vec![begun(2)])), [("child", 2)]);
    assert_eq!(reserved(&table).tokens, Some(900));
    table.turn(vec![used("child", 2, 300)]);
    assert_eq!((spent(&table), table.in_flight()), (400, vec!["b"]));
    table.verify();
}

/// How an attempt of a child ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Lost,
    Stopped,
    Silent,
}

proptest! {
    /// Whatever happens to a child, its parent is booked what the child used, once, and never
    /// more than its ceiling meanwhile.
    #[test]
    fn a_child_is_booked_once(
        ends in prop::collection::vec(
            (prop::sample::select(vec![End::Lost, End::Stopped, End::Silent]), 0u64..40), 0..8),
        last in 0u64..40,
    ) {
        let mut table = tokens(1000);
        table.turn(vec![Wanted::tokens("child", 500).child().given(), begun(1)]);
        let (mut invocation, mut in_all) = (1, 0);
        for (end, uses) in ends {
            in_all += uses;
            let attempt = invocation as u32;
            let given = match end {
                End::Lost => vec![host_died(invocation), abandoned("child", attempt, AbandonedWhy::HostDied)],
                End::Stopped => vec![host_ended(invocation), stopped("child", attempt, in_all)],
                End::Silent => vec![host_ended(invocation), abandoned("child", attempt, AbandonedWhy::Interrupted)],
            };
            table.turn(given);
            let booked = if matches!(end, End::Stopped) { in_all } else { 500 };
            prop_assert_eq!(spent(&table), booked);
            invocation += 1;
            table.turn(vec![begun(invocation)]);
            prop_assert_eq!((spent(&table), table.run.kernel.account.reserved.tokens), (0, 500));
        }
        table.turn(vec![used("child", invocation as u32, in_all + last)]);
        prop_assert_eq!(spent(&table), in_all + last);
        prop_assert_eq!(table.run.kernel.account.reserved.tokens, 0);
        prop_assert_eq!(table.run.kernel.account.unknown.tokens, 0);
        table.verify();
    }
}

#[test]
fn what_a_child_does_not_know_is_unknown_to_its_parent() {
    let mut table = Table::limited(Limits::default());
    let child = Wanted::new("child", Role::Actor, Ceiling::default()).child();
    table.turn(vec![child.given(), begun(1)]);
    table.turn(vec![
        host_died(1),
        abandoned("child", 1, AbandonedWhy::HostDied),
    ]);
    assert_eq!(table.run.kernel.account.unknown.tokens, 1);
    table.turn(vec![begun(2)]);
    let known = Usage {
        tokens: Some(5),
        money_micros: Some(0),
        ..Usage::default()
    };
    let body = loopwright_core::effect::Settlement {
        result: json!({}),
        usage: known,
    };
    table.turn(vec![Given::about(
        kind::EFFECT_SETTLED,
        &EffectId::new("child"),
        2,
        &body,
    )]);
    assert_eq!(
        (spent(&table), table.run.kernel.account.unknown.tokens),
        (5, 0)
    );
    table.verify();
}
