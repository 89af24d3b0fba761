//! What is admitted to a budget: what it would be if each effect began after the end of those before
//! it, in whatever order results arrive.

use std::collections::BTreeMap;

use loopwright_core::budget::Limits;
use loopwright_core::kernel::kind;
use proptest::prelude::*;

use crate::table::{Table, announced, begun, used};
use crate::toy::Wanted;

fn tokens(limit: u64) -> Table {
    Table::limited(Limits {
        tokens: Some(limit),
        ..Limits::default()
    })
}

fn refused(table: &Table) -> Vec<String> {
    let events = table.batches.iter().flat_map(|batch| &batch.events);
    let refused = events.filter(|sealed| sealed.event.kind == kind::EFFECT_REFUSED);
    refused
        .map(|sealed| sealed.event.effect.as_ref().unwrap().to_string())
        .collect()
}

#[test]
fn what_does_not_fit_beside_others_waits_for_them_and_nothing_overtakes_it() {
    let mut table = tokens(100);
    let wants = [("a", 60), ("b", 60), ("c", 10)];
    table.turn(
        wants
            .map(|(id, most)| Wanted::tokens(id, most).given())
            .into(),
    );
    assert_eq!(announced(&table.turn(vec![begun(1)])), [("a", 1)]);
    assert!(refused(&table).is_empty());
    let outcome = table.turn(vec![used("a", 1, 30)]);
    assert_eq!(announced(&outcome), [("b", 1), ("c", 1)]);
    table.turn(vec![used("c", 1, 0)]);
    table.turn(vec![used("b", 1, 60)]);
    assert_eq!(
        (table.ended(), table.run.kernel.account.spent.tokens),
        ("finished", 90)
    );
    table.verify();
}

#[test]
fn what_can_not_fit_even_after_others_is_refused_at_once() {
    let mut table = tokens(100);
    table.turn(vec![
        Wanted::tokens("a", 60).given(),
        Wanted::tokens("b", 101).given(),
        begun(1),
    ]);
    assert_eq!(
        (refused(&table), table.in_flight()),
        (vec!["b".to_owned()], vec!["a"])
    );
    // What waited is refused as soon as it is certain.
    table.turn(vec![Wanted::tokens("c", 60).given()]);
    assert_eq!(refused(&table).len(), 1);
    table.turn(vec![used("a", 1, 41)]);
    assert_eq!(refused(&table), ["b", "c"]);
    assert_eq!(table.ended(), "finished");
    table.verify();
}

/// The calls of a random search: a ceiling each, and what it really uses.
fn calls() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let call = (0u64..60, 0u64..=100).prop_map(|(most, part)| (most, most * part / 100));
    prop::collection::vec(call, 1..24)
}

fn name(index: usize) -> String {
    format!("e{index:02}")
}

/// What is admitted if each begins after the end of those before it.
fn one_after_the_other(limit: u64, calls: &[(u64, u64)]) -> Vec<usize> {
    let mut spent = 0;
    let mut admitted = Vec::new();
    for (index, (most, used)) in calls.iter().enumerate() {
        if most + spent <= limit {
            admitted.push(index);
            spent += used;
        }
    }
    admitted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_order_of_results_admits_and_refuses_nothing_else(
        limit in 0u64..300,
        calls in calls(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 24),
    ) {
        let mut table = tokens(limit);
        for (index, (most, _)) in calls.iter().enumerate() {
            table.turn(vec![Wanted::tokens(&name(index), *most).given()]);
        }
        table.turn(vec![begun(1)]);
        let uses: BTreeMap<String, u64> =
            calls.iter().enumerate().map(|(index, (_, used))| (name(index), *used)).collect();
        let mut admitted = Vec::new();
        for index in order {
            let open: Vec<String> = table.in_flight().iter().map(ToString::to_string).collect();
            if open.is_empty() {
                break;
            }
            let account = table.run.kernel.account;
            prop_assert!(account.spent.plus(account.reserved).tokens <= limit);
            let next = index.get(&open);
            admitted.push(next.clone());
            table.turn(vec![used(next, 1, uses[next])]);
        }
        // Nothing waits without something in flight.
        prop_assert_eq!(table.ended(), "finished");
        admitted.sort();
        let serial: Vec<String> = one_after_the_other(limit, &calls).into_iter().map(name).collect();
        prop_assert_eq!(admitted, serial);
        table.verify();
    }
}
