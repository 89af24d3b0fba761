//! The kernel and its turns, driven with a toy machine.

use loopwright_core::event::Scope;
use loopwright_core::ids::EffectId;
use loopwright_core::kernel::{self, AbandonedWhy, kind};
use loopwright_core::machine::Status;
use loopwright_core::role::Role;
use loopwright_core::turn::{Given, TurnError};
use loopwright_core::usage::Dimension;
use serde_json::json;

use crate::table::{Table, abandoned, act, announced, begun, host_ended, paths, settled, want};

#[test]
fn nothing_is_announced_before_an_invocation_and_everything_at_its_beginning() {
    let mut table = Table::new(None, false);
    let first = table.turn(vec![want("a", Role::Actor, 1), want("b", Role::Actor, 1)]);
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
fn what_can_never_fit_the_budget_is_refused_and_the_rest_goes_on() {
    let mut table = Table::new(Some(2), false);
    let wants = [("a", 1), ("b", 3), ("c", 1)].map(|(id, steps)| want(id, Role::Actor, steps));
    table.turn(wants.into());
    let outcome = table.turn(vec![begun(1)]);
    assert_eq!(announced(&outcome), [("a", 1), ("c", 1)]);
    let kinds = table.kinds();
    let refused = kinds.iter().filter(|name| **name == kind::EFFECT_REFUSED);
    assert_eq!(refused.count(), 1);
    let account = &table.run.kernel.account;
    assert_eq!(
        (account.reserved.steps, account.left(Dimension::Steps)),
        (2, Some(0))
    );
    table.turn(vec![settled("a", 1), settled("c", 1)]);
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
    let outcome = table.turn(vec![paths("toy.drop", &["a"])]);
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
    // Nothing more happens to it.
    assert!(
        table
            .refused(act("toy.end", json!({})))
            .contains("the run has ended")
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
        let said = act(kernel::ACT_RESOLVE, json!({"effect": "a", "as": word}));
        let resolution = match word {
            "retry" => kernel::Resolution::Retry,
            _ => kernel::Resolution::Fail,
        };
        let typed = resolution.act(&EffectId::new("a"));
        assert_eq!(said.body, serde_json::to_value(typed).unwrap());
        table.turn(vec![said]);
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
