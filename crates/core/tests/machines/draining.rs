//! A state that wants nothing new begun, and leaves what is in flight to its end.

use loopwright_core::budget::Limits;
use loopwright_core::ids::EffectId;
use loopwright_core::kernel::AbandonedWhy;
use loopwright_core::role::Role;

use crate::table::{Table, abandoned, announced, begun, paths, settled, want};

fn busy() -> Table {
    let mut table = Table::limited(Limits::default());
    for id in ["l1/b1/p1", "l1/b1/p2", "l1/b10/p1", "l1/b2/p1"] {
        table.turn(vec![want(id, Role::Step, 0)]);
    }
    table.turn(vec![want("l1/ask", Role::Human, 0), begun(1)]);
    assert_eq!(table.in_flight().len(), 5);
    table
}

const ALL: [&str; 5] = ["l1/b1/p1", "l1/b1/p2", "l1/b10/p1", "l1/b2/p1", "l1/ask"];

#[test]
fn everything_in_flight_finishes_and_then_the_invocation_ends() {
    let mut table = busy();
    let outcome = table.turn(vec![paths("toy.spare", &["*"]), paths("toy.drop", &ALL)]);
    assert!(outcome.unwanted.is_empty() && outcome.announced.is_empty());
    assert_eq!(table.in_flight().len(), 5);
    for id in ["l1/b2/p1", "l1/b1/p2", "l1/b10/p1", "l1/b1/p1"] {
        assert_eq!(table.ended(), "", "{id} is still paid for");
        table.turn(vec![settled(id, 1)]);
    }
    assert_eq!((table.ended(), table.state().extra), ("finished", 4));
    assert_eq!(
        table.in_flight(),
        ["l1/ask"],
        "a question stays open over invocations"
    );
    table.verify();
}

#[test]
fn a_pruned_branch_finishes_while_others_are_stopped_and_begin() {
    let mut table = busy();
    let outcome = table.turn(vec![
        paths("toy.spare", &["l1/b1", "l1/ask"]),
        paths("toy.drop", &ALL),
        want("l2/b1/p1", Role::Step, 0),
    ]);
    let stopped = ["l1/b10/p1", "l1/b2/p1"].map(EffectId::new);
    assert_eq!(outcome.unwanted, stopped);
    assert_eq!(announced(&outcome), [("l2/b1/p1", 1)]);
    let gone = |id| abandoned(id, 1, AbandonedWhy::Unwanted);
    table.turn(vec![gone("l1/b10/p1"), gone("l1/b2/p1")]);
    assert_eq!(
        table.in_flight(),
        ["l1/ask", "l1/b1/p1", "l1/b1/p2", "l2/b1/p1"]
    );
    // One that is lost while it is spared is not begun again.
    let outcome = table.turn(vec![abandoned("l1/b1/p1", 1, AbandonedWhy::HostDied)]);
    assert!(outcome.announced.is_empty());
    table.turn(vec![settled("l1/b1/p2", 1), settled("l2/b1/p1", 1)]);
    assert_eq!(table.ended(), "finished");
    table.verify();
}
